#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random programs with children, threads, pipes, files, memory, signals, timers and locks, killed at random times: what
they print and the files that they leave are those of an undisturbed run. HALE_SEED chooses other ones."""

import hashlib

from lib import *

HEAD = '''
import fcntl, mmap, os, signal, socket, subprocess, threading, time
total, alarms, told = 0, 0, 0
def add(x):
    global total
    total = (total * 1000003 + x) % (1 << 61)
def on_alarm(*_):
    global alarms
    alarms += 1
def on_told(*_):
    global told
    told += 1
signal.signal(signal.SIGALRM, on_alarm)
signal.signal(signal.SIGUSR1, on_told)
def status_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def child(work):
    pid = os.fork()
    if pid == 0:
        os._exit(work() % 200)
    return pid
def slowly(n, k):
    x = k
    for i in range(n):
        x = (x * 31 + i) % 65521
        time.sleep(0.002)
    return x
'''

# What a step is made of; N, K, T are drawn.
STEPS = {
    "a pipeline": '''
out = subprocess.run("(seq 1 N; sleep T; seq K) | sort -n | (sleep T; tail -3) | tr '\\n' ' '", shell=True,
                     capture_output=True, text=True)
add(sum(map(int, out.stdout.split())) + out.returncode)
''',
    "statuses": '''
add(subprocess.call(["sh", "-c", "sleep T; exit K"]))
add(os.system("sleep T; exit K"))
''',
    "a pipe to a child": '''
r, w = os.pipe()
def work():
    os.close(r)
    for i in range(10):
        os.write(w, bytes([(i * K) % 251]))
        time.sleep(0.004)
    return K
pid = child(work)
os.close(w)
got = b""
while piece := os.read(r, 4):
    got += piece
os.close(r)
add(int.from_bytes(got, "big") + status_of(pid))
''',
    "a pair of sockets": '''
a, b = socket.socketpair()
def work():
    a.close()
    x = 0
    for i in range(8):
        x += b.recv(1)[0]
        b.send(bytes([x % 256]))
        time.sleep(0.004)
    return x
pid = child(work)
b.close()
for i in range(8):
    a.send(bytes([(K + i) % 251]))
    add(a.recv(1)[0])
a.close()
add(status_of(pid))
''',
    "common memory": '''
m = mmap.mmap(-1, 8192)
def work():
    for i in range(10):
        m[i] = (K * i + 1) % 256
        time.sleep(0.003)
    return 5
pids = [child(work), child(lambda: slowly(10, N))]
add(sum(map(status_of, pids)) + int.from_bytes(m[:10], "big"))
m.close()
''',
    "threads": '''
lock, sums = threading.Lock(), []
def run(k):
    x = slowly(8, k)
    with lock:
        sums.append(x)
threads = [threading.Thread(target=run, args=(K + i,)) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
add(sum(sums))
''',
    "signals": '''
before = told
def work():
    time.sleep(T)
    os.kill(os.getppid(), signal.SIGUSR1)
    return K
pid = child(work)
while told == before: time.sleep(0.003)
add(told + status_of(pid))
before = alarms
signal.setitimer(signal.ITIMER_REAL, T)
while alarms == before: time.sleep(0.003)
add(alarms)
''',
    "files": '''
with open("log", "a") as log:
    log.write("step K\\n")
time.sleep(T)
with open("state.new", "w") as f: f.write(str(total))
os.rename("state.new", "state")
add(int(open("state").read()) % 65521 + os.path.getsize("log"))
subprocess.call("echo child K >> log; sleep T; wc -c < log > sizeK; rm -f sizeN", shell=True)
''',
    "a common file": '''
with open("both", "ab", buffering=0) as both:
    def work():
        for i in range(5):
            both.write(b"c")
            time.sleep(0.004)
        return 1
    pid = child(work)
    add(status_of(pid))
    both.write(b"K\\n")
    add(os.path.getsize("both"))
''',
    "locks": '''
with open("locked", "a") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    time.sleep(T)
    with open("locked") as g:
        try:
            fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
            add(1)
        except BlockingIOError:
            add(K)
''',
    "a named pipe": '''
os.mkfifo("fifo")
def work():
    with open("fifo", "wb", buffering=0) as f:
        for i in range(8):
            f.write(bytes([(i * K) % 251]))
            time.sleep(0.004)
    return K
pid = child(work)
with open("fifo", "rb", buffering=0) as f:
    got = b""
    while piece := f.read(3):
        got += piece
add(int.from_bytes(got, "big") + status_of(pid))
os.unlink("fifo")
''',
    "a stopped child": '''
def work():
    while not os.path.exists("go"): time.sleep(0.003)
    return slowly(5, K)
pid = child(work)
os.kill(pid, signal.SIGSTOP)
add(os.WSTOPSIG(os.waitpid(pid, os.WUNTRACED)[1]))
time.sleep(T)
add(os.waitpid(pid, os.WUNTRACED | os.WNOHANG)[0])
open("go", "w").close()
os.kill(pid, signal.SIGCONT)
add(status_of(pid))
os.unlink("go")
''',
    "datagrams": '''
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
for x in a, b:
    x.bind(("127.0.0.1", 0))
for i in range(5):
    a.sendto(bytes([(K + i) % 251]), b.getsockname())
    time.sleep(T / 5)
for i in range(5):
    got, sender = b.recvfrom(9)
    add(got[0] + (sender == a.getsockname()))
a.close()
b.close()
''',
    "who has ended": '''
pids = [child(lambda: K), child(lambda: N)]
time.sleep(T)
add(sum(map(status_of, pids)))
''',
    "a group of its own": '''
def work():
    os.setpgid(0, 0) if K % 2 else os.setsid()
    before = os.getpid(), os.getpgrp(), os.getsid(0)
    slowly(10, K)
    return 1 + (before == (os.getpid(), os.getpgrp(), os.getsid(0)))
add(status_of(child(work)))
''',
    "a descriptor on its way": '''
a, b = socket.socketpair()
r, w = os.pipe()
def work():
    a.close()
    time.sleep(T)
    got, fds, _, _ = socket.recv_fds(b, 9, 2)
    return len(got) + sum(os.read(fds[0], K % 9 + 1)) % 90
pid = child(work)
b.close()
socket.send_fds(a, [b"take"], [r])
time.sleep(T / 2)
os.write(w, bytes([(i * N) % 251 for i in range(12)]))
add(status_of(pid) + len(os.read(r, 99)))
a.close()
os.close(r)
os.close(w)
''',
    "a late accept": '''
door = socket.socket()
door.bind(("127.0.0.1", 0))
door.listen(4)
calls = [socket.create_connection(door.getsockname()) for i in range(3)]
time.sleep(T)
for i, c in enumerate(calls):
    c.send(bytes([(K + i) % 251]))
ends = [door.accept()[0] for _ in calls]
for e in ends:
    add(e.recv(1)[0])
for c in calls + ends + [door]:
    c.close()
''',
    "a counter of two": '''
e = os.eventfd(K, os.EFD_SEMAPHORE)
def work():
    x = 0
    for i in range(12):
        x += os.eventfd_read(e)
        time.sleep(0.003)
    return x
pid = child(work)
for i in range(12):
    time.sleep(0.002)
    os.eventfd_write(e, 2)
add(status_of(pid))
add(sum(os.eventfd_read(e) for i in range(K + 12)))
os.close(e)
''',
    "a terminal": '''
master, slave = os.openpty()
def work():
    os.setsid()
    fcntl.ioctl(slave, 0x540E, 0)
    time.sleep(T)
    got = os.read(slave, 99)
    return sum(got) % 100 + (os.tcgetpgrp(slave) == os.getpid())
pid = child(work)
time.sleep(T / 2)
os.write(master, b"line N" + bytes([10]))
add(status_of(pid))
os.close(master)
os.close(slave)
''',
}


def program_of(rng, steps):
    text = HEAD
    for _ in range(steps):
        what = rng.choice(sorted(STEPS))
        drawn = {"N": str(rng.randrange(20, 400)), "K": str(rng.randrange(1, 100)), "T": f"{rng.uniform(0.01, 0.12):.3f}"}
        text += f"# {what}" + re.sub(r"\b(size)?([NKT])\b", lambda m: (m[1] or "") + drawn[m[2]], STEPS[what])
    return text + 'print("total", total, flush=True)\n'


def left_in(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name not in ("hale-ckpt", "report.json", "program.py"):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


@test
def random_programs_end_as_undisturbed_ones(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    rollbacks = 0
    for i in range(200 if LONG else 3):
        seed = SEED + i
        rng = random.Random(seed)
        text = program_of(rng, 8)
        folders = [s.path(f"{kind}.{i}") for kind in ("alone", "killed")]
        for f in folders:
            os.mkdir(f)
            with open(os.path.join(f, "program.py"), "w") as out:
                out.write(text)
        began = time.monotonic()
        alone = subprocess.run([PYTHON, "program.py"], cwd=folders[0], capture_output=True, text=True,
                               stdin=subprocess.DEVNULL)
        took = time.monotonic() - began
        expect(alone.returncode == 0, seed, alone.stderr)
        kills = [x for at in (rng.uniform(0.2, 0.6), rng.uniform(0.6, 1.5))
                 for x in ("--inject", f"kill:rank=0,after={at * took:.3f}s")]
        r = s.hale("run", "--no-mpi", "--ckpt-every", "60ms", "--wdir", folders[1], "--ckpt-dir", s.path(f"ck.{i}"),
                   "--report", s.path("report.json"), *kills, "--", PYTHON, "program.py")
        expect(r.status == 0 and r.out == alone.stdout, f"seed {seed}", alone.stdout, r)
        expect(left_in(folders[0]) == left_in(folders[1]), f"seed {seed}", left_in(folders[0]), left_in(folders[1]), r)
        rollbacks += s.report()["restarts"]
    return f"{rollbacks} rollbacks"


main()
