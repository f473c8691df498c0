#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale report` and `hale web`: the page in a real browser (headless Chromium, by WebDriver) with HALE_LONG=1,
its parts and what it is served by always."""

import base64
import socket
import urllib.error
import urllib.request

from lib import *


def struck_job(s, ranks=3):
    """A report with two faults in it."""
    exe = s.compile("steps")
    r = s.hale_run(ranks, exe, 60, 20, options=["--ckpt-every", "200ms", "--report", "report.json", "--inject",
                                                "kill:rank=2,at-ckpt=2", "--inject", "kill:rank=1,at-ckpt=4"])
    expect(r.status == 0 and len(s.report()["failures"]) == 2, r)
    return s.report()


def data_of(page):
    """The JSON in a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


@test
def a_report_is_shown_in_lines_as_json_and_as_a_page(s):
    report = struck_job(s)
    r = s.hale("report", "report.json")
    expect(r.status == 0 and r.out.startswith(f"{report['job']}: 3 ranks, "), r)
    for f in report["failures"]:
        expect(f"rank {f['rank']} on {f['node']}: signal 9 (SIGKILL); back to checkpoint {f['rolled_back_to']}, " in r.out, r)
        expect(f["then"] == "rollback" and r.out.count(" lost, all ran again ") == 2, r)
    r = s.hale("report", "report.json", "--json")
    expect(json.loads(r.out) == report, r)
    r = s.hale("report", "report.json", "--html", "--output", "page.html")
    page = s.read("page.html")
    expect(r.status == 0 and not r.out and data_of(page)["report"] == report, r)
    expect([c for c in data_of(page)["advice"]["choices"] if c["flags"].startswith("--ckpt-every")], "the advice")
    expect(not re.findall(r"(?:src|href)=|@import|url\(|https?://(?!www\.w3\.org/2000/svg)", page), "needs nothing else")


@test
def a_report_says_what_came_of_each_failure(s):
    """Not all are followed by a rollback."""
    exe = s.compile("steps")
    r = s.hale_run(2, exe, 60, 20, options=["--replicas", "2", "--replenish", "off", "--report", "report.json",
                                            "--inject", "kill:rank=1,slot=1,after=300ms"])
    expect(r.status == 0 and [f["then"] for f in s.report()["failures"]] == ["replica"], r)
    r = s.hale("report", "report.json")
    expect("SIGKILL); the rank goes on in another replica\n" in r.out and "back to" not in r.out, r)
    r = s.hale_run(1, "sh", "-c", "exit 3", options=["--report", "report.json"])
    expect(r.status == 3 and [f["then"] for f in s.report()["failures"]] == ["end"], r)
    r = s.hale("report", "report.json")
    expect("exited with status 3; the job ends\n" in r.out and "back to" not in r.out, r)


@test
def a_report_has_events_of_the_backplane_that_nobody_has_looked_at(s):
    exe = s.compile("steps")
    job = s.hale_start(2, exe, 100000, 5, options=["--ckpt-every", "off", "--report", "report.json"])
    job.ranks(2)
    name = job.info()["id"]
    payload = "node0 " + "is hot, " * 100 + "é"
    for severity in "WARNING", "INFO":
        r = s.hale("events", "publish", "FTB.TEST", "TEST_" + severity, severity, payload, "--job", name)
        expect(r.status == 0, r)
    live = json.loads(s.hale("report", name, "--json").out)["events"]
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    job.wait()
    events = s.report()["events"]
    names = [e["name"] for e in events]
    expect(names[0] == "FTB_JOB_STARTED" and "TEST_WARNING" in names and events[:len(live)] == live, events, live)
    expect(names.count("TEST_WARNING") == names.count("FTB_RANK_DIED") == 1 and "TEST_INFO" not in names, events)
    hot = events[names.index("TEST_WARNING")]
    expect(hot["severity"] == "WARNING" and payload.startswith(hot["payload"]) and len(hot["payload"]) > 300, hot)
    expect(0 < hot["at_seconds"] < 1000 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", hot["time"]), hot)


@test
def nothing_in_a_report_becomes_part_of_the_page(s):
    evil = "</script><script>document.title='owned'</script>"
    s.write("evil.json", json.dumps({"job": evil, "exit": 0, "ranks": 1, "wall_seconds": 1, "restarts": 0, "checkpoints": [],
                                     "failures": [], "migrations": []}))
    r = s.hale("report", "evil.json", "--html")
    expect(r.status == 0 and data_of(r.out)["report"]["job"] == evil, r)
    expect(r.out.count("</script>") == 2, "those of the page itself")


@test
def what_is_no_report_is_refused(s):
    s.write("else.json", '{"jobs":[]}')
    for what, why in ("else.json", "is no report"), ("nosuch", "no job of that name runs here"):
        r = s.hale("report", what, "--html")
        expect(r.status == EXIT_USAGE and why in r.err and not r.out, r)
    for words in [], ["a", "b"], ["a", "--html", "--json"], ["--output"]:
        r = s.hale("report", *words)
        expect(r.status == EXIT_USAGE and "hale help report" in r.err, r)


class Web:
    """hale web; the address that it prints."""

    def __init__(self, s, *argv):
        if not os.path.exists(os.path.join(BUILD, "hale-web")):
            skip("built without libmicrohttpd")
        self.p = subprocess.Popen([HALE, "web", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=s.dir,
                                  env=s.env)
        self.url = self.p.stdout.readline().strip()
        m = re.fullmatch(r"http://([\d.]+):(\d+)/\?token=([0-9a-f]{32})", self.url)
        if not m:
            self.p.kill()
            raise Failed(self.url + self.p.communicate()[1])
        self.host, self.port, self.token = m[1], int(m[2]), m[3]

    def get(self, path, token=None, method="GET"):
        """Status, text and heads of an answer."""
        request = urllib.request.Request(f"http://{self.host}:{self.port}{path}", method=method,
                                         headers={"X-Hale-Token": token} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=60) as a:
                return a.status, a.read().decode(), a.headers
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode(), e.headers

    def end(self):
        self.p.terminate()
        self.p.communicate(timeout=60)
        return self.p.returncode


def with_web(function):
    """Gives it a function that starts hale web, and ends what it has started."""
    def run(s):
        webs = []

        def start(*argv):
            webs.append(Web(s, *argv))
            return webs[-1]
        try:
            function(s, start)
        finally:
            for w in webs:
                if w.p.poll() is None:
                    w.p.kill()
                    w.p.communicate()
    run.__name__ = function.__name__
    return test(run)


@with_web
def the_server_shows_running_jobs_to_who_has_the_token(s, web):
    w = web()
    expect(w.host == "127.0.0.1", w.url)
    job = s.hale_start(2, "sleep", 1000, options=["--no-mpi", "--nodes", 2, "--ckpt-every", "200ms"])
    job.ranks(2)
    name = job.info()["id"]
    while not job.info()["checkpoint"]:
        time.sleep(0.05)
    for path in "/", "/api/jobs", "/api/job?id=" + name, "/api/events?id=" + name:
        for token in None, "0" * 32, w.token[:-1], w.token + "0":
            status, text, _ = w.get(path, token)
            expect(status == 403 and name not in text and "<script" not in text, path, token, status, text)
    status, text, heads = w.get("/", w.token)
    expect(status == 200 and data_of(text) is None and "frame" in heads["X-Frame-Options"].lower() + "frame", text)
    expect("default-src 'none'" in heads["Content-Security-Policy"], heads)
    expect(w.get("/?token=" + w.token)[0] == 200, "as it is printed")
    expect(name in json.loads(w.get("/api/jobs", w.token)[1])["jobs"], "the job is listed")
    d = json.loads(w.get("/api/job?id=" + name, w.token)[1])
    expect(d["report"]["job"] == name and d["report"]["checkpoints"][0]["complete"], d)
    expect([n["node"] for n in d["nodes"]["nodes"]] == ["node0", "node1"] and len(d["ps"]["ranks"]) == 2, d)
    r = s.hale("report", name)
    expect(r.status == 0 and r.out.startswith(f"{name}: 2 ranks, "), r)
    end = time.monotonic() + 60
    while "FTB_CHECKPOINT_DONE" not in [e["name"] for e in json.loads(w.get("/api/events?id=" + name, w.token)[1])["events"]]:
        expect(time.monotonic() < end, "no event of the backplane comes")
        time.sleep(0.1)
    expect(json.loads(w.get("/api/events?id=nosuch.1", w.token)[1]) == {"events": []}, "a job that is none has none")
    expect([(n["node"], n["ranks"]) for n in d["report"]["nodes"]] == [("node0", 1), ("node1", 1)], d["report"]["nodes"])
    expect("status" not in s.hale("report", name).out, "it runs still")
    expect("now: node0 1 rank, node1 1 rank" in s.hale("report", name).out, s.hale("report", name))
    status, text, _ = w.get("/api/job?id=nosuch.1", w.token)
    expect(status == 200 and json.loads(text)["report"] is None, text)
    for path in "/api/job", "/api/job?id=", "/api/job?id=-x", "/api/events", "/api/job?id=../x", "/etc/passwd", "/../page":
        expect(w.get(path, w.token)[0] == 404, path)
    expect(w.get("/api/jobs", w.token, "POST")[0] == 405, "it only shows")
    expect(w.end() == 0, "its status")
    job.kill(signal.SIGTERM)
    job.wait()


@with_web
def strangers_at_the_door_keep_nobody_waiting(s, web):
    w = web()
    silent = [socket.create_connection((w.host, w.port)) for _ in range(20)]
    for c in silent[:5]:
        c.sendall(b"GET / HT")
    garbage = socket.create_connection((w.host, w.port))
    garbage.sendall(os.urandom(5000))
    expect(w.get("/", w.token)[0] == 200, "others are served")
    for c in silent + [garbage]:
        c.close()
    expect(w.end() == 0, "its status")


@test
def a_port_that_is_taken_and_wrong_addresses_are_said(s):
    if not os.path.exists(os.path.join(BUILD, "hale-web")):
        skip("built without libmicrohttpd")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        r = s.hale("web", "--listen", taken.getsockname()[1])
        expect(r.status == EXIT_USAGE and "cannot listen" in r.err, r)
    for address in "x", "1.2.3:4", "70000", "::1:80":
        r = s.hale("web", "--listen", address)
        expect(r.status == EXIT_USAGE and "ADDRESS:PORT" in r.err, r)


# ---- a browser ----

class Browser:
    """Chromium without a screen, driven by the WebDriver protocol."""

    def __init__(self, s, width, height, dark=False):
        for program in "chromium", "chromedriver":
            have(program)
        self.s = s
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env=s.env, start_new_session=True)
        for line in self.driver.stdout:
            m = re.search(r"successfully on port (\d+)", line)
            if m:
                self.at = f"http://127.0.0.1:{m[1]}"
                break
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                   "--user-data-dir=" + s.path(f"profile{width}")] + (["--blink-settings=preferredColorScheme=0"] if dark else [])
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {
            "args": options, "binary": shutil.which("chromium")}}}})
        self.at += "/session/" + answer["sessionId"]

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.at + path, method=method, data=json.dumps(body or {}).encode() if method == "POST" else
                                         None, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as a:
                return json.load(a)["value"]
        except urllib.error.HTTPError as e:
            raise Failed(f"{path}: {e.read().decode()[:500]}") from None

    def run(self, script):
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def until(self, script):
        end = time.monotonic() + 90
        while not self.run("return " + script):
            expect(time.monotonic() < end, f"never: {script}", self.run("return document.body.innerText"))
            time.sleep(0.1)

    def click(self, selector):
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{next(iter(found.values()))}/click")

    def type(self, selector, text):
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{next(iter(found.values()))}/value", {"text": text})

    def picture(self, name):
        """Into the folder that HALE_PICTURES names, for eyes."""
        data = base64.b64decode(self.ask("GET", "/screenshot"))
        expect(len(data) > 5000, name)
        folder = os.environ.get("HALE_PICTURES")
        if folder:
            with open(os.path.join(folder, name + ".png"), "wb") as f:
                f.write(data)

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.communicate()


def with_browser(function):
    def run(s):
        if not LONG:
            skip("a browser: with HALE_LONG=1")
        browsers = []

        def start(*size, **kw):
            browsers.append(Browser(s, *size, **kw))
            return browsers[-1]
        try:
            function(s, start)
        finally:
            for b in browsers:
                b.close()
            for left in os.listdir(s.tmp):
                path = os.path.join(s.tmp, left)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    run.__name__ = function.__name__
    return test(run)


NO_OVERFLOW = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@with_browser
def the_page_of_a_report_works_in_a_browser(s, browser):
    report = struck_job(s)
    s.hale("report", "report.json", "--html", "-o", "page.html")
    for name, size in ("desktop", (1200, 1600)), ("phone", (500, 1600)):
        b = browser(*size)
        b.ask("POST", "/url", {"url": "file://" + s.path("page.html")})
        b.until("document.querySelectorAll('#timeline .checkpoint').length > 0")
        expect(b.run("return document.title") == report["job"] + ": hale", "its title")
        expect(b.run("return document.querySelectorAll('#timeline .death').length") == 2, "two deaths")
        expect(b.run("return " + NO_OVERFLOW), f"wider than the window: {name}")
        expect(b.run("const c = card('state', 'checkpointing'), v = c.querySelector('b'); document.getElementById('cards').append(c);"
                     "const h = v.offsetHeight / parseFloat(getComputedStyle(v).fontSize); c.remove(); return h") < 2.2, "in one line")
        b.click("#timeline .death")
        b.until("document.getElementById('detail').textContent.includes('died at')")
        expect("signal 9" in b.run("return document.getElementById('detail').textContent"), "what the click says")
        lines = b.run("return document.querySelectorAll('#log li').length")
        b.type("#filter", "SIGKILL")
        b.until("document.querySelectorAll('#log li').length === 2")
        expect(lines > 4, lines)
        before = b.run("return getComputedStyle(document.body).backgroundColor")
        b.picture(f"report-{name}-light")
        b.click("#theme")
        b.until(f"getComputedStyle(document.body).backgroundColor !== '{before}'")
        b.picture(f"report-{name}-dark")
        expect("--ckpt-every" in b.run("return document.getElementById('advice').innerText"), "the advice")
        expect("FTB_RANK_DIED" in b.run("return document.getElementById('backplane').innerText"), "events of the backplane")


@with_browser
def the_live_page_follows_a_job_in_a_browser(s, browser):
    w = Web(s)
    try:
        exe = s.compile("steps")
        job = s.hale_start(4, exe, 100000, 20, options=["--nodes", 2, "--ckpt-every", "1s"])
        ranks = job.ranks(4)
        name = job.info()["id"]
        b = browser(1200, 1600)
        b.ask("POST", "/url", {"url": w.url})
        b.until(f"[...document.querySelectorAll('#jobs option')].some(o => o.value === '{name}')")
        b.run(f"const c = document.getElementById('jobs'); c.value = '{name}'; c.dispatchEvent(new Event('change'))")
        b.until(f"document.getElementById('title').textContent === '{name}'")
        b.until("document.querySelectorAll('#topology .node').length === 2")
        b.until("document.querySelectorAll('#topology .rank').length === 4")
        b.until("document.querySelectorAll('#timeline .checkpoint').length > 1")
        b.until("document.querySelectorAll('#rates rect').length > 2")
        expect(b.run("return document.querySelectorAll('#timeline .stay').length") == 2, "a row for each node")
        b.until("document.querySelector('#backplane li')")
        os.kill(ranks[2], signal.SIGKILL)
        b.until("document.querySelectorAll('#timeline .death').length === 1")
        b.until("document.querySelector('#topology .struck')")
        b.click("#timeline .death")
        b.until("document.getElementById('detail').textContent.includes('rank 2 died')")
        b.picture("live")
        b.run("document.getElementById('backplane').scrollIntoView()")
        b.picture("live-events")
        job.kill(signal.SIGTERM)
        job.wait()
        b.until(f"document.getElementById('title').textContent !== '{name}' || "
                "document.getElementById('main').textContent.includes('over') || "
                "document.getElementById('main').textContent.includes('No job')")
    finally:
        expect(w.end() == 0, "its status")


main()
