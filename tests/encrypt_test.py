#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`--net-security encrypt` for what agents send each other: copies of images, and ranks that move. A
reader on the wire sees nothing of them, and what somebody changes on the way does no harm."""

from attach_parts import host_job, jobs
from lib import *
from levels_parts import *
from namespaces import PORT, Hosts, Reader
from net_nodes import BAD_WIRE, need_tun

MIB = 6
ENCRYPT = ["--net-security", "encrypt"]


def secret_job(s, hosts, *options, ranks=3, env=None):
    exe = s.path("secretive")
    if not os.path.exists(exe):
        s.compile("secretive")
    job = hosts.hale_start(ranks, exe, MIB, 20, options=["--spares", "1", "--report", "report.json",
                                                         *options],
                           env={"HALE_MIGRATE_COMPRESS": "off", **(env or {})})  # a reader finds words as they are
    job.until_output("rank 0 step 5 ")
    job.name = re.search(r"secretive\.\d+", " ".join(jobs(s, hosts.hale)))[0]
    return job


def end(s, job, ranks=3):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and len(re.findall("^done ", r.out, re.M)) == 1, r)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) [0-9a-f]{{16}}$", r.out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice", mine)
    return r


def goes_on(job):
    last = int(re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1])
    job.until_output(f"rank 0 step {last + 5} ")


@test
def who_reads_along_sees_nothing_of_copies_of_images(s):
    with Hosts(s, 3, disks="200m") as hosts:
        for options in ([], ENCRYPT):
            job = secret_job(s, hosts, "--ckpt-every", "1s", "--ckpt-local", hosts.disk,
                             "--ckpt-shared-every", "0", *options)
            reader = Reader(s, hosts, "ack at dawn! att")
            before = max([0, *copied(s)])
            job.until(lambda: copied(s) and max(copied(s)) > before + 1, "two more are copied")
            found, total = reader.seen()
            expect(total > MIB << 20, total)
            expect(found == 0 if options else found > 10000, found, total)
            if options:  # and what was copied so is as good
                newest = max(copied(s))
                hosts.lose(1)
                job.until_says("all ranks run again")
                goes_on(job)
            end(s, job)
            if options:
                report = s.report()
                expect(report["failures"][0]["rolled_back_to"] >= newest, report)
            shutil.rmtree(s.path("hale-ckpt"))


@test
def who_reads_along_sees_nothing_of_ranks_that_move(s):
    with Hosts(s, 3) as hosts:
        for env in ({}, {"HALE_MIGRATE_WAY": "relay"}):
            for options in ([], ENCRYPT):
                job = secret_job(s, hosts, *options, env=env)
                reader = Reader(s, hosts, "ack at dawn! att")
                for k in (0, 2):
                    r = hosts.hale("migrate", job.name, "--from", hosts.address(k))
                    expect(r.status == 0, r, job.err())
                    goes_on(job)
                found, total = reader.seen()
                end(s, job)
                moves = s.report()["migrations"]
                expect(len(moves) == 2 and s.report()["restarts"] == 0, s.report())
                expect(all((m["relayed_bytes"] > MIB << 20) == bool(env) for m in moves), moves)
                expect(total > MIB << 20, total)
                expect(found == 0 if options else found > 10000, found, total)


class Changing(Hosts):
    """Whose wire changes what agents send each other, as long as the file "change" is there. Not what
    launchers send, which stands for ssh, nor what is small."""

    def wire(self):
        code = BAD_WIRE.replace("    if words < 20:\n", f'''\
    ports = struct.unpack("!HH", f[ip:ip + 4])
    if words < 400 or {PORT} in ports or not os.path.exists("change"):
''')
        expect(code != BAD_WIRE, "the wire can be told")
        # the head is at the last of its cables
        self.ip("-n", self.hub, "link", "set", "lo", "up")
        self.switch = self.s.start(PYTHON, self.s.write("wire.py", code.replace(
            'f"/run/netns/{prefix}{k}"', 'f"/run/netns/{prefix}{k if k < nodes - 1 else \'hub\'}"')),
            self.prefix, self.count + 1, 0, 0, 0.05, SEED)
        self.switch.until_output("wired")
        self.ip("-n", self.hub, "addr", "add", f"{self.network}.100/24", "dev", "eth0")
        self.ip("-n", self.hub, "link", "set", "eth0", "up")

    def close(self):
        super().close()
        self.switch.kill()
        self.switch.wait()


@test
def copies_that_were_changed_on_the_way_are_noticed(s):
    need_tun()
    with Changing(s, 3, disks="200m") as hosts:
        job = secret_job(s, hosts, "--ckpt-every", "1s", "--ckpt-local", s.path("local/%n"),
                         "--ckpt-shared-every", "0", *ENCRYPT)
        job.until(lambda: copied(s), "a checkpoint is copied")
        s.write("change", "")
        job.until_says("has no copy of every image, the job goes on: .*changed on its way")
        os.unlink(s.path("change"))
        before = max(manifests(s))
        job.until(lambda: max(copied(s)) > before, "afterwards copies are made again")
        end(s, job)
        for m in manifests(s).values():
            for part in m["parts"]:
                for holder in part["on"]:
                    r = s.hale("image", "verify", image(m, part, holder))
                    expect(r.status == 0, r)


@test
def a_rank_whose_move_is_changed_on_the_way_stays(s):
    need_tun()
    with Changing(s, 3, disks="200m") as hosts:
        job = secret_job(s, hosts, *ENCRYPT)
        s.write("change", "")
        r = hosts.hale("migrate", job.name, "--from", hosts.address(1))
        expect(r.status == 1 and re.search("stay there: node .*: what came of the memory of rank . was "
                                           "changed on its way", r.err), r, job.err())
        os.unlink(s.path("change"))
        goes_on(job)
        r = hosts.hale("migrate", job.name, "--from", hosts.address(1))
        expect(r.status == 0, r, job.err())
        goes_on(job)
        end(s, job)
        expect(len(s.report()["migrations"]) == 1 and s.report()["restarts"] == 0, s.report())


main()
