#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rules, from sensors to actions: what monitors say of nodes is recorded, and played to the rules
that Hale ships and to others."""

from lib import *

COOL = "1,CPU Temp,Temperature,40.00,C,'OK'\n2,FAN1,Fan,3600.00,RPM,'OK'\n"
HOT = "1,CPU Temp,Temperature,90.00,C,'At or Above (>=) Upper Critical Threshold'\n"
STILL = "2,FAN1,Fan,0.00,RPM,'At or Below (<=) Lower Critical Threshold'\n"


def event(t, name, node, severity="ERROR", **more):
    return json.dumps(dict({"time": t, "severity": severity, "namespace": "FTB.TEST", "name": name,
                            "host": node, "payload": node}, **more)) + "\n"


def tried(s, events, *options, rules=None):
    """(seconds, action, node) of what would be done."""
    r = s.hale("rules", "try", *([s.write("rules", rules)] if rules else []), "--json", *options,
               stdin=events)
    expect(r.status == 0, r)
    return [(a["seconds"], a["action"], a["node"]) for a in map(json.loads, r.out.splitlines())]


def recorded(s, sensors):
    """What monitors publish about {node: readings}."""
    options = []
    for node, text in sensors.items():
        options += ["--ipmi-file", f"{node}={s.write(node + '.sensors', text)}"]
    r = s.hale("monitor", "--every", "20ms", "--to", "-", *options)
    expect(r.status == 0, r)
    return r.out


@test
def scenario_1_a_fan_fails_and_the_ranks_leave(s):
    events = recorded(s, {"n0": COOL + "end\n", "n1": COOL + "wait 30ms\n" + STILL + "wait 30ms\nend\n"})
    expect([a[1:] for a in tried(s, events, "--nodes", "n0,n1", "--spares", "s0")] ==
           [("mark unusable", "n1"), ("migrate", "n1")], events)


@test
def scenario_2_a_rack_is_too_hot_and_then_well_again(s):
    well = COOL + "wait 30ms\n" + COOL + "wait 30ms\n"
    hot = COOL + "wait 30ms\n" + HOT + "wait 30ms\n"
    # n0 and n1 stand in that rack; recorded hot, and hours later well
    first = recorded(s, {"n0": hot + "end\n", "n1": hot + "end\n", "n2": well + "end\n"})
    done = [a[1:] for a in tried(s, first, "--nodes", "n0,n1,n2", "--spares", "s0,s1")]
    each = [[("mark unusable", n), ("migrate", n)] for n in ("n0", "n1")]
    # whose sensor is read first is nobody's business
    expect(done in (each[0] + each[1], each[1] + each[0]), first, done)
    both = recorded(s, {"n0": hot + well + "end\n", "n1": COOL + "end\n"})
    names = [json.loads(x)["name"] for x in both.splitlines()]
    expect(names == ["FTB_IPMI_OVERTEMP", "FTB_IPMI_NORMAL"], both)
    events = "".join(event(t, name, "n0") for t, name in zip((0, 3600), names))
    got = tried(s, events, "--nodes", "n0,n1", "--spares", "s0")
    expect(got == [(10, "mark unusable", "n0"), (10, "migrate", "n0"), (3630, "mark usable", "n0")],
           got)


@test
def scenario_3_all_nodes_are_too_hot_and_the_job_is_saved(s):
    hot = COOL + "wait 30ms\n" + HOT + "wait 30ms\nend\n"
    events = recorded(s, {n: hot for n in ("n0", "n1", "n2", "s0")})
    got = tried(s, events, "--nodes", "n0,n1,n2", "--spares", "s0", "--after", "15min")
    expect([a[1] for a in got] == ["checkpoint", "checkpoint"], got)
    expect(got[1][0] - got[0][0] == 600, got)


@test
def what_is_said_of_others_nodes_is_not_about_who_says_it(s):
    for other in ("othernode", "NODE:othernode::X:1", "10.0.0.9"):
        lines = event(1, "FTB_IPMI_FANFAIL", "n0", namespace="FTB-IPMI", payload=other)
        got = tried(s, lines, "--nodes", "n0,n1", "--spares", "s0", "--after", "1s")
        expect(got == [], other, got)
    # its own namespace by both names, as the thesis and as CIFTS's components write it
    rule = "when FTB_IPMI_FANFAIL in %s do migrate"
    for one, other in (("FTB-IPMI", "FTB.FTB_IPMI"), ("FTB.FTB_IPMI", "FTB-IPMI")):
        got = tried(s, event(1, "FTB_IPMI_FANFAIL", "n0", namespace=one), "--nodes", "n0,n1",
                    "--spares", "s0", "--after", "1s", rules=rule % other)
        expect(got == [(0, "migrate", "n0")], one, got)


@test
def a_storm_of_events_asks_for_little(s):
    with open(s.path("storm"), "w") as f:
        line = event(1, "FTB_IPMI_FANFAIL", "n0")
        for _ in range(100):
            f.write(line * 1000)
    with open(s.path("storm")) as f:
        got = tried(s, f.read(), "--nodes", "n0,n1", "--spares", "s0", "--after", "1s")
    expect(got == [(0, "mark unusable", "n0"), (0, "migrate", "n0")], got)


@test
def thresholds_texts_and_lack_of_spares(s):
    rules = ('rule wear when FTB_MEM_CORRECTED 3 within 60s do migrate else checkpoint, '
             'mail "me@example.org" once in 1s\n')
    events = "".join(event(t, "FTB_MEM_CORRECTED", n) for t, n in
                     ((0, "n0"), (10, "n0"), (20, "n1"), (50, "n0"), (100, "n1"), (101, "n1"),
                      (102, "n1")))
    got = tried(s, events, "--nodes", "n0,n1", "--spares", "s0", rules=rules)
    # n0 has moved to s0 by then, and is a spare itself: nothing holds against it
    expect(got == [(50, "migrate", "n0"), (102, "migrate", "n1")], got)
    got = tried(s, events, "--nodes", "n0,n1", rules=rules)
    expect(got == [(50, "checkpoint", "n0"), (50, "mail", "n0"), (102, "checkpoint", "n1"),
                   (102, "mail", "n1")], got)


@test
def wrong_rules_are_refused_with_file_and_line(s):
    r = s.hale("rules", "check")
    expect(r.status == 0 and "all right" in r.out, r)
    r = s.hale("rules", "check", s.write("bad", "# one\nwhen A do checkpoint\nwhen B do jump\n"))
    expect(r.status == 1 and f"{s.path('bad')}:3: expected checkpoint" in r.err
           and "before 'jump'" in r.err, r)
    r = s.hale("rules", "check", s.path("none"))
    expect(r.status == 1 and "No such file" in r.err, r)
    r = s.hale("rules", "try", "--nodes", "n0", stdin="no json\n")
    expect(r.status == 1 and "line 1" in r.err, r)
    for argv in (["try"], ["check", "a", "b"], [], ["try", "--nodes"], ["try", "--speed", "2"]):
        r = s.hale("rules", *argv, stdin="")
        expect(r.status == EXIT_USAGE and "hale help rules" in r.err, r)


@test
def the_file_that_is_installed_is_what_is_built_in(s):
    r = s.hale("rules", "check", os.path.join(ROOT, "data", "rules", "default.rules"))
    count = re.search(r": (\d+) rules", s.hale("rules", "check").out)[1]
    expect(r.status == 0 and f": {count} rules" in r.out, r)


main()
