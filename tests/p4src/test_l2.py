"""The example of level_control.p4 in another pipeline, an L2 switch, as checked in, on real switches."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether

import p4src
from p4src import build_program, sources
from tests.p4src.lab import DEVICE_ID, Lab, find_switch
from tests.p4src.network import CONTROL, ROUTER, Network, ack, data, mac, probe
from tests.p4src.runtime import Runtime

PROGRAM = p4src.program("l2")
MANIFEST = json.loads(PROGRAM.manifest.read_text())
BROADCAST = "ff:ff:ff:ff:ff:ff"


@pytest.fixture(scope="module", params=["softswitch", "bmv2"])
def running(request: pytest.FixtureRequest) -> Iterator[Network]:
    command = find_switch(request.param)
    if command is None:
        pytest.skip(f"{request.param} is not installed here")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    lab = Lab(command, PROGRAM.json, ports=3)
    runtime = Runtime(lab.address, DEVICE_ID, PROGRAM)
    runtime.replicate(1, [1, 2, 3])
    yield Network(lab, runtime)
    runtime.close()
    lab.close()


@pytest.fixture
def l2(running: Network) -> Iterator[Network]:
    """Hosts behind ports 1 and 2, another switch behind 3; ``network.data`` goes to ROUTER, at port 2."""
    for address, port in ((mac(1), 1), (mac(2), 2), (ROUTER, 2)):
        running.runtime.insert("mac", {"dst": address}, "forward", port=port)
    running.runtime.insert("edge_port", {"ingress_port": 3}, "fabric_facing")
    for wire in running.lab.wires.values():
        wire.drain()
    yield running
    running.runtime.reset()


def test_a_known_address_goes_to_its_port_as_it_is(l2: Network) -> None:
    frame = data(udp=True)
    assert bytes(l2.through(frame, 1, 2)) == bytes(frame)
    back = Ether(src=mac(2), dst=mac(1), type=0x1234) / b"not IP at all"
    assert bytes(l2.through(back, 2, 1)) == bytes(back)


def test_an_unknown_address_is_dropped_or_flooded_to_all_other_ports(l2: Network) -> None:
    frame = bytes(Ether(src=mac(1), dst=BROADCAST, type=0x0806) / bytes(28))
    l2.vanishes(frame)
    l2.runtime.default("mac", "flood", group=1)
    l2.lab.wires[1].send(frame)
    assert [l2.lab.wires[port].receive(3.0) for port in (2, 3)] == [frame, frame]
    assert l2.lab.wires[1].receive(0.1) is None


def test_a_flow_has_its_groups_level(l2: Network) -> None:
    l2.levels()
    frame = data(udp=True)
    assert l2.level_seen(frame) == 1
    group, _ = l2.flow(frame)
    l2.level(group, 6)
    assert l2.level_seen(frame) == 6
    l2.level(group, 3, bank=1)
    l2.runtime.default("active_bank", "set_bank", bank=1)
    assert l2.level_seen(frame) == 3


def test_acks_go_at_their_flows_level_if_it_is_known(l2: Network) -> None:
    l2.levels()
    assert l2.level_seen(ack()) == CONTROL
    group, _ = l2.flow(data())
    l2.level(group, 4)
    assert l2.level_seen(ack()) == 4


def test_a_probe_tells_the_flows_path_and_reaches_no_host(l2: Network) -> None:
    l2.runtime.default("int_node", "set_int_node", node_id=42)
    l2.lab.wires[1].send(bytes(probe()))
    report = l2.runtime.packet_in(3.0)
    assert report is not None
    assert (report["ingress_port"], report["egress_port"]) == (1, 2)
    assert (42).to_bytes(4, "big") + (1).to_bytes(2, "big") + (2).to_bytes(2, "big") in report.payload
    assert l2.lab.wires[2].receive(0.1) is None


def test_a_probe_goes_on_to_the_next_switch_but_is_never_flooded(l2: Network) -> None:
    l2.runtime.default("int_node", "set_int_node", node_id=42)
    l2.runtime.insert("int_sink", {"egress_port": 3}, "relay")
    l2.runtime.modify("mac", {"dst": ROUTER}, "forward", port=3)
    assert (42).to_bytes(4, "big") in bytes(l2.through(probe(), 1, 3))
    l2.runtime.modify("mac", {"dst": ROUTER}, "flood", group=1)
    l2.vanishes(probe())


def test_manifest_sources_and_outputs_agree() -> None:
    source = build_program.EXAMPLES[0]
    text = (p4src.ROOT / source).read_bytes()
    assert MANIFEST["sources"] == sources.source_hashes("v1model") | {
        source: hashlib.sha256(text).hexdigest()
    }
    assert MANIFEST["outputs"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (PROGRAM.json, PROGRAM.p4info)
    }


def test_recompiling_gives_identical_files(tmp_path: Path) -> None:
    compiler = shutil.which(build_program.COMPILER)
    if compiler is None:
        pytest.skip(f"{build_program.COMPILER} is not installed here")
    if MANIFEST["compiler"].split()[1] != sources.compiler_version(compiler):
        pytest.skip(f"built by {MANIFEST['compiler']}, installed is another version")
    build_program.compile_program(tmp_path, source=build_program.EXAMPLES[0])
    for path in PROGRAM.json.parent.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
