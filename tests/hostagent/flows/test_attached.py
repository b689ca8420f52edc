import os
import socket
import subprocess

import pytest

from hostagent.flows.attached import attached


@pytest.fixture
def of(two_hosts):
    """Return the interfaces in host a's namespace that lead to another."""

    def of(namespace):
        descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            return two_hosts.inside(
                two_hosts.a, lambda: set(map(socket.if_indextoname, attached(descriptor)))
            )
        finally:
            os.close(descriptor)

    return of


def test_one_end_of_a_cable_leads_to_the_other(two_hosts, of):
    assert of(two_hosts.b) == {"data0"}
    assert of(two_hosts.a) == set()


def test_what_a_tenant_can_make_itself_leads_nowhere(two_hosts, of):
    for command in (
        "link add own0 type veth peer name own1",
        "link add link own0 name own2 type macvlan",
        "link add own3 type bridge",
        "link set lo up",
    ):
        subprocess.run(["ip", "-n", two_hosts.a, *command.split()], check=True)
    assert of(two_hosts.b) == {"data0"}


def test_a_device_above_one_of_the_hosts_leads_there(two_hosts, of):
    command = (
        f"ip -n {two_hosts.b} link add link data0 name eth0 netns {two_hosts.a} type macvlan mode bridge"
    )
    subprocess.run(command.split(), check=True)
    assert of(two_hosts.b) == {"data0", "eth0"}
