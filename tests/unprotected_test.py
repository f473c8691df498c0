#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of which nothing can be saved: refused at the start where checkpoints are asked for,
otherwise told of, and run."""

from lib import *


def build(s, name, text, *flags):
    source = s.write(name + ".c", text)
    r = s.run("gcc", "-o", s.path(name), source, *flags)
    if r.status != 0:
        skip(f"gcc {' '.join(flags)} does not work here")
    return s.path(name)


WAITS = """#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	puts("here");
	fflush(stdout);
	while (argc > 1 && access(argv[1], F_OK))
		usleep(10000);
	return 0;
}
"""


def told(s, why, *program, **kw):
    """Refused with --ckpt-every; with a warning otherwise, and hale ckpt says why."""
    for mpi in [], ["--no-mpi"]:
        r = s.hale_run(2, *program, options=mpi + ["--ckpt-every", "1s"], **kw)
        expect(r.status == EXIT_USAGE and not r.out, r)
        expect(re.search(why, r.err) and "leave out --ckpt-every" in r.err, r)
    r = s.hale_run(1, *program, **kw)
    expect(r.status == 0 and r.out == "here\n", r)
    expect(re.search(why, r.err) and "it runs unprotected" in r.err and "--no-mpi" not in r.err, r)
    go = s.path("go")
    job = s.hale_start(1, *program, go, options=["--no-mpi"], **kw)
    job.until_output("here")
    r = s.hale("ckpt", f"{os.path.basename(program[0])}.{job.pid}")
    expect(r.status != 0 and re.search(why, r.err), r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0, r)
    os.unlink(go)


@test
def static_programs_are_not_unprotected_in_silence(s):
    static = build(s, "static", WAITS, "-static")
    told(s, "'[^']*/static' is linked statically", static)
    told(s, "is linked statically", build(s, "pie", WAITS, "-static-pie"))
    # what runs a script counts
    script = s.write("script", f"#!{static}\n")
    os.chmod(script, 0o755)
    r = s.hale_run(1, script, options=["--ckpt-every", "1s"])
    expect(r.status == EXIT_USAGE and re.search("'[^']*/script' is run by '[^']*/static', which is "
                                                "linked statically", r.err), r)
    script = s.write("by-env", "#!/usr/bin/env static\n")
    os.chmod(script, 0o755)
    env = {"PATH": s.dir + ":" + os.environ["PATH"]}
    r = s.hale_run(1, script, options=["--ckpt-every", "1s"], env=env)
    expect(r.status == EXIT_USAGE and "which is linked statically" in r.err, r)
    # but not an argument of what runs
    r = s.hale_run(1, "ls", static, options=["--no-mpi", "--ckpt-every", "1s"])
    expect(r.status == 0 and "static" in r.out and not said(r), r)


@test
def a_rank_that_goes_on_as_a_program_without_the_library_is_not_killed(s):
    """What starts it has the library, and the signal that asks for a checkpoint would end it."""
    static = build(s, "static", WAITS, "-static")
    for program in (["sh", "-c", f"exec {static} $0"], ["env", "-u", "LD_PRELOAD", "sh", "-c",
                                                       f"echo here; while ! test -e $0; do :; done"]):
        go = s.path("go")
        job = s.hale_start(2, *program, go, options=["--no-mpi", "--ckpt-every", "100ms"])
        job.until_says(r"no checkpoint: rank \d can't be captured: hale's library is not in the program "
                       r"that process \d+ executes now")
        r = s.hale("ckpt", job.id())
        expect(r.status != 0 and "hale's library is not in the program" in r.err, r)
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "here\nhere\n", r)
        os.unlink(go)


@test
def programs_with_other_rights_are_not_unprotected_in_silence(s):
    if os.geteuid() != 0:
        skip("a program of another user is made by root")
    exe = build(s, "other", WAITS)
    os.chmod(s.dir, 0o755)
    os.chown(exe, 65534, 65534)
    os.chmod(exe, 0o4755)
    if os.statvfs(exe).f_flag & os.ST_NOSUID:
        skip("the folder of tests is mounted nosuid")
    r = s.hale_run(1, exe, options=["--no-mpi", "--ckpt-every", "1s"])
    expect(r.status == EXIT_USAGE and "is executed with rights of another user" in r.err, r)
    r = s.hale_run(1, exe, options=["--no-mpi"])
    expect(r.status == 0 and r.out == "here\n" and "it runs unprotected" in r.err, r)
    os.chown(exe, 0, 0)
    os.chmod(exe, 0o4755)
    r = s.hale_run(1, exe, options=["--no-mpi", "--ckpt-every", "1s"])
    expect(r.status == 0 and not said(r), r)


@test
def programs_with_sanitizers_run_and_are_not_saved(s):
    quiet = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
    for kind, name in (("address", "AddressSanitizer"), ("thread", "ThreadSanitizer"),
                       ("leak", "LeakSanitizer")):
        exe = s.compile("checked", flags=[f"-fsanitize={kind}"])
        r = s.hale_run(2, exe, env=quiet, options=["--ckpt-every", "1s"])
        expect(r.status == EXIT_USAGE and f"is built with {name}" in r.err, r)
        r = s.hale_run(2, exe, env=quiet)
        expect(r.status == 0 and r.out == "begun\nsums right\n", r)
        expect(len(said(r)) == 1 and "it runs unprotected" in r.err, r)
    exe = s.compile("checked", flags=["-fsanitize=undefined"])
    r = s.hale_run(2, exe, options=["--ckpt-every", "30ms", "--report",
                                        "report.json"])
    expect(json.loads(s.read("report.json"))["checkpoints"][0]["complete"], r)
    expect(r.status == 0 and r.out == "begun\nsums right\n" and "unprotected" not in r.err, r)


@test
def a_sanitizer_inside_a_program_is_noticed_at_the_checkpoint(s):
    """Its runtime is no library there, or the program is started by a script."""
    quiet = {"ASAN_OPTIONS": "detect_leaks=0"}
    exe = s.compile("checked", flags=["-fsanitize=address", "-static-libasan"])
    go = s.path("go")
    job = s.hale_start(2, exe, go, env=quiet)
    job.until_output("begun")
    r = s.hale("ckpt", f"checked.{job.pid}")
    expect(r.status != 0 and "is built with AddressSanitizer, whose memory can't be saved" in r.err, r)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "begun\nsums right\n", r)


@test
def memory_where_the_segment_would_be_stays_the_programs(s):
    exe = s.compile("taken")
    wanted = s.hale_run(2, exe, 60, 0)
    expect(wanted.status == 0 and "step 59 " in wanted.out, wanted)
    r = s.hale_run(2, exe, 60, 20, options=["--ckpt-every", "200ms", "--inject",
                                            "kill:rank=1,at-ckpt=3", "--report", "report.json"])
    expect(r.status == 0 and r.out == wanted.out, r)
    expect(json.loads(s.read("report.json"))["restarts"] == 1, r)


main()
