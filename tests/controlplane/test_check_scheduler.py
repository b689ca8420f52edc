"""Queues as the kernel has them, and as gNMI lists them."""

import subprocess

import pytest

from tests.controlplane.southbound.proxy import Proxy
from tests.controlplane.test_check import check, config, refusals

__all__ = ["config"]


@pytest.fixture
def namespace(request):
    """A network namespace with interfaces sw1 and sw2, up."""
    name = f"chk-{abs(hash(request.node.name)) % 10**6}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    for number in (1, 2, 3):
        for words in (f"link add sw{number} type veth peer name h{number}", f"link set sw{number} up"):
            subprocess.run(["ip", "-n", name, *words.split()], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


QUEUE_IDS = "qos/interfaces/interface/output/queues/queue/state/id"
INTERFACES = 'interfaces = { 1 = "sw1", 2 = "sw2", 3 = "sw3" }'


@pytest.fixture
def local(kind, switches, namespace, tmp_path):
    """A softswitch with queues of its own on the namespace's interfaces."""
    if kind != "softswitch":
        pytest.skip("bmv2's queues are not the kernel's")

    def start(queues=8):
        return switches(
            address=f"unix:{tmp_path}/switch.sock", queues=queues,
            prefix=("ip", "netns", "exec", namespace), interfaces=("1@sw1", "2@sw2", "3@sw3"),
        )  # fmt: skip

    return start


def within(namespace):
    return ("ip", "netns", "exec", namespace)


def tc(namespace, words):
    subprocess.run(["ip", "netns", "exec", namespace, "tc", *words.split()], check=True)


async def test_queues_of_the_kernel_that_fit(local, namespace, config):
    switch = local()
    code, lines = await check(config(switch.target(), more=INTERFACES), within=within(namespace))
    assert (code, refusals(lines)) == (0, ["it fits"])
    assert not [line for line in lines if "scheduler" in line]


async def test_queues_fewer_than_levels_use(local, namespace, config):
    switch = local(queues=4)
    code, lines = await check(config(switch.target(), more=INTERFACES), within=within(namespace))
    assert code == 2
    assert [line for line in lines if line.startswith("S1: queues: ")] == [
        f"S1: queues: sw{number} has 4 queues, and levels use queue 7: start the switch with"
        " --priority-queues 8, or lower levels.count"
        for number in (1, 2, 3)
    ]


async def test_scheduler_that_is_not_strict(local, namespace, config):
    switch = local()
    tc(namespace, "qdisc del dev sw2 root")
    tc(namespace, "class change dev sw3 classid 1:3 htb rate 1kbit prio 3")
    code, lines = await check(config(switch.target(), more=INTERFACES), within=within(namespace))
    assert code == 2
    said = refusals(lines)
    assert said[0].startswith("S1: scheduler: sw2 has no strict queues (its qdisc is noqueue")
    assert said[1].startswith("S1: scheduler: sw3 has queues that share a priority (")
    assert len(said) == 2


async def test_port_map_of_interfaces(local, namespace, config):
    switch = local()
    more = 'interfaces = { 1 = "sw1", 2 = "sw9" }'
    code, lines = await check(config(switch.target(), more=more), within=within(namespace))
    assert code == 2
    assert [line.split(": ", 1)[1] for line in refusals(lines)] == [
        "port map: interface sw9 is not there: mend switches.interfaces, or run this beside the switch",
        "port map: interfaces has none for port 3: add it, or remove interfaces altogether",
    ]


async def test_queues_and_ports_that_gnmi_lists(switch, config):
    """Stratum serves gNMI where it serves P4Runtime; here something before the switch does."""
    listed = {"interfaces/interface/state/ifindex": [1, 2], QUEUE_IDS: [0, 1]}
    async with Proxy(switch) as proxy:
        proxy.gnmi = lambda path: listed[path]
        code, lines = await check(config(proxy.target()))
        assert code == 2
        assert refusals(lines) == [
            "S1: queues: its gNMI does not list queue 2, 3, 4, 5, 6, 7, which levels use: add what"
            " `leveller qos --target stratum` prints to its chassis config"
        ]
        assert "S1: port map: note: gNMI has no interface with ifindex 3, which ports has" in lines
        listed[QUEUE_IDS] = list(range(8))
        code, lines = await check(config(proxy.target()))
        assert (code, refusals(lines)) == (0, ["it fits"])
        assert any("not their priorities" in line for line in lines)


async def test_an_openflow_switch_has_its_own_words(tmp_path):
    path = tmp_path / "leveller.toml"
    path.write_text(
        '[[switches]]\nname = "V1"\nprotocol = "openflow"\ndevice_id = 4\nnode_id = 4\n'
        "ports = [1]\nhost_ports = [1]\n"
    )
    code, lines = await check(path)
    assert (code, lines[-1]) == (0, "it fits")
    assert lines[0] == "V1: connection: note: it speaks OpenFlow, and was not asked"
    assert lines[1].startswith("V1: scheduler: note: see that its ports have queues")
