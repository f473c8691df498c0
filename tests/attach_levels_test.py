#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale attach` with `--ckpt-local`: heads are killed in checkpoints, in rounds of copies, in recoveries,
and together with a node and its disk. The new head learns from the nodes what lies on their disks."""

from attach_parts import *
from lib import stat_of
from levels_parts import *
from namespaces import Hosts

LOCAL = ["--nodes", "2", "--spares", "1", "--ckpt-local", "local/%n", "--node-timeout", "4s"]
NO_SHARED = ["--ckpt-shared-every", "0"]


def copiers(s, job, *nodes):
    """The processes that copy images, of these nodes."""
    pids = agents(s, job)
    return [p for n in nodes for p in children(pids[n]["pid"]) if comm(p) == "hale-copier"]


def stop(pids, sig=signal.SIGSTOP):
    expect(pids, "there are copiers")
    for p in pids:
        try:
            os.kill(p, sig)
        except ProcessLookupError:  # a helper of a copier, which has ended
            pass


def held(s, node, id):
    """Ranks of which this node has an image under its own name."""
    return sorted(int(re.search(r"rank-(\d+)\.img$", p)[1])
                  for p in glob.glob(s.path(f"local/{node}/*/*/{id}/rank-*.img")))


def lose_now(s, pid, node):
    """While there is no head: the agent, its ranks and copier, and the disk."""
    mine = children(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not any(alive(p) for p in mine), "its processes end")
    shutil.rmtree(s.path("local", node))


def all_is_as_said(s, but=()):
    """What manifests name lies there, whole, for as long as they name it."""
    def whole(path, size):
        r = s.hale("image", "verify", path)
        return r.status == 0 and os.path.exists(path) and os.path.getsize(path) == size, r

    for number, m in manifests(s).items():
        for part in m["parts"]:
            for holder in part.get("on", []):
                path = image(m, part, holder)
                if any(f"local/{n}/" in path for n in but):
                    continue
                good, r = whole(path, part["bytes"])
                expect(good or number not in manifests(s), path, r)


def clean(s):
    shutil.rmtree(s.path("hale-ckpt"))
    shutil.rmtree(s.path("local"), ignore_errors=True)


@test
def a_round_of_copies_is_finished_by_the_next_head(s):
    """Half of it is done, the other half hangs when the head is killed; also one that was to go to the
    shared folder."""
    for more in (NO_SHARED, ["--ckpt-shared-every", "1"]):
        one = start(s, *LOCAL, *more, "--ckpt-every", "3s")
        slow = copiers(s, one, "node0")
        stop(slow)
        one.until(lambda: 1 in manifests(s) and held(s, "node2", 1) == [2, 3],
                  "half of the copies are there")
        expect(1 not in copied(s), manifests(s)[1])
        kill_head(s, one)
        stop(slow, signal.SIGCONT)
        two = attach(s, one)
        two.until(lambda: 1 in copied(s), "the other half is there, too")
        if more != NO_SHARED:
            two.until(lambda: len(glob.glob(s.path("hale-ckpt/*/1/rank-*.img"))) == 4 and
                      not any(p.get("local") for p in manifests(s)[1]["parts"]), "it is shared")
        goes_on(two, one)
        all_is_as_said(s)
        report = end(s, one, two)
        expect(report["checkpoints"][0]["level"] == (2 if more == NO_SHARED else 4), report)
        expect(not glob.glob(s.path("local/*/*/*/*/*.img.*")), "half a copy is left")
        clean(s)


@test
def copies_that_no_head_has_written_down_are_found_when_a_node_is_lost_with_the_head(s):
    for node, more in (("node0", []), ("node0", ["--incremental"])):
        one = start(s, *LOCAL, *NO_SHARED, "--ckpt-every", "3s", *more)
        one.until(lambda: copied(s), "a checkpoint is copied")
        slow = copiers(s, one, node)
        stop(slow)
        had = max(manifests(s))
        one.until(lambda: max(manifests(s)) > had and held(s, "node2", max(manifests(s))) == [2, 3],
                  "half of the copies of a newer one are there")
        one.kill(signal.SIGSTOP)  # nothing more is written down
        newest = max(manifests(s))
        pid = [p for p in children(one.pid) if comm(p) == "hale-copier" and p in slow]
        expect(newest not in copied(s) and pid, manifests(s)[newest])
        supervisor = stat_of(stat_of(pid[0])[0])[0]  # the copier's parent is the agent
        stop(slow, signal.SIGCONT)
        until(lambda: held(s, "node1", newest) == [0, 1, 2, 3], "the other half is there")
        expect(newest not in copied(s), "nobody has written that down")
        kill_head(s, one)
        lose_now(s, supervisor, node)
        two = attach(s, one, says=f"node {node} is lost")
        two.until_says(f"all ranks run again from checkpoint {newest},")
        goes_on(two, one)
        all_is_as_said(s, but=[node])
        report = end(s, one, two)
        expect(report["restarts"] == 1 and report["failures"][0]["rolled_back_to"] == newest, report)
        clean(s)


@test
def without_the_copies_the_one_before_is_taken(s):
    """The node that is lost with the head had images that nobody else has."""
    one = start(s, *LOCAL, *NO_SHARED, "--ckpt-every", "500ms", "--keep", "9")
    one.until(lambda: copied(s), "a checkpoint is copied")
    slow = copiers(s, one, "node0")
    stop(slow)
    one.until(lambda: max(manifests(s)) > max(copied(s)) + 1, "newer ones have no copies")
    pid = agents(s, one)["node0"]["pid"]
    kill_head(s, one)
    good, newest = max(copied(s)), max(manifests(s))
    lose_now(s, pid, "node0")
    two = attach(s, one, says="is passed over: the image of rank 0")
    two.until_says("all ranks run again from checkpoint")
    back = int(re.search(r"all ranks run again from checkpoint (\d+)", two.err())[1])
    # copies that were on their way when the copiers were stopped may have arrived
    expect(good <= back < newest, good, newest, two.err())
    goes_on(two, one)
    expect(end(s, one, two)["failures"][0]["rolled_back_to"] == back, s.report())


@test
def in_the_middle_of_a_checkpoint(s):
    one = start(s, *LOCAL, *NO_SHARED, "--ckpt-every", "1s")
    one.until(lambda: copied(s), "a checkpoint is copied")
    pids = rank_pids(s, one.name)
    os.kill(pids[3], signal.SIGSTOP)
    until(lambda: jobs(s)[one.name]["state"] == "checkpointing", "the next one has begun")
    time.sleep(0.3)
    kill_head(s, one)
    os.kill(pids[3], signal.SIGCONT)
    two = attach(s, one)
    goes_on(two, one)
    before = max(copied(s))
    two.until(lambda: max(copied(s)) > before, "the next one is complete, and copied")
    os.kill(pids[1], signal.SIGKILL)
    two.until_says("all ranks run again")
    goes_on(two, one)
    half = set(glob.glob(s.path("hale-ckpt/*/*.tmp")))  # and perhaps one that is being taken
    two.until(lambda: not half & set(glob.glob(s.path("hale-ckpt/*/*.tmp"))), "none is left half")
    all_is_as_said(s)
    end(s, one, two)


@test
def in_a_recovery_that_fetches_images(s):
    """The head is killed while a spare gets the images of a lost node; then that spare is lost, too."""
    rng = random.Random(SEED)
    for turn in range(2 if not LONG else 10):
        one = start(s, "--nodes", "2", "--spares", "2", *LOCAL[4:], *NO_SHARED, "--ckpt-every", "400ms")
        one.until(lambda: copied(s), "a checkpoint is copied")
        lose(s, one, "node0")
        one.until_says("node node0 is lost")
        time.sleep(rng.uniform(0, 0.06))
        kill_head(s, one)
        two = attach(s, one, says="all ranks run again|has a head again")
        goes_on(two, one)
        before = max(copied(s))
        two.until(lambda: max(copied(s)) > before, "a newer one is copied")
        pid = agents(s, two)["node2"]["pid"]
        kill_head(s, two)
        lose_now(s, pid, "node2")
        three = attach(s, two, says="node node2 is lost")
        three.until_says("all ranks run again")
        goes_on(three, one, two)
        all_is_as_said(s, but=["node0", "node2"])
        end(s, one, two, three)
        clean(s)


@test
def heads_are_killed_at_any_moment(s):
    """Much output, checkpoints, copies of each, ranks that are killed, too: SEED draws when."""
    one = start(s, *LOCAL, "--ckpt-every", "100ms", "--ckpt-shared-every", "3", "--max-restarts", "1000", ms=1)
    heads = heads_killed_at_random(s, one, 0.8, random.Random(SEED))
    newest = max([0, *copied(s)])
    heads[-1].until(lambda: copied(s) and max(copied(s)) > newest, "copies go on")
    end(s, *heads)
    all_is_as_said(s)
    expect(not glob.glob(s.path("local/*/*/*/*/*.img.*")), "half a copy is left")
    expect(len(manifests(s)) <= 6, "older ones are removed", manifests(s).keys())


@test
def a_stopped_head_writes_and_removes_nothing_any_more(s):
    one = start(s, *LOCAL, *NO_SHARED, "--ckpt-every", "400ms")
    slow = copiers(s, one, "node0", "node1")
    one.until(lambda: copied(s), "a checkpoint is copied")
    stop(slow)
    newest = max(copied(s))
    one.until(lambda: max(manifests(s)) > newest, "a newer one has no copies")
    one.kill(signal.SIGSTOP)
    stop(slow, signal.SIGCONT)  # the answers wait for it
    two = attach(s, one)
    goes_on(two, one)
    two.until(lambda: max(copied(s)) > newest + 2, "newer ones are copied")
    ids = set(manifests(s))
    one.kill(signal.SIGCONT)
    r = one.wait()
    expect(r.status == EXIT_SUPERSEDED and "has a newer head" in r.err, r)
    expect(min(manifests(s)) >= min(ids), "what is kept has not become less")
    all_is_as_said(s)
    goes_on(two, one)
    expect(end(s, one, two)["restarts"] == 0, s.report())


@test
def over_hosts_a_host_is_lost_with_the_head(s):
    with Hosts(s, 3, disks="200m") as hosts:
        one = host_job(s, hosts, "--spares", "1", "--ckpt-every", "300ms", "--ckpt-local", hosts.disk,
                       *NO_SHARED)
        one.until(lambda: len(copied(s)) >= 2, "two checkpoints are copied")
        kill_head(s, one, hosts.hale)
        newest = max(copied(s))
        hosts.lose(1)
        two = host_attach(s, hosts, one, says="is lost")
        two.until_says("all ranks run again")
        goes_on(two, one)
        report = end(s, one, two)
        expect(report["restarts"] == 1 and report["failures"][0]["rolled_back_to"] >= newest, report)
        expect(not glob.glob(s.path("hale-ckpt/*/*/*.img")), "no image is in the shared folder")


main()
