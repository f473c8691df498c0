#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of other nodes: rio_open, `hale cp`, `hale device serve`; nodes are network namespaces, or this one."""

import hashlib
import socket
import threading

from lib import *
from namespaces import Namespaces


class Daemon:
    """`hale device serve` of a folder of its own."""

    def __init__(self, s, name, prefix=(), address="127.0.0.1", root=None, options=(), env=None):
        self.s, self.root = s, root or s.path(name)
        os.makedirs(self.root, exist_ok=True)
        self.job = s.start(*prefix, HALE, "device", "serve", "--verbose", "--root", self.root, "--listen",
                           f"{address}:0", *options, env=dict(env or {}, HALE_RIO_TIMEOUT="1s"))
        self.node = self.job.until_output(r"serving at (\S+)")[1]

    def path(self, name):
        return os.path.join(self.root, name)

    def end(self):
        self.job.kill(signal.SIGTERM)
        r = self.job.wait()
        expect(r.status == 0, r)


def compile_pipe(s):
    return s.compile("rio_pipe", mpi=None, flags=["-L", BUILD, "-lhale_rio", f"-Wl,-rpath,{BUILD}"])


def make_file(path, size):
    """Each block differs from all others."""
    rng = random.Random(size)
    with open(path, "wb") as f:
        while size > 0:
            f.write(rng.randbytes(min(size, 1 << 20)))
            size -= 1 << 20
    return path


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def pipe(s, exe, mode, node, path, stdin=None, limit=60, **env):
    return s.run("sh", "-c", f'exec "$0" "$@" {"<" + stdin if stdin else "</dev/null"} > {s.path("got")}',
                 exe, mode, node, path, limit=limit, env=dict({"HALE_RIO_TIMEOUT": "1s"}, **env))


def no_parts(folder):
    for at, _, names in os.walk(folder):
        expect(not [n for n in names if n.endswith(".part")], at, names)


@test
def files_of_another_node_are_plain_descriptors(s):
    exe = compile_pipe(s)
    with Namespaces(s, 1, "r", "10.73.1") as net:
        inside = ["ip", "netns", "exec", net.hub]
        d = Daemon(s, "far", ["ip", "netns", "exec", net.prefix + "0"], net.address(0))
        exe_in = s.path("inside")
        os.chmod(s.write("inside", "#!/bin/sh\nexec " + " ".join(inside + [exe]) + ' "$@"\n'), 0o755)
        os.mkdir(d.path("results"))
        for size in (0, 1, 65537, (9 << 20) + 3):
            near = make_file(s.path("near"), size)
            for mode in ("write", "plain", "whole") if size > 1 else ("write",):
                r = pipe(s, exe_in, mode, "node2", "results/state.bin", near, HALE_DEVICES=f"node2={d.node}")
                expect(r.status == 0 and f"ok {size}" in r.err, r)
                d.job.until(lambda: os.path.exists(d.path("results/state.bin")) and
                            digest(d.path("results/state.bin")) == digest(near), "the file is there")
            r = pipe(s, exe_in, "read", "node2", "results/state.bin", HALE_DEVICES=f"x=1:2,node2={d.node}")
            expect(r.status == 0 and digest(s.path("got")) == digest(near), r)
            os.unlink(d.path("results/state.bin"))
        no_parts(d.root)
        d.end()


@test
def what_the_other_side_refuses_comes_as_errno(s):
    exe = compile_pipe(s)
    d = Daemon(s, "far")
    s.write("secret", "not for you\n")
    os.symlink("../secret", d.path("out"))
    os.symlink("..", d.path("up"))
    os.mkdir(d.path("folder"))
    os.mkfifo(d.path("fifo"))
    for mode, path, error in (("read", "nothing", "ENOENT"), ("read", "../secret", "EACCES"),
                              ("read", "up/secret", "EACCES"), ("read", "out", "EACCES"),
                              ("read", "/etc/hostname", "EACCES"), ("read", "folder", "EISDIR"),
                              ("read", "fifo", "EINVAL"), ("write", "up/new", "EACCES"),
                              ("write", "../new", "EACCES"), ("write", "folder", "EISDIR"),
                              ("write", "nothing/x", "ENOENT"), ("write", "x" * 300, "ENAMETOOLONG"),
                              ("write", "x/" * 600, "ENAMETOOLONG")):
        r = pipe(s, exe, mode, d.node, path)
        expect(r.status == 1 and f"open {error} " in r.err, mode, path, r)
    expect(not os.path.exists(s.path("new")) and s.read("secret") == "not for you\n", os.listdir(s.dir))
    r = pipe(s, exe, "read", "nowhere.invalid", "x")
    expect("open EHOSTUNREACH" in r.err and "HALE_DEVICES" in r.err, r)
    other = s.write("other.key", "00" * 32)
    os.chmod(other, 0o600)
    r = pipe(s, exe, "read", d.node, "nothing", HALE_DEVICE_KEY=other)
    expect("open EPERM" in r.err and "another key" in r.err, r)
    os.chmod(other, 0o644)
    r = pipe(s, exe, "read", d.node, "nothing", HALE_DEVICE_KEY=other)
    expect("open EPERM" in r.err and "chmod 600" in r.err, r)
    d.end()
    r = pipe(s, exe, "read", d.node, "nothing")
    expect("open ECONNREFUSED" in r.err and "hale device serve" in r.err, r)


@test
def a_full_disk_there_is_said_and_leaves_the_old_file(s):
    exe = compile_pipe(s)
    d = Daemon(s, "far", root=s.tmpfs("small", "10m"))
    s.write("small/state.bin", "old\n")
    near = make_file(s.path("near"), 24 << 20)
    r = pipe(s, exe, "write", d.node, "state.bin", near)
    expect(r.status == 1 and re.search(r"write (ECONNRESET|EPIPE) far ENOSPC", r.err), r)
    fits = make_file(s.path("fits"), 11 << 20)  # the last buffers are in the network when the disk is full
    r = pipe(s, exe, "write", d.node, "state.bin", fits)
    expect(r.status == 1 and "ENOSPC" in r.err, r)
    r = s.hale("cp", near, f"{d.node}:state.bin")
    expect(r.status == 1 and "No space left" in r.err, r)
    expect(s.read("small/state.bin") == "old\n", os.listdir(d.root))
    no_parts(d.root)
    r = s.hale("cp", make_file(s.path("fit"), 5 << 20), f"{d.node}:state.bin")
    expect(r.status == 0 and digest(d.path("state.bin")) == digest(s.path("fit")), r)
    d.end()


@test
def a_cable_cut_in_mid_stream_is_an_error_on_both_sides(s):
    exe = compile_pipe(s)
    with Namespaces(s, 2, "r", "10.73.2") as net:
        d = Daemon(s, "far", ["ip", "netns", "exec", net.prefix + "0"], net.address(0))
        s.write("far/state.bin", "old\n")
        writer = s.start("ip", "netns", "exec", net.prefix + "1", exe, "slow", d.node, "state.bin",
                         env={"HALE_RIO_TIMEOUT": "1s"})
        writer.until_output("writing")
        net.cut(0)
        r = writer.wait()
        expect(r.status == 1 and re.search(r"write (ETIMEDOUT|EHOSTUNREACH|ECONNRESET)", r.err), r)
        d.job.until_says("'state.bin' was not written: ")
        expect(s.read("far/state.bin") == "old\n", os.listdir(d.root))
        net.heal(0)
        d.end()
        no_parts(d.root)


@test
def a_daemon_that_dies_while_a_file_is_read_is_no_end_of_file(s):
    exe = compile_pipe(s)
    d = Daemon(s, "far")
    make_file(d.path("big"), 64 << 20)
    reader = s.start("sh", "-c", f'"$0" read {d.node} big | (head -c 100000 >/dev/null; read line < {s.path("go")}; cat >/dev/null)',
                     exe)
    os.mkfifo(s.path("go"))
    reader.until(lambda: any(name_of(p).endswith(" big") for p in children(reader.pid)), "it reads")
    time.sleep(0.2)
    d.job.kill()
    d.job.wait()
    with open(s.path("go"), "w") as go:
        go.write("on\n")
    reader.wait()
    expect("read ECONNRESET" in reader.err(), reader.result())


@test
def who_stands_still_for_longer_than_the_limit_is_not_lost(s):
    """A reader that does something else first, and a daemon that is stopped in the middle, with 1 s as the limit."""
    exe = compile_pipe(s)
    d = Daemon(s, "far")
    near = make_file(d.path("large"), 64 << 20)  # more than the kernel keeps of a connection
    env = {"HALE_RIO_TIMEOUT": "1s", "HALE_DEVICES": f"there={d.node}"}
    r = s.run("bash", "-c", f'set -o pipefail; {exe} read there large | (sleep 4; cat) > {s.path("got")}', env=env)
    expect(r.status == 0 and digest(s.path("got")) == digest(near), r)
    feed = s.write("feed", f"head -c 16M {near}; touch sent; until [ -e go ]; do sleep 0.05; done; tail -c +16777217 {near}")
    job = s.start("bash", "-c", f"cd {s.dir}; exec {exe} write there copy < <(bash {feed})", env=env)
    job.until(lambda: os.path.exists(s.path("sent")), "the file to begin")
    os.kill(d.job.pid, signal.SIGSTOP)
    s.write("go", "")
    time.sleep(5)
    expect(job.running(), "it has given up")
    os.kill(d.job.pid, signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0 and digest(d.path("copy")) == digest(near), r)
    d.end()


@test
def hale_cp_takes_files_both_ways_over_several_streams(s):
    d = Daemon(s, "far")
    for size, streams in ((0, 1), (5, 3), (4 << 20, 2), ((17 << 20), 1), ((17 << 20) + 7, 5)):
        near = make_file(s.path("near"), size)
        os.chmod(near, 0o640)
        r = s.hale("cp", "--streams", streams, near, "node2:copy", env={"HALE_DEVICES": f"node2={d.node}"})
        expect(r.status == 0 and not r.err, r)
        expect(digest(d.path("copy")) == digest(near) and os.stat(d.path("copy")).st_mode & 0o777 == 0o640, size)
        r = s.hale("cp", "--streams", streams, f"{d.node}:copy", s.path("back"))
        expect(r.status == 0 and digest(s.path("back")) == digest(near), r)
    r = s.hale("cp", "--sync", near, f"{d.node}:")
    expect(r.status == 0 and digest(d.path("near")) == digest(near), r)
    for argv, status in (((near, s.path("x")), 64), ((near,), 64), (("--streams", "99", near, "n:x"), 64),
                         ((s.path("nothing"), f"{d.node}:x"), 1), ((s.dir, f"{d.node}:x"), 1),
                         ((f"{d.node}:nothing", s.path("x")), 1), ((f"{d.node}:copy", s.path("no", "x")), 1)):
        r = s.hale("cp", *argv)
        expect(r.status == status and r.err.startswith("hale: hale cp: ") and not os.path.exists(s.path("x")), r)
    no_parts(s.dir)
    d.end()


class Flipper:
    """Stands between a caller and the daemon, and flips one bit of what the caller sends."""

    def __init__(self, to, at):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.node = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.to, self.at = to, at

    def run(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        host, port = self.to.rsplit(":", 1)
        up = socket.create_connection((host, int(port)))
        threading.Thread(target=self.pump, args=(up, c, None), daemon=True).start()
        self.pump(c, up, self.at)

    def pump(self, a, b, at):
        seen = 0
        try:
            while data := a.recv(1 << 16):
                if at is not None and seen <= at < seen + len(data):
                    data = bytearray(data)
                    data[at - seen] ^= 4
                seen += len(data)
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            a.close()
            b.close()


@test
def a_bit_flipped_on_the_way_is_noticed(s):
    d = Daemon(s, "far")
    near = make_file(s.path("near"), 3 << 20)
    s.write("far/copy", "old\n")
    for at in (10, 100, 150, 1 << 20):  # in the handshake, in messages, in the file
        f = Flipper(d.node, at)
        threading.Thread(target=f.run, daemon=True).start()
        r = s.hale("cp", "--streams", 1, near, f"{f.node}:copy", env={"HALE_RIO_TIMEOUT": "1s"})
        f.listener.close()
        expect(r.status == 1 and r.err.startswith("hale: hale cp: "), at, r)
        expect(s.read("far/copy") == "old\n", at)
    expect("Bad message" in r.err, r)
    d.end()


@test
def garbage_does_not_disturb_the_daemon(s):
    d = Daemon(s, "far")
    host, port = d.node.rsplit(":", 1)
    rng = random.Random(SEED)
    left = [socket.create_connection((host, int(port))) for _ in range(20)]
    for c in left:
        c.sendall(rng.randbytes(rng.randrange(1, 300)))
    near = make_file(s.path("near"), 1 << 20)
    r = s.hale("cp", near, f"{d.node}:copy")
    expect(r.status == 0 and digest(d.path("copy")) == digest(near), r)
    for c in left:
        c.close()
    d.end()


main()
