/* SPDX-License-Identifier: BSD-3-Clause */
/* Detectors of errors in device memory: what the driver counts (NVML), a scrub of what should not
 * have changed, a number in a file; and errors on purpose, from HALE_OPENCL or `hale inject ecc`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cancel.h"
#include "base/fmt.h"
#include "ocl/epoch/nvml.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

/* ---- errors on purpose ---- */

enum { PENDING_MAX = 16 };
struct detect_injection {
	ocl_phase_t at;
	uint64_t epoch, times;
};
static struct detect_injection pending[PENDING_MAX];
static int pending_count;
static int inject_fd = -1;

static void add_injection(ocl_phase_t at, uint64_t epoch, uint64_t times)
{
	for (int i = 0; i < PENDING_MAX; i++) {
		if (pending[i].times > 0)
			continue;
		pending[i] = (struct detect_injection){at, epoch, times};
		pending_count += times > 0;
		return;
	}
}

/* An abstract name: nothing can be left behind. Only this user, or root, may send. */
static void open_inject_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int on = 1, n;

	inject_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (inject_fd < 0)
		return;
	setsockopt(inject_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	n = (int)fmt_print(a.sun_path + 1, sizeof(a.sun_path) - 1, "hale-opencl-%d", (int)getpid());
	if (bind(inject_fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) != 0) {
		close(inject_fd);
		inject_fd = -1;
	} else {
		ocl_guest_descriptor(inject_fd, true);
	}
}

void ocl_detect_reborn(void)
{
	if (inject_fd < 0)
		return;
	ocl_guest_descriptor(inject_fd, false);
	open_inject_socket();
}

static bool from_us(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct ucred cred;
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		return cred.uid == getuid() || cred.uid == 0;
	}
	return false;
}

/* Asked for by people: epochs of less than this don't each ask the kernel. */
static const double asks_apart = 50e-6;
static double asked; /* when */

static void receive_injections(double now)
{
	char text[64], control[CMSG_SPACE(sizeof(struct ucred))];
	unsigned long epoch, times;

	if (now >= asked &&
	    now - asked < asks_apart) /* less: restarted, on a machine that is up for less */
		return;
	asked = now;
	UNCANCELLED;
	while (inject_fd >= 0) {
		struct iovec v = {text, sizeof(text) - 1};
		struct msghdr m = {.msg_iov = &v,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(inject_fd, &m, MSG_DONTWAIT);

		if (n <= 0)
			return;
		text[n] = '\0';
		if (from_us(&m) && sscanf(text, "ecc %lu %lu", &epoch, &times) == 2)
			add_injection(OCL_AT_EPOCH, epoch, times);
	}
}

/* How many of the kind there have been, with this one. */
static uint64_t number_of(ocl_phase_t at)
{
	return at == OCL_AT_EPOCH	 ? ocl.report.epochs
	       : at == OCL_AT_CHECKPOINT ? ocl.report.checkpoints + 1
					 : ocl.report.replays;
}

static bool injected(ocl_phase_t phase, double now)
{
	receive_injections(now);
	for (int i = 0; pending_count > 0 && i < PENDING_MAX; i++) {
		if (pending[i].times > 0 &&
		    (pending[i].at == OCL_AT_EPOCH || pending[i].at == phase) &&
		    number_of(pending[i].at) >= pending[i].epoch) {
			pending_count -= --pending[i].times == 0;
			return true;
		}
	}
	return false;
}

/* ---- NVML ---- */

static bool counts;    /* somebody counts errors */
static bool in_server; /* the driver's process does (ocl/remote/): this one opens no device */

static uint64_t errors_of(cl_device_id device)
{
	uint64_t n = 0;
	cl_int status;

	if (!in_server)
		return ocl_nvml_errors(device, NEXT->clGetDeviceInfo);
	status = NEXT->clGetDeviceInfo(device, OCL_DEVICE_ERRORS, sizeof(n), &n, NULL);
	if (status == CL_INVALID_VALUE)
		counts = false;
	return n;
}

/* Of all devices of the domain; those without a counter have none. */
static uint64_t nvml_count(const struct domain *d)
{
	UNCANCELLED;
	uint64_t sum = 0;

	for (cl_uint i = 0; counts && i < d->device_count; i++)
		sum += errors_of(d->devices[i]);
	return sum;
}

/* ---- the others ---- */

/* False: there is no number to be read, which may be about to be written. */
static bool file_read(uint64_t *count)
{
	UNCANCELLED;
	char text[32] = "", *end;
	int fd = open(ocl.set.file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	int code = errno;

	if (fd >= 0)
		close(fd);
	errno = n < 0 ? code : 0;
	*count = strtoull(text, &end, 10);
	return end != text;
}

/* What was there last counts until there is something else. */
static uint64_t file_count(void)
{
	static uint64_t last; /* guarded by the lock */
	uint64_t count;

	if (file_read(&count))
		last = count;
	return last;
}

static void look_at_file(void)
{
	uint64_t count;

	if (!file_read(&count))
		log_warn(
		    "opencl: check=file:%s: %s; errors count from when there is a number in it",
		    ocl.set.file, errno ? strerror(errno) : "there is no number in it");
}

static uint64_t count_now(struct domain *d)
{
	if (ocl.set.check == OCL_CHECK_NVML)
		return counts ? nvml_count(d) : 0;
	return ocl.set.check == OCL_CHECK_FILE ? file_count() : 0;
}

/* ---- the face ---- */

void ocl_detect_init(void)
{
	in_server = getenv("HALE_OPENCL_VENDORS") != NULL;
	if (ocl.set.check == OCL_CHECK_NVML)
		counts = in_server || ocl_nvml_load();
	if (ocl.set.check == OCL_CHECK_FILE)
		look_at_file();
	if (ocl.set.inject_epoch > 0)
		add_injection(ocl.set.inject_at, ocl.set.inject_epoch, ocl.set.inject_times);
	open_inject_socket();
}

void ocl_detect_child(bool protects)
{
	if (inject_fd >= 0)
		close(inject_fd);
	inject_fd = -1;
	if (protects)
		open_inject_socket();
}

/* Whether a check takes time that is worth a look at the clock. */
static bool asks_somebody(void)
{
	return ocl.set.check == OCL_CHECK_NVML ? counts : ocl.set.check != OCL_CHECK_NONE;
}

bool ocl_detect_errors(struct domain *d, ocl_phase_t phase, double start)
{
	uint64_t count = d->errors_base;
	bool errors;

	ocl.report.checks++;
	if (ocl.set.check == OCL_CHECK_NVML && counts)
		count = nvml_count(d);
	else if (ocl.set.check == OCL_CHECK_FILE)
		count = file_count();
	errors = d->damaged = injected(phase, start);
	if (count > d->errors_base)
		errors = true;
	d->errors_base = count;
	if (!errors && ocl.set.check == OCL_CHECK_SCRUB)
		errors = ocl_checkpoint_scrub(d);
	if (errors)
		ocl.report.errors++;
	if (asks_somebody())
		ocl.report.check += clock_seconds() - start;
	return errors;
}

void ocl_detect_settle(struct domain *d)
{
	d->errors_base = count_now(d);
}
