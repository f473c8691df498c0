/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-opencl-server: takes requests from the ring, which server.c carries out. Started by the
 * driver in a program (client.c) with the shared region as descriptor WIRE_FD; ends when the
 * program does. For a program on another node (--network) its daemon starts it, with connections.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "ocl/remote/server.h"

/* Where no device is made of this machine's processors, and each rank of the node has some of these
 * to spare, a core for each side is spent as drivers of GPUs do: to be woken takes 10 to 50 us. */
static uint32_t patience(void)
{
	const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsigned beside = ranks ? (unsigned)atoi(ranks) : 1;

	return !devices_compute_here() && cpus_allowed() >= 4 * (beside ? beside : 1) ? 2000 : 0;
}

static int serve_beside(void)
{
	bool good;

	if (!ring_open()) {
		log_warn(
		    "hale-opencl-server is started by OpenCL programs under hale run --opencl");
		return 64;
	}
	svm_open();
	atomic_store(&wire->server_pid, (uint32_t)getpid());
	good = ring_watch();
	if (good)
		good = devices_begin(wire->trouble, sizeof(wire->trouble));
	else
		snprintf(wire->trouble, sizeof(wire->trouble), "can't watch the program");
	if (good)
		atomic_store(&wire->patience, patience());
	ring_say_ready(good);
	if (good)
		ring_run(carry_out, NULL);
	return 1;
}

static int serve_network(void)
{
	bool good;

	if (!net_open())
		return 64;
	good = devices_begin(wire->trouble, sizeof(wire->trouble));
	wire->devices = devices_sum();
	atomic_store(&wire->patience, patience());
	net_say_ready(good);
	if (good)
		net_run();
	return 1;
}

int main(int argc, char **argv)
{
	ring_ignore_signals();
	log_init_from_env();
	/* blocks for transfers come and go: what has been touched stays */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	return argc > 1 && strcmp(argv[1], "--network") == 0 ? serve_network() : serve_beside();
}
