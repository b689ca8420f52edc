"""Offloads of a real veth, off and on again."""

import subprocess

from softswitch import offloads


def features(interface):
    output = subprocess.run(["ethtool", "-k", interface], capture_output=True, text=True, check=True).stdout
    return {
        line.split(":")[0].strip(): "on" in line.split(":")[1].split() for line in output.splitlines()[1:]
    }


def test_off_and_as_they_were(veth):
    veth("a", "b")
    before = features("a")
    assert before["tx-checksumming"]
    assert before["tx-tcp-segmentation"]
    changed = offloads.disable("a")
    during = features("a")
    for name in (
        "rx-checksumming",
        "tx-checksumming",
        "tx-tcp-segmentation",
        "generic-segmentation-offload",
        "generic-receive-offload",
    ):
        assert not during[name]
    assert offloads.disable("a") == {}
    offloads.restore("a", changed)
    assert features("a") == before


def test_an_interface_that_has_gone(namespace):
    assert offloads.disable("gone") == {}
    offloads.restore("gone", {"tx-checksum": 1})
