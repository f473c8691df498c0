#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a program has chosen by the processor that it was started on (--cpu-baseline), and jobs that do not want to run
without checkpoints (--require-checkpoints)."""

from lib import *

EXIT_UNPROTECTED = 74

CHOSEN = """
#include <stdio.h>
#include <sys/platform/x86.h>
#include <unistd.h>
int main(void)
{
	FILE *f = fopen("there", "w");
	fclose(f);
	while (access("go", F_OK))
		usleep(10000);
	printf("%d %d\\n", CPU_FEATURE_ACTIVE(AVX2) != 0, CPU_FEATURE_ACTIVE(AVX512F) != 0);
	return 0;
}
"""


def processor_of(s, path):
    r = s.hale("image", "show", "--json", os.path.join(path, "rank-0.img"))
    expect(r.status == 0, r)
    return json.loads(r.out)["processor"].split(", ")


def started(s, *options):
    r = s.run("gcc", "-O1", "-o", s.path("chosen"), s.write("chosen.c", CHOSEN))
    expect(r.status == 0, r)
    job = s.hale_start(1, s.path("chosen"), options=["--no-mpi", "--ckpt-every", "1h", *options])
    job.until(lambda: os.path.exists(s.path("there")), "the program")
    return job, job.checkpoint()


def need(feature):
    with open("/proc/cpuinfo") as f:
        if feature not in f.read().split():
            skip(f"this processor has no {feature}")


@test
def an_image_says_what_its_program_has_chosen_and_is_refused_where_that_is_not(s):
    need("avx2")
    job, path = started(s)
    expect("AVX2" in processor_of(s, path), processor_of(s, path))
    job.kill()
    job.wait()
    s.write("go", "")
    r = s.hale("restart", path, env=dict(HALE_CPU_LACKS="AVX2,FMA"))
    expect(r.status == EXIT_UNRECOVERED and "may use what this processor does not have (AVX2, FMA)" in r.err, r)
    r = s.hale("restart", path)
    expect(r.status == 0 and r.out.startswith("1 "), r)


@test
def a_baseline_hides_features_from_libraries_and_the_image_goes_anywhere(s):
    need("avx2")
    job, path = started(s, "--cpu-baseline", "x86-64-v2")
    expect(not set(processor_of(s, path)) & {"AVX", "AVX2", "FMA", "AVX512F"}, processor_of(s, path))
    job.kill()
    job.wait()
    s.write("go", "")
    r = s.hale("restart", path, env=dict(HALE_CPU_LACKS="AVX,AVX2,FMA,BMI1,BMI2,F16C,MOVBE,LZCNT,AVX512F,RTM"))
    expect(r.status == 0 and r.out == "0 0\n", r)


@test
def numpy_gives_the_same_under_a_baseline(s):
    program = "import numpy; a = numpy.arange(90000.).reshape(300, 300); print(int((a @ a).trace()))"
    plain = s.run(PYTHON, "-c", program)
    if plain.status:
        skip("no numpy")
    for baseline in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        r = s.hale_run(1, PYTHON, "-W", "ignore", "-c", program, options=["--no-mpi", "--cpu-baseline", baseline])
        expect(r.status == 0 and r.out == plain.out, r, plain)
    r = s.hale_run(1, "true", options=["--no-mpi", "--cpu-baseline", "pentium"])
    expect(r.status == EXIT_USAGE and "x86-64-v2, x86-64-v3 or x86-64-v4" in r.err, r)


OWNED = """
import fcntl, os, time
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())
while True: time.sleep(0.01)
"""


@test
def a_job_that_requires_checkpoints_ends_when_there_is_none(s):
    r = s.hale_run(1, PYTHON, "-c", OWNED, options=["--no-mpi", "--ckpt-every", "100ms", "--require-checkpoints",
                                                    "--report", "report.json"])
    expect(r.status == EXIT_UNPROTECTED, r)
    expect(re.search(r"the job ends, since it would go on unprotected \(--require-checkpoints\): .*sends signals to a "
                     r"process that is not captured with it", r.err), r)
    expect("sends signals" in s.report()["unprotected"]["why"], s.report())
    s.until_nothing_runs()


@test
def a_job_that_requires_checkpoints_and_gets_them_runs_to_its_end(s):
    r = s.hale_run(1, PYTHON, "-c", "import time; time.sleep(0.6); print('done')",
                   options=["--no-mpi", "--ckpt-every", "100ms", "--require-checkpoints"])
    expect(r.status == 0 and r.out == "done\n", r)


@test
def a_program_that_can_never_be_saved_is_not_started_where_checkpoints_are_required(s):
    r = s.run("gcc", "-static", "-o", s.path("static"), s.write("static.c", "int main(void) { return 0; }\n"))
    if r.status:
        skip("no static libc")
    r = s.hale_run(1, s.path("static"), options=["--no-mpi", "--require-checkpoints"])
    expect(r.status == EXIT_USAGE and "or leave out --require-checkpoints" in r.err, r)


main()
