#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""hale metrics: what Prometheus reads, by its own tool where that is installed."""

import socket
import urllib.error
import urllib.parse
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


def dashboard():
    """Each question that the dashboard for Grafana asks."""
    with open(os.path.join(ROOT, "data/grafana/hale.json")) as f:
        d = json.load(f)
    asked = [t["expr"] for p in d["panels"] for t in p["targets"]]
    expect(len(asked) >= 8 and len({p["id"] for p in d["panels"]}) == len(d["panels"]), asked)
    return asked


@test
def the_dashboard_asks_for_metrics_that_there_are(s):
    job = s.hale_start(1, "sleep", 100, options=["--no-mpi"])
    job.ranks(1)
    there = set(re.findall(r"(?m)^# TYPE (\S+)", s.hale("metrics").out))
    for question in dashboard():
        names = set(re.findall(r"hale_\w+", question))
        expect(names and names <= there, question, sorted(names - there))
    job.kill(signal.SIGTERM)
    job.wait()


def free_port():
    with socket.socket() as c:
        c.bind(("127.0.0.1", 0))
        return c.getsockname()[1]


@test
def a_real_prometheus_collects_them_and_answers_the_dashboard(s):
    """And the questions in docs/metrics.md."""
    have("prometheus")
    job = s.hale_start(2, "sleep", 1000, options=["--no-mpi", "--ckpt-every", "200ms", "--inject", "kill:rank=1,at-ckpt=3"])
    job.until_says("all ranks run again")
    server = s.start(HALE, "metrics", "--listen", "0")
    server.until_says(r"http://127\.0\.0\.1:\d+/metrics")
    target = re.search(r"127\.0\.0\.1:\d+", server.err())[0]
    # the label job is Hale's own
    config = s.write("prometheus.yml", "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: hale\n  honor_labels: true\n"
                     f"  static_configs: [{{targets: ['{target}']}}]\n")
    r = s.run("promtool", "check", "config", config)
    expect(r.status == 0, r)
    port = free_port()
    prometheus = s.start("prometheus", f"--config.file={config}", f"--storage.tsdb.path={s.path('tsdb')}",
                         f"--web.listen-address=127.0.0.1:{port}")

    def ask(question):
        query = urllib.parse.urlencode({"query": question})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=20) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as e:
            if e.code == 503:  # it is still starting
                return None
            raise Failed(question + ": " + e.read().decode()) from None
        except urllib.error.URLError:
            return None

    name = job.id()
    prometheus.until(lambda: ask(f'hale_faults_total{{job="{name}",kind="rank"}} == 1'), "the fault in Prometheus")
    prometheus.until(lambda: ask(f'increase(hale_checkpoints_total{{job="{name}",kind="full"}}[1m]) > 0'), "checkpoints")
    expect(ask(f'hale_job_info{{job="{name}"}}')[0]["metric"]["program"].endswith("/sleep"), "the label job")
    for question in dashboard():
        question = question.replace("$job", name)
        expect(ask(question), f"no answer to {question}")
    with open(os.path.join(ROOT, "docs/metrics.md")) as f:
        documented = re.findall(r"(?m)^((?:rate|increase)\(hale\S+\)|hale_job_protected == 0)", f.read())
    expect(len(documented) == 3, documented)
    for question in documented:
        expect(ask(question) is not None, question)
    for one in prometheus, server, job:
        one.kill(signal.SIGTERM)
        one.wait()


main()
