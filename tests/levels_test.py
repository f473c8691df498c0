#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints on nodes' own disks with copies on a partner (docs/levels.md): nodes that are lost with
their disks, copies that are cut off, damaged, or find no room."""

import contextlib
import socket
import struct
import threading

from lib import stat_of
from levels_parts import *
from namespaces import Hosts
from steps_parts import end, goes_on, last_step, lines, stop, undisturbed, until_told

EVERY = ["--ckpt-every", "300ms", "--report", "report.json", "--node-timeout", "4s"]
LOCAL = ["--ckpt-local", "local/%n", "--ckpt-shared-every", "0", *EVERY]


def on_the_disk(s, job, condition, what):
    return job.until(lambda: condition(copied(s)), what)


@test
def a_node_is_lost_with_its_disk_and_the_spare_gets_the_copies(s):
    for node, more in (("node0", []), ("node1", ["--incremental"]), ("node0", ["--restart", "lazy"]),
                       ("node1", ["--compress", "lz4"])):
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
        job = s.hale_start(4, *until_told(s, 4), options=["--nodes", "2", "--spares", "1", *LOCAL,
                                                          *more])
        on_the_disk(s, job, lambda ids: len(ids) >= 2, "two checkpoints are copied")
        newest = copied(s)[-1]
        expect(not glob.glob(s.path("hale-ckpt/*/*/*.img")), "no image is in the shared folder")
        lose(s, job, node)
        end(s, job, mib=[4], rollbacks=1)
        report = s.report()
        expect(report["restarts"] == 1 and report["failures"][0]["rolled_back_to"] >= newest, report)
        expect(any(c["level"] == 2 and c["copied_seconds"] > 0 for c in report["checkpoints"]), report)
        shutil.rmtree(s.path("local"))


@test
def two_nodes_without_a_spare_keep_each_others_images(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *LOCAL])
    on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
    lose(s, job, "node1")
    job.until_says("no other host")
    r = end(s, job, rollbacks=1)
    expect(r.err.count("no other host") == 1, "said once, when only one is left", r)


@test
def nodes_are_lost_one_after_the_other(s):
    """What was fetched is copied again, so the next one can go, too."""
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "2", *LOCAL])
    for turn, node in enumerate(("node0", "node1", "node2")):
        before = max([0, *manifests(s)])
        on_the_disk(s, job, lambda ids: ids and ids[-1] > before, "a newer one is copied")
        lose(s, job, node)
        job.until(lambda: job.err().count("all ranks run again") == turn + 1, "they run again")
    end(s, job, rollbacks=3)
    expect(s.report()["restarts"] == 3, s.report())


@test
def a_checkpoint_whose_copies_are_not_there_yet_is_passed_over(s):
    """The copier of the node is stopped: its images are on its own disk only."""
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", "--keep", "50",
                                                   *LOCAL])
    on_the_disk(s, job, lambda ids: len(ids) >= 2, "two checkpoints are copied")
    pid = agent(s, job, "node0")
    copier = [p for p in children(pid) if comm(p) == "hale-copier"]
    for p in copier:
        os.kill(p, signal.SIGSTOP)
    had = copied(s)[-1]
    # one whose copies are there already may yet be written down
    job.until(lambda: max(manifests(s)) > had + 2, "newer ones are complete on their own nodes")
    newest, had = max(manifests(s)), copied(s)[-1]
    lose(s, job, "node0")
    r = end(s, job, rollbacks=1)
    back = s.report()["failures"][0]["rolled_back_to"]
    expect(had <= back < newest and f"rolling back to checkpoint {back}" in r.err, had, newest, r)
    expect(f"checkpoint {newest} is passed over: the image of rank 0" in r.err, r)


@test
def the_partner_is_killed_while_it_gets_copies(s):
    """Again and again, at other moments; what a manifest names is always whole."""
    draw = random.Random(SEED)
    for _ in range(3 if not LONG else 12):
        job = s.hale_start(4, *until_told(s, 24), options=[
            "--nodes", "2", "--spares", "1", "--keep", "4", *LOCAL])
        on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
        # node1 has ranks of its own, and copies of those of node0 come in
        job.until(lambda: glob.glob(s.path("local/node1/*/*/*/*.img.*")), "a copy comes in")
        time.sleep(draw.uniform(0, 0.01))
        lose(s, job, "node1")
        end(s, job, mib=[24], rollbacks=1)
        for m in manifests(s).values():
            for part in m["parts"]:
                for holder in part["on"]:
                    path = image(m, part, holder)
                    if "node1" in path:
                        continue
                    v = s.hale("image", "verify", path)
                    expect(v.status == 0 and os.path.getsize(path) == part["bytes"], path, v)
        expect(not glob.glob(s.path("local/*/*/*/*/*.img.*")), "nothing half is left")
        shutil.rmtree(s.path("hale-ckpt"))
        shutil.rmtree(s.path("local"))


@test
def a_flipped_bit_in_a_copy_is_noticed_and_the_one_before_is_used(s):
    # as many are kept as a slow copier needs
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", "--keep", "50",
                                                   *LOCAL])
    on_the_disk(s, job, lambda ids: len(ids) >= 3, "three checkpoints are copied")
    pid = agent(s, job, "node0")
    job.kill(signal.SIGSTOP)  # nothing newer becomes complete
    newest = copied(s)[-1]
    m = manifests(s)[newest]
    flip(image(m, m["parts"][1], m["parts"][1]["on"][1]))
    mine = children(pid)
    os.kill(pid, signal.SIGKILL)
    job.until(lambda: not any(alive(p) for p in mine), "its processes end")
    shutil.rmtree(s.path("local/node0"))
    job.kill(signal.SIGCONT)
    r = end(s, job, rollbacks=1)
    expect(re.search(f"checkpoint {newest} is refused: the image of rank 1 can't be had: from node "
                     "node1: .* is damaged", r.err), r)
    expect(re.search(f"all ranks run again from checkpoint {copied_before(newest)}", r.err), r)


def copied_before(newest):
    return "(" + "|".join(str(i) for i in range(1, newest)) + "),"


@test
def a_flipped_bit_on_the_own_disk_costs_a_look_at_the_copy(s):
    for restart in ("full", "lazy"):
        job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--restart", restart, *LOCAL])
        on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
        ranks = job.ranks(4)
        job.kill(signal.SIGSTOP)
        job.until(lambda: stat_of(job.pid)[1] == "T", "the head stands still")
        m = manifests(s)[max(manifests(s))]
        here = image(m, m["parts"][3], m["parts"][3]["on"][0])
        # also of a checkpoint that is whole and that the head has not written down yet
        for path in glob.glob(os.path.join(os.path.dirname(os.path.dirname(here)), "*", os.path.basename(here))):
            with contextlib.suppress(IndexError, ValueError, struct.error):  # of one that is being written
                flip(path)
        newest = copied(s)[-1]
        os.kill(ranks[0], signal.SIGKILL)
        job.kill(signal.SIGCONT)
        r = end(s, job, rollbacks=1)
        expect("it is looked for elsewhere" in r.err, r)
        expect(s.report()["failures"][0]["rolled_back_to"] >= newest, s.report())
        shutil.rmtree(s.path("hale-ckpt"))
        shutil.rmtree(s.path("local"))


@test
def a_full_partner_disk_leaves_checkpoints_on_their_own_nodes(s):
    os.mkdir(s.path("local"))
    s.tmpfs("local/node1", "1m")
    job = s.hale_start(2, *until_told(s, 4), options=["--nodes", "1", "--spares", "1", *LOCAL])
    said = job.until_says(r"checkpoint \d+ has no copy of every image, the job goes on: node node0: "
                          r".*node node1: .*No space left")
    expect(said)
    job.until(lambda: len(s.complete()) >= 2, "checkpoints go on")
    os.kill(job.ranks(2)[1], signal.SIGKILL)  # its own disk is as good as ever
    r = end(s, job, ranks=2, mib=[4], rollbacks=1)
    expect(r.err.count("has no copy") == 1, "each refusal is said once", r)
    report = s.report()
    expect(report["restarts"] == 1, report)
    expect(all(c["level"] == 1 for c in report["checkpoints"] if c["complete"]), report)
    expect(not glob.glob(s.path("local/node1/*/*/*/*")), "no half copy is left")


def outlives_node0(s):
    """The newest checkpoint of four ranks whose images of node0 are on another node, too; 0: none is."""
    return max((i for i, m in manifests(s).items()
                if all(len(p.get("on", [])) >= 2 for p in m["parts"][:2])), default=0)


@test
def a_spare_whose_disk_is_full_costs_no_checkpoint(s):
    """It can't have the images of the ranks that were to go there."""
    os.mkdir(s.path("local"))
    s.tmpfs("local/node2", "1m")
    job = s.hale_start(4, *until_told(s, 4), options=["--nodes", "2", "--spares", "1", *LOCAL])
    job.until_says(r"has no copy of every image, the job goes on: node node1: .*node node2: .*No space left")
    good = job.until(lambda: outlives_node0(s), "a checkpoint of whose images those of node0 are on node1, too")
    lose(s, job, "node0")
    r = end(s, job, mib=[4], rollbacks=1)
    report = s.report()
    expect(report["failures"][0]["rolled_back_to"] >= good > 0, report, r)
    expect("node node2 can't take the images of its ranks, which go elsewhere" in r.err, r)
    expect("is refused" not in r.err, r)


@test
def what_outlives_a_node_stays_until_something_newer_does(s):
    """No checkpoint is copied as a whole, since the spare's disk is full; then node0's copier stands still."""
    os.mkdir(s.path("local"))
    s.tmpfs("local/node2", "1m")
    job = s.hale_start(4, *until_told(s, 4), options=["--nodes", "2", "--spares", "1", "--keep", "1",
                                                      *LOCAL])
    pid = agent(s, job, "node0")
    good = job.until(lambda: outlives_node0(s), "a checkpoint of whose images those of node0 are on node1, too")
    copiers = [p for p in children(pid) if comm(p) == "hale-copier"]
    for p in copiers:
        os.kill(p, signal.SIGSTOP)
    good = max(good, outlives_node0(s))
    job.until(lambda: max(manifests(s), default=0) > good + 3, "some newer ones")
    expect(outlives_node0(s) >= good, manifests(s).keys(), good)
    lose(s, job, "node0")
    end(s, job, mib=[4], rollbacks=1)
    expect(s.report()["failures"][0]["rolled_back_to"] >= good > 0, s.report())


@test
def a_full_own_disk_leaves_the_checkpoint_before(s):
    os.mkdir(s.path("local"))
    disk = s.tmpfs("local/node0", "40m")
    job = s.hale_start(2, *until_told(s, 4), options=["--nodes", "1", "--spares", "1", "--keep", "2",
                                                      *LOCAL])
    on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
    with open(os.path.join(disk, "ballast"), "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(65536))
        except OSError:
            pass
    job.until_says(r"checkpoint \d+ failed, the job goes on: .*no space left")
    good = max(manifests(s))
    os.kill(job.ranks(2)[0], signal.SIGKILL)
    end(s, job, ranks=2, mib=[4], rollbacks=1)
    expect(s.report()["failures"][0]["rolled_back_to"] >= good > 0, s.report())


@test
def a_disk_that_takes_longer_than_a_lease_to_remove_what_was_given_up_costs_no_node(s):
    """node0's is full, so checkpoints are given up; node1's is slow."""
    have("gcc")
    os.mkdir(s.path("local"))
    s.tmpfs("local/node0", "1m")
    slow = s.path("slow_sync.so")
    r = s.run("gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", slow,
              os.path.join(ROOT, "tests/programs/slow_sync.c"), "-ldl")
    expect(r.status == 0, r)
    job = s.hale_start(4, "env", "-u", "LD_PRELOAD", *until_told(s), options=["--nodes", "2", *LOCAL],
                       env={"LD_PRELOAD": slow, "SLOW_UNLINK": "3000"})
    job.until_says(r"checkpoint \d+ failed, the job goes on: .*no space left")
    aside = job.until(lambda: glob.glob(s.path("local/node1/*/*/*.old/*.img")), "images are set aside")
    job.until(lambda: not any(os.path.exists(p) for p in aside), "they are removed")
    r = end(s, job)
    expect(s.report()["failures"] == [] and s.report()["restarts"] == 0, s.report(), r)


@test
def as_many_are_kept_as_asked_everywhere(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--keep", "2", "--ckpt-local",
                                                   "local/%n", "--ckpt-shared-every", "3", *EVERY])
    job.until(lambda: max(manifests(s), default=0) > 7, "more than seven checkpoints")
    end(s, job)
    levels = {c["id"]: c["level"] for c in s.report()["checkpoints"] if c["complete"]}
    expect(len(levels) >= 6 and levels[3] == 4 and set(levels.values()) >= {2, 4}, levels)
    left = manifests(s)
    # the two newest, for each node the newest that outlives it, the newest that is in the shared folder
    expect(2 <= len(left) <= 5 and set(left) >= set(sorted(levels)[-2:]), left.keys())
    for node in ("node0", "node1"):
        there = [int(n) for n in map(os.path.basename, glob.glob(s.path(f"local/{node}/*/*/*")))
                 if n.isdigit()]  # not what is being removed
        expect(len(there) <= 6 and all(i >= min(left) for i in there), there, left.keys())
    shared = {int(p.split("/")[-2]) for p in glob.glob(s.path("hale-ckpt/*/*/*.img"))}
    expect(shared >= {i for i in left if levels.get(i) == 4}, shared, levels)
    # the round of the newest may have been cut off by the end of the job
    expect(all(i % 3 == 0 and levels.get(i) in (4, 1) for i in shared), shared, levels)


def restarted(s, before, *argv):
    """hale restart goes on, and both together print all there is."""
    job = s.start(HALE, "restart", *argv)
    goes_on(job, before)
    stop(s, job)
    wanted, _ = undisturbed(s, 4, last_step(job) + 1)
    expect(set(lines(job.out())) | set(lines(before.out())) == set(lines(wanted)), job.result())


@test
def a_checkpoint_that_was_asked_for_is_in_the_shared_folder(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--ckpt-local", "local/%n"])
    job.until_output("rank 3 step 20 ")
    path = job.checkpoint()
    expect(len(glob.glob(path + "/rank-*.img")) == 4, os.listdir(path))
    job.kill(signal.SIGTERM)
    job.wait()
    shutil.rmtree(s.path("local"))
    restarted(s, job, "--nodes", "2", path)


@test
def a_job_is_restarted_from_the_disks_of_its_nodes(s):
    def restart(*nodes, gone=(), refused=False, options=()):
        job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *LOCAL])
        on_the_disk(s, job, lambda ids: len(ids) >= 2, "two checkpoints are copied")
        folder = os.path.dirname(s.complete()[-1])
        job.kill(signal.SIGTERM)
        job.wait()
        for node in gone:
            shutil.rmtree(s.path("local", node))
        argv = [*nodes, *options, "--ckpt-every", "0", folder]
        r = s.hale("restart", *argv) if refused else restarted(s, job, *argv)
        shutil.rmtree(s.path("hale-ckpt"))
        shutil.rmtree(s.path("local"), ignore_errors=True)
        return r

    restart("--nodes", "2")
    restart("--nodes", "2", gone=["node0"])
    restart("--nodes", "2", gone=["node1"], options=["--restart", "lazy"])
    restart("--nodes", "4")
    restart("--nodes", "1")  # by another name, but the folders are there
    r = restart("--nodes", "2", gone=["node0", "node1"], refused=True)
    expect(r.status == EXIT_UNRECOVERED, r)
    expect(re.search("is refused: the image of rank . can't be had", r.err) and
           "no checkpoint is left" in r.err, r)


@test
def one_node_says_that_nobody_has_copies(s):
    job = s.hale_start(2, *until_told(s), options=["--ckpt-local", "local", *EVERY])
    job.until(lambda: manifests(s), "a checkpoint is complete")
    os.kill(job.ranks(2)[1], signal.SIGKILL)
    r = end(s, job, ranks=2, rollbacks=1)
    expect(r.err.count("there is no other host that could keep copies") == 1, r)
    expect(s.report()["restarts"] == 1, s.report())
    r = s.hale_run(4, s.path("steps"), 5, options=["--host", "a,b", "--launcher", "exec %c",
                                                   "--ckpt-local", "local/%n"])
    expect(r.status == 0 and "no other host" in r.err, "two names of one host are one", r)


@test
def copiers_that_are_killed_are_replaced(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", *LOCAL])
    on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
    for _ in range(3):
        before = copied(s)[-1]
        for p in children(job.pid):
            if comm(p) == "hale-copier":
                try:
                    os.kill(p, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        on_the_disk(s, job, lambda ids: ids and ids[-1] > before, "a newer one is copied")
    lose(s, job, "node0")
    r = end(s, job, rollbacks=1)
    expect("the process that copies images was ended" in r.err, r)


def ports(pid):
    """At which this process listens; none if it has ended since it was listed."""
    inodes = set()
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
        with open(f"/proc/{pid}/net/tcp") as f:
            rows = [line.split() for line in f.readlines()[1:]]
    except (FileNotFoundError, ProcessLookupError):
        return []
    for fd in fds:
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    return [int(r[1].split(":")[1], 16) for r in rows
            if r[3] == "0A" and f"socket:[{r[9]}]" in inodes]


@test
def strangers_get_nothing_from_a_copier(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *LOCAL])
    on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
    found = [p for pid in children(job.pid) if comm(pid) == "hale-copier" for p in ports(pid)]
    expect(len(found) >= 2, found)
    draw = random.Random(SEED)
    hello = b"HALECOPY" + (1).to_bytes(4, "little") + bytes(8) + bytes(4) + draw.randbytes(32)
    held = []
    for port in found:
        for packet in (b"", hello, hello[:20], hello + draw.randbytes(32) + draw.randbytes(600),
                       draw.randbytes(100000), b"GET / HTTP/1.0\r\n\r\n"):
            c = socket.create_connection(("127.0.0.1", port), 5)
            c.settimeout(5)
            try:
                c.sendall(packet)
                if packet.startswith(hello):
                    # a challenge and no more, whatever the proof
                    got = c.recv(4096)
                    expect(len(got) in (0, 64), f"{len(got)} bytes for a stranger")
                    c.sendall(draw.randbytes(32) + draw.randbytes(600))
                    c.shutdown(socket.SHUT_WR)
                    expect(not c.recv(4096), "a stranger is heard")
            except OSError:
                pass
            held.append(c)  # it may stay open: others are served all the same
    before = copied(s)[-1]
    on_the_disk(s, job, lambda ids: ids and ids[-1] > before, "a newer one is copied")
    for c in held:
        c.close()
    end(s, job)


@test
def strangers_that_hold_connections_keep_nobody_out(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *LOCAL])
    on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
    found = [p for pid in children(job.pid) if comm(pid) == "hale-copier" for p in ports(pid)]
    over = threading.Event()

    def hold(port):
        there = []
        while not over.is_set():
            for c in there[:]:  # who was sent away comes again
                try:
                    gone = c.recv(1) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    there.remove(c)
                    c.close()
            while len(there) < 48:
                try:
                    there.append(socket.create_connection(("127.0.0.1", port), 5))
                    there[-1].setblocking(False)
                except OSError:
                    break
            over.wait(0.05)
        for c in there:
            c.close()

    holders = [threading.Thread(target=hold, args=(port,)) for port in found]
    try:
        for h in holders:
            h.start()
        before = copied(s)[-1]
        on_the_disk(s, job, lambda ids: ids and ids[-1] > before + 4, "newer ones are copied")
    finally:
        over.set()
        for h in holders:
            h.join()
    end(s, job)


@test
def over_hosts_with_disks_of_their_own_a_lost_one_is_replaced(s):
    with Hosts(s, 3, disks="200m") as hosts:
        job = hosts.hale_start(4, *until_told(s, 4), options=[
            "--spares", "1", "--ckpt-local", hosts.disk, *LOCAL[2:]])
        on_the_disk(s, job, lambda ids: len(ids) >= 2, "two checkpoints are copied")
        newest = copied(s)[-1]
        expect(not os.listdir(hosts.disk), "the disks can't be seen from here")
        expect(not glob.glob(s.path("hale-ckpt/*/*/*.img")), "no image is in the shared folder")
        hosts.lose(1)
        end(s, job, mib=[4], rollbacks=1)
        expect(s.report()["failures"][0]["rolled_back_to"] >= newest, s.report())


@test
def over_hosts_a_cut_cable_costs_the_copies_and_nothing_else(s):
    """Shorter than the node's lease; copies go on afterwards."""
    with Hosts(s, 2, disks="400m") as hosts:
        job = hosts.hale_start(4, *until_told(s, 16), options=[
            "--ckpt-local", hosts.disk, *LOCAL[2:-2], "--node-timeout", "10s"])
        on_the_disk(s, job, lambda ids: ids, "a checkpoint is copied")
        hosts.cut(1)
        time.sleep(0.6)
        hosts.heal(1)
        before = copied(s)[-1]
        on_the_disk(s, job, lambda ids: ids and ids[-1] > before + 1, "newer ones are copied")
        end(s, job, mib=[16])
        expect(s.report()["failures"] == [], s.report())


@test
def folders_that_can_not_be_used_are_refused_by_sentences(s):
    s.write("file", "")
    for options, why in ((["--ckpt-local", ""], "--ckpt-local takes a folder"),
                         (["--ckpt-local", "a%b"], "%n in it is the node's name"),
                         (["--ckpt-shared-every", "2"], "without it all of them go"),
                         (["--ckpt-local", "x", "--ckpt-shared-every", "-1"], "takes a number"),
                         (["--ckpt-local", "file"], "is no folder"),
                         (["--ckpt-local", "/proc/none"], "cannot make the checkpoint folder"),
                         (["--ckpt-local", "a:b"], "has a colon"),
                         (["--ckpt-local", "x/" * 300], "this one is too long")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and why in r.err, r)


main()
