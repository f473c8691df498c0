#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README.md, docs/ and the man pages show after a prompt can be typed as it stands.

Each `hale run` there is run, in a folder that has what it names: programs that do nothing, hosts that this
machine plays (ssh, srun and salloc are scripts that run here what they are given). Folders at the root
(/scratch, /local) are in the test's folder. Commands that leave out something ("…") are not whole."""

import shlex

from lib import *

NOTHING = "#!/bin/sh\nexit 0\n"
HERE = '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'
SCRIPTS = {
    "bin/lmp": NOTHING, "bin/valgrind": NOTHING, "bin/perf": NOTHING, "bin/python3": "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n", "bin/ssh": HERE,
    "bin/srun": HERE, "bin/scontrol": "#!/bin/sh\nprintf 'n1\\nn2\\nn3\\n'\n",
    "bin/salloc": "#!/bin/sh\nshift 2\nexport SLURM_JOB_NODELIST='n[1-3]' SLURM_JOB_ID=1\nexec \"$@\"\n",
}
FILES = {"job.py": "", "jacobi.py": "", "master.py": "", "hosts.txt": "".join(f"h{i} slots=16\n" for i in range(1, 6)),
         "in.melt": "", "in/names": "b\na\n", "input.dat": "", "pw": "secret\n"}


def pages():
    yield os.path.join(ROOT, "README.md")
    yield from sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")) + glob.glob(os.path.join(ROOT, "docs", "man", "*.[1m]*")))


def shown():
    """(page, line, command) of each `hale run` that is shown as a command."""
    for page in pages():
        code = False
        with open(page) as f:
            for number, line in enumerate(f, 1):
                code ^= line.startswith("```")
                m = re.match(r"(?:\.Dl |  (?=hale))?(?:\$ )?((?:salloc -N \d+ |build/)?hale run .*)", line)
                if m and (code or line.startswith(".Dl ") or page.endswith(".more") and line.startswith("  ")) and "…" not in m[1].split("#")[0]:
                    yield os.path.relpath(page, ROOT), number, re.sub(r"\s+#.*|\s*&\s*$|\s*2>&1 \|.*", "", m[1]).strip()


def furnish(s):
    for folder in ("bin", "build", "scratch/run7", "local", "in", "out"):
        os.makedirs(s.path(folder))
    for name, text in SCRIPTS.items():
        os.chmod(s.write(name, text), 0o755)
    for name, text in FILES.items():
        s.write(name, text)
    shutil.copy(os.path.join(ROOT, "examples/jacobi.py"), s.path("jacobi.py"))
    s.write("scratch/run7/jacobi.py", "")
    s.write("my.rules", s.run("sh", "-c", f"cat {shlex.quote(ROOT)}/data/*.rules 2>/dev/null").out)
    for name in ("bin/hale", "build/hale"):
        os.chmod(s.write(name, f"#!/bin/sh\nexec {shlex.quote(HALE)} \"$@\"\n"), 0o755)
    os.symlink(os.path.join(ROOT, "examples"), s.path("examples"))


@test
def each_command_that_is_shown_can_be_typed(s):
    furnish(s)
    env = {"PATH": s.path("bin") + ":" + os.environ["PATH"]}
    count, wrong = 0, []
    for page, number, command in shown():
        if "examples/" in command:  # the next test
            continue
        for name in re.findall(r"(?<=\s)(?:\./|(?=tests/programs/))([\w./-]+)", command):
            os.makedirs(os.path.dirname(s.path(name)), exist_ok=True)
            os.chmod(s.write(name, NOTHING), 0o755)
        there = re.sub(r"(?<=[\s'=])/(scratch|local)\b", lambda m: s.path(m[1]), command)
        r = s.run("sh", "-c", there, env=env)
        if r.status != 0:
            wrong.append(f"{page}:{number}: {command}\n{r}")
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
        count += 1
    expect(not wrong, "\n".join(wrong))
    expect(count >= 30, f"only {count} commands were found")
    return f"{count} commands"


@test
def the_first_example_of_the_readme_loses_a_rank_and_ends_right(s):
    furnish(s)
    (command,) = [c for page, _, c in shown() if page == "README.md" and "examples/" in c]
    expect(command.startswith("build/hale run -n "), command)
    job = s.start("sh", "-c", "exec " + command, env={"PATH": s.path("bin") + ":" + os.environ["PATH"]})
    job.until_output("^iteration 15000:")
    os.kill(job.ranks(2)[1], signal.SIGKILL)  # of this job: others run beside
    r = job.wait(600)  # as many steps as a person needs to find and kill a rank
    expect(r.status == 0 and "rolling back to" in r.err and ", 1 rollback (" in r.err, r)
    iterations = [int(x) for x in re.findall(r"^iteration (\d+): largest change [\d.e-]+$", r.out, re.M)]
    expect(iterations == list(range(15000, 300001, 15000)), "each line once", r)
    with open(os.path.join(ROOT, "README.md")) as f:
        expect(r.out.splitlines()[-1] in f.read(), "the README says how it ends", r)



main()
