# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts for benchmarks: network namespaces on a bridge in a third one."""

import os
import signal
import subprocess
import sys


class Hosts:
    """PREFIX0 and PREFIX1, at 10.78.0.1 and .2 (eth0); removed at the end. Needs root."""

    def __init__(self):
        self.prefix, self.made = f"hb{os.getpid()}n", []

    def ip(self, *argv):
        subprocess.run(["ip", *argv], check=True)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        return name

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        hub = self.add(f"{self.prefix}hub")
        self.ip("-n", hub, "link", "add", "name", "bridge0", "up", "type", "bridge")
        for k in range(2):
            host = self.add(f"{self.prefix}{k}")
            self.ip("-n", host, "link", "set", "lo", "up")
            self.ip("-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{k}",
                    "netns", hub)
            self.ip("-n", host, "addr", "add", f"10.78.0.{k + 1}/24", "dev", "eth0")
            self.ip("-n", host, "link", "set", "eth0", "up")
            self.ip("-n", hub, "link", "set", f"p{k}", "master", "bridge0", "up")
        return self

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name])


def script(folder, name, text, **values):
    """An executable file there, with these words of the text replaced; its path."""
    for key, value in values.items():
        text = text.replace(key, str(value))
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path
