#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale sim` as a command. What it computes is tested beside the code (model_sim_test)."""

import pty

from lib import *

JOB = ["--nodes", "20000", "--days", "30", "--failures", "weibull:shape=0.7,mttf=20y,soft=20%"]


def simulate(s, *argv):
    r = s.hale("sim", *argv, "--json")
    expect(r.status == 0 and not r.err, r)
    return json.loads(r.out)


@test
def the_result_does_not_depend_on_the_number_of_threads(s):
    argv = ["sim", *JOB, "--scheme", "2x+clone+ckpt", "--runs", "300", "--seed", "7", "--json"]
    outs = {s.hale(*argv, "--threads", n).out for n in (1, 2, 3, 16)}
    expect(len(outs) == 1, outs)
    expect(s.hale(*argv).out in outs, "as many threads as cores give something else")
    argv[argv.index("7")] = "8"
    expect(s.hale(*argv).out not in outs, "another seed gives the same")


@test
def json_has_mean_interval_runs_and_seed(s):
    r = simulate(s, *JOB, "--scheme", "2x+clone+ckpt", "--runs", "100", "--seed", "3")
    expect(r["runs"] == 100 and r["seed"] == 3 and r["unit"] == "s", r)
    low, high = r["interval"]
    expect(low < r["mean"] < high, r)
    means = r["means"]
    parts = sum(means[k] for k in ("work_s", "checkpoint_s", "rework_s", "restart_s", "stall_s",
                                   "wait_s"))
    expect(abs(parts - r["mean"]) < 1, r)
    expect(abs(r["loss"] - (r["mean"] / r["plain_s"] - 1)) < 1e-9, r)
    several = simulate(s, *JOB, "--scheme", "ckpt", "--scheme", "2x+clone", "--runs", "10")
    expect([x["scheme"] for x in several] == ["ckpt", "2x+clone"], several)


@test
def cloning_and_checkpoints_agree_with_hale_model(s):
    r = s.hale("model", "redundancy", "nodes=200000", "mttf=50y", "t=256h", "beta=0.2",
               "clone=2min", "--compare", "2xD", "--json")
    expect(r.status == 0, r)
    model = json.loads(r.out)
    sim = simulate(s, "--nodes", "200000", "--hours", "256", "--failures", "exp:mttf=50y",
                   "--beta", "20%", "--scheme", "2x+clone:time=2min", "--runs", "300")
    low, high = sim["interval"]
    slack = (high - low) / 2  # as many standard errors again: one seed in 10,000 is outside
    expect(low - slack <= model["t_total_hours"] * 3600 <= high + slack, model, sim)

    r = s.hale("model", "interval", "ckpt=5min", "mtbf=8h", "--json")
    expect(r.status == 0, r)
    sim = simulate(s, "--nodes", "1000", "--days", "20", "--failures", "exp:mttf=8000h",
                   "--scheme", "ckpt:cost=5min", "--runs", "5")
    daly = json.loads(r.out)["daly_s"]
    expect(abs(sim["intervals_s"]["L4"] - daly) < 1e-6 * daly, sim, r)


@test
def a_trace_goes_out_and_in(s):
    argv = ["--nodes", "500", "--days", "30", "--scheme", "2x+clone+ckpt:every=12h", "--runs", "1"]
    first = simulate(s, *argv, "--failures", "weibull:shape=0.7,mttf=2y,soft=30%", "--trace-out",
                     s.path("trace"))
    expect(first["means"]["failures"] > 50, first)
    again = simulate(s, *argv, "--failures", f"trace:{s.path('trace')}")
    expect(again["means"] == first["means"], first, again)
    simulate(s, *argv, "--failures", f"trace:{s.path('trace')}", "--trace-out", s.path("copy"))
    def lines(name):
        return [x for x in s.read(name).splitlines() if not x.startswith("#")]
    expect(lines("copy") == lines("trace"), "the trace has changed on its way")


@test
def what_never_finishes_is_said(s):
    argv = ["--nodes", "1000000", "--days", "3", "--failures", "exp:mttf=5y", "--limit", "5"]
    r = s.hale("sim", *argv)
    expect(r.status == 0 and "never finishes" in r.out, r)
    r = simulate(s, *argv)
    expect(r["mean"] is None and r["never_finishes"] and r["finished"] == 0, r)


@test
def nonsense_is_refused_with_a_sentence(s):
    bad = s.write("bad", "12 three\n")
    for argv, word in ((["--scheme", "2x+shadow"], "not both"),
                       (["--scheme", "clone"], "healthy replica"),
                       (["--scheme", "stripes"], "no part of a scheme"),
                       (["--scheme", "ckpt:colour=red"], "no setting 'colour'"),
                       (["--scheme", "task"], "soft="),
                       (["--scheme", "ckpt:cost=0"], "every="),
                       (["--failures", "often"], "weibull:"),
                       (["--failures", f"trace:{bad}"], "line 1"),
                       (["--failures", "trace:/nowhere"], "/nowhere"),
                       (["--nodes", "none"], "none"),
                       (["--nodes", "0"], "nodes"),
                       (["--days", "0"], "work"),
                       (["--runs", "0"], "--runs"),
                       (["--seed", "-1"], "--seed"),
                       (["--beta", "2"], "beta is a share"),
                       (["--alpha", "0.5"], "--f-send"),
                       (["--runs"], "lacks its value"),
                       (["--speed", "3"], "no option"),
                       (["many"], "options only")):
        r = s.hale("sim", *argv)
        expect(r.status == EXIT_USAGE and not r.out and word in r.err, word, r)
        expect(len(r.err.splitlines()) == 1, r)


@test
def a_full_disk_is_noticed(s):
    r = s.run("/bin/sh", "-c", f"exec '{HALE}' sim --runs 2 --json > /dev/full")
    expect(r.status == 1 and "can't write" in r.err, r)
    r = s.hale("sim", "--runs", "2", "--nodes", "1000", "--trace-out", "/dev/full")
    expect(r.status == 1 and "can't write the trace" in r.err, r)


@test
def progress_is_shown_on_a_terminal_only(s):
    argv = [HALE, "sim", "--nodes", "1000000", "--days", "30", "--failures",
            "weibull:shape=0.7,mttf=10y", "--scheme", "2x", "--threads", "1", "--limit", "2"]
    main_end, terminal = pty.openpty()
    p = subprocess.Popen(argv + ["--runs", "100000"], stderr=terminal, stdout=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, cwd=s.dir, env=s.env)
    os.close(terminal)
    shown = b""
    try:
        while b"runs" not in shown:
            more = os.read(main_end, 1000)
            expect(more, "the terminal was closed before anything was shown")
            shown += more
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        os.close(main_end)
    expect(re.search(rb"\[#* *\] \d+ of 100000 runs", shown), shown)


main()
