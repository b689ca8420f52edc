"""Whose probe a probe can be."""

from ipaddress import ip_address

import pytest

from controlplane.int_report import Hop, IntReport
from controlplane.model import FiveTuple
from controlplane.origins import Origins
from controlplane.switch_config import SwitchSection


def leaf(routes):
    hops = [
        {
            "prefix": prefix,
            "next_hops": [{"port": port, "mac": f"02:00:00:00:00:{port:02x}"} for port in ports],
        }
        for prefix, ports in routes.items()
    ]
    return SwitchSection.model_validate(
        {"name": "S1", "address": "h:1", "device_id": 1, "node_id": 7, "ports": [1, 2, 3, 4], "routes": hops}
    )


def report(source, *hops):
    version = ip_address(source).version
    destination = ip_address("10.0.9.1" if version == 4 else "fd00::9")
    flow = FiveTuple(ip_address(source), destination, 6, 40000, 5000)
    return IntReport(flow, hops, hops_exceeded=False, mtu_exceeded=False, remaining_hops=9, domain=0)


ORIGINS = Origins([leaf({"0.0.0.0/0": [3, 4], "10.0.1.0/24": [1], "10.0.1.9/32": [1, 2]})])


@pytest.mark.parametrize(
    ("source", "port", "its_own"),
    [
        ("10.0.1.1", 1, True),
        ("10.0.1.1", 2, False),  # the neighbour's port
        ("10.0.1.1", 3, False),
        ("10.0.1.1", None, False),
        ("10.0.1.9", 2, True),  # the longest prefix counts; a host with two ports may use both
        ("10.0.2.1", 1, False),  # a host of another leaf
        ("10.0.2.1", 4, True),
        ("fd00::1", 1, True),  # no IPv6 routes: somebody else's business
    ],
)
def test_a_probe_comes_in_where_its_source_is(source, port, its_own):
    problem = ORIGINS.refuse(report(source, Hop(node_id=7, ingress_port=port, egress_port=3)))
    assert (problem is None) == its_own
    if problem:
        assert problem == f"a probe of {source} came in by S1:{port}, which is not its own port"


def test_an_address_without_a_route_is_behind_no_port():
    origins = Origins([leaf({"10.0.1.0/24": [1]})])
    assert origins.refuse(report("10.0.2.1", Hop(node_id=7, ingress_port=1, egress_port=3)))


@pytest.mark.parametrize("hops", [(), (Hop(),), (Hop(node_id=8, ingress_port=1),)])
def test_what_is_no_path_anyway_is_left_to_others(hops):
    assert ORIGINS.refuse(report("10.0.1.1", *hops)) is None
