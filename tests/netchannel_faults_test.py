#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network channel when the network is bad: cables that are cut and healed, frames that are lost,
late, doubled and out of order; strangers at a rank's port; how many connections there are."""

from lib import *
from namespaces import Reader
from net_nodes import ENV, MINIRUN, Nodes

# What somebody on the network does who reads everything and knows the protocol, but not the secret.
STRANGER = r'''
import os, socket, struct, sys, time

raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind(("p0", 0))
raw.settimeout(30)
print("listening", flush=True)
HELLO, CHALLENGE, PROOF = 96, 72, 32
said = {}  # by (source, its port): what a caller has sent
while True:
    f = raw.recv(65536)
    if f[12:14] != b"\x08\x00" or f[23] != 6:
        continue
    ip = 14 + (f[14] & 15) * 4
    end = 14 + struct.unpack("!H", f[16:18])[0]
    data = f[ip + (f[ip + 12] >> 4) * 4:end]
    ports = struct.unpack("!HH", f[ip:ip + 4])
    to = (socket.inet_ntoa(f[30:34]), ports[1])
    key = (f[26:30], ports[0])
    if data.startswith(b"HALENET\0") or key in said:
        said[key] = said.get(key, b"") + data
        if len(said[key]) >= HELLO + PROOF:
            break
hello, proof = said[key][:HELLO], said[key][HELLO:HELLO + PROOF]

def ends(s):
    """True when the other side says nothing more and closes."""
    s.settimeout(10)
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True

def talk(first, second):
    s = socket.create_connection(to)
    s.sendall(first)
    challenge = b""
    while second and len(challenge) < CHALLENGE:
        challenge += s.recv(CHALLENGE)
    if second:
        s.sendall(second + b"\1\x40" + bytes(4000))  # and at once, what would be frames
    return ends(s)

silent = [socket.create_connection(to) for _ in range(100)]
print("garbage", all(talk(os.urandom(4096), None) for _ in range(20)))
print("half", talk(hello[:40] + bytes(HELLO), None))
print("others", talk(hello[:32] + os.urandom(64), None))
print("replay", talk(hello, proof))
print("guess", talk(hello[:-32] + os.urandom(32), os.urandom(PROOF)))
print("closed", all(ends(s) for s in silent), flush=True)
'''


@test
def strangers_at_a_port_are_turned_away(s):
    storm = s.compile("storm")
    with Nodes(s, 2) as nodes:
        stranger = s.start("ip", "netns", "exec", nodes.hub, PYTHON,
                           s.write("stranger.py", STRANGER))
        stranger.until_output("listening")
        job = nodes.start(4, 2, storm, 100000)
        r = stranger.wait()
        expect(r.status == 0 and r.out.split() == ["listening"] + [
            w for x in ("garbage", "half", "others", "replay", "guess", "closed")
            for w in (x, "True")], r, job.err())
        # nobody but the job's own is listening to, on the named interface, or got in
        listening = nodes.listening(0)
        expect(len(listening) == 2 and all(ip == "01004D0A" for ip, _ in listening), listening)
        job.until_says(r"turned away \d+ connections? that didn't come from this job")
        before = job.out()
        job.until(lambda: job.out() != before, "the job goes on")
        job.kill()
        job.wait()
        expected = s.start(MINIRUN, "-n", 4, storm, 100000, env=ENV)
        lines = job.out().splitlines()
        expected.until(lambda: len(expected.out().splitlines()) >= len(lines), "as many lines")
        expect(expected.out().splitlines()[:len(lines)] == lines, expected.out(), job.out())
        expected.kill()


def cut_while_it_runs(s, nodes, seconds, timeout, says):
    storm = s.path("storm")
    rounds = 500
    expected = s.run(MINIRUN, "-n", 4, storm, rounds, env=ENV)
    expect(expected.status == 0, expected)
    job = nodes.start(4, 2, storm, rounds, env={"HALE_NET_TIMEOUT": str(timeout)})
    job.until_output("round 100:")
    nodes.cut(1)
    if says:
        job.until_says("the network to rank [0-3] is cut")
    else:
        time.sleep(seconds)  # what is cut is the test's subject, not a wait
    out = job.out()
    expect(job.running() and f"round {rounds}:" not in out, job.result())
    nodes.heal(1)
    r = job.wait()
    expect(r.status == 0 and r.out == expected.out, r, expected)
    return r


@test
def a_short_cut_heals_without_a_word(s):
    s.compile("storm")
    with Nodes(s, 2) as nodes:
        r = cut_while_it_runs(s, nodes, 2, 30, says=False)
        expect(not said(r), r)


@test
def a_long_cut_is_told_and_heals_when_the_cable_is_back(s):
    s.compile("storm")
    with Nodes(s, 2) as nodes:
        r = cut_while_it_runs(s, nodes, 0, 1, says=True)
        expect("trying again until it is back" in r.err, r)


@test
def a_bad_wire_loses_delays_doubles_and_reorders_and_results_stay(s):
    if not os.path.exists("/dev/net/tun"):
        skip("no /dev/net/tun")
    storm, coll = s.compile("storm"), s.compile("collectives", flags=["-lm"])
    expected = s.run(MINIRUN, "-n", 4, storm, 100, env=ENV)
    with Nodes(s, 2, bad=(0.01, 0.0005, 0)) as nodes:
        r = nodes.run(4, 2, storm, 100)
        expect(r.status == 0 and r.out == expected.out and not said(r), r, expected)
        r = nodes.run(4, 2, coll, 5, SEED, 3000, env={"TREE": "1"})
        expect(r.status == 0 and r.out == "5 rounds, 0 wrong\n", r)
        again = [nodes.retransmitted(k) for k in range(2)]
        expect(min(again) > 10, f"the wire was not bad: {again}")


@test
def what_is_changed_on_the_way_is_noticed_and_sent_again(s):
    if not os.path.exists("/dev/net/tun"):
        skip("no /dev/net/tun")
    storm, coll = s.compile("storm"), s.compile("collectives", flags=["-lm"])
    expected = s.run(MINIRUN, "-n", 4, storm, 100, env=ENV)
    with Nodes(s, 2, bad=(0, 0.0002, 0.002)) as nodes:
        r = nodes.run(4, 2, "--encrypt", 1, storm, 100)
        expect(r.status == 0 and r.out == expected.out, r, expected)
        expect("is not what the other side sent" in r.err and "sent again" in r.err, r)
        r = nodes.run(4, 2, "--encrypt", 1, coll, 5, SEED, 3000, env={"TREE": "1"})
        expect(r.status == 0 and r.out == "5 rounds, 0 wrong\n", r)


SPEAKER = r'''
#include <mpi.h>
#include <string.h>
static char text[200000], in[200000];
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned i = 0; i + 16 < sizeof(text); i += 16)
		memcpy(text + i, "attack at dawn! ", 16);
	for (int bytes = 32; bytes < (int)sizeof(text); bytes *= 4) {
		MPI_Sendrecv(text, bytes, MPI_BYTE, !rank, 1, in, bytes, MPI_BYTE, !rank, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (memcmp(in, text, (size_t)bytes))
			MPI_Abort(MPI_COMM_WORLD, 3);
	}
	MPI_Finalize();
	return 0;
}
'''


def read_along(s, nodes, speaker, *options):
    reader = Reader(s, nodes, "at dawn")
    r = nodes.run(2, 2, *options, speaker)
    expect(r.status == 0 and not said(r), r)
    return reader.seen()


@test
def who_reads_along_sees_nothing_of_what_is_encrypted(s):
    source = s.write("speaker.c", SPEAKER)
    speaker = s.path("speaker")
    r = s.run("mpicc.openmpi", "-o", speaker, source)
    expect(r.status == 0, r)
    with Nodes(s, 2) as nodes:
        found, total = read_along(s, nodes, speaker)
        expect(found > 1000 and total > 200000, f"the reader sees nothing: {found} {total}")
        found, total = read_along(s, nodes, speaker, "--encrypt", 1)
        expect(found == 0 and total > 200000, f"{found} pieces of the text in {total} bytes")


@test
def nothing_is_spread_over_time_where_bbr_is_the_default(s):
    storm = s.compile("storm")
    with Nodes(s, 2) as nodes:
        for k in range(2):
            r = s.run("ip", "netns", "exec", f"{nodes.prefix}{k}", "sh", "-c",
                      "echo bbr > /proc/sys/net/ipv4/tcp_congestion_control")
            if r.status:
                skip("no bbr here")
        job = nodes.start(4, 2, storm, 100000)
        job.until_output("round 100:")
        for k in range(2):
            # a connection that came has what its listener had; chosen afterwards it would stay paced
            for states in ("-ltni", "-tni"):
                r = s.run("ip", "netns", "exec", f"{nodes.prefix}{k}", "ss", "-H", states)
                expect(" reno " in r.out + " " and "bbr" not in r.out, states, r)
        job.kill()
        job.wait()


@test
def only_ranks_that_talk_are_connected(s):
    nearby = s.compile("nearby")
    with Nodes(s, 4) as nodes:
        for pattern, wanted in (("ring", {1, 0}), ("all", {12})):
            r = nodes.run(16, 4, nearby, pattern, 20)
            found = [int(line.split()[2]) for line in r.out.splitlines()]
            expect(r.status == 0 and len(found) == 16 and set(found) == wanted, r)
            for name in glob.glob(s.path("here.*")):
                os.unlink(name)


main()
