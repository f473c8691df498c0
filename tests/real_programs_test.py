#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of every day, as they are, killed and rolled back: they leave the files of an undisturbed run. HALE_LONG=1
runs all of them, several times each."""

import hashlib

from lib import *

CORPUS = "for i in $(seq 1 6); do seq $((i * 1000)) $((i * 1000 + 9000)) | sed 's/^/line /' > in.$i; done"

TREE = CORPUS + "; mkdir tree; for i in $(seq 1 6); do mkdir tree/$i; cp in.$i tree/$i/; done"

# name: (what has to be there, a script that prepares, the program)
PROGRAMS = {
    "a pipeline of sort and xz": ("xz", CORPUS, """
        for i in 1 2 3 4 5 6; do sort -r in.$i | tee >(wc -l > count.$i) | xz -1 > out.$i.xz; sleep 0.05; done; wait
        xz -dc out.*.xz | sort -n -k2 | uniq -c | tail -5
    """),
    "make -j2 of a small project": ("make", """
        for i in $(seq 1 8); do echo "int f$i(int x) { return x * $i; }" > f$i.c; done
        (for i in $(seq 1 8); do echo "int f$i(int);"; done
         echo '#include <stdio.h>'; echo 'int main(void) { printf("%d\\\\n", '
         for i in $(seq 1 8); do echo "f$i($i) + "; done; echo '0); return 0; }') > main.c
        printf 'prog: main.o %s\\n\\tcc -o $@ $^\\n%%.o: %%.c\\n\\tcc -O1 -c -o $@ $<\\n' \\
            "$(for i in $(seq 1 8); do printf 'f%d.o ' $i; done)" > Makefile
    """, "make -s -j2 && ./prog"),
    "a pool of Python with numpy": ("python3", "", """
        exec /usr/bin/python3 - <<'END'
import multiprocessing as mp
import numpy as np
def work(k):
    rng = np.random.default_rng(k)
    a = rng.random((120, 120))
    for _ in range(20):
        a = a @ a.T
        a /= np.abs(a).max()
    np.save(f"part{k}.npy", a)
    return float(a.sum())
if __name__ == "__main__":
    with mp.Pool(2) as pool:
        print("%.12e" % sum(pool.map(work, range(12), chunksize=1)))
END
    """),
    "sqlite3 under load": ("python3", "", """
        exec /usr/bin/python3 - <<'END'
import sqlite3
db = sqlite3.connect("data.db", isolation_level=None)
db.execute("create table t (k integer primary key, v integer)")
for round in range(40):
    db.execute("begin")
    for k in range(50):
        db.execute("insert into t values (?, ?)", (round * 50 + k, k * round))
        if k % 10 == 9:
            db.execute("update t set v = v + 1 where k % 7 = ?", (k % 7,))
    db.execute("commit")
print(db.execute("select count(*), sum(v), sum(k * v) from t").fetchone())
print(db.execute("pragma integrity_check").fetchone())
END
    """),
    "tar through a pipe": ("tar", TREE, """
        for i in 1 2 3; do rm -rf copy.$i; mkdir copy.$i; tar cf - tree | (sleep 0.05; tar xf - -C copy.$i); done
        find copy.* -type f | sort | xargs cat | cksum
    """),
    "rsync of a tree": ("rsync", TREE, """
        for i in 1 2 3; do rsync -a --checksum tree/ copy/; echo more >> tree/$i/in.$i; done
        rsync -a --delete tree/ copy/; find copy -type f | sort | xargs cat | cksum
    """),
    "R in parallel": ("Rscript", "", """
        Rscript -e 'library(parallel); cl <- makeCluster(2); r <- parSapply(cl, 1:40, function(i) { set.seed(i);
            sum(sort(runif(20000))) }); stopCluster(cl); cat(sprintf("%.9f\\n", sum(r)));
            cat(sprintf("%.9f\\n", sum(unlist(mclapply(1:20, function(i) sum(sqrt(1:20000 + i)), mc.cores = 2)))))'
    """),
}
SHORT = ["a pipeline of sort and xz", "make -j2 of a small project"]


def left_in(folder):
    found = {}
    for at, dirs, names in os.walk(folder):
        dirs[:] = [d for d in dirs if d != "hale-ckpt"]
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = hashlib.sha256(f.read()).hexdigest()
    return found


def run_both(s, name, number):
    """Undisturbed, and killed twice; returns how often it was rolled back, or None if it is not installed."""
    what, prepare, program = PROGRAMS[name]
    if not shutil.which(what):
        return None
    rng = random.Random(SEED + number)
    folders = [s.path(f"{kind}.{number}") for kind in ("alone", "killed")]
    for f in folders:
        os.mkdir(f)
        r = subprocess.run(["bash", "-c", prepare], cwd=f, capture_output=True, text=True)
        expect(r.returncode == 0, name, r.stderr)
    began = time.monotonic()
    alone = subprocess.run(["bash", "-c", program], cwd=folders[0], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
    took = time.monotonic() - began
    expect(alone.returncode == 0, name, alone.stderr)
    kills = [x for at in (rng.uniform(0.3, 0.8), rng.uniform(0.8, 1.8))
             for x in ("--inject", f"kill:rank=0,after={at * took:.3f}s")]
    r = s.hale("run", "--no-mpi", "--ckpt-every", f"{took / 8:.3f}s", "--ckpt-wait", "2s", "--wdir", folders[1],
               "--ckpt-dir", s.path(f"ck.{number}"), "--report", s.path("report.json"), *kills, "--", "bash", "-c",
               program)
    expect(r.status == 0 and r.out == alone.stdout, name, alone.stdout, r)
    expect(left_in(folders[0]) == left_in(folders[1]), name, left_in(folders[0]), left_in(folders[1]), r)
    return s.report()["restarts"], sum(c["complete"] for c in s.report()["checkpoints"])


@test
def programs_of_every_day_leave_the_same_files(s):
    if not ids_allowed():
        skip("processes can't have their ids again here")
    told = []
    for number in range(len(PROGRAMS) * 5 if LONG else len(SHORT)):
        name = list(PROGRAMS)[number % len(PROGRAMS)] if LONG else SHORT[number]
        done = run_both(s, name, number)
        told.append(f"{name}: {done[0]} rollbacks, {done[1]} checkpoints" if done else f"{name}: not installed")
    return "; ".join(told)


main()
