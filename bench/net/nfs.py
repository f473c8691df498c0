# SPDX-License-Identifier: BSD-3-Clause
"""A folder of one host of bench/net/hosts.py as other hosts see it by NFS 3: a server and a client that need no kernel
support (Debian's nfs-ganesha-vfs and libnfs-utils, and rpcbind, which the server wants to be there)."""

import os
import shutil
import signal
import subprocess
import time

PORT, MOUNT = 20490, 20491
CONFIG = """NFS_CORE_PARAM {{ Protocols = 3,4; NFS_Port = {port}; MNT_Port = {mount}; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSV4 {{ Graceless = true; RecoveryBackend = fs; }}
EXPORT {{ Export_Id = 1; Path = {folder}; Pseudo = /bench; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
         Protocols = 3,4; Transports = TCP; FSAL {{ Name = VFS; }} }}
"""
# their sockets and files in /run are those of their own
SERVERS = """mount -t tmpfs none /run; mkdir /run/rpcbind /run/ganesha; rpcbind -d >/dev/null 2>&1 &
sleep 1
exec ganesha.nfsd -F -f CONFIG -L LOG -p PID"""


def is_there():
    return all(shutil.which(x) for x in ("ganesha.nfsd", "rpcbind", "nfs-cp"))


class Nfs:
    def __init__(self, on, work, folder, address):
        """on(*argv): the command on the host that has the folder. work: a folder for logs."""
        self.folder, self.address = folder, address
        config = os.path.join(work, "ganesha.conf")
        with open(config, "w") as f:
            f.write(CONFIG.format(port=PORT, mount=MOUNT, folder=folder))
        text = SERVERS.replace("CONFIG", config).replace("LOG", os.path.join(work, "ganesha.log"))
        self.server = subprocess.Popen(on("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                                          text.replace("PID", os.path.join(work, "ganesha.pid"))), start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(5)

    def url(self, name):
        return f"nfs://{self.address}{self.folder}/{name}?version=3&nfsport={PORT}&mountport={MOUNT}"

    def close(self):
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()
