"""leveller.toml: what is accepted, and that each mistake is one line with its field and mend."""

import copy
import re
from pathlib import Path

import pytest

import p4src
from controlplane.config import load
from controlplane.model import Link
from controlplane.policies import Scope
from controlplane.southbound import Target
from controlplane.southbound.target import OpenFlowTarget
from leveller.errors import UserError
from tests.certificates import Authority

SWITCH = """
[[switches]]
name = "S1"
address = "127.0.0.1:50051"
device_id = 1
node_id = 1
ports = [1, 2, 3]
host_ports = [1, 2]
"""
OTHER = SWITCH.replace('"S1"', '"S2"').replace("50051", "50052").replace("_id = 1", "_id = 2")

FULL = (
    """
[controller]
name = "c1"
listen = "10.255.0.1:9559"
http = "[::1]:9560"
store = "state/leveller.db"
tau_s = 0.1
min_interval_s = 0.02
min_flow_bytes = 1000
probe_refresh_s = 60
election_id = 7

[policy]
name = "static"
scope = "port"
profile = false
order = ["job3", "job1"]

[levels]
count = 3
queues = [0, 2, 5]
dscp = [8, 16, 24]
control_queue = 7
default = 1
guard_roce_us = 100
"""
    + SWITCH
    + """
ecmp_seed = 99

[[switches.routes]]
prefix = "10.0.1.0/24"
next_hops = [{ port = 1, mac = "02:00:00:00:00:AA" }]

[[switches.routes]]
prefix = "fd00:2::/64"
next_hops = [{ port = 3, mac = "02:00:00:00:00:01" }, { port = 2, mac = "02:00:00:00:00:02" }]

[[jobs]]
id = "job1"
t_ideal_s = 1.5
"""
)


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "leveller.toml"
        path.write_text(text)
        return load(path)

    return read


def test_a_full_file(read):
    config = read(FULL)
    assert (config.controller.name, config.controller.tau_s, config.controller.election_id) == ("c1", 0.1, 7)
    assert (config.policy.scope, config.policy.profile) == (Scope.PORT, False)
    assert config.levels.queues == (0, 2, 5)
    assert config.levels.control_level == 3
    assert [hop.port for hop in config.switches[0].routes[1].next_hops] == [3, 2]
    assert config.switches[0].routes[0].next_hops[0].mac == "02:00:00:00:00:aa"
    assert [config.intensity(job) for job in ("job3", "job1", "else")] == [2.0, 1.0, 0.0]
    assert config.t_ideal_ns("job1") == 1_500_000_000
    assert config.t_ideal_ns("job3") is None


def test_defaults(read):
    config = read(SWITCH)
    assert (config.policy.name, config.policy.scope, config.levels.count) == ("leveller", Scope.FABRIC, 7)
    assert config.levels.queues == (0, 1, 2, 3, 4, 5, 6)
    assert (config.controller.tau_s, config.controller.min_flow_bytes) == (0.25, 65536)


def test_the_manual_shows_the_defaults(read):
    manual = (Path(p4src.ROOT).parent / "docs" / "controller.md").read_text()
    shown = read(re.search(r"```toml\n(.*?)```", manual, re.DOTALL)[1])
    default = read(SWITCH)
    for section in ("policy", "profiling", "levels"):
        assert getattr(shown, section) == getattr(default, section)
    assert shown.controller == default.controller.model_copy(
        update={"listen": shown.controller.listen, "store": shown.controller.store}
    )


def test_queues_follow_the_count(read):
    assert read("[levels]\ncount = 3\n" + SWITCH).levels.queues == (0, 1, 2)


def test_unix_sockets_do_for_grpc_but_not_for_http(read):
    config = read(
        '[controller]\nlisten = "unix:/run/l.sock"\n' + SWITCH.replace("127.0.0.1:50051", "unix:/run/s1")
    )
    assert (config.controller.listen, config.switches[0].address) == ("unix:/run/l.sock", "unix:/run/s1")
    with pytest.raises(UserError, match="'unix:/run/h' is not HOST:PORT"):
        read('[controller]\nhttp = "unix:/run/h"\n' + SWITCH)


def test_intensity_from_the_jobs(read):
    config = read('[policy]\nname = "static"\n' + SWITCH + '[[jobs]]\nid = "a"\nintensity = 2.5\n')
    assert (config.intensity("a"), config.intensity("b")) == (2.5, 0.0)


def test_a_program_of_ones_own(read, tmp_path):
    own = p4src.program("l2")
    option = f'[controller]\nprogram = "{own.json}"\n'
    program = read(option + SWITCH).program()
    assert (program.json, program.p4info) == (own.json, own.p4info)
    assert read(SWITCH).program() == p4src.program("v1model")
    hop = '{ port = 1, mac = "02:00:00:00:00:01" }'
    routes = f'[[switches.routes]]\nprefix = "10.0.0.0/8"\nnext_hops = [{hop}]\n'
    with pytest.raises(UserError, match=r"S1 has routes, but l2\.p4info\.txtpb has no table 'ipv4_lpm'"):
        read(option + SWITCH + routes)
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"controller.program: there is no .*/mine.p4info.txtpb: make both: p4c"
    ):
        read(f'[controller]\nprogram = "{tmp_path / "mine.json"}"\n' + SWITCH)


def levels(text):
    return f"[levels]\n{text}\n" + SWITCH


def controller(text):
    return f"[controller]\n{text}\n" + SWITCH


def policy(text):
    return f"[policy]\n{text}\n" + SWITCH


def profiling(text):
    return f"[profiling]\n{text}\n" + SWITCH


ROUTE = '[[switches.routes]]\nprefix = "10.0.1.0/24"\nnext_hops = [{ port = 1, mac = "02:00:00:00:00:01" }]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["switches is missing"]),
        ("switches = []", ["switches", "at least 1"]),
        (levels("count = 0"), ["levels.count = 0", "greater than or equal to 1"]),
        (levels('slack_us = "measured"'), ["levels", "needs burst_gap_us of 20000 or more", "it is 1000"]),
        (levels("slack_us = 9\nburst_gap_us = 0"), ["levels", "slack_us = 9", "burst_gap_us = 0"]),
        (levels('slack_us = "much"'), ["levels.slack_us", "'much' is neither microseconds"]),
        (levels("count = 9"), ["levels.count = 9", "less than or equal to 8"]),
        (levels("count = 2\nqueues = [0]"), ["levels", "queues has 1 entries for count = 2 levels"]),
        (levels("count = 2\nqueues = [0, 1, 2]"), ["queues has 3 entries"]),
        (levels("count = 2\nqueues = [1, 1]"), ["queues has 1 twice"]),
        (levels("count = 2\nqueues = [3, 1]"), ["queues = [3, 1] must rise"]),
        (levels("count = 2\nqueues = [0, 8]"), ["levels.queues.1 = 8"]),
        (levels("count = 2\nqueues = [0, -1]"), ["levels.queues.1 = -1"]),
        (levels("count = 8"), ["control_queue = 7 is also the queue of level 7"]),
        (levels("count = 2\ncontrol_queue = 1"), ["control_queue = 1 is also the queue of level 1"]),
        (levels("count = 2\ndscp = [1]"), ["dscp has 1 entries for count = 2"]),
        (levels("count = 2\ndscp = [1, 1]"), ["dscp has 1 twice"]),
        (levels("count = 2\ndscp = [1, 64]"), ["levels.dscp.1 = 64"]),
        (levels("count = 2\ndefault = 2"), ["default = 2 is no level; give 0 to 1"]),
        (levels("guard_us = -1"), ["levels.guard_us = -1"]),
        (levels("guard = 1"), ["levels.guard is not a known key"]),
        (
            levels("count = 2\ncontrol_queue = 7") + "queues = 7",
            ["levels use queue 7, but switch S1 has queues 0 to 6"],
        ),
        (levels("") + "queues = 4", ["levels use queue 7, but switch S1 has queues 0 to 3"]),
        (controller("tau_s = 0"), ["controller.tau_s = 0"]),
        (controller("tau_s = -1.0"), ["controller.tau_s = -1.0"]),
        (controller("tau_s = nan"), ["controller.tau_s = nan"]),
        (controller("tau_s = inf"), ["controller.tau_s = inf"]),
        (controller("min_interval_s = 0"), ["controller.min_interval_s = 0"]),
        (controller("tau_s = 0.01"), ["min_interval_s = 0.05 is above tau_s = 0.01"]),
        (controller("silent_after_s = 90"), ["silent_after_s = 90.0 is not below forget_after_s = 60.0"]),
        (controller("min_flow_bytes = -1"), ["controller.min_flow_bytes = -1"]),
        (controller("election_id = 0"), ["controller.election_id = 0"]),
        (controller('listen = "localhost"'), ["controller.listen", "'localhost' is not HOST:PORT"]),
        (controller('listen = "h:70000"'), ["controller.listen", "'h:70000' is not HOST:PORT"]),
        (controller('listen = "h:1"\nhttp = "h:1"'), ["listen and http are both h:1"]),
        (controller('name = "a b"'), ["controller.name", "'a b' is not a name"]),
        (
            policy('name = "best"'),
            ["policy.name", "'best' is not known; give one of: "],
        ),
        (
            policy('scope = "rack"'),
            ["policy.scope", "'rack' is not known; give one of: fabric, switch, port"],
        ),
        (policy("scope = 3"), ["policy.scope = 3"]),
        (policy('name = "static"\norder = ["a", "a"]'), ["policy.order", "order has a twice"]),
        (policy('order = ["a"]'), ["policy.order is for static"]),
        (
            policy('name = "static"\norder = ["a"]') + '[[jobs]]\nid = "a"\nintensity = 1.0',
            ["both order the jobs"],
        ),
        (profiling("window = 1"), ["profiling.window = 1"]),
        (profiling("max_iterations = 2"), ["max_iterations = 2 is below window = 3"]),
        (profiling("tolerance = 1.0"), ["profiling.tolerance = 1.0"]),
        (SWITCH + OTHER.replace('"S2"', '"S1"'), ["switches.name has S1 twice"]),
        (SWITCH + OTHER.replace("50052", "50051"), ["switches.address has 127.0.0.1:50051 twice"]),
        (SWITCH + OTHER.replace("node_id = 2", "node_id = 1"), ["switches.node_id has 1 twice"]),
        (SWITCH.replace("device_id = 1", "device_id = 0"), ["switches.0.device_id = 0"]),
        (SWITCH.replace('name = "S1"', 'name = "S:1"'), ["switches.0.name", "'S:1' is not a name"]),
        (SWITCH.replace("ports = [1, 2, 3]", "ports = [1, 2, -1]"), ["switches.0.ports.2 = -1"]),
        (
            SWITCH.replace("ports = [1, 2, 3]", "ports = [1, 2, 512]"),
            ["ports has 512; p4runtime has ports 0 to 511"],
        ),
        (
            SWITCH.replace("ports = [1, 2, 3]", "ports = [1, 2, 510]"),
            ["switch S1: port 510 is the controller's: give ports that have a cable"],
        ),
        (
            SWITCH.replace("ports = [1, 2, 3]", "ports = [1, 2, 511]"),
            ["switch S1: port 511 means that a packet is dropped"],
        ),
        (SWITCH.replace("ports = [1, 2, 3]", "ports = [1, 2, 2]"), ["ports has 2 twice"]),
        (SWITCH.replace("host_ports = [1, 2]", "host_ports = [1, 4]"), ["host_ports has 4"]),
        (SWITCH + "queues = 9", ["switches.0.queues = 9"]),
        (SWITCH + 'cert = "c.pem"', ["cert and key go together; give both or none"]),
        (SWITCH + 'cert = "c.pem"\nkey = "c.key"', ["cert is for TLS, which wants a ca"]),
        (SWITCH + 'server_name = "s1"', ["server_name is for TLS, which wants a ca"]),
        (
            SWITCH + 'ca = "none.pem"',
            ["switch S1: ca: none.pem cannot be read (No such file or directory): give a PEM file"],
        ),
        (SWITCH + 'role = ""', ["switches.0.role", "'' is not a name"]),
        (SWITCH + 'interfaces = { 510 = "eth0" }', ["interfaces has 510, which is not among"]),
        (SWITCH + ROUTE.replace("port = 1", "port = 4"), ["route to 10.0.1.0/24 uses port 4"]),
        (
            SWITCH + ROUTE.replace("10.0.1.0", "10.0.1.1"),
            ["switches.0.routes.0.prefix (", "10.0.1.1/24 has host bits set; give a network"],
        ),
        (SWITCH + ROUTE.replace("02:00", "2:00"), ["is not a MAC address"]),
        (SWITCH + ROUTE + ROUTE, ["routes.prefix has 10.0.1.0/24 twice"]),
        (SWITCH + '[[switches.routes]]\nprefix = "10.0.1.0/24"\nnext_hops = []', ["next_hops"]),
        (SWITCH + '[[jobs]]\nid = "a"\n[[jobs]]\nid = "a"', ["jobs.id has a twice"]),
        (SWITCH + '[[jobs]]\nid = "a"\nintensity = -1', ["jobs.0.intensity = -1"]),
        (SWITCH + '[[jobs]]\nid = "a"\nt_ideal_s = 0', ["jobs.0.t_ideal_s = 0"]),
    ],
)
def test_each_mistake_is_one_line_with_field_and_mend(read, text, words):
    with pytest.raises(UserError) as caught:
        read(text)
    message = str(caught.value)
    assert "leveller.toml: " in message
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_switch_as_the_southbounds(read):
    switch = read(SWITCH + 'role = "levels"\ninterfaces = { 1 = "s1-eth1" }').switches[0]
    assert switch.target() == Target("S1", "127.0.0.1:50051", 1, "levels")
    assert switch.interfaces == {1: "s1-eth1"}


def test_a_level_must_not_be_marked_as_int_is(read):
    int_dscp = p4src.program("v1model").constants["INT_DSCP"]
    with pytest.raises(
        UserError, match=rf"levels.dscp has {int_dscp} for level 1: that DSCP marks INT probes"
    ):
        read(levels(f"count = 2\ndscp = [1, {int_dscp}]"))


def test_sections_cannot_be_changed(read):
    config = copy.copy(read(SWITCH))
    with pytest.raises(ValueError, match="frozen"):
        config.policy.name = "fair"


OPENFLOW = """
[[switches]]
name = "V1"
protocol = "openflow"
device_id = 9
node_id = 9
ports = [1, 2, 3]
host_ports = [1, 2]
  [[switches.cables]]
  port = 3
  peer = "S1"
  peer_port = 3
"""


def test_openflow_switches_connect_by_themselves(tmp_path):
    path = tmp_path / "leveller.toml"
    path.write_text('[openflow]\nlisten = "10.0.0.1:6653"\n' + SWITCH + OPENFLOW)
    config = load(path)
    assert config.targets() == [
        Target("S1", "127.0.0.1:50051", 1),
        OpenFlowTarget("V1", 9, 9, "10.0.0.1:6653"),
    ]
    assert config.behind() == {Link("S1", 3): Link("V1", 3)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace('protocol = "openflow"\n', ""), "address is missing"),
        (
            lambda text: text.replace('"openflow"', '"ssh"'),
            "'ssh' is not known; give one of: p4runtime, openflow",
        ),
        (
            lambda text: text.replace("device_id = 9", 'address = "h:1"\ndevice_id = 9'),
            "address is for P4Runtime",
        ),
        (
            lambda text: text.replace("[1, 2, 3]", "[0, 1, 2, 3]").replace("[1, 2]", "[0, 1, 2]"),
            "ports has 0; openflow has ports 1 to 65279",
        ),
        (lambda text: text[: text.index("  [[")], "port 3 leads to no host, and no cable tells where else"),
        (lambda text: text.replace('peer = "S1"', 'peer = "S7"'), "leads to no port of a P4 switch"),
        (
            lambda text: text.replace("peer_port = 3", "peer_port = 4"),
            "V1 to S1:4 leads to no port of a P4 switch",
        ),
        (
            lambda text: text.replace("peer_port = 3", "peer_port = 2"),
            "the cable of V1 leads to S1:2, which is among host_ports of S1; remove it there",
        ),
        (
            lambda text: text + text.replace('"V1"', '"V2"').replace("_id = 9", "_id = 8"),
            "switches.cables.peer_port has S1:3 twice",
        ),
        (
            lambda text: text + '[openflow]\nlisten = "127.0.0.1:9559"\n',
            "openflow.listen and the controller's are both 127.0.0.1:9559; give another",
        ),
    ],
)
def test_openflow_switches_that_cannot_be(tmp_path, change, says):
    path = tmp_path / "leveller.toml"
    path.write_text(SWITCH + change(OPENFLOW))
    with pytest.raises(UserError, match=re.escape(says)):
        load(path)


def test_openflow_ports_may_be_high(tmp_path):
    path = tmp_path / "leveller.toml"
    path.write_text(SWITCH + OPENFLOW.replace("[1, 2, 3]", "[1, 2, 3, 65279]").replace("2]", "2, 65279]"))
    assert load(path).switches[1].host_ports == (1, 2, 65279)


def test_port_0_is_a_port(tmp_path):
    path = tmp_path / "leveller.toml"
    path.write_text(SWITCH.replace("[1, 2", "[0, 2"))
    assert load(path).switches[0].host_ports == (0, 2)


@pytest.mark.parametrize(
    ("chip", "port", "says"),
    [
        ("tofino", 0, None),
        ("tofino", 64, None),
        ("tofino", 68, "port 68 leads back into the switch (recirculation)"),
        ("tofino", 200, "port 200 is not there (a pipe has 72)"),
        ("tofino", 510, "port 510 is not there"),
        ("tofino2", 8, None),
        ("tofino2", 0, "port 0 is the controller's"),
        ("tofino2", 6, "port 6 leads back into the switch"),
    ],
)
def test_ports_of_tofino(tmp_path, chip, port, says):
    path = tmp_path / "leveller.toml"
    (tmp_path / "out.bin").touch()
    info = (p4src.ROOT / "build" / "tna" / f"{chip}.p4info.txtpb").read_text()
    (tmp_path / "out.p4info.txtpb").write_text(info)
    own = f'[controller]\nprogram = "{tmp_path}/out.bin"\n'
    path.write_text(own + SWITCH.replace("[1, 2", f"[{port}, 2" if port else "[0, 9"))
    if chip == "tofino2":
        path.write_text(path.read_text().replace(", 2", ", 9"))
    if says is None:
        assert port in load(path).switches[0].ports
    else:
        with pytest.raises(UserError, match=re.escape(says)):
            load(path)


def test_device_ids_are_each_p4runtime_servers_own(tmp_path):
    """Every Stratum may call its one node 1."""
    path = tmp_path / "leveller.toml"
    path.write_text(SWITCH + OTHER.replace("device_id = 2", "device_id = 1"))
    assert [switch.device_id for switch in load(path).switches] == [1, 1]


def test_a_datapath_id_is_one_switchs(tmp_path):
    second = (
        OPENFLOW.replace('"V1"', '"V2"')
        .replace("node_id = 9", "node_id = 10")
        .replace("r_port = 3", "r_port = 2")
    )
    path = tmp_path / "leveller.toml"
    path.write_text(SWITCH + OPENFLOW + second)
    with pytest.raises(UserError, match=r"switches\.device_id has 9 twice"):
        load(path)


def test_a_program_of_ones_own_that_is_no_json(tmp_path):
    reference = p4src.program("v1model")
    (tmp_path / "mine.p4info.txtpb").write_bytes(
        reference.json.with_name("leveller.p4info.txtpb").read_bytes()
    )
    (tmp_path / "mine.json").write_text('{"half": ')
    path = tmp_path / "leveller.toml"
    path.write_text(f'[controller]\nprogram = "{tmp_path / "mine.json"}"\n' + SWITCH)
    with pytest.raises(UserError, match=r"mine\.json is no JSON .*: compile it again"):
        load(path)


def test_certificates_of_the_agents_channel(read, tmp_path):
    files = Authority(tmp_path).sign("controller", "IP:10.255.0.1")
    table = "[controller.tls]\n" + "".join(f'{name} = "{file}"\n' for name, file in files.items())
    assert read(table + SWITCH).controller.tls.cert == tmp_path / "controller.pem"
    assert read(SWITCH).controller.tls is None
    with pytest.raises(
        UserError, match=r"toml: controller\.tls\.key: .*ca\.key is not the key of .*controller\.pem"
    ):
        read(table.replace("controller.key", "ca.key") + SWITCH)
    with pytest.raises(UserError, match=r"toml: controller\.tls\.ca is missing: add it"):
        read(re.sub(r"ca = .*", "", table) + SWITCH)
