// SPDX-License-Identifier: BSD-3-Clause
/* Linked without shared libraries, so Hale's is not in it: after half a second it becomes the
 * program that $LATE names. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	usleep(500000);
	argv[0] = getenv("LATE");
	execv(argv[0], argv);
	return 1;
}
