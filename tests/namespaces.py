# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces as hosts, for scenarios: an address and a cable each, all on one bridge.

    with Hosts(s, 3) as hosts:
        hosts.run("hale", "run", "--hosts", hosts.file(), *hosts.launcher(), …)

The head runs in a namespace of its own on that bridge. Agents are started through the network, by a
little server in each namespace that does what sshd does: so a cut cable cuts the session, too.
"""

from lib import *

PORT = 7022

# In each namespace: for each connection, the command that comes first (a length, then the text) gets
# it as its stdin and stdout.
SERVER = r'''
import os, signal, socket, struct, sys

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen(16)
print("listening", flush=True)
while True:
    c, _ = s.accept()
    n = struct.unpack("!I", c.recv(4, socket.MSG_WAITALL))[0]
    command = c.recv(n, socket.MSG_WAITALL).decode()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        s.close()
        os.dup2(c.fileno(), 0)
        os.dup2(c.fileno(), 1)
        c.close()
        os.execv("/bin/sh", ["sh", "-c", command])
    c.close()
'''

# On the head's side: what ssh does.
CLIENT = r'''
import os, select, socket, struct, sys

s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
s.settimeout(None)
command = sys.argv[3].encode()
s.sendall(struct.pack("!I", len(command)) + command)
while True:
    for fd in select.select([0, s], [], [])[0]:
        b = os.read(0, 65536) if fd == 0 else s.recv(65536)
        if not b:
            sys.exit(0)
        if fd == 0:
            s.sendall(b)
        else:
            while b:
                b = b[os.write(1, b):]
'''


class Hosts:
    def __init__(self, s, count):
        if os.getuid() != 0 or not shutil.which("ip"):
            skip("network namespaces need root and iproute2")
        self.s, self.made, self.count = s, [], count
        self.prefix = f"hh{os.getpid()}n"
        self.hub = self.add(f"hh{os.getpid()}hub")
        self.ip("-n", self.hub, "link", "set", "lo", "up")
        self.ip("-n", self.hub, "link", "add", "name", "bridge0", "type", "bridge")
        self.ip("-n", self.hub, "addr", "add", "10.78.0.100/24", "dev", "bridge0")
        self.ip("-n", self.hub, "link", "set", "bridge0", "up")
        for k in range(count):
            node = self.add(f"{self.prefix}{k}")
            self.ip("-n", node, "link", "set", "lo", "up")
            self.ip("-n", node, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{k}",
                    "netns", self.hub)
            self.ip("-n", node, "addr", "add", f"{self.address(k)}/24", "dev", "eth0")
            self.ip("-n", node, "link", "set", "eth0", "up")
            self.ip("-n", self.hub, "link", "set", f"p{k}", "master", "bridge0")
            self.ip("-n", self.hub, "link", "set", f"p{k}", "up")
        self.servers = []
        self.client = s.write("client.py", CLIENT)
        server = s.write("server.py", SERVER)
        for k in range(count):
            job = s.start("ip", "netns", "exec", f"{self.prefix}{k}", PYTHON, server,
                          self.address(k), PORT)
            self.servers.append(job)
            job.until_output("listening")

    def address(self, k):
        return f"10.78.0.{k + 1}"

    def ip(self, *argv):
        r = self.s.run("ip", *argv)
        if r.status != 0 and not self.made:
            skip("no right to make network namespaces here")
        expect(r.status == 0, r)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        return name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.servers:
            job.kill()
        for name in self.made:
            self.s.run("ip", "netns", "del", name)

    def cut(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "down")

    def heal(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "up")

    def file(self, slots=None):
        lines = [f"{self.address(k)}" + (f" slots={slots}" if slots else "")
                 for k in range(self.count)]
        return self.s.write("hosts.txt", "# the nodes\n" + "\n".join(lines) + "\n")

    def options(self, *more, timeout="2s", slots=None):
        return ["--hosts", self.file(slots), "--node-timeout", timeout, "--launcher",
                f"{PYTHON} {self.client} %h {PORT} \"%c\"", *more]

    def hale_start(self, ranks, *argv, options=(), env=None):
        return self.s.start("ip", "netns", "exec", self.hub, HALE, "run", "-n", ranks,
                            *self.options(*options), "--", *argv,
                            env=dict({"HALE_NET_DEVICES": "eth0"}, **(env or {})))

    def hale(self, *argv):
        return self.s.run("ip", "netns", "exec", self.hub, HALE, *argv)
