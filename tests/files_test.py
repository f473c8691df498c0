# SPDX-License-Identifier: BSD-3-Clause
"""After a rollback files are as they would be without one, also those that nobody had open at the checkpoint."""

import random

from lib import *

BY_LINE = """
import time
for i in range(30):
    with open("lines", "a") as f:
        print(i, file=f)
    time.sleep(0.03)
"""

HELD = """
import time
with open("held", "a") as f:
    for i in range(30):
        print(i, file=f, flush=True)
        time.sleep(0.03)
"""

SHELL = """
i=0
while [ $i -lt 40 ]; do
    echo $i >> lines
    j=0; while [ $j -lt 9000 ]; do j=$((j+1)); done
    i=$((i+1))
done
"""

BY_RANKS = """
from mpi4py import MPI
import time
world = MPI.COMM_WORLD
for i in range(24):
    world.Barrier()
    with open("shared", "a") as f:
        print(world.rank, i, file=f)
    with open(f"own-{world.rank}", "a") as f:
        print(i, file=f)
    time.sleep(0.06)
"""

# A state that is written anew and renamed, files that come and go, a folder that moves, one that is overwritten.
ALL_KINDS = """
import os, time
os.mkdir("d0")
for i in range(30):
    with open("state.new", "w") as f:
        print("state", i, file=f)
    os.rename("state.new", "state")
    with open(f"d{i}/made-{i}", "w") as f:
        print(i, file=f)
    os.rename(f"d{i}", f"d{i + 1}")
    if i:
        os.unlink(f"d{i + 1}/made-{i - 1}")
    with open("table", "r+") as f:
        f.seek(10 * (i % 10))
        f.write("%9d" % i)
    with open("log", "a") as f:
        print(i, file=f)
    if i % 7 == 6:
        os.truncate("log", 5)
    if os.path.exists("input-%d" % i):
        os.unlink("input-%d" % i)
    if os.path.islink("newest"):
        os.unlink("newest")
    os.symlink(f"made-{i}", "newest")
    time.sleep(0.03)
"""

# A random program of seed argv[1], which draws from what it has itself: the same whenever it runs.
RANDOM = """
import os, random, shutil, sys, time
r = random.Random(int(sys.argv[1]))
names = ["f%d" % i for i in range(6)]
for step in range(int(sys.argv[2])):
    a, b = r.choice(names), r.choice(names)
    what = r.randrange(12)
    if what < 4:
        with open(a, "a") as f:
            f.write("%d " % step * r.randrange(1, 40))
    elif what == 4:
        with open(a, "w") as f:
            f.write("%d\\n" % step)
    elif what == 5 and os.path.exists(a):
        with open(a, "r+") as f:
            f.seek(r.randrange(1 + os.path.getsize(a)))
            f.write("<%d>" % step)
    elif what == 6 and os.path.exists(a) and a != b:
        os.rename(a, b)
    elif what == 7 and os.path.exists(a):
        os.unlink(a)
    elif what == 8 and os.path.exists(a):
        os.truncate(a, r.randrange(1 + os.path.getsize(a)))
    elif what == 9 and os.path.exists(a) and not os.path.exists(b):
        os.link(a, b)
    elif what == 10:
        if os.path.isdir("d-" + a):
            shutil.rmtree("d-" + a)
        else:
            os.makedirs("d-%s/sub" % a)
            open("d-%s/sub/file" % a, "w").close()
    elif what == 11:
        os.system("echo %d >> %s" % (step, a))
    time.sleep(0.005)
"""


def tree(folder):
    """All that is in it, but the checkpoints: names, kinds, contents."""
    found = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f != "hale-ckpt"]
        for name in folders + names:
            path = os.path.join(at, name)
            what = "folder"
            if os.path.islink(path):
                what = "-> " + os.readlink(path)
            elif os.path.isfile(path):
                with open(path) as f:
                    what = f.read()
            found[os.path.relpath(path, folder)] = what
    return found


def run_in(s, name, argv, options, prepare=None):
    folder = s.path(name)
    os.mkdir(folder)
    if prepare:
        prepare(folder)
    inside = ["env", "--chdir", folder]
    r = s.run(*inside, HALE, "run", *options, "--", *argv)
    expect(r.status == 0, r)
    return tree(folder), r


def as_without(s, argv, options, kill, prepare=None, name="a"):
    """The job with kills leaves what it leaves without."""
    wanted, _ = run_in(s, name + "-wanted", argv, ["--no-mpi"], prepare)
    found, r = run_in(s, name + "-killed", argv, options + kill, prepare)
    expect("killed by signal 9" in r.err and "rolling back" in r.err, "nobody was killed", r)
    expect("not all files" not in r.err and "without protection" not in r.err, r)
    expect(sorted(found) == sorted(wanted), sorted(wanted), "--- but:", sorted(found), r)
    for path, text in wanted.items():
        expect(found[path] == text, path, text, "--- but:", found[path], r)
    return r


EVERY = ["--no-mpi", "--ckpt-every", "200ms"]
NEVER = ["--no-mpi", "--ckpt-every", "1h"]


def killed(*after):
    return [x for t in after for x in ("--inject", f"kill:rank=0,after={t}s")]



@test
def a_file_that_several_ranks_write_is_of_one_moment(s):
    """By system calls of their own, not by MPI-IO. Without that whoever is restored first cuts what others wrote."""
    exe = s.compile("same_file")
    r = s.hale_run(2, exe, 3000, options=["--ckpt-every", "500ms", "--inject", "kill:rank=0,at-ckpt=2",
                                          "--inject", "kill:rank=1,at-ckpt=3", "--report", "report.json"])
    expect(r.status == 0 and r.out == "0 records missing, 0 lines missing, 0 twice\n", r)
    expect([f["rolled_back_to"] > 0 for f in s.report()["failures"]] == [True, True], s.report()["failures"])


@test
def so_is_one_that_ranks_of_several_nodes_write(s):
    """The first checkpoint may begin anew, since it is only seen at its end that they have begun with it."""
    exe = s.compile("same_file")
    r = s.hale_run(3, exe, 3000, options=["--nodes", "2", "--ckpt-every", "500ms", "--inject", "kill:rank=0,at-ckpt=3",
                                          "--inject", "kill:rank=2,at-ckpt=4", "--report", "report.json"])
    expect(r.status == 0 and r.out == "0 records missing, 0 lines missing, 0 twice\n", r)
    expect([f["rolled_back_to"] > 0 for f in s.report()["failures"]] == [True, True], s.report()["failures"])


@test
def so_is_one_that_children_of_ranks_write(s):
    """Of ranks of one node, then of two."""
    exe = s.compile("same_file")
    for nodes in ("1", "2"):
        folder = s.path(f"nodes-{nodes}")
        os.mkdir(folder)
        r = s.hale_run(3, exe, 3000, "child", cwd=folder,
                       options=["--nodes", nodes, "--ckpt-every", "500ms", "--inject", "kill:rank=0,at-ckpt=3",
                                "--inject", "kill:rank=2,at-ckpt=4", "--report", "report.json"])
        expect(r.status == 0 and r.out == "0 records missing, 0 lines missing, 0 twice\n", r)
        failures = json.load(open(os.path.join(folder, "report.json")))["failures"]
        expect([f["rolled_back_to"] > 0 for f in failures] == [True, True], failures)


@test
def a_file_that_is_opened_for_each_line_has_each_line_once(s):
    program = s.write("program.py", BY_LINE)
    as_without(s, [PYTHON, program], EVERY, killed(0.5, 0.9))


@test
def a_shell_that_appends_has_each_line_once(s):
    as_without(s, ["sh", s.write("program.sh", SHELL)], EVERY, killed(0.35, 0.6))


@test
def what_the_beginning_finds_is_what_the_job_found(s):
    for i, text in enumerate((BY_LINE, HELD)):
        program = s.write(f"program-{i}.py", text)
        r = as_without(s, [PYTHON, program], NEVER, killed(0.6), name=f"p{i}")
        expect("rolling back to the beginning" in r.err, r)


@test
def ranks_append_to_one_file(s):
    program = s.write("program.py", BY_RANKS)
    folder = s.path("job")
    os.mkdir(folder)
    for node in ([], ["--nodes", "2"]):
        for name in os.listdir(folder):
            if name != "hale-ckpt":
                os.unlink(os.path.join(folder, name))
        r = s.run("env", "--chdir", folder, HALE, "run", "-n", "2", *node, "--ckpt-every", "300ms",
                  "--inject", "kill:rank=1,after=900ms", "--", PYTHON, program)
        # on a busy machine to the beginning, which is to leave the same
        expect(r.status == 0 and "rolling back to" in r.err, r)
        found = tree(folder)
        lines = found["shared"].splitlines()
        expect(sorted(lines) == sorted(f"{rank} {i}" for rank in (0, 1) for i in range(24)), lines, r)
        expect(found["own-0"] == found["own-1"] == "".join(f"{i}\n" for i in range(24)), found, r)


def with_inputs(folder):
    for i in range(0, 30, 3):
        with open(os.path.join(folder, f"input-{i}"), "w") as f:
            f.write(f"input {i}\n")
    with open(os.path.join(folder, "table"), "w") as f:
        f.write("." * 100)
    with open(os.path.join(folder, "state"), "w") as f:
        f.write("the first state\n")


@test
def truncated_renamed_removed_and_made_ones_come_back(s):
    program = s.write("program.py", ALL_KINDS)
    as_without(s, [PYTHON, program], EVERY, killed(0.4, 0.75), with_inputs, name="since")
    as_without(s, [PYTHON, program], NEVER, killed(0.6), with_inputs, name="beginning")


CHOSEN = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
def made(call, template, *more):
    name = ctypes.create_string_buffer(template)
    return call(name, *more), name.value.decode()
libc.mkdtemp.restype = ctypes.c_char_p
assert made(libc.mkstemp, b"no-place-XXXXX")[0] == -1 and ctypes.get_errno() == 22
for i in range(220):
    fd, name = made(libc.mkstemps, b"t-XXXXXX.s", 2)
    assert fd >= 0 and os.fstat(fd).st_mode & 0o777 == 0o600 and name.startswith("t-") and name.endswith(".s"), name
    os.write(fd, b"text"); os.lseek(fd, 0, 0); assert os.read(fd, 4) == b"text"
    os.close(fd)
    other, folder = made(libc.mkdtemp, b"d-XXXXXX")
    assert other and os.stat(folder).st_mode & 0o777 == 0o700
    time.sleep(0.005)
    if not os.fork():
        os.unlink(name); os._exit(0)
    os.rmdir(folder); os.wait()
open("done", "w").close()
"""


@test
def files_whose_names_libc_chooses_do_not_stay(s):
    """Also those that a child removes, which it has got by fork; the killed ones have other names afterwards."""
    as_without(s, [PYTHON, s.write("program.py", CHOSEN)], ["--no-mpi", "--ckpt-every", "70ms"],
               killed(0.4, 0.83, 1.31, 1.7))


# Names and contents that other functions than open change. SPAWN: what libc opens in a child, said once for all of them.
OTHERS = """
import ctypes, fcntl, mmap, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.sem_open.restype = ctypes.c_void_p
def good(rc):
    assert rc not in (-1, None), os.strerror(ctypes.get_errno())
    return rc
actions, pid = ctypes.create_string_buffer(256), ctypes.c_int()
libc.posix_spawn_file_actions_init(actions)
libc.posix_spawn_file_actions_addopen(actions, 1, b"spawned", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
argv = (ctypes.c_char_p * 3)(b"echo", b"line", None)
word = ("/hale-" + sys.argv[1]).encode()
for name in "table", "view":
    with open(name, "w") as f:
        f.write("." * 40)
for i in range(24):
    assert libc.posix_spawnp(ctypes.byref(pid), b"echo", actions, None, argv, ctypes.c_void_p.in_dll(libc, "environ")) == 0
    os.waitpid(pid.value, 0)
    good(libc.shm_open(word, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    good(libc.sem_open(word, os.O_CREAT | os.O_EXCL, 0o600, 1))
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door")
        fd = os.open("table", os.O_RDWR | os.O_APPEND)
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)
        at = i % 40
        had = os.pread(fd, 1, at)
        assert had == b".", (i, had)
        os.pwrite(fd, b"x", at)
        os.close(fd)
        with open("view", "ab+") as f, mmap.mmap(f.fileno(), 40) as view:
            assert view[at] == ord("."), i
            view[at] = ord("x")
        time.sleep(0.03)
    os.unlink("door")
    good(libc.shm_unlink(word))
    good(libc.sem_unlink(word))
"""


@test
def what_other_functions_than_open_make_and_change(s):
    program = s.write("program.py", OTHERS)
    word = f"files-{os.getpid()}"
    as_without(s, [PYTHON, program, word], ["--no-mpi", "--ckpt-every", "90ms"], killed(0.4, 0.75, 1.1))
    left = [n for n in os.listdir("/dev/shm") if word in n]
    expect(not left, left)


# Its child is there before the first checkpoint makes the journal.
OLDER = """
import os, time
if not os.fork():
    for i in range(200):
        with open("lines", "a") as f:
            print(i, file=f)
        time.sleep(0.03)
    os._exit(0)
with open("pid", "w") as f:
    print(os.getpid(), file=f)
os.wait()
"""


@test
def a_child_that_is_older_than_the_first_checkpoint(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    folder = s.path("job")
    os.mkdir(folder)
    job = s.start("env", "--chdir", folder, HALE, "run", "--no-mpi", "--ckpt-every", "off", "--ckpt-dir", s.path("ck"), "--",
                  PYTHON, s.write("program.py", OLDER))
    job.until(lambda: "pid" in tree(folder) and tree(folder)["pid"].endswith("\n"), "it runs")
    c = s.hale("ckpt", job.id())
    expect(c.status == 0, c)
    at_it = tree(folder)["lines"]
    job.until(lambda: len(tree(folder)["lines"]) > len(at_it) + 9, "more lines")
    os.kill(int(tree(folder)["pid"]), signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and "rolling back to" in r.err, r)
    expect(tree(folder)["lines"] == "".join(f"{i}\n" for i in range(200)), tree(folder)["lines"], r)


@test
def a_kill_during_a_checkpoint_takes_back_what_came_after_it_began(s):
    program = s.write("program.py", ALL_KINDS)
    as_without(s, [PYTHON, program], EVERY, ["--inject", "kill:rank=0,at-ckpt=3"], with_inputs)


@test
def hale_restart_sets_files_back_too(s):
    program = s.write("program.py", BY_LINE)
    r = s.hale("run", "--no-mpi", "--ckpt-every", "200ms", "--keep", "9", "--", PYTHON, program)
    expect(r.status == 0, r)
    job = glob.glob(s.path("hale-ckpt", "*"))[0]
    r = s.hale("restart", os.path.join(job, "2"))
    expect(r.status == 0, r)
    expect(s.read("lines") == "".join(f"{i}\n" for i in range(30)), s.read("lines"), r)


@test
def files_can_be_left_as_they_are(s):
    program = s.write("program.py", BY_LINE)
    r = s.hale("run", "--files", "leave", *NEVER, *killed(0.6), "--", PYTHON, program)
    expect(r.status == 0, r)
    expect(len(s.read("lines").splitlines()) > 30, r)


@test
def what_cannot_be_saved_is_told(s):
    program = s.write("program.py", ALL_KINDS)
    with_inputs(s.dir)
    r = s.hale("run", *NEVER, *killed(0.6), "--", PYTHON, program, env={"HALE_FILE_SAVE_MAX": "10"})
    expect("without protection: it is larger than what is saved (HALE_FILE_SAVE_MAX)" in r.err, r)
    expect("not all files are what they were when the job began" in r.err, r)


@test
def a_small_limit_on_files_is_the_programs_alone(s):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))"
    program = s.write("program.py", limit + ALL_KINDS)
    r = as_without(s, [PYTHON, program], EVERY, killed(0.4, 0.75), with_inputs)
    expect("failed, the job goes on" not in r.err, r)


@test
def a_job_without_checkpoints_leaves_no_folder(s):
    program = s.write("program.py", BY_LINE)
    r = s.hale("run", *NEVER, "--", PYTHON, program)
    expect(r.status == 0 and not os.path.exists(s.path("hale-ckpt")), os.listdir(s.dir), r)


ANEW = """
import os, time
for n in range(9):
    f = os.open("state", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for i in range(40):
        os.write(f, bytes([65 + n]) * 100000)
        time.sleep(0.003)
    os.close(f)
"""


@test
def a_large_file_that_is_written_anew_may_be_caught_half_way(s):
    """4 MB, open for writing only, so that no image has its content: the journal does."""
    r = s.hale_run(1, PYTHON, s.write("program.py", ANEW), options=[
        "--no-mpi", "--ckpt-every", "70ms", "--report", "report.json", "--inject", "kill:rank=0,after=0.5s", "--inject",
        "kill:rank=0,after=1.1s"])
    expect(r.status == 0 and "is refused" not in r.err, r)
    expect(any(f["rolled_back_to"] > 0 for f in s.report()["failures"]), s.report())
    expect(s.read("state") == "I" * 4000000, len(s.read("state")), r)


@test
def random_programs_that_are_killed_leave_the_same_files(s):
    draw = random.Random(SEED)
    program = s.write("program.py", RANDOM)
    for i in range(200 if LONG else 3):
        seed = draw.randrange(1 << 30)
        times = sorted(round(draw.uniform(0.15, 1.0), 2) for _ in range(draw.randrange(1, 3)))
        every = draw.choice(["100ms", "250ms", "1h"])
        as_without(s, [PYTHON, program, str(seed), "250"], ["--no-mpi", "--ckpt-every", every], killed(*times),
                   name=f"seed-{seed}")


main()
