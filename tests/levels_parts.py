# SPDX-License-Identifier: BSD-3-Clause
"""What tests of checkpoints on nodes' own disks share: which images are where, and nodes that are lost
with their disks."""

from lib import *
from lib import alive, name_of


def agent(s, job, node):
    r = s.hale("nodes", job.id(), "--json")
    expect(r.status == 0, r)
    return [n["pid"] for n in json.loads(r.out)["nodes"] if n["node"] == node][0]


def manifests(s, folder="hale-ckpt"):
    """By id, of those that are complete right now."""
    found = {}
    for path in glob.glob(s.path(folder, "*", "*", "manifest.json")):
        if not os.path.basename(os.path.dirname(path)).isdigit():  # being written
            continue
        try:
            with open(path) as f:
                m = json.load(f)
        except FileNotFoundError:  # just removed
            continue
        found[m["id"]] = m
    return found


def copied(s, folder="hale-ckpt"):
    """Ids of those of which each image is on two nodes."""
    return sorted(i for i, m in manifests(s, folder).items()
                  if all(len(p.get("on", [])) >= 2 for p in m["parts"]))


def image(m, part, holder):
    """Path of the copy that this node has."""
    return os.path.join(m["holders"][holder]["folder"], str(m["id"]), part["file"])


def lose(s, job, node, *folders):
    """The agent, with it its ranks and its copier, and the disk."""
    copiers = [p for p in children(job.pid) if name_of(p) and comm(p) == "hale-copier"]
    expect(copiers, "there are copiers")
    pid = agent(s, job, node)
    mine = [p for p in children(pid)]
    os.kill(pid, signal.SIGKILL)
    for folder in folders or [s.path("local", node)]:
        for _ in range(100):  # what still dies may still write
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder) and not any(alive(p) for p in mine):
                break
            time.sleep(0.02)
        expect(not os.path.exists(folder), folder)


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def flip(path):
    flip_in_image(path)
