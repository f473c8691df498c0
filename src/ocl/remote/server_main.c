/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-opencl-server: takes requests, which server.c carries out. The driver in a program starts it
 * (client_start.c) with the shared region as descriptor WIRE_FD, and it ends with the program. With
 * --network the program is on another node: then the daemon of this one starts it (net_daemon.c),
 * with two connections, and it ends with the relay. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/net.h"
#include "ocl/remote/server.h"

/* Devices that are made of this machine's processors need the cores themselves. */
static uint32_t patience(void)
{
	return devices_compute_here() ? 0 : net_patience();
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
