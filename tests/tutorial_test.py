#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/tutorial.md is typed line by line into a shell, from behind its first section (which builds Hale), and each line
that it shows must come, but for its numbers.

With HALE_LONG=1 every word as it stands there. Otherwise the program has fewer steps and checkpoints come sooner. In
both cases nothing depends on how fast the machine is. A `sleep` ends when what the page waits for is there: a
checkpoint, or a job that runs with its spare. The shorter program waits in its middle for a file `go`, so that it can't
end before the page has done with it what it does to a running job."""

import shlex

from lib import *

UNTIL = "for i in $(seq 1200); do {} && break; sleep 0.05; done"
SOON = UNTIL.format("hale ps 2>/dev/null | grep -q 'checkpoint [1-9]'")
STARTED = UNTIL.format("grep -q '^ *50 ' moved.txt && hale nodes | grep -q SPARE")
WAITS = """
log none
label wait
variable file file ../go
variable there string ${file}
variable file delete
if "${there} == 0" then "jump SELF wait"
run 100
"""


def sections():
    """(heading, [(command, [line that is shown])]) of the page"""
    with open(os.path.join(ROOT, "docs/tutorial.md")) as f:
        text = f.read()
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        steps = []
        for block in re.findall(r"^```\n(.*?)^```", part, re.M | re.S):
            for line in block.splitlines():
                if line.startswith("$ "):
                    steps.append((line[2:], []))
                else:
                    steps[-1][1].append(line)
        yield part.splitlines()[0], steps


def shape(line):
    """Without what differs from run to run: numbers and their units, names of jobs and machines, paths, and whether
    a checkpoint is just being taken."""
    line = re.sub(r"\blmp\.[0-9a-f.-]+", "JOB", line)
    line = re.sub(r"(into|are in|is in) \S*hale-ckpt", r"\1 hale-ckpt", line)
    line = re.sub(r"on \S+: signal", "on HOST: signal", line)
    line = re.sub(r"(node\d .*\d)  [\w.-]+.*", r"\1  HOST", line)  # what a spare has ready comes after a second
    line = re.sub(r"^(JOB|  rank \d+ .*?) +checkpointing\b", r"\1 running", line)
    line = re.sub(r"\d[\d.:]*( (us|ms|s|min|h|B|KiB|MiB|GiB)\b)?", "N", line)
    for several, one in (("checkpoints N to N", "checkpoint N"), ("checkpoints", "checkpoint"),
                         ("newest are in", "newest is in")):
        line = line.replace(several, one)
    return re.sub(r"\s+", " ", line).strip()


def quicker(command):
    if LONG:
        return command
    if command.startswith("sed ") and command.endswith(">in.melt"):
        shorter = command.replace("run 20000/", "run 100/").replace("thermo 2000/", "thermo 50/")
        expect("run 100/" in shorter and "thermo 50/" in shorter, command)
        return shorter + f"; printf %s {shlex.quote(WAITS)} >>in.melt"
    return command.replace("--ckpt-every 2s", "--ckpt-every 300ms")


# LAMMPS's rank 0 reads the file for all ranks: if each asked for itself, two could see it in different rounds
GO = "echo %d >../go.new; mv ../go.new ../go"


def script(steps):
    lines = []
    for number, (command, _) in enumerate(steps):
        lines.append(f"echo step {number} >&2")
        if re.fullmatch(r"hale run .*&", command):
            lines.append(GO % 0)
        elif command == "wait" or command.startswith(("hale run ", "hale restart ")):
            lines.append(GO % 1)
        lines.append(quicker(command))
        if re.fullmatch(r"sleep \d+", command):
            lines[-1] = "" if not LONG else command
            lines.append(STARTED if "--nodes" in steps[number - 1][0] else SOON)
    return "\n".join(lines + [GO % 1, "wait"]) + "\n"


@test
def what_the_tutorial_shows_is_what_comes(s):
    (built, _), *parts = sections()
    expect(built.startswith("Build it") and len(parts) == 5, built, parts)
    steps = [step for _, part in parts for step in part]
    expect(sum(c.startswith("hale run ") for c, _ in steps) == 4, steps)
    os.makedirs(s.path("bin"))
    os.symlink(HALE, s.path("bin/hale"))
    s.write("typed", "exec 2>&1\n" + script(steps))
    # the only jobs of this user: a network of its own has no others, as jobs are found by sockets' names
    alone = "ip link set lo up && exec bash typed"
    r = s.run("unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "sh", "-c", alone,
              env={"PATH": s.path("bin") + ":" + os.environ["PATH"]}, limit=900)
    expect(r.status == 0, r)
    came = {shape(line) for line in r.out.splitlines()}
    missing = [line for _, shown in steps for line in shown if shape(line) not in came]
    expect(not missing, "the page shows what did not come", *missing, r)
    return f"{len(steps)} commands"


main()
