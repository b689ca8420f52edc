"""What the lab writes is what controller and agent read."""

import hostagent.config
from controlplane import config
from topo import fabric, files
from topo.files import Policy

ADDRESSES = {name: f"127.0.0.1:{50050 + n}" for n, name in enumerate(("s1", "s2"), start=1)}


def load(tmp_path, policy, dscp=()):
    made = fabric.pair(2, 100_000_000, 1_000_000_000)
    path = tmp_path / "leveller.toml"
    path.write_text(files.controller_toml(made, ADDRESSES, policy, tmp_path / "db", dscp, 8))
    return config.load(path)


def test_controller_reads_fabric_and_policy(tmp_path):
    loaded = load(tmp_path, Policy("leveller", scope="port", tau_s=0.1))
    assert (loaded.policy.name, loaded.policy.scope, loaded.controller.tau_s) == ("leveller", "port", 0.1)
    assert loaded.controller.listen == "10.255.0.1:9559"
    first = loaded.switches[0]
    assert (first.name, first.address, first.device_id, first.node_id) == ("s1", "127.0.0.1:50051", 1, 1)
    assert (first.ports, first.host_ports) == ((1, 2, 3), (2, 3))
    hops = {str(route.prefix): route.next_hops for route in first.routes}
    assert [hop.port for hop in hops["10.2.0.0/24"]] == [1]
    assert len({switch.ecmp_seed for switch in loaded.switches}) == 2
    assert loaded.levels.dscp == ()


def test_jobs_intensities_are_passed_on(tmp_path):
    loaded = load(tmp_path, Policy("static", intensity={"job1": 1, "job2": 2.5}))
    assert [loaded.intensity(job) for job in ("job1", "job2", "job3")] == [1, 2.5, 0]


def test_levels_are_marked_where_queues_are_chosen_by_dscp(tmp_path):
    assert load(tmp_path, Policy("fair"), tuple(range(8, 24, 2))).levels.dscp == tuple(range(8, 22, 2))


def test_agent_reads_its_host(tmp_path):
    host = fabric.pair(2, 100, 1000).hosts["h3"]
    path = tmp_path / "agent.toml"
    path.write_text(files.agent_toml(host))
    loaded = hostagent.config.load(path)
    assert (loaded.host, loaded.interface) == ("h3", "h3-eth0")
    assert loaded.controllers == ("10.255.0.1:9559",)
    assert loaded.addresses == (host.ipv4, host.ipv6)
