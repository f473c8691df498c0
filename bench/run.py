#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Hale beside its peers: in turn, in one run, several rounds; medians and ratios.

  bench/run.py [--build DIR] [--rounds N] [--quick] [mpi] [neighbour] [image]

Writes bench/results/*.tsv (every single figure and the medians) and, where gnuplot is installed,
pictures beside them. Peers that aren't installed are left out and named. Absolute times of a
shared machine mean little; the ratios are what to look at.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RESULTS = os.path.join(HERE, "results")

# test -> higher is better
MPI_TESTS = {"latency": False, "bandwidth": True, "pingpong": True, "rate": True,
             "barrier": False, "bcast": False, "allreduce": False, "alltoall": False}
PAIR_TESTS = ["latency", "bandwidth", "pingpong", "rate"]
COLL_TESTS = ["barrier", "bcast", "allreduce", "alltoall"]


def say(text):
    print(text, flush=True)


def environment():
    env = dict(os.environ)
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


def run(argv, timeout=300, cwd=None, stdin=None):
    return subprocess.run(argv, env=environment(), timeout=timeout, cwd=cwd, text=True,
                          stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def write_tsv(name, header, rows):
    os.makedirs(RESULTS, exist_ok=True)
    path = os.path.join(RESULTS, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("# " + "\t".join(header) + "\n")
        for row in rows:
            f.write("\t".join(str(x) for x in row) + "\n")
    say(f"wrote {os.path.relpath(path, ROOT)}")
    return path


class Peers:
    """The MPI implementations that are there, and how each starts a program."""

    def __init__(self, hale, scratch):
        self.start = {"hale": lambda n: [hale, "run", "-n", str(n), "--"]}
        self.program = {}
        self.compile(scratch, "openmpi", "mpicc.openmpi",
                     lambda n: ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none",
                                "-n", str(n)])
        self.compile(scratch, "mpich", "mpicc.mpich", lambda n: ["mpiexec.mpich", "-n", str(n)])
        if "openmpi" not in self.program:
            sys.exit("bench: mpicc.openmpi is missing; install libopenmpi-dev and openmpi-bin")
        self.program["hale"] = self.program["openmpi"]  # the very same binaries

    def compile(self, scratch, name, cc, start):
        if not shutil.which(cc):
            say(f"peer {name} left out: {cc} isn't installed")
            return
        self.start[name] = start
        self.program[name] = {}
        for source in ("mpibench", "waiters"):
            out = os.path.join(scratch, f"{source}.{name}")
            subprocess.run([cc, "-O2", "-w", "-o", out, os.path.join(HERE, "mpi", source + ".c")],
                           check=True)
            self.program[name][source] = out

    def names(self):
        return [n for n in ("hale", "openmpi", "mpich") if n in self.program]

    def command(self, name, n, program, *args):
        return self.start[name](n) + [self.program[name][program], *args]


def bench_mpi(peers, rounds, seconds):
    figures = {}  # (ranks, test, bytes, unit) -> name -> values
    for r in range(rounds):
        for n in (2, 4, 8):
            tests = PAIR_TESTS + COLL_TESTS if n == 2 else COLL_TESTS
            for name in peers.names():
                # MPICH spins through its time slices when oversubscribed: one short look is enough
                if name == "mpich" and n > 2 and r > 0:
                    continue
                budget = str(seconds if not (name == "mpich" and n > 2) else seconds / 4)
                begun = time.time()
                out = run(peers.command(name, n, "mpibench", budget, *tests), timeout=900)
                if out.returncode:
                    sys.exit(f"bench: mpibench under {name} failed:\n{out.stdout}{out.stderr}")
                for line in out.stdout.splitlines():
                    test, size, value, unit = line.split("\t")
                    key = (n, test, int(size), unit)
                    figures.setdefault(key, {}).setdefault(name, []).append(float(value))
                say(f"round {r + 1}/{rounds}, {n} ranks, {name}: {time.time() - begun:.0f} s")
    rows = []
    say(f"\n{'ranks':>5} {'test':<10} {'bytes':>8} " +
        " ".join(f"{n:>10}" for n in peers.names()) + "  unit   hale is … × the better peer")
    for key in sorted(figures, key=lambda k: (k[0], list(MPI_TESTS).index(k[1]), k[2])):
        n, test, size, unit = key
        med = {name: statistics.median(v) for name, v in figures[key].items()}
        others = [med[p] for p in med if p != "hale"]
        ratio = med["hale"] / max(others) if MPI_TESTS[test] else min(others) / med["hale"]
        say(f"{n:>5} {test:<10} {size:>8} " +
            " ".join(f"{med.get(p, float('nan')):>10.3f}" for p in peers.names()) +
            f"  {unit:<5} {ratio:8.2f}")
        rows.append([n, test, size, unit] + [f"{med.get(p, float('nan')):.4f}"
                                             for p in peers.names()] + [f"{ratio:.3f}"])
    path = write_tsv("mpi.tsv", ["ranks", "test", "bytes", "unit"] + peers.names() +
                     ["hale_times_better"], rows)
    picture_mpi(path, peers.names())


def gnuplot(script):
    if shutil.which("gnuplot"):
        subprocess.run(["gnuplot"], input=script, text=True, check=False)
    else:
        say("no picture: gnuplot isn't installed")


def picture_mpi(tsv, names):
    out = os.path.join(RESULTS, "mpi.svg")
    plots = ", ".join(
        f"'< grep -P \"^\\\\d+\\t(barrier|allreduce)\\t[08]\\t\" {tsv}' using {5 + i}:"
        f"xtic(sprintf('%s %s', strcol(2), strcol(1))) title '{name}'"
        for i, name in enumerate(names))
    gnuplot(f"""set terminal svg size 900,420 font 'sans,12' background '#ffffff'
set output '{out}'
set datafile separator '\\t'
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 noborder
set logscale y
set grid y
set ylabel 'microseconds (log scale, less is better)'
set title 'barrier and 8-byte allreduce with 2, 4 and 8 ranks on this machine'
set xtics rotate by -30
plot {plots}
""")


def neighbour_speed(scratch, seconds):
    program = os.path.join(scratch, "neighbour")
    if not os.path.exists(program):
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "mpi", "neighbour.c")],
                       check=True)
    workers = [subprocess.Popen([program, str(seconds)], stdout=subprocess.PIPE, text=True)
               for _ in range(os.cpu_count() or 1)]
    return sum(float(w.communicate()[0]) for w in workers)


def bench_neighbour(peers, scratch, rounds, seconds=2.0):
    """As many CPU-bound neighbours as cores, alone and beside four ranks that wait."""
    shares = {name: [] for name in peers.names()}
    for _ in range(rounds):
        for name in peers.names():
            alone = neighbour_speed(scratch, seconds)
            waiting = subprocess.Popen(
                peers.command(name, 5, "waiters", str(seconds + 2.5)), env=environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1.2)
            beside = neighbour_speed(scratch, seconds)
            waiting.wait()
            shares[name].append(100 * beside / alone)
    rows = [[name, f"{statistics.median(v):.1f}"] for name, v in shares.items()]
    say("\nspeed that CPU-bound neighbours keep while 4 ranks wait in a receive:")
    for name, share in rows:
        say(f"  {name:<10} {share} %")
    write_tsv("neighbour.tsv", ["implementation", "percent_kept"], rows)


def dd_seconds(source, target):
    """Seconds that dd takes to copy source (in memory) to target."""
    begun = time.monotonic()
    subprocess.run(["dd", f"if={source}", f"of={target}", "bs=1M", "status=none"], check=True)
    return time.monotonic() - begun


class Hog:
    """bench/image/hog.c under `hale run --no-mpi`, its beats read as they come."""

    def __init__(self, hale, program, where, mib, percent, extra=()):
        self.report = os.path.join(where, "report.json")
        self.where = where
        self.process = subprocess.Popen(
            [hale, "run", "--no-mpi", "--ckpt-dir", os.path.join(where, "ckpt"), "--keep", "4",
             "--no-fsync", "--report", self.report, *extra, "--", program, str(mib),
             str(percent), "20", "100000"],
            cwd=where, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        while not self.process.stdout.readline().startswith("ready"):
            if self.process.poll() is not None:
                sys.exit("bench: the hog ended: " + self.process.stderr.read())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        with open(self.report, encoding="utf-8") as f:
            return json.load(f)


def checkpoint(hale, where):
    out = run([hale, "ckpt"], cwd=where)
    if out.returncode:
        sys.exit("bench: hale ckpt failed: " + out.stderr)
    return out.stdout.strip()


def restart_seconds(hale, where, ckpt, how):
    """From starting `hale restart` to the first beat of the rebuilt process."""
    begun = time.monotonic()
    p = subprocess.Popen([hale, "restart", "--restart", how, ckpt], cwd=where, env=environment(),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    line = p.stdout.readline()
    if not line:
        sys.exit("bench: hale restart failed: " + p.stderr.read())
    took = time.monotonic() - begun
    p.send_signal(signal.SIGTERM)
    p.communicate()
    return took


def bench_image(hale, scratch, rounds, mib=1024):
    program = os.path.join(scratch, "hog")
    subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "image", "hog.c")], check=True)
    rows = []
    for place, base in (("shm", "/dev/shm"), ("disk", scratch)):
        got = {}
        for _ in range(rounds):
            where = tempfile.mkdtemp(prefix="hale-bench.", dir=base)
            try:
                bench_image_once(hale, program, where, mib, got)
            finally:
                shutil.rmtree(where, ignore_errors=True)
        med = {k: statistics.median(v) for k, v in got.items()}
        med["write_of_dd"] = med["dd_write_s"] / med["write_s"]
        med["full_restart_of_dd"] = med["dd_read_s"] / med["restart_full_s"]
        med["incremental_faster"] = med["write_s"] / med["incremental_s"]
        say(f"\n{mib} MiB process, images on {place} (medians of {rounds}):")
        for k, v in med.items():
            say(f"  {k:<22} {v:.4f}")
            rows.append([place, mib, k, f"{v:.5f}"])
    write_tsv("image.tsv", ["place", "mib", "figure", "median"], rows)


def bench_image_once(hale, program, where, mib, got):
    def note(key, value):
        got.setdefault(key, []).append(value)

    source = tempfile.mkstemp(prefix="hale-bench-source.", dir="/dev/shm")[1]
    try:
        subprocess.run(["dd", "if=/dev/urandom", f"of={source}", "bs=1M", f"count={mib}",
                        "status=none"], check=True)
        note("dd_write_s", dd_seconds(source, os.path.join(where, "dd.out")))
        hog = Hog(hale, program, where, mib, 0)
        path = checkpoint(hale, where)
        report = hog.end()
        taken = report["checkpoints"][0]
        note("pause_ms", taken["pause_seconds"] * 1e3)
        note("write_s", taken["seconds"])
        note("dd_read_s", dd_seconds(os.path.join(where, "dd.out"), source))
        os.unlink(os.path.join(where, "dd.out"))
        note("restart_lazy_s", restart_seconds(hale, where, path, "lazy"))
        note("restart_full_s", restart_seconds(hale, where, path, "full"))
        shutil.rmtree(os.path.join(where, "ckpt"))
        hog = Hog(hale, program, where, mib, 0.02, ["--incremental"])
        checkpoint(hale, where)
        time.sleep(1.0)  # 50 beats of 0.02 %: 1 % of the pages
        checkpoint(hale, where)
        report = hog.end()
        note("incremental_s", report["checkpoints"][1]["seconds"])
        note("incremental_pause_ms", report["checkpoints"][1]["pause_seconds"] * 1e3)
        note("incremental_mib", report["checkpoints"][1]["bytes"] / 2**20)
    finally:
        os.unlink(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="mpi, neighbour, image (default: all)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round")
    args = parser.parse_args()
    hale = os.path.join(os.path.abspath(args.build), "hale")
    if not os.path.exists(hale):
        sys.exit(f"bench: no {hale}; run `make build` first")
    rounds, seconds = (1, 0.05) if args.quick else (args.rounds, 0.3)
    what = args.what or ["mpi", "neighbour", "image"]
    with tempfile.TemporaryDirectory(prefix="hale-bench.") as scratch:
        if "mpi" in what or "neighbour" in what:
            peers = Peers(hale, scratch)
        if "mpi" in what:
            bench_mpi(peers, rounds, seconds)
        if "neighbour" in what:
            bench_neighbour(peers, scratch, min(rounds, 3))
        if "image" in what:
            bench_image(hale, scratch, rounds)


if __name__ == "__main__":
    main()
