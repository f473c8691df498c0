#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The event backplane: real brokers, on hosts that are network namespaces with cables to cut."""

import contextlib
import select
import socket
import struct

from lib import *

INCLUDE = os.path.join(ROOT, "include")


def compile_client(s, name):
    return s.compile(name, mpi=None, flags=["-L", BUILD, "-lftb", f"-Wl,-rpath,{BUILD}",
                                            "-Wno-cast-function-type"])


class Broker:
    def __init__(self, s, name, options=(), prefix=(), folder=None):
        self.s, self.name, self.prefix = s, name, list(prefix)
        os.makedirs(s.path(name), mode=0o700, exist_ok=True)
        self.env = {"HALE_FTB": folder or s.path(name, "ftb")}
        self.options = list(options)
        self.job = None
        self.start()

    def start(self):
        self.job = self.s.start(*self.prefix, HALE, "backplane", "--verbose", *self.options,
                                env=self.env)
        self.job.until(self.status, "the broker answers")

    def hale(self, *argv, **kw):
        return self.s.run(HALE, *argv, env=self.env, **kw)

    def status(self):
        r = self.hale("backplane", "status", "--json")
        return json.loads(r.out) if r.status == 0 else None

    def until(self, condition, what):
        """condition(status) of a broker that runs."""
        return self.job.until(lambda: (lambda st: st if st and condition(st) else None)
                              (self.status()), what)

    def kill(self):
        self.job.kill()
        self.job.wait()

    def end(self):
        self.job.kill(signal.SIGTERM)
        r = self.job.wait()
        expect(r.status == 0, r)

    def watch(self, *options):
        """hale events --follow, once the broker knows of it."""
        before = self.status()["subscriptions"]
        job = self.s.start(HALE, "events", "--follow", "--json", *options, env=self.env)
        self.until(lambda st: st["subscriptions"] > before, "the subscriber is there")
        return job

    def publish(self, *argv):
        r = self.hale("events", "publish", *argv)
        expect(r.status == 0, r)

    def count(self, exe, *argv):
        job = self.s.start(exe, *argv, env=self.env)
        job.until_output("connected")
        return job


def shown(job):
    """Events that a watcher has written so far."""
    return [json.loads(x) for x in job.out().splitlines() if x.endswith("}")]


def numbers(job):
    return [int(e["payload"].split()[0]) for e in shown(job)]


def end_watcher(job):
    job.kill(signal.SIGTERM)
    job.wait()


class Hosts:
    """So many hosts on one switch, a broker on each; all gone afterwards, whatever happens."""

    def __init__(self, s, count, arity=8, options=(), v6=False):
        self.s, self.count, self.arity, self.v6 = s, count, arity, v6
        self.options = ["--arity", str(arity), *options]
        self.tag = f"hale{os.getpid()}"
        self.made = []
        self.brokers = []

    def ip(self, *argv):
        r = self.s.run("ip", *argv)
        expect(r.status == 0, r)

    def namespace(self, name):
        r = self.s.run("ip", "netns", "add", name)
        if r.status != 0:
            skip("no right to make network namespaces here")
        self.made.append(name)

    def __enter__(self):
        have("ip")
        try:
            self.cable()
            self.keys()
            for i in range(self.count):
                self.brokers.append(Broker(
                    self.s, f"node{i}", ["--peers", self.s.path("peers"), "--key",
                                         self.s.path(f"key{i}"), *self.options],
                    ["ip", "netns", "exec", f"{self.tag}n{i}"]))
            self.until_joined()
        except BaseException:
            self.__exit__()
            raise
        return self

    def cable(self):
        switch = f"{self.tag}sw"
        self.namespace(switch)
        self.ip("-n", switch, "link", "add", "br0", "type", "bridge")
        self.ip("-n", switch, "link", "set", "br0", "up")
        for i in range(self.count):
            ns = f"{self.tag}n{i}"
            self.namespace(ns)
            self.ip("-n", ns, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}",
                    "netns", switch)
            self.ip("-n", switch, "link", "set", f"port{i}", "master", "br0", "up")
            address = ["fd00:77::%d/64" % (i + 1), "nodad"] if self.v6 else [f"10.77.0.{i + 1}/24"]
            self.ip("-n", ns, "addr", "add", *address, "dev", "eth0")
            self.ip("-n", ns, "link", "set", "lo", "up")
            self.ip("-n", ns, "link", "set", "eth0", "up")

    def keys(self):
        lines = ["# name address key"]
        for i in range(self.count):
            r = self.s.hale("backplane", "key", self.s.path(f"key{i}"))
            expect(r.status == 0 and len(r.out.strip()) == 40, r)
            host = f"[fd00:77::{i + 1}]" if self.v6 else f"10.77.0.{i + 1}"
            lines.append(f"node{i} tcp://{host}:7100 {r.out.strip()}")
        self.s.write("peers", "\n".join(lines) + "\n")

    def until_joined(self):
        for i in range(1, self.count):
            above = f"node{(i - 1) // self.arity}"
            self[i].until(lambda st: st["parent"] == above, f"node{i} is below {above}")

    def cut(self, i):
        self.ip("-n", f"{self.tag}sw", "link", "set", f"port{i}", "down")

    def mend(self, i):
        self.ip("-n", f"{self.tag}sw", "link", "set", f"port{i}", "up")

    def __getitem__(self, i):
        return self.brokers[i]

    def __exit__(self, *_):
        for b in self.brokers:
            if b.job and b.job.running():
                b.kill()
        for job in self.s.jobs:
            if job.running():
                job.kill()
                job.wait()
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def whole(job, count, what):
    """Every number from 1 to count was shown, each once."""
    job.until(lambda: len(numbers(job)) >= count, f"{what}: {count} events")
    got = numbers(job)
    expect(len(got) == len(set(got)), f"{what}: {len(got) - len(set(got))} came twice")
    expect(sorted(got) == list(range(1, count + 1)),
           f"{what}: lost {sorted(set(range(1, count + 1)) - set(got))[:20]}")


# ---- one broker ----

@test
def a_component_written_for_cifts_compiles_and_works(s):
    b = Broker(s, "one")
    for name in ("ftb_cifts", "ftb_guide"):
        r = s.run(compile_client(s, name), env=b.env)
        expect(r.status == 0 and r.out == "right\n", r)
    b.end()
    expect(not os.path.exists(b.env["HALE_FTB"]), "the socket is left")


@test
def events_are_shown_filtered_and_published_by_command(s):
    b = Broker(s, "one", ["--node", "node9"])
    all_of_it = b.watch("--count", "3")
    some = b.watch("--filter", "namespace=FTB.* severity>=WARNING", "--count", "1")
    b.publish("FTB.FTB_IPMI", "FTB_IPMI_NORMAL", "INFO", "node3")
    b.publish("HALE.JOB", "ENDED", "error", "--job", "melt-1")
    b.publish("FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "line\nand \\ \x1b[1m größer")
    expect(all_of_it.wait().status == 0 and some.wait().status == 0, all_of_it.result())
    names = [(e["namespace"], e["name"], e["severity"], e["host"], e["job"]) for e in
             shown(all_of_it)]
    expect(names == [("FTB.FTB_IPMI", "FTB_IPMI_NORMAL", "INFO", "node9", ""),
                     ("HALE.JOB", "ENDED", "ERROR", "node9", "melt-1"),
                     ("FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "node9", "")], names)
    expect(shown(some)[0]["payload"] == r"line\x0aand \x5c \x1b[1m größer", some.result())
    expect([e["name"] for e in shown(some)] == ["FTB_IPMI_OVERTEMP"], some.result())
    r = b.hale("events", "--filter", "severity=ERROR")  # from the broker's memory
    expect(r.status == 0 and len(r.out.splitlines()) == 2 and "\x1b" not in r.out, r)
    r = b.hale("events", "melt-1")
    expect(r.status == 0 and len(r.out.splitlines()) == 1 and "ENDED" in r.out, r)
    r = s.run("sh", "-c", f"exec {HALE} events >/dev/full", env=b.env)
    expect(r.status == 1 and "can't be written" in r.err, r)
    b.end()


@test
def what_is_wrong_is_said_in_one_sentence(s):
    def refused(status, *argv, env=None):
        r = s.hale(*argv, env=env)
        expect(r.status == status and r.err.startswith("hale: ") and r.err.count("\n") == 1, r)
    none = {"HALE_FTB": s.path("nobody")}
    refused(1, "events", env=none)
    refused(1, "backplane", "status", env=none)
    refused(64, "events", "--colour")
    refused(64, "events", "--filter")
    refused(64, "events", "--filter", "severity=LOUD", env=none)  # it is wrong whoever listens
    refused(64, "events", "one", "another")
    refused(64, "events", "publish", "FTB.X", "NAME", "INFO", "--job")
    refused(64, "events", "publish", "FTB.X", "NAME", "INFO", "--jobs", env=none)
    r = s.hale("events", "nobodys", env=none)
    expect(r.status == 1 and "no job 'nobodys' with events runs here" in r.err, r)
    r = s.hale("events", "publish", "--help")
    expect(r.status == 0 and "hale events publish" in r.out, r)
    refused(64, "events", "publish", "FTB.X", "NAME")
    refused(64, "events", "publish", "FTB..X", "NAME", "INFO")
    refused(64, "events", "publish", "FTB.X", "A B", "INFO")
    refused(64, "events", "publish", "FTB.X", "NAME", "LOUD")
    refused(64, "events", "publish", "FTB.X", "NAME", "INFO", "x" * 8193)
    refused(64, "backplane", "--arity", "0")
    refused(64, "backplane", "--peers", s.path("none"), "--key", s.path("none"), env=none)
    public = s.hale("backplane", "key", s.path("key")).out.strip()
    r = s.hale("backplane", "key", s.path("key"))
    expect(r.status == 1 and "already" in r.err and public in r.err, r)
    refused(1, "backplane", "key", s.write("nokey", "nothing"))
    s.write("peers", "node0 tcp://127.0.0.1:7100 tooshort\n")
    refused(64, "backplane", "--peers", s.path("peers"), "--key", s.path("key"), env=none)
    s.write("peers", "node0 tcp://127.0.0.1:7100 " + "a" * 40 + "\n")
    refused(64, "backplane", "--peers", s.path("peers"), "--key", s.path("key"), env=none)
    key = s.hale("backplane", "key", s.path("key2")).out.strip()
    for address, more in (("tcp://127.0.0.1:99999", ""), ("tcp://127.0.0.1", ""), ("tcp://:7100", ""),
                          ("tcp://127.0.0.1:0", ""), ("tcp://127.0.0.1:7100x", ""),
                          ("tcp://127.0.0.1:7100", "x"), ("tcp://127.0.0.1:7100", " x"),
                          ("tcp://fd00::1:7100", ""), ("tcp://[fd00::1]", ""), ("tcp://[fd00::1:7100", "")):
        s.write("peers", f"node0 {address} {key}{more}\n")
        refused(64, "backplane", "--peers", s.path("peers"), "--key", s.path("key2"), env=none)
    os.chmod(s.path("key"), 0o640)
    refused(64, "backplane", "--peers", s.path("peers"), "--key", s.path("key"), env=none)
    b = Broker(s, "one")
    refused(1, "backplane", env=b.env)
    refused(64, "events", "--filter", "colour=red", env=b.env)
    b.end()


def raw(b):
    c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    c.settimeout(20)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    c.connect(b.env["HALE_FTB"])
    return c


def answer(c):
    try:
        return c.recv(65536)
    except ConnectionResetError:  # what was sent was not read; the last word comes behind that
        return c.recv(65536)


def packet(kind, count=0, body=b""):
    return struct.pack("<2sBBI", b"FB", 1, kind, count) + body


HELLO, SUBSCRIBE, STATUS, REFUSED, EVENTS = 1, 2, 4, 8, 9


@test
def whoever_sends_garbage_is_cut_off_and_nobody_else_notices(s):
    b = Broker(s, "one")
    good = b.watch("--filter", "name=GOOD")
    hello = packet(HELLO, 0, struct.pack("<Q", 77))
    event = struct.pack("<HBBIQQIH6B", 36 + 4, 1, 1, 0, 77, 1, 1, 0, 2, 2, 0, 0, 0, 0) + b"ABCD"
    wrong = [[b"x"], [b"GET / HTTP/1.1\r\n\r\n"], [b"\0" * 65536], [b"\xff" * 100000],
             [packet(99)], [packet(EVENTS, 1, event)],  # no greeting
             [packet(HELLO)], [hello, hello], [hello, packet(SUBSCRIBE, 0, b"\xff" * 30)],
             [hello, packet(EVENTS, 1, event[:-1])], [hello, packet(EVENTS, 2, event)],
             [hello, packet(EVENTS, 1, event.replace(b"ABCD", b"A CD"))],
             [hello, packet(EVENTS, 4000000000, event)],
             [hello, packet(EVENTS, 1, event.replace(struct.pack("<Q", 77), struct.pack("<Q", 78)))],
             [hello, packet(7, 0, b"I am the broker")]]
    draw = random.Random(SEED)
    wrong += [[hello, packet(draw.randrange(1, 18), draw.randrange(5), draw.randbytes(200))]
              for _ in range(50)]
    for messages in wrong:
        c = raw(b)
        try:
            for m in messages:
                c.send(m)
        except OSError:
            pass  # cut off before it had said all
        c.close()
    b.publish("FTB.X", "GOOD", "INFO")
    good.until_output("GOOD")
    expect(b.status()["malformed"] >= 15, b.status())
    expect(b.status()["clients"] == 1, b.status())
    c = raw(b)
    c.send(b"x")
    said = c.recv(4096)
    expect(said[3] == REFUSED and b"no packet" in said, said)
    c.close()
    end_watcher(good)
    b.end()


@test
def a_payload_of_100_mb_is_refused_here(s):
    s.write("big.c", "#include <libftb.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
            "int main(void) { FTB_client_t me = {.event_space = \"FTB.X\","
            " .client_subscription_style = \"FTB_SUBSCRIPTION_NONE\"};\n"
            "FTB_event_info_t i = {\"BIG\", \"INFO\"}; FTB_client_handle_t c;\n"
            "void *p = calloc(1, 100000000);\n"
            "if (FTB_Connect(&me, &c)) return 1;\nFTB_Declare_publishable_events(c, NULL, &i, 1);\n"
            "int big = HALE_FTB_Publish(c, \"BIG\", 1, p, 100000000, NULL);\n"
            "int fits = HALE_FTB_Publish(c, \"BIG\", 1, p, 8192, NULL);\n"
            "printf(\"%d %d %s\\n\", big == FTB_ERR_INVALID_PARAMETER, fits == FTB_SUCCESS,"
            " HALE_FTB_Error_text(big));\nFTB_Disconnect(c); free(p); return 0; }\n")
    r = s.run("gcc", "-o", s.path("big"), s.path("big.c"), "-I", INCLUDE, "-L", BUILD, "-lftb",
              f"-Wl,-rpath,{BUILD}")
    expect(r.status == 0, r)
    b = Broker(s, "one")
    got = b.watch("--count", "1")
    r = s.run(s.path("big"), env=b.env)
    expect(r.status == 0 and r.out.startswith("1 1 "), r)
    got.wait()
    expect(len(shown(got)[0]["payload"]) == 4 * 8192, "8 KiB of zeros, as \\x00")
    c = raw(b)
    for _ in range(3):
        try:
            c.send(b"\0" * 100_000_000)  # the kernel won't
            expect(False, "sent 100 MB in one packet")
        except OSError:
            pass
    c.close()
    b.end()


@test
def other_users_are_refused_and_counted(s):
    if os.getuid() != 0:
        skip("only root can be somebody else")
    b = Broker(s, "one")
    for folder in (s.dir, s.path("one")):
        os.chmod(folder, 0o755)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    r = s.run(*nobody, HALE, "events", env=b.env)
    if "No such file" in r.err or r.status == 127:
        skip("others can't run this build")
    expect(r.status == 1 and "no event broker serves this user" in r.err, r)  # mode 0600
    os.chmod(b.env["HALE_FTB"], 0o666)  # and should that ever fail, the kernel says who it is
    r = s.run(*nobody, HALE, "events", env=b.env)
    expect(r.status == 1 and "no event broker serves this user" in r.err, r)
    expect(b.status()["refused_users"] == 1, b.status())
    b.end()
    # nor does a client speak to somebody else's broker that it merely finds
    os.makedirs(s.path("run", "hale"))
    for folder in (s.path("run"), s.path("run", "hale")):
        os.chmod(folder, 0o777)
    there = s.path("run", "hale", "ftb")
    other = s.start(*nobody, HALE, "backplane", "--socket", there)
    other.until(lambda: os.path.exists(there), "the socket is there")
    # (without a broker, `hale events` shows those of our only job: from here it sees none)
    r = s.run("unshare", "--net", HALE, "events",
              env={"XDG_RUNTIME_DIR": s.path("run"), "HALE_FTB": ""})
    expect(r.status == 1 and "no event broker serves this user" in r.err, r)
    r = s.hale("events", env={"HALE_FTB": there})
    expect(r.status == 0, r)
    other.kill(signal.SIGTERM)
    other.wait()


def somebody(uid, *groups):
    more = ["--groups", ",".join(str(g) for g in groups)] if groups else ["--clear-groups"]
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), *more]


@test
def members_of_the_group_are_served_whatever_folder_the_socket_is_in(s):
    if os.getuid() != 0:
        skip("only root can be somebody else")
    user, member, group = 61001, 61002, "daemon"
    gid = int(s.run("getent", "group", group).out.split(":")[2])
    os.chmod(s.dir, 0o755)
    os.makedirs(s.path("home"))
    os.chown(s.path("home"), user, user)
    there = s.path("home", "new", "ftb")
    owner, friend, stranger = (somebody(user, user, gid), somebody(member, gid), somebody(61003))
    r = s.run(*friend, HALE, "--version")
    if r.status != 0:
        skip("others can't run this build")

    def status(who):
        return s.run(*who, HALE, "backplane", "status", env={"HALE_FTB": there})

    for mask in ("077", "022"):
        b = s.start("sh", "-c", 'umask "$0"; exec "$@"', mask, *owner, HALE, "backplane", "--group",
                    group, "--socket", there)
        b.until(lambda: status(friend).status == 0, "a member is served")
        expect(status(stranger).status == 1, "a stranger is")
        b.kill(signal.SIGTERM)
        expect(b.wait().status == 0, b)
        shutil.rmtree(s.path("home", "new"))
    # a folder of somebody's making is left as it is, and a sentence says what it lacks
    os.makedirs(s.path("home", "new"), mode=0o700)
    os.chown(s.path("home", "new"), user, user)
    r = s.run(*owner, HALE, "backplane", "--group", group, "--socket", there)
    expect(r.status == 64 and "can't enter the folder" in r.err and "chgrp" in r.err, r)
    expect(os.stat(s.path("home", "new")).st_mode & 0o777 == 0o700, "its mode was changed")


@test
def of_many_brokers_that_start_at_once_one_serves(s):
    there = s.path("one", "ftb")
    for _ in range(5):
        jobs = [s.start(HALE, "backplane", "--socket", there) for _ in range(6)]
        for _ in range(1000):
            left = [j for j in jobs if j.running()]
            if len(left) <= 1:
                break
            time.sleep(0.02)
        expect(len(left) == 1, f"{len(left)} are left", *(j.result() for j in jobs))
        left = left[0]
        for j in jobs:
            if j is not left:
                r = j.wait()
                expect(r.status == 1 and "already serves" in r.err, r)
        r = s.hale("backplane", "status", "--json", env={"HALE_FTB": there})
        expect(r.status == 0 and json.loads(r.out)["pid"] == left.p.pid, r)
        left.kill()
        left.wait()


@test
def a_broker_without_descriptors_says_so(s):
    b = Broker(s, "one", prefix=["prlimit", "--nofile=40:40"])
    there = []
    for _ in range(60):
        c = raw(b)
        there.append(c)
        with contextlib.suppress(BrokenPipeError):  # who is refused may be cut off before he speaks
            c.send(packet(STATUS))
    answers = [answer(c) for c in there]
    refused = [a for a in answers if a[3] == REFUSED]
    expect(20 < len(refused) < 60 and all(b"ulimit" in a for a in refused), answers)
    for c in there:
        c.close()
    b.until(lambda st: st["clients"] == 0, "they are gone")
    b.end()


@test
def who_is_refused_hears_why_however_soon_the_broker_closes(s):
    there = s.path("curt")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as curt:
        curt.bind(there)
        curt.listen(1)
        curt.settimeout(20)
        for heard in (False, True) * 5:  # whether it closes before or after the client speaks
            asking = s.start(HALE, "backplane", "status", env={"HALE_FTB": there})
            c, _ = curt.accept()
            if heard:
                select.select([c], [], [], 20)
            c.send(packet(REFUSED, body=b"no descriptors are left"))
            c.close()
            r = asking.wait()
            expect(r.status != 0 and "refuses: no descriptors are left" in r.err, heard, r)


@test
def as_many_clients_as_are_allowed_fit_into_the_usual_limit(s):
    b = Broker(s, "one", prefix=["prlimit", "--nofile=1024:4096"])
    there = [raw(b) for _ in range(1023)]
    for i, c in enumerate(there):
        c.send(packet(HELLO, 0, struct.pack("<Q", i + 1)))
    expect(all(c.recv(65536)[3] != REFUSED for c in there), "one was refused")
    expect(b.status()["clients"] == 1023, b.status())
    for c in there:
        c.close()
    b.end()


@test
def a_storm_and_a_slow_subscriber_hurt_nobody_else(s):
    exe = compile_client(s, "ftb_count")
    b = Broker(s, "one")
    quick = b.watch("--filter", "severity>=WARNING")
    slow = b.watch()
    slow.kill(signal.SIGSTOP)
    storm = b.count(exe, "FTB.STORM", "INFO", "300000", "0", "100")
    warn = b.count(exe, "FTB.WARN", "WARNING", "300", "100")
    expect(storm.wait().status == 0 and "refused 0" in storm.out(), storm.result())
    expect(warn.wait().status == 0, warn.result())
    whole(quick, 300, "the quick one")
    expect(b.status()["lost_info"] > 0 and b.status()["lost_above"] == 0, b.status())
    slow.kill(signal.SIGCONT)
    slow.until_says("events of severity INFO and 0 above it were not shown")
    mine = [int(e["payload"].split()[0]) for e in shown(slow) if e["severity"] == "INFO"]
    expect(mine == sorted(mine), "the order was changed")
    warned = [int(e["payload"]) for e in shown(slow) if e["severity"] == "WARNING"]
    expect(warned == list(range(1, 301)), f"{len(warned)} warnings")
    expect(b.status()["malformed"] == 0, b.status())
    for job in (quick, slow):
        end_watcher(job)
    b.end()


@test
def clients_find_their_broker_again_and_lose_no_warning(s):
    exe = compile_client(s, "ftb_count")
    b = Broker(s, "one")
    got = b.watch()
    job = b.count(exe, "FTB.X", "WARNING", "1000000", "1000")
    for _ in range(3):
        seen = len(numbers(got))
        got.until(lambda: len(numbers(got)) > seen + 50, "more events")
        b.kill()
        b.start()
    seen = len(numbers(got))
    got.until(lambda: len(numbers(got)) > seen + 50, "more events")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    count = int(re.search(r"published (\d+) refused 0", r.out)[1])
    whole(got, count, "across three brokers")
    expect(numbers(got) == sorted(numbers(got)), "the order was changed")
    end_watcher(got)
    b.end()


# ---- many ----

@test
def events_travel_towards_those_who_want_them_only(s):
    with Hosts(s, 5, 2) as h:
        tree = [h[i].status()["parent"] for i in range(5)]
        expect(tree == ["", "node0", "node0", "node1", "node1"], tree)
        got = h[3].watch("--filter", "namespace=FTB.*")
        exe = compile_client(s, "ftb_count")
        for space in ("FTB.X", "OTHER.X"):
            # until interest has come to the other end of the tree
            while space == "FTB.X" and not shown(got):
                h[2].publish(space, "FIRST", "INFO", "0")
                time.sleep(0.05)
            r = h[2].count(exe, space, "INFO", "500", "0").wait()
            expect(r.status == 0, r)
        got.until(lambda: numbers(got)[-1:] == [500], "the last one")
        mine = [n for n in numbers(got) if n]
        expect(mine == list(range(1, 501)), f"{len(mine)} events, in their order")
        expect(all(e["namespace"] == "FTB.X" and e["host"] == "node2" for e in shown(got)),
               shown(got)[:3])
        expect(h[4].status()["received"] == 0, "node4 wants nothing", h[4].status())
        expect(h[1].status()["received"] < 600, "OTHER.X stayed at home", h[1].status())
        end_watcher(got)
        for i in (4, 3, 2, 1, 0):
            h[i].end()


def under_fire(s, h, publisher, watchers, fault):
    """Warnings flow from one host to others while fault() happens; none is lost, none is doubled."""
    exe = compile_client(s, "ftb_count")
    got = {w: h[w].watch("--filter", "name=COUNT") for w in watchers}

    def heard():
        h[publisher].publish("FTB.X", "COUNT", "INFO", "0")
        return all(map(shown, got.values()))

    h[publisher].job.until(heard, "interest has come to the publisher")
    job = h[publisher].count(exe, "FTB.X", "WARNING", "1000000", "2000")
    for w, g in got.items():
        g.until(lambda: len(numbers(g)) > 30, f"node{w} gets events")
    fault()
    for w, g in got.items():
        seen = max(numbers(g))
        g.until(lambda: max(numbers(g)) > seen + 200, f"node{w} gets events again")
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    count = int(re.search(r"published (\d+) refused 0", r.out)[1])
    for w, g in got.items():
        g.until(lambda: max(numbers(g)) == count, f"node{w} gets the last one")
        numbers_seen = [n for n in numbers(g) if n]
        expect(len(numbers_seen) == len(set(numbers_seen)), f"node{w}: some came twice")
        expect(numbers_seen == sorted(numbers_seen), f"node{w}: the order was changed")
        expect(len(numbers_seen) == count, f"node{w}: some are lost",
               sorted(set(range(1, count + 1)) - set(numbers_seen))[:20])
    for g in got.values():
        end_watcher(g)


@test
def a_killed_parent_is_replaced_and_no_warning_is_lost_or_doubled(s):
    with Hosts(s, 5, 2) as h:
        under_fire(s, h, 3, [4, 2, 0], h[1].kill)
        for i in (3, 4):
            expect(h[i].status()["heals"] >= 1, h[i].status())
        h[1].start()  # and takes its place again
        h[3].until(lambda st: st["parent"] == "node1", "node3 is back where it belongs")


@test
def brokers_join_over_ipv6(s):
    """And heal, without a WARNING lost or doubled."""
    if not os.path.exists("/proc/net/if_inet6"):
        skip("no IPv6 here")
    with Hosts(s, 5, 2, v6=True) as h:
        under_fire(s, h, 3, [4, 2, 0], h[1].kill)


@test
def a_killed_root_is_replaced_and_no_warning_is_lost_or_doubled(s):
    with Hosts(s, 5, 2) as h:
        under_fire(s, h, 3, [4, 2], h[0].kill)
        h[1].job.until(lambda: [h[i].status()["parent"] for i in range(1, 5)].count("") == 1,
                       "one of them is the root")
        h[0].start()
        h[1].until(lambda st: st["parent"] == "node0", "node1 is below node0 again")


@test
def a_cut_cable_heals_around_and_what_was_kept_is_sent_on(s):
    with Hosts(s, 4, 2) as h:  # 3 is below 1
        away = h[1].watch("--filter", "name=AWAY")
        home = h[2].watch("--filter", "name=AWAY")

        def fault():
            h.cut(1)
            # node0, or node2 if node0 was slow to answer
            h[3].until(lambda st: st["parent"] not in ("", "node1"), "node3 is below another one")
            h[1].until(lambda st: st["parent"] == "", "node1 is alone")
            h[1].publish("FTB.X", "AWAY", "WARNING", "7")
            away.until_output("AWAY")
            expect(not home.out(), home.result())
            h.mend(1)
            h[1].until(lambda st: st["parent"] == "node0", "node1 is back")

        under_fire(s, h, 3, [1, 2], fault)
        home.until_output("AWAY")
        for job in (away, home):
            expect(len(shown(job)) == 1, job.result())
            end_watcher(job)


@test
def a_cable_that_is_cut_shortly_costs_nothing(s):
    with Hosts(s, 3, options=["--dead", "5s"]) as h:
        def fault():
            h.cut(1)
            time.sleep(0.5)
            h.mend(1)
        under_fire(s, h, 2, [1], fault)
        expect(h[1].status()["heals"] == 0, h[1].status())


JUNK = """
import os, socket
for size in (1, 64, 100000, 20000000):
    for head in (b"", b"GET / HTTP/1.1\\r\\n", b"\\xff\\0\\0\\0\\0\\0\\0\\0\\x01\\x7f\\3\\1CURVE" + bytes(15)):
        c = socket.create_connection(("10.77.0.1", 7100), 10)
        try:
            c.sendall(head + os.urandom(64) + bytes(size))
        except OSError:
            pass
        c.close()
"""


@test
def what_strangers_send_to_a_brokers_port_goes_nowhere(s):
    with Hosts(s, 2, options=["--dead", "5s"]) as h:
        got = h[0].watch()
        r = s.run("ip", "netns", "exec", f"{h.tag}n1", PYTHON, "-c", JUNK)
        expect(r.status == 0, r)
        h[1].publish("FTB.X", "GOOD", "WARNING")
        got.until_output("GOOD")
        expect(h[0].status()["children"] == ["node1"] and h[1].status()["heals"] == 0,
               h[0].status())
        expect(proc_figures(h[0].job.pid)["rss"] < 100 << 20, "it keeps none of that")
        end_watcher(got)
        h[1].end()
        h[0].end()


@test
def a_broker_with_an_unknown_key_is_refused_and_counted(s):
    with Hosts(s, 2) as h:
        public = s.hale("backplane", "key", s.path("other")).out.strip()
        lines = s.read("peers").splitlines()
        lines[2] = f"node1 tcp://10.77.0.2:7200 {public}"
        s.write("peers2", "\n".join(lines) + "\n")
        stranger = Broker(s, "stranger", ["--peers", s.path("peers2"), "--key", s.path("other"),
                                          "--socket", s.path("stranger.ftb")],
                          ["ip", "netns", "exec", f"{h.tag}n1"], folder=s.path("stranger.ftb"))
        h[0].until(lambda st: st["refused_keys"] >= 2, "refused, again and again")
        expect(h[0].status()["children"] == ["node1"], h[0].status())
        expect(stranger.status()["parent"] == "", stranger.status())
        got = h[0].watch()
        stranger.publish("FTB.X", "SPY", "FATAL")
        h[1].publish("FTB.X", "GOOD", "FATAL")
        got.until_output("GOOD")
        expect("SPY" not in got.out(), got.result())
        end_watcher(got)
        stranger.end()


main()
