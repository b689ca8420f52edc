from ipaddress import IPv4Address, IPv6Address

from controlplane.model import Link
from topo import fabric


def test_pair_has_one_bottleneck_and_hosts_on_both_sides():
    pair = fabric.pair(2, 100_000_000, 1_000_000_000)
    assert pair.trunks() == [Link("s1", 1), Link("s2", 1)]
    assert pair.switches["s1"].ports[1] == fabric.Port(1, "s2", 1, 100_000_000)
    assert [(h.name, h.switch, h.port) for h in pair.hosts.values()] == [
        ("h1", "s1", 2),
        ("h3", "s1", 3),
        ("h2", "s2", 2),
        ("h4", "s2", 3),
    ]
    assert {port.rate for port in pair.switches["s2"].ports.values() if port.host_facing} == {1_000_000_000}


def test_leaf_spine_connects_every_leaf_to_every_spine():
    made = fabric.leaf_spine(3, 2, 3, 40, 400)
    assert len(made.trunks()) == 2 * 3 * 2
    assert [port.peer for port in made.switches["leaf2"].ports.values()] == [
        "spine1",
        "spine2",
        "h4",
        "h5",
        "h6",
    ]
    # Both ends of a cable agree on who is where.
    for switch in made.switches.values():
        for port in switch.ports.values():
            if not port.host_facing:
                back = made.switches[port.peer].ports[port.peer_port]
                assert (back.peer, back.peer_port) == (switch.name, port.number)


def test_uplinks_of_a_leaf_differ_modulo_four_for_bmv2():
    made = fabric.leaf_spine(2, 4, 3, 40, 400)
    uplinks = [port.number % 4 for port in made.switches["leaf1"].ports.values() if not port.host_facing]
    assert len(set(uplinks)) == 4


def test_addresses_follow_from_places_and_are_unique():
    made = fabric.leaf_spine(3, 2, 3, 40, 400)
    numbers = {switch.name: switch.number for switch in made.switches.values()}
    host = made.hosts["h5"]
    assert host.ipv4 == IPv4Address(f"10.{numbers['leaf2']}.0.2")
    assert host.ipv6 == IPv6Address(f"fd00:{numbers['leaf2']}::2")
    assert host.ipv4 in made.switches["leaf2"].subnet4
    assert host.ipv6 in made.switches["leaf2"].subnet6
    for field in ("ipv4", "ipv6", "mac"):
        assert len({getattr(host, field) for host in made.hosts.values()}) == 9
    assert made.switches["spine1"].subnet4 is None
    assert len(set(numbers.values())) == 5


def test_interface_names_fit_linux():
    made = fabric.leaf_spine(3, 2, 3, 40, 400)
    assert made.switches["spine2"].interface(3) == "spine2-eth3"
    assert made.hosts["h9"].interface == "h9-eth0"
