#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network channel on roads of every kind: hosts with IPv6 only or with several addresses, interfaces
that go and come back, packets that grow too large for a link or get through one way only, slow links,
more messages on their way than anything holds; no UCX."""

from lib import *
from net_nodes import ENV, MINIRUN, Nodes


def inside(s, nodes, k, *argv):
    r = s.run("ip", "netns", "exec", f"{nodes.prefix}{k}", *argv)
    expect(r.status == 0, r)
    return r


def storm_alone(s, rounds):
    r = s.run(MINIRUN, "-n", 4, s.compile("storm"), rounds, env=ENV)
    expect(r.status == 0 and r.out, r)
    return r


def only_ipv6(s, nodes, k):
    if not os.path.exists("/proc/net/if_inet6"):
        skip("no IPv6 here")
    nodes.ip("-n", f"{nodes.prefix}{k}", "addr", "flush", "dev", "eth0")
    also_ipv6(nodes, k)


def also_ipv6(nodes, k):
    nodes.ip("-n", f"{nodes.prefix}{k}", "addr", "add", f"fd00:77::{k + 1}/64", "dev", "eth0", "nodad")


@test
def hosts_with_ipv6_alone_and_with_both_talk(s):
    expected = storm_alone(s, 100)
    with Nodes(s, 3) as nodes:
        for k in range(2):
            only_ipv6(s, nodes, k)
        also_ipv6(nodes, 2)
        for ranks_on in (2, 3):
            for options in ([], ["--encrypt", 1]):
                r = nodes.run(4, ranks_on, *options, s.path("storm"), 100)
                expect(r.status == 0 and r.out == expected.out and not said(r), r, expected)


@test
def of_several_addresses_one_that_leads_there_is_found(s):
    """Each has an address in a network that the other one isn't in, and one that leads nowhere."""
    expected = storm_alone(s, 100)
    with Nodes(s, 2) as nodes:
        for k in range(2):
            nodes.ip("-n", f"{nodes.prefix}{k}", "addr", "flush", "dev", "eth0")
            for address in (f"10.{80 + k}.0.1/24", "172.31.5.5/16", f"10.77.0.{k + 1}/24"):
                nodes.ip("-n", f"{nodes.prefix}{k}", "addr", "add", address, "dev", "eth0")
        r = nodes.run(4, 2, s.path("storm"), 100)
        expect(r.status == 0 and r.out == expected.out, r, expected)


def while_it_runs(s, what, undo, timeout=2, rounds=400):
    expected = storm_alone(s, rounds)
    with Nodes(s, 2) as nodes:
        job = nodes.start(4, 2, s.path("storm"), rounds, env={"HALE_NET_TIMEOUT": f"{1000 * timeout}ms"})
        job.until_output("round 100:")
        what(nodes)
        time.sleep(3)  # what it does to the job is the test's subject
        undo(nodes)
        r = job.wait()
        expect(r.status == 0 and r.out == expected.out, r, expected)
        return r


@test
def an_interface_goes_down_and_comes_back(s):
    while_it_runs(s, lambda n: n.ip("-n", n.prefix + "1", "link", "set", "eth0", "down"),
                  lambda n: n.ip("-n", n.prefix + "1", "link", "set", "eth0", "up"))


@test
def an_interface_loses_its_address_and_gets_it_again(s):
    while_it_runs(s, lambda n: n.ip("-n", n.prefix + "1", "addr", "flush", "dev", "eth0"),
                  lambda n: n.ip("-n", n.prefix + "1", "addr", "add", "10.77.0.2/24", "dev", "eth0"))


@test
def packets_get_through_one_way_only_for_a_while(s):
    """As behind a firewall that drops: what node 1 sends goes to nobody."""
    def drop(nodes):
        nodes.ip("-n", nodes.prefix + "1", "neigh", "replace", "10.77.0.1", "lladdr",
                 "02:00:00:00:00:99", "nud", "permanent", "dev", "eth0")

    def pass_(nodes):
        nodes.ip("-n", nodes.prefix + "1", "neigh", "del", "10.77.0.1", "dev", "eth0")

    while_it_runs(s, drop, pass_)


@test
def a_link_takes_smaller_packets_from_now_on(s):
    """Nobody tells the senders: larger ones are lost without a word."""
    def shrink(nodes):
        for k in range(2):
            nodes.ip("-n", nodes.hub, "link", "set", f"p{k}", "gso_max_segs", "1", "mtu", "700")

    def grow(nodes):
        for k in range(2):
            nodes.ip("-n", f"{nodes.prefix}{k}", "link", "set", "eth0", "mtu", "700")

    while_it_runs(s, shrink, grow)


@test
def a_link_of_a_few_megabits(s):
    expected = s.run(MINIRUN, "-n", 2, s.compile("flood"), 300, 1, env=ENV)
    expect(expected.status == 0 and "0 wrong" in expected.out, expected)
    with Nodes(s, 2) as nodes:
        for k in range(2):
            r = s.run("ip", "netns", "exec", f"{nodes.prefix}{k}", "tc", "qdisc", "add", "dev", "eth0",
                      "root", "tbf", "rate", "4mbit", "burst", "4kb", "latency", "30ms")
            if r.status:
                skip("the kernel can't make a link slow here")
        # 3.5 MB, 7 s; silence counts after 1 s
        r = nodes.run(2, 2, s.path("flood"), 300, 1, env={"HALE_NET_TIMEOUT": "1"})
        expect(r.status == 0 and r.out == expected.out and not said(r), r)


@test
def thousands_of_messages_and_a_huge_one_on_their_way(s):
    exe, go = s.compile("flood"), s.path("go")
    with Nodes(s, 2) as nodes:
        job = nodes.start(2, 2, exe, 5000, 300, go)
        job.until_output("posted")
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "posted\n0 wrong\n", r)


@test
def a_checkpoint_of_full_sockets_is_gone_back_to(s):
    exe, go = s.compile("flood"), s.path("go")
    job = s.hale_start(2, exe, 3000, 40, go, env={"HALE_NET": "all"})
    job.until_output("posted")
    job.checkpoint()
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("rolled back|rolling back|restart")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "posted\n0 wrong\n", r)


@test
def a_timeout_that_is_none_is_refused(s):
    exe = s.compile("flood")
    for wrong in "soon", "2 parsecs", "0", "1ms", "1d":
        r = s.hale_run(2, exe, 10, 1, env={"HALE_NET": "all", "HALE_NET_TIMEOUT": wrong})
        expect(r.status != 0 and f"HALE_NET_TIMEOUT={wrong}: say a time" in r.err, r)


@test
def over_ucx_what_comes_on_the_way_to_sleep_counts(s):
    """UCX moves things also where a process gets ready to sleep."""
    if not os.path.exists(os.path.join(ENV["LD_LIBRARY_PATH"], "libhale_net.so")):
        skip("built without UCX")
    exe = s.compile("flood")
    for _ in range(12):
        r = s.hale_run(2, exe, 2000, 40, env={"HALE_NET": "all", "HALE_NET_WIRE": "ucx"})
        expect(r.status == 0 and r.out == "posted\n0 wrong\n", r)


@test
def without_ucx_a_sentence_says_what_to_do(s):
    """Hale's library for it is there, UCX isn't."""
    storm = s.compile("storm")
    libs = s.path("libs")
    os.makedirs(libs)
    for name in os.listdir(ENV["LD_LIBRARY_PATH"]):
        if name.startswith(("libhale.so", "libmpi.so")):
            os.symlink(os.path.join(ENV["LD_LIBRARY_PATH"], name), os.path.join(libs, name))
    with Nodes(s, 2) as nodes:
        r = nodes.run(2, 2, storm, 100, env={"HALE_NET_WIRE": "ucx", "LD_LIBRARY_PATH": libs})
        expect(r.status != 0 and "libhale_net.so and UCX" in r.err and "HALE_NET_WIRE=tcp" in r.err, r)


main()
