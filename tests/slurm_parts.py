# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm on this machine: munged, a slurmctld and three slurmd. A job of partition "high" takes nodes from those of "low"."""

from lib import *
from lib import name_of

NODES = ("n1", "n2", "n3")

CONF = """ClusterName=hale
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
StateSaveLocation={dir}/ctld
SlurmdSpoolDir={dir}/spool-%n
TmpFS={dir}/tmp-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
KillWait=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=p Nodes=n1,n2,n3 Default=YES MaxTime=INFINITE State=UP PreemptMode=OFF
PartitionName=low Nodes=n1,n2,n3 MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=high Nodes=n1,n2,n3 MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
"""


class Slurm:
    def __init__(self, s):
        if os.getuid() != 0:
            skip("several slurmd on one machine need root")
        for program in ("munged", "slurmctld", "slurmd", "salloc"):
            have(program)
        self.s, self.dir = s, s.path("slurm")
        os.makedirs(self.dir + "/ctld", mode=0o755)
        os.chmod(s.dir, 0o755)
        port = 20000 + os.getpid() % 10000
        host = os.uname().nodename
        self.conf = s.write("slurm/slurm.conf", CONF.format(
            dir=self.dir, host=host, port=port, nodes="\n".join(
                f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + k} CPUs=2 "
                "State=UNKNOWN" for k, n in enumerate(NODES))))
        for n in NODES:
            os.mkdir(f"{self.dir}/spool-{n}", 0o755)
            os.mkdir(f"{self.dir}/tmp-{n}", 0o755)
        with open(self.dir + "/munge.key", "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(self.dir + "/munge.key", 0o400)
        self.env = {"SLURM_CONF": self.conf, "HALE_NET_DEVICES": "lo"}
        self.jobs = [s.start("munged", "--foreground", "--force", "--num-threads=1",
                             f"--socket={self.dir}/munge.socket",
                             f"--key-file={self.dir}/munge.key",
                             f"--log-file={self.dir}/munged.log",
                             f"--pid-file={self.dir}/munged.pid",
                             f"--seed-file={self.dir}/munged.seed")]
        self.until(lambda: os.path.exists(self.dir + "/munge.socket"), "munged answers")
        self.jobs.append(s.start("slurmctld", "-D", "-f", self.conf, env=self.env))
        self.jobs += [s.start("slurmd", "-D", "-N", n, "-f", self.conf, env=self.env)
                      for n in NODES]
        self.until(lambda: s.run("sinfo", "-h", "-t", "idle", "-o", "%D",
                                 env=self.env).out.strip() == "3", "all nodes are idle")

    def until(self, condition, what):
        for _ in range(400):
            if condition():
                return
            time.sleep(0.05)
        said = "\n".join(str(j.result()) for j in self.jobs)
        self.__exit__()
        skip(f"Slurm can't be made to run here ({what}): {said[-300:]!r}")

    def salloc(self, *argv):
        return ["salloc", "-Q", "-N", "3", "--no-kill", *argv]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            job.kill()
        # slurmstepd is nobody's child, and says so in its name only
        for pid in children(os.getpid()):
            if name_of(pid).startswith("slurmstepd"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
