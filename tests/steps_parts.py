# SPDX-License-Identifier: BSD-3-Clause
"""tests/programs/steps.c as scenarios use it: it runs until the test has seen what it waits for, however long
that takes on a busy machine, is told to stop then, and what it has printed is compared with what it
prints undisturbed in as many steps."""

from lib import *

PAUSE_MS = 20


def steps(s):
    exe = s.path("steps")
    return exe if os.path.exists(exe) else s.compile("steps")


def until_told(s, *mib):
    """Its command line."""
    return [steps(s), 0, PAUSE_MS, *mib]


def last_step(*jobs):
    """Of rank 0, that these jobs, one the sequel of the other, have printed; -1: none."""
    found = re.findall(r"^rank 0 step (\d+) ", "".join(j.out() for j in jobs), re.M)
    return int(found[-1]) if found else -1


def goes_on(job, *before):
    """It comes further than it has been: after a rollback lines that were there do not come again."""
    job.until_output(f"rank 0 step {last_step(*before, job) + 5} ")


def undisturbed(s, ranks, count, *mib):
    """What it prints in so many steps, and its files: {name: text}."""
    folder = s.path("undisturbed")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    r = s.hale_run(ranks, steps(s), count, 0, *mib, options=["--wdir", folder])
    expect(r.status == 0, r)
    return r.out, files(folder)


def files(folder):
    found = {}
    for path in glob.glob(os.path.join(folder, "log.*")) + glob.glob(os.path.join(folder, "state.*")):
        with open(path) as f:
            found[os.path.basename(path)] = f.read()
    return found


def lines(text):
    """Sorted; without one that is unfinished since who prints it was killed."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    return sorted(x for x in whole if x.startswith(("rank ", "done ")))


def stop(s, job):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0, r)
    return r


def right(s, r, ranks, *mib):
    """Its Result r is that of a job without any fault."""
    count = last_step_of(r.out) + 1
    wanted, _ = undisturbed(s, ranks, count, *mib)
    expect(lines(r.out) == lines(wanted), f"not what {count} steps print", r)
    return r


def last_step_of(text):
    return max([-1, *map(int, re.findall(r"^rank 0 step (\d+) ", text, re.M))])


def end(s, job, ranks=4, mib=(), rollbacks=0):
    """After so many rollbacks to checkpoints it goes on, is told to stop, and has printed each line once;
    its Result."""
    job.until(lambda: job.err().count("all ranks run again") >= rollbacks, f"{rollbacks} rollbacks")
    goes_on(job)
    return right(s, stop(s, job), ranks, *mib)


def no_files(s):
    """Before it runs once more: its log is appended to."""
    for old in glob.glob(s.path("log.*")) + glob.glob(s.path("state.*")):
        os.unlink(old)
