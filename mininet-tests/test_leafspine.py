"""Four jobs on three leaves and two spines: paths are learnt by probe, quickly, rightly, unseen by hosts."""

import time
from pathlib import Path

import pytest

import p4src
from topo import scenario
from topo.files import Policy
from topo.lab import Lab

SCENARIO = scenario.find("leafspine")


def tx_bytes(fabric, link):
    interface = fabric.switches[link.switch].interface(link.port)
    return int(Path(f"/sys/class/net/{interface}/statistics/tx_bytes").read_text())


def data_flows(status):
    """The ring connections' data directions: (flow, path or None, payload bytes sent)."""
    return {flow["flow"]: flow for flow in status["flows"] if flow["bytes_sent"] > 1_000_000}


def connections(lab):
    """The established connections of every rank, as (local, remote) in /proc/net/tcp's words."""
    found = set()
    for job in lab.jobs:
        for process in job.processes:
            lines = Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]
            port = 29500 + 100 * job.spec.number
            for line in lines:
                local, remote, state = line.split()[1:4]
                if state == "01" and int(remote.split(":")[1], 16) in range(port, port + 100):
                    found.add((local, remote))
    return found


@pytest.fixture
def lab(kind, directory):
    with Lab(SCENARIO.fabric.build(), kind, directory) as running:
        running.start_controller(Policy("leveller"))
        running.start_agents()
        running.wait_ready()
        yield running


def test_every_path_is_known_within_two_seconds_of_the_flow(lab):
    lab.start_jobs(SCENARIO)
    wanted = sum(len(job.hosts) for job in SCENARIO.jobs)
    opened = {}
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        for connection in connections(lab):
            opened.setdefault(connection, time.monotonic())
        flows = [flow for flow in lab.status()["flows"] if flow["destination_port"] >= 29500]
        known = [flow for flow in flows if flow["path"] and flow["destination_port"] < 30000]
        if len(opened) == len(known) == wanted:
            break
        time.sleep(0.02)
    late = time.monotonic() - min(opened.values())
    assert len(known) == wanted
    assert late < 2


def test_paths_by_probe_are_those_the_packets_take(lab):
    lab.start_jobs(SCENARIO)
    fabric = lab.fabric
    wanted = sum(len(job.hosts) for job in SCENARIO.jobs)
    lab.wait_for(lambda: len(data_flows(lab.status())) == wanted, 30, "every connection to have sent data")
    before = data_flows(lab.status())
    counted = {link: tx_bytes(fabric, link) for link in fabric.trunks()}
    time.sleep(12)
    after = data_flows(lab.status())
    counted = {link: tx_bytes(fabric, link) - count for link, count in counted.items()}
    assert set(before) == set(after)
    for link, count in counted.items():
        expected = sum(
            flow["bytes_sent"] - before[name]["bytes_sent"]
            for name, flow in after.items()
            if str(link) in flow["path"]
        )
        assert count == pytest.approx(expected, rel=0.08, abs=3_000_000), link  # reports lag
    assert sum(counted.values()) > 20_000_000


def test_no_probe_reaches_a_host(lab, directory):
    int_traffic_class = p4src.program("v1model").constants["INT_DSCP"] << 2
    captures = {}
    for host in lab.fabric.hosts.values():
        for direction in ("in", "out"):
            command = ["tcpdump", "-i", host.interface, "-Q", direction, "-U", "-w"]
            path = directory / f"{host.name}-{direction}.pcap"
            with path.with_suffix(".log").open("wb") as log:
                process = lab.execute(
                    host.name,
                    [*command, str(path), f"ip[1] & 0xfc == {int_traffic_class}"],
                    stdout=log,
                    stderr=log,
                )
            captures[host.name, direction] = (path, process)
    time.sleep(1)
    lab.start_jobs(SCENARIO)
    time.sleep(8)
    for _, process in captures.values():
        process.terminate()
        process.wait()
    header = 24  # bytes of an empty capture file
    sizes = {key: path.stat().st_size for key, (path, _) in captures.items()}
    sources = {host for job in SCENARIO.jobs for host in job.hosts}
    assert all(sizes[host, "out"] > header for host in sources), sizes
    assert all(sizes[host, "in"] == header for host in lab.fabric.hosts), sizes
