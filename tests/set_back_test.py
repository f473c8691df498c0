# SPDX-License-Identifier: BSD-3-Clause
"""A rollback sets back what the program has, whichever way it changed it, and nothing of other programs."""

from lib import *

BEGIN = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
READ, WRITE, SHARED, PRIVATE = 1, 2, 1, 2

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)

def come(word, name):
    print(word, flush=True)
    wait_for(name)

def result(text):
    with open("result", "w") as f:
        f.write(text)
"""


def rolled_back(s, program, outside=None, then=None):
    """A program that says ready and waits for go, then says changed and waits for end. It is saved in between, and
    killed when it has changed something. outside: what others do before that; then: when it is back."""
    for name in ("go", "end", "result"):
        if os.path.exists(s.path(name)):
            os.unlink(s.path(name))
    run = s.hale_start(1, PYTHON, s.write("program.py", BEGIN + program),
                       options=["--no-mpi", "--ckpt-every", "1h", "--report", "report.json"])
    run.until_output("ready")
    run.checkpoint()
    s.write("go", "")
    run.until_output("changed")
    if outside:
        outside()
    os.kill(run.ranks()[0], signal.SIGKILL)
    run.until_says("again")
    if then:
        then()
    s.write("end", "")
    r = run.wait()
    expect(r.status == 0, r)
    return r


def went_back(s, r):
    expect("refused" not in r.err and "the beginning" not in r.err, r)
    expect([f["rolled_back_to"] for f in s.report()["failures"]] == [1], s.report()["failures"], r)


MPROTECTED = """
fd = os.open("data", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"." * 8192)
at = libc.mmap(None, 8192, READ, SHARED, fd, 0)
os.close(fd)
come("ready", "go")
seen = ctypes.string_at(at, 1).decode()
libc.mprotect(at, 8192, READ | WRITE)
ctypes.memmove(at, b"x", 1)
result(seen)
come("changed", "end")
"""


@test
def shared_memory_that_becomes_writable_after_the_checkpoint_is_set_back(s):
    went_back(s, rolled_back(s, MPROTECTED))
    expect(s.read("result") == "." and s.read("data")[:2] == "x.", s.read("result"), s.read("data")[:2])


WRITTEN_AND_MAPPED = """
fd = os.open("data", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"." * 8192)
at = libc.mmap(None, 8192, READ | WRITE, PRIVATE, fd, 0)
ctypes.memmove(at, b"p", 1)
come("ready", "go")
seen = ctypes.string_at(at, 1).decode() + ctypes.string_at(at + 4096, 1).decode()
os.pwrite(fd, b"x", 4096)
result(seen)
come("changed", "end")
"""

MAPPED = """
fd = os.open("data", os.O_RDONLY)
at = libc.mmap(None, 8192, READ | WRITE, PRIVATE, fd, 0)
os.close(fd)
come("ready", "go")
result(ctypes.string_at(at, 1).decode() + ctypes.string_at(at + 4096, 1).decode())
come("changed", "end")
"""


@test
def a_private_mapping_of_a_file_that_is_written_comes_back(s):
    went_back(s, rolled_back(s, WRITTEN_AND_MAPPED))
    expect(s.read("result") == "p." and s.read("data")[4096] == "x", s.read("result"))


@test
def so_does_one_of_a_file_that_others_write(s):
    """It has what it had at the checkpoint."""
    def data(letter):
        with open(s.path("data"), "r+" if letter != "." else "w") as f:
            f.write(letter * 8192)

    data(".")
    program = MAPPED.replace('come("ready", "go")', 'come("mapped", "written")\ncome("ready", "go")')
    s.write("program.py", BEGIN + program)
    run = s.hale_start(1, PYTHON, s.path("program.py"),
                       options=["--no-mpi", "--ckpt-every", "1h", "--report", "report.json"])
    run.until_output("mapped")
    data("a")
    s.write("written", "")
    run.until_output("ready")
    run.checkpoint()
    s.write("go", "")
    run.until_output("changed")
    data("b")
    os.kill(run.ranks()[0], signal.SIGKILL)
    run.until_says("again")
    s.write("end", "")
    r = run.wait()
    expect(r.status == 0, r)
    went_back(s, r)
    expect(s.read("result") == "aa", s.read("result"), r)


HEADS = {
    "lseek": 'os.lseek(fd, 0, os.SEEK_SET)\nos.write(fd, b"x")',
    "pwrite": 'os.pwrite(fd, b"x", 0)',
    "fseek": """libc.fdopen.restype = ctypes.c_void_p
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.fflush.argtypes = [ctypes.c_void_p]
f = libc.fdopen(fd, b"w")
libc.fseek(f, 0, 0)
libc.fputs(b"x", f)
libc.fflush(f)""",
}

HEAD = """
fd = os.open("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(fd, b"a" * (2 << 20))
come("ready", "go")
with open("out") as seen:
    result(seen.read(1))
%s
come("changed", "end")
"""


@test
def the_head_of_a_large_file_that_is_only_written_is_set_back(s):
    for name, how in HEADS.items():
        went_back(s, rolled_back(s, HEAD % how))
        expect(s.read("result") == "a" and s.read("out")[:2] == "xa", name, s.read("result"), s.read("out")[:2])


LOG = """
log = open("log", "a")
print("one", file=log, flush=True)
come("ready", "go")
print("two", file=log, flush=True)
come("changed", "end")
print("three", file=log, flush=True)
"""


@test
def a_log_that_was_rotated_from_outside_goes_on_where_it_is(s):
    """The new one is another program's, and stays as it is."""
    text = "the log of another program, with more in it than that of the job\n"

    def rotate():
        os.rename(s.path("log"), s.path("log.1"))
        s.write("log", text)

    went_back(s, rolled_back(s, LOG, rotate))
    expect(s.read("log") == text and s.read("log.1") == "one\ntwo\nthree\n", s.read("log"), s.read("log.1"))


@test
def another_file_of_the_name_of_one_that_was_open_is_not_cut(s):
    text = "a file of another program, with more in it than that of the job\n"

    def replace():
        os.mkdir(s.path("old"))
        os.rename(s.path("log"), s.path("old", "log"))
        s.write("log", text)

    r = rolled_back(s, LOG, replace)
    expect("is another file than the one that was open" in r.err, r)
    expect(s.read("log").startswith(text), s.read("log"), r)


LOCK = """
def lock():
    while True:
        try:
            return os.open("lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            time.sleep(0.01)

come("ready", "go")
for _ in range(3):
    os.close(lock())
    os.unlink("lock")
%s
come("changed", "end")
"""


@test
def a_file_that_another_program_has_made_of_a_name_of_the_job_stays(s):
    """A lock: the job has made and removed it before."""
    def still_there():
        expect(s.read("lock") == "another program's", "the lock was taken away")
        os.unlink(s.path("lock"))

    r = rolled_back(s, LOCK % "", lambda: s.write("lock", "another program's"), still_there)
    expect("lock has been made by another program meanwhile, and stays" in r.err, r)
    went_back(s, r)


@test
def one_that_the_job_has_made_again_is_removed(s):
    """Else the job would wait for itself."""
    went_back(s, rolled_back(s, LOCK % "os.close(lock())"))


RIGHTS = {
    "the user of its thread": "os.setresuid(-1, 65534, -1)",
    "the group of its thread": "os.setresgid(-1, 65534, -1)",
    "the groups of its thread": "os.setgroups([65534])",
    "the bounding set of capabilities": "libc.prctl(24, 13, 0, 0, 0)",
    "the capabilities of its thread": """caps = (ctypes.c_uint32 * 6)()
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
libc.capget(head, caps)
caps[0] = caps[1] = caps[0] & ~(1 << 13)
libc.capset(head, caps)""",
    "a namespace of its own (uts)": "libc.unshare(0x04000000)",
    "a root folder of its own (chroot)": 'os.chroot("/usr")',
    "a folder of its own (unshare)": "in_thread(0x200)",
    "descriptors of its own (unshare)": "in_thread(0x400)",
}

OTHER_RIGHTS = """
def in_thread(what):
    def run():
        libc.unshare(what)
        unshared.set()
        time.sleep(1000)
    unshared = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    unshared.wait()

%s
come("ready", "/")
time.sleep(1000)
"""


@test
def what_a_rollback_would_give_back_is_refused_by_name(s):
    """Before anything stops."""
    for what, how in RIGHTS.items():
        if os.geteuid() and "(unshare)" not in what:
            continue
        run = s.hale_start(1, PYTHON, s.write("program.py", BEGIN + OTHER_RIGHTS % how), options=["--no-mpi"])
        run.until_output("ready")
        r = s.hale("ckpt", run.id())
        expect(r.status != 0 and what in r.out + r.err, what, r)
        run.kill(signal.SIGTERM)
        run.wait()


main()
