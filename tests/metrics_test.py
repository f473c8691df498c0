#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""hale metrics: what Prometheus reads, by its own tool where that is installed."""

import socket
import urllib.error
import urllib.request

from lib import *
from steps_parts import end, goes_on, until_told

NAME = re.compile(r"^[a-z][a-z0-9_]*$")
SAMPLE = re.compile(r'^([a-z0-9_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\} ([0-9.e+-]+)$')


def read(text):
    """{(name, labels besides job): value}; its form is checked."""
    types, helped, values = {}, set(), {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split()[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            expect(name in helped and name not in types and NAME.match(name), line)
            expect((kind == "counter") == name.endswith("_total"), "counters, and only they, end in _total", line)
            types[name] = kind
        else:
            m = SAMPLE.match(line)
            expect(m and m[1] in types, f"no sample: {line}")
            labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', m[2]))
            expect(set(labels) <= {"job", "program", "state", "kind"}, "labels of few values only", line)
            key = (m[1], labels.get("kind", ""))
            expect(key not in values or labels["job"], line)
            values[key] = float(m[3])
    return values


def checked(s, text):
    """By promtool, too."""
    promtool = shutil.which("promtool")
    if promtool:
        r = s.run(promtool, "check", "metrics", stdin=text)
        expect(r.status == 0 and not r.err, r)
    return read(text)


@test
def a_job_that_loses_a_rank_shows_in_its_metrics(s):
    job = s.hale_start(2, *until_told(s), options=["--ckpt-every", "200ms", "--report", "report.json"])
    job.until(lambda: len(s.complete()) >= 1, "a checkpoint")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.until_says("all ranks run again")
    goes_on(job)
    job.until(lambda: len(s.complete()) >= 2, "another one")
    r = s.hale("metrics")
    expect(r.status == 0, r)
    mine = "\n".join(x for x in r.out.splitlines() if x.startswith("#") or f'job="{job.id()}"' in x) + "\n"
    values = checked(s, mine)
    expect(values["hale_job_ranks", ""] == 2 and values["hale_job_info", ""] == 1, values)
    expect(values["hale_faults_total", "rank"] == values["hale_faults_recovered_total", "rank"] == 1, values)
    expect(values["hale_faults_total", "node"] == 0 and values["hale_rollbacks_total", ""] == 1, values)
    expect(values["hale_checkpoints_total", "full"] >= 2, values)
    expect(values["hale_checkpoint_bytes_total", "full"] > 1e5, values)
    expect(0 < values["hale_checkpoint_duration_seconds_total", "full"] < 100, values)
    expect(values["hale_restart_seconds_total", ""] > 0 and values["hale_job_protected", ""] == 1, values)
    expect(0 <= values["hale_checkpoint_age_seconds", ""] < 100, values)
    end(s, job, 2)
    expect(len([c for c in s.report()["checkpoints"] if c["complete"]]) >= values["hale_checkpoints_total", "full"],
           s.report(), values)


@test
def they_are_served_by_http(s):
    job = s.hale_start(1, "sleep", 100, options=["--no-mpi"])
    job.ranks(1)
    server = s.start(HALE, "metrics", "--listen", "0")
    server.until_says(r"http://127\.0\.0\.1:\d+/metrics")
    url = re.search(r"http://127\.0\.0\.1:\d+", server.err())[0]
    with urllib.request.urlopen(url + "/metrics", timeout=20) as answer:
        expect(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers)
        text = answer.read().decode()
    expect(f'job="{job.id()}"' in text, text)
    for path, status in (("/", 200), ("/nothing", 404)):
        try:
            got = urllib.request.urlopen(url + path, timeout=20).status
        except urllib.error.HTTPError as e:
            got = e.code
        expect(got == status, path, got)
    port = int(url.rsplit(":", 1)[1])
    for garbage in (b"POST /metrics HTTP/1.1\r\n\r\n", b"\0" * 9000, b"GET", b""):
        with socket.create_connection(("127.0.0.1", port)) as c:
            c.settimeout(20)
            try:
                c.sendall(garbage)
                c.shutdown(socket.SHUT_WR)
                got = c.recv(100)
            except OSError:  # it has hung up already
                got = b""
            expect(not garbage.startswith(b"POST") or b" 405 " in got, garbage, got)
    with urllib.request.urlopen(url + "/metrics", timeout=20) as answer:
        expect(answer.status == 200, "it still serves")
    server.kill(signal.SIGTERM)
    expect(server.wait().status == 0, server.result())
    job.kill(signal.SIGTERM)
    job.wait()


@test
def they_go_into_a_file_for_node_exporter_and_leave_with_who_writes_it(s):
    job = s.hale_start(1, "sleep", 100, options=["--no-mpi"])
    job.ranks(1)
    writer = s.start(HALE, "metrics", "--textfile", "hale.prom", "--every", "100ms")
    writer.until(lambda: os.path.exists(s.path("hale.prom")) and job.id() in s.read("hale.prom"), "the file")
    checked(s, s.read("hale.prom"))
    job.kill(signal.SIGTERM)
    job.wait()
    writer.until(lambda: "job=" not in s.read("hale.prom") or job.argv[-1] not in s.read("hale.prom"), "it is kept true")
    writer.kill(signal.SIGTERM)
    expect(writer.wait().status == 0 and not glob.glob(s.path("hale.prom*")), os.listdir(s.dir))
    r = s.hale("metrics", "--listen", "x", "--textfile", "y")
    expect(r.status == EXIT_USAGE, r)
    expect(s.hale("metrics", "--listen", "1.2.3:x").status == EXIT_USAGE, "no address")


main()
