#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale model`: formulas by name. What the formulas give is tested beside them, in src/model/."""

import struct
import xml.dom.minidom

from lib import *

SHADOW = ["sockets=100000", "mtbf=25y", "power=20MW", "overhead=0.6"]
REDUNDANCY = ["nodes=200000", "mttf=50y", "t=256h", "beta=0.2", "clone=2min"]


def model(s, *argv):
    r = s.hale("model", *argv, "--json")
    expect(r.status == 0 and not r.err, r)
    return json.loads(r.out)


@test
def each_model_has_help_and_an_example_that_works(s):
    r = s.hale("model", "--list")
    names = [line.split()[0] for line in r.out.splitlines()]
    expect(r.status == 0 and {"interval", "redundancy", "shadow", "lvf"} <= set(names), r)
    for name in names:
        r = s.hale("model", name, "--help")
        expect(r.status == 0, r)
        example = r.out.splitlines()[-1].removeprefix("example: hale ").split()
        expect(example[:2] == ["model", name], example)
        r = s.hale(*example)
        expect(r.status == 0 and r.out and not r.err, r)


@test
def each_command_in_the_documents_works(s):
    """And what is printed under those with a prompt is what they print, but for lines left out."""
    count = 0
    for page in ("docs/models.md", "docs/man/hale-model.more", "--help"):
        text = s.hale("model", page).out if page == "--help" else open(os.path.join(ROOT, page)).read()
        lines = text.splitlines()
        for i, line in enumerate(lines):
            m = re.match(r"(?:\$ |  (?=.*[^\\]$))?hale (model [a-z][^#]*)", line)
            if not m:
                continue
            count += 1
            r = s.hale(*m[1].split())
            expect(r.status == 0 and r.out and not r.err, page, i + 1, r)
            printed = [x.rstrip() for x in r.out.splitlines()]
            for shown in lines[i + 1:] if line.startswith("$") else []:
                if shown.startswith("```"):
                    break
                expect(shown == "…" or shown.rstrip() in printed, page, shown, r)
    expect(count >= 15, count)


@test
def redundancy_answers_per_scheme(s):
    keys = {"t_red_hours", "t_total_hours", "failures", "spare_nodes", "reliability"}
    d = model(s, "redundancy", *REDUNDANCY, "--compare", "2x,2xD,3x")
    expect(list(d["schemes"]) == ["2x", "2xD", "3x"], d)
    for scheme in d["schemes"].values():
        expect(keys <= set(scheme), scheme)
    expect(abs(d["schemes"]["2xD"]["t_red_hours"] - 307.2) < 1e-9, d)
    expect(abs(d["schemes"]["3x"]["t_red_hours"] - 358.4) < 1e-9, d)
    cross = {(c["from"], c["to"]): c["nodes"] for c in d["crossings"]}
    expect(920e3 < cross["2xD", "3x"] < 960e3, cross)
    one = model(s, "redundancy", *REDUNDANCY)
    expect(keys <= set(one) and one["scheme"] == "2xD", one)
    expect(one["t_total_hours"] == d["schemes"]["2xD"]["t_total_hours"], one)


@test
def spare_nodes_are_those_of_the_table(s):
    d = model(s, "redundancy", "nodes=64000", "mttf=50y", "t=200h", "beta=40%", "clone=10min")
    expect(d["spare_nodes"] == 86, d)


@test
def intervals_and_their_score(s):
    d = model(s, "interval", "ckpt=40s", "mtbf=6h", "restart=60s", "coverage=0.86")
    expect(abs(d["young_s"] - 1314.534) < 1e-3 and abs(d["daly_s"] - 1288.003) < 1e-3, d)
    expect(abs(d["unified_s"] - 1314.534 / 0.14 ** 0.5) < 1e-2 and d["score"] > 0, d)
    d = model(s, "interval", "ckpt=40s", "rate=4/d", "coverage=1")
    expect(abs(d["young_s"] - 1314.534) < 1e-3 and d["unified_s"] is None, d)  # never


@test
def shadows_within_a_power_budget(s):
    d = model(s, "shadow", *SHADOW)
    keys = {"sigma_s", "expected_time_s", "expected_energy_j", "sockets", "main_sockets"}
    expect(keys <= set(d), d)
    expect((d["sockets"], d["main_sockets"]) == (124998, 62499), d)
    d = model(s, "shadow", "power=20MW", "mtbf=25y", "count=pair", "--compare",
              "checkpointing,replication,shadowing")
    at = {c["to"]: c["sockets"] for c in d["crossings"] if c["from"] == "checkpointing"}
    expect(95e3 < at["replication"] < 99e3 and 52e3 < at["shadowing"] < 54e3, at)


@test
def a_job_can_be_played_and_the_seed_decides(s):
    played = ["interval", "ckpt=40s", "mtbf=6h", "work=10d", "runs=2000"]
    a, b, c = model(s, *played), model(s, *played), model(s, *played, "seed=2")
    expect(a == b and a["played_mean_s"] != c["played_mean_s"], a, c)
    expect(a["played_low_s"] < a["played_mean_s"] < a["played_high_s"], a)
    expect(abs(a["played_difference"]) < 0.007, a)


@test
def refusals_are_one_sentence(s):
    whole = ["redundancy", *REDUNDANCY]
    for argv, says in [
            ([], "--list"), (["nosuch"], "nosuch"), (["redundancy", "nodes=10"], "mttf"),
            ([*whole, "nodse=3"], "nodse"), ([*whole, "beta=1.5"], "beta is 1.5"),
            ([*whole, "clone=-2min"], "negative"), ([*whole, "nodes=2.5"], "whole number"),
            ([*whole, "t=5parsec"], "parsec"), ([*whole, "nodes=1e8"], "never finishes"),
            ([*whole, "--compare", "2x,two"], "two"), ([*whole, "--compare"], "needs a value"),
            ([*whole, "--frob"], "--frob"), ([*whole, "--plot", "a.pdf"], ".svg"),
            ([*whole, "--sweep", "nodes"], "nodes=10k..2M"), ([*whole, "--sweep", "no=1..2"], "no"),
            ([*whole, "--sweep", "nodes=5..2"], "upwards"),
            ([*whole, "--sweep", "nodes=1..2/1"], "steps"),
            ([*whole, "--sweep", "nodes=1..9", "--y", "price"], "price"),
            (["interval", "ckpt=1s"], "mtbf"), (["interval", "ckpt=1s", "mtbf=1h", "rate=1"], "mtbf"),
            (["shadow", "mtbf=25y"], "power"), (["shadow", *SHADOW, "socket=100W"], "leave one"),
            (["shadow", *SHADOW, "goal=speed"], "energy-delay"), ([*whole, "form"], "key=value"),
            (["lvf", "live=1h", "size=1GiB", "--compare", "2x"], "no schemes")]:
        r = s.hale("model", *argv)
        expect(r.status == EXIT_USAGE and not r.out, r)
        expect(len(r.err.splitlines()) == 1 and says in r.err, r)


@test
def a_sweep_is_a_table(s):
    r = s.hale("model", "redundancy", *REDUNDANCY, "--compare", "2xD,3x", "--sweep",
               "nodes=100k..10M/34/log")
    rows = [line.split("\t") for line in r.out.splitlines()]
    expect(rows[0] == ["nodes", "2xD:t_total_hours", "3x:t_total_hours"], r)
    expect(len(rows) == 35 and rows[1][0] == "100000" and rows[-1][0] == "10000000", r)
    expect(rows[-1][1] == "-" and float(rows[-1][2]) > 0, "2xD never finishes there", r)
    one = model(s, "redundancy", *REDUNDANCY, "nodes=100k")
    expect(abs(float(rows[1][1]) - one["t_total_hours"]) < 1e-6, rows[1], one)
    d = model(s, "redundancy", *REDUNDANCY, "--sweep", "beta=0..0.5/11", "--y", "failures")
    expect(len(d["points"]) == 11 and d["points"][4]["beta"] == 0.2, d)


@test
def pictures_are_drawn_by_gnuplot(s):
    have("gnuplot")
    path = s.path("it's a picture.svg")
    r = s.hale("model", "redundancy", *REDUNDANCY, "--compare", "2x,2xD,3x", "--plot", path)
    expect(r.status == 0 and not r.err, r)
    expect("t_total_hours" in r.out, "the figures stand beside the picture", r)
    svg = xml.dom.minidom.parse(path)
    words = " ".join(t.firstChild.data.strip() for t in svg.getElementsByTagName("tspan")
                     if t.firstChild)
    words += " ".join(t.firstChild.data for t in svg.getElementsByTagName("text")
                      if t.firstChild and t.firstChild.nodeType == t.TEXT_NODE)
    expect("2xD" in words and "millions" in words, words)
    expect("Replicated ranks, lost ones cloned or not" in words and "mttf=50y" in words and "nodes=" not in words,
           "a title, and what the curves hold for besides the axis", words)
    minutes = s.path("minutes.svg")
    r = s.hale("model", "interval", "mtbf=6h", "--sweep", "ckpt=10s..200s", "--y", "daly_s", "--plot", minutes)
    words = open(minutes).read()
    expect(r.status == 0 and words.count("(minutes)") == 2 and "(s)" not in words, r, words)
    r = s.hale("model", "interval", "ckpt=40s", "--plot", s.path("i.png"))
    png = open(s.path("i.png"), "rb").read(24)
    expect(r.status == 0 and png[:4] == b"\x89PNG", r)
    # twice the SVG's dots, so that lines and letters are as smooth
    expect(struct.unpack(">II", png[16:24]) == (1520, 960), png)
    r = s.hale("model", "interval", "ckpt=40s", "--plot", s.path("nowhere/i.png"))
    expect(r.status == 1 and "nowhere" in r.err, r)


@test
def without_gnuplot_it_says_what_to_install(s):
    os.mkdir(s.path("empty"))
    for tool in ["sh"]:
        os.symlink(shutil.which(tool), s.path("empty", tool))
    r = s.hale("model", "interval", "ckpt=40s", "--plot", s.path("i.png"),
               env={"PATH": s.path("empty")})
    expect(r.status == 1 and "gnuplot-nox" in r.err, r)


main()
