"""Network namespaces for tests that need interfaces, and a switch process in one."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyroute2 import IPRoute, netns

_numbers = itertools.count()


@pytest.fixture
def namespace():
    """Run the test inside a network namespace of its own; yields an IPRoute there."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    name = f"lvlsw-{os.getpid()}-{next(_numbers)}"
    # Not netns.create: it forks, and a fork of a process with gRPC's threads may hang.
    subprocess.run(["ip", "netns", "add", name], check=True)
    netns.pushns(name)
    try:
        for scope in ("all", "default"):
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
        with IPRoute() as netlink:
            netlink.link("set", index=netlink.link_lookup(ifname="lo")[0], state="up")
            yield netlink
    finally:
        netns.popns()
        netns.remove(name)


@pytest.fixture
def veth(namespace):
    """Return a function that makes a pair of interfaces and sets them up."""

    def make(*names, mtu=1500):
        namespace.link("add", ifname=names[0], kind="veth", peer=names[1])
        for name in names:
            namespace.link("set", index=namespace.link_lookup(ifname=name)[0], mtu=mtu, state="up")
        return names

    return make


class Switch:
    """A softswitch process that serves P4Runtime on a Unix socket."""

    def __init__(self, address, *arguments):
        self.address = address
        # A switch that waits for its turn on a busy machine loses packets, which is not what is tested.
        command = ["nice", "-n", "-10", sys.executable, "-m", "softswitch", *arguments]
        self.process = subprocess.Popen(
            [*command, "--", "--grpc-server-addr", address],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = []

    def wait_ready(self):
        for line in self.process.stderr:
            self.log.append(line)
            if "ready" in line:
                return self
        raise AssertionError(f"the switch has ended: {self.log}")

    def stop(self, number=signal.SIGTERM):
        """End it; return its exit code and the rest of what it said."""
        self.process.send_signal(number)
        rest = self.process.stderr.read()
        return self.process.wait(20), rest


@pytest.fixture
def switch(namespace, tmp_path):
    """Return a function that starts a switch with the given arguments and waits until it serves."""
    running = []

    def start(*arguments):
        running.append(Switch(f"unix:{tmp_path}/p4runtime.sock", *arguments))
        return running[-1].wait_ready()

    yield start
    for item in running:
        if item.process.poll() is None:
            item.process.kill()
        item.process.wait()
        item.process.stderr.close()
