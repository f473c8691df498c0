#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds CRIU's zdtm programs outside the tree; checkpoints, kills and rolls back each under hale run.

usage: zdtm_suite.py build SOURCE BUILD
       zdtm_suite.py run BUILD HALE [PROGRAM…]
       zdtm_suite.py move BUILD HALE [PROGRAM…]     one live move in place of the kill

SOURCE is a checkout of CRIU (git clone https://github.com/checkpoint-restore/criu): a copy of its test/zdtm is built in
BUILD, with a test_init that does not fork. 'run' needs root, for namespaces in which nothing outlives a program. It
prints one line for each program and the counts: what passes alone and needs neither root nor namespaces of its own nor
options of its own counts. Its exit status is 0 when no program failed silently."""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED_FLAGS = {"suid", "noauto", "crfail", "reqrst"}


def build(source, target):
    zdtm = os.path.join(os.path.abspath(target), "zdtm")
    if not os.path.exists(zdtm):
        shutil.copytree(os.path.join(source, "test/zdtm"), zdtm, symlinks=True)
    path = os.path.join(zdtm, "lib/test.c")
    with open(path) as f:
        text = f.read()
    for old, new in (("\tpid = fork();\n", "\tpid = 0;\n"), ("\tif (setsid() < 0) {\n", "\tif (0) {\n"),
                     ("stage, TEST_RUNNING_STAGE);\n", "stage, TEST_RUNNING_STAGE);\n\twrite_pidfile(getpid());\n")):
        if new not in text:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
    with open(path, "w") as f:
        f.write(text)
    subprocess.run(["make", "-s", "-C", zdtm + "/lib"], check=True)
    # some need libraries that are not there: the others are made
    subprocess.run(["make", "-k", "-s", "-j2", "-C", zdtm + "/static", "USERCFLAGS=-Wno-error",
                    *[name for name, _ in programs(zdtm) if counts(zdtm, name)]],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def programs(zdtm):
    """(name, its arguments) of those that 'static/Makefile' lists."""
    with open(zdtm + "/static/Makefile") as f:
        text = f.read().replace("\\\n", " ")
    for kind, args in (("NOFILE", []), ("FILE", ["--filename=F"]), ("DIR", ["--dirname=D"]),
                       ("DIR_FILE", ["--dirname=D", "--filename=F"])):
        for names in re.findall(rf"^TST_{kind}\s*[:+]?=(.*)$", text, flags=re.M):
            for name in names.split():
                if not name.startswith("$"):
                    yield name, args


def counts(zdtm, name):
    """Whether it is one for an ordinary user in the host's namespaces."""
    try:
        with open(f"{zdtm}/static/{name}.desc") as f:
            desc = eval(f.read(), {})  # a dictionary, as CRIU's own script reads it
    except OSError:
        desc = {}
    except Exception:
        return False
    if SKIPPED_FLAGS & set(desc.get("flags", "").split()) or "h" not in desc.get("flavor", "h").split():
        return False
    return "deps" not in desc and not glob.glob(f"{zdtm}/static/{name}.hook") and \
        not glob.glob(f"{zdtm}/static/{name}.checkskip")


# ---- inside the namespaces: one program ----

def wait_for(what, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := what()):
            return found
        time.sleep(0.05)
    return None


def verdict_of(path):
    try:
        with open(path, errors="replace") as f:
            text = f.read()
    except OSError:
        return "no verdict"
    lines = [line for line in text.splitlines() if line.strip()]
    return "PASS" if re.search(r"^.*\bPASS$", text, flags=re.M) and "FAIL" not in text else \
        (lines[-1][:200] if lines else "no verdict")


def alone(exe, args):
    os.mkdir("alone")
    os.chmod("alone", 0o777)
    os.chmod(".", 0o755)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    process = subprocess.Popen([*user, exe, *args], cwd="alone", stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if not wait_for(lambda: os.path.exists("alone/P") or process.poll() is not None, 40) or \
            process.poll() is not None:
        return "does not start alone: " + verdict_of("alone/O.inprogress")
    process.terminate()
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        return "does not end alone"
    said = verdict_of("alone/O")
    return None if said == "PASS" else "alone: " + said


def one(hale, exe, args, moves=False):
    """A line: PASS, REFUSED why, START why, WRONG why, or SKIP why."""
    args = ["--pidfile=P", "--outfile=O", *args]
    why = alone(exe, args)
    if why:
        return "SKIP " + why
    os.mkdir("ranked")
    errors = open("err", "w+b")
    job = subprocess.Popen([hale, "run", "--no-mpi", *(["--nodes", "1", "--spares", "1"] if moves else []),
                            "--ckpt-every", "1h", "--ckpt-wait", "2s", "--ckpt-dir",
                            os.path.abspath("ck"), "--wdir", os.path.abspath("ranked"), "--", exe, *args],
                           stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL)

    def said():
        with open("err", errors="replace") as f:
            return [re.sub(r"^hale(: \S+)?: ", "", x) for x in f.read().splitlines()]

    def info():
        r = subprocess.run([hale, "ps", "--json"], capture_output=True, text=True)
        jobs = json.loads(r.stdout)["jobs"] if r.returncode == 0 and r.stdout.strip() else []
        return jobs[0] if jobs else None

    wait_for(lambda: os.path.exists("ranked/P") or job.poll() is not None, 40)
    if job.poll() is not None or not os.path.exists("ranked/P"):
        return "START " + verdict_of("ranked/O.inprogress") + " | " + " ".join(said()[-2:])
    time.sleep(0.3)

    def judged(rank):
        time.sleep(0.3)
        os.kill(rank, signal.SIGTERM)
        try:
            job.wait(60)
        except subprocess.TimeoutExpired:
            return "WRONG does not end afterwards"
        result = verdict_of("ranked/O")
        if moves and not os.path.exists("ranked/O"):
            # who moves gets a new id, and only the process of the old one gives that file its name
            result = verdict_of("ranked/O.inprogress")
        if result == "PASS" and job.returncode == 0:
            return "PASS"
        return f"WRONG status {job.returncode}: {result} | " + " ".join(said()[-2:])[:300]

    if moves:
        r = subprocess.run([hale, "migrate", "--from", "node0"], capture_output=True, text=True, timeout=200)
        if r.returncode != 0:
            return "REFUSED " + " ".join(r.stderr.split())[:400]
        if job.poll() is not None or not (j := info()) or j["restarts"]:
            return "WRONG ends after its move: " + " ".join(said()[-3:])[:400]
        return judged(j["ranks"][0]["pid"])
    r = subprocess.run([hale, "ckpt"], capture_output=True, text=True, timeout=100)
    if r.returncode != 0 and "the next checkpoint" in r.stderr:
        r = subprocess.run([hale, "ckpt"], capture_output=True, text=True, timeout=100)
    if r.returncode != 0:
        return "REFUSED " + " ".join(r.stderr.split())[:400]
    if not (listed := info()):
        return "WRONG ends after its checkpoint: " + " ".join(said()[-2:])
    rank = listed["ranks"][0]
    os.kill(rank["pid"], signal.SIGKILL)

    def back():
        j = info()
        return j if j and j["restarts"] >= 1 and j["ranks"][0]["state"] == "running" else None

    again = wait_for(lambda: job.poll() is not None or back(), 60)
    if again is None or job.poll() is not None:
        return "WRONG does not come back: " + " ".join(said()[-3:])[:400]
    if not (again := back()):
        return "WRONG ends after the rollback: " + " ".join(said()[-3:])[:400]
    if again["restarts"] > 1 or any("begin" in x and "again" in x and "checkpoint" not in x for x in said()):
        return "REFUSED restore: " + " ".join(said()[-3:])[:400]
    return judged(again["ranks"][0]["pid"])


# ---- outside ----

def isolated(how, hale, zdtm, name, args):
    folder = tempfile.mkdtemp(prefix=f"zdtm-{name}-", dir="/var/tmp")
    command = ["unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
               "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && ip link set lo up && exec \"$@\"", "sh", sys.executable,
               os.path.abspath(__file__), how, hale, f"{zdtm}/static/{name}", *args]
    try:
        r = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, errors="replace",
                           env=dict(os.environ, TMPDIR=folder, HOME=folder, XDG_RUNTIME_DIR=folder))
        return r.stdout.strip() or "WRONG the script: " + r.stderr[-300:]
    except subprocess.TimeoutExpired:
        return "WRONG not over after 300 s"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(how, target, hale, only):
    zdtm = os.path.join(os.path.abspath(target), "zdtm")
    chosen = [(n, a) for n, a in programs(zdtm) if (n in only if only else counts(zdtm, n)) and
              os.access(f"{zdtm}/static/{n}", os.X_OK)]
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("SUITE_JOBS", "2"))) as pool:
        running = {pool.submit(isolated, how, os.path.abspath(hale), zdtm, n, a): n for n, a in chosen}
        for done in concurrent.futures.as_completed(running):
            line = done.result().splitlines()[-1]
            print(f"{running[done]:28} {line}", flush=True)
            verdicts.setdefault(line.split()[0], []).append(running[done])
    for verdict, names in sorted(verdicts.items()):
        print(f"{len(names):4} {verdict}")
    return 1 if "WRONG" in verdicts else 0


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) == 4:
        return build(*sys.argv[2:])
    if sys.argv[1:2] == ["one"] and len(sys.argv) >= 4:
        return print(one(sys.argv[2], sys.argv[3], sys.argv[4:]))
    if sys.argv[1:2] == ["one-move"] and len(sys.argv) >= 4:
        return print(one(sys.argv[2], sys.argv[3], sys.argv[4:], moves=True))
    if sys.argv[1:2] in (["run"], ["move"]) and len(sys.argv) >= 4:
        return run("one" if sys.argv[1] == "run" else "one-move", *sys.argv[2:4], sys.argv[4:])
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
