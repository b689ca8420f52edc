import pytest

import hostagent.report
from hostagent.config import AgentSection, in_unit, load
from leveller.errors import UserError
from tests.certificates import Authority

GOOD = {"host": '"h1"', "controllers": '["10.255.0.1:9559"]', "interface": '"h1-eth0"'}


def write(tmp_path, **changes):
    path = tmp_path / "agent.toml"
    entries = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    path.write_text("[agent]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items()))
    return path


def test_defaults(tmp_path):
    config = load(write(tmp_path))
    assert (config.host, config.controllers, config.interface) == ("h1", ("10.255.0.1:9559",), "h1-eth0")
    assert (config.poll_ms, config.flows_ms, config.scan_ms, config.report_ms) == (20, 150, 500, 100)
    assert (config.addresses, config.gateway_mac, config.network_namespace) == ((), None, "auto")
    assert str(config.proc) == "/proc"
    assert (config.container_networks, config.nccl_socket) == ((), None)
    assert config.rdma_command == ("rdma", "-j", "resource", "show", "qp")
    assert str(config.rdma_devices) == "/sys/class/infiniband"


def test_everything(tmp_path):
    config = load(
        write(
            tmp_path,
            controllers='["[fd00::1]:9559", "unix:/run/leveller.sock"]',
            addresses='["10.0.1.1", "fd00::1"]',
            gateway_mac='"02:00:00:00:00:01"',
            network_namespace='"any"',
            poll_ms="5",
            logs='["/data/{job}/*.log"]',
            formats='[{name = "mine", pattern = "done (?P<iteration>[0-9]+)"}]',
            report_socket='"/run/leveller/agent.sock"',
            container_networks='["10.244.0.0/16", "fd00:244::/64"]',
            nccl_socket='"/run/nccl.sock"',
            rdma_command='["cat", "/tmp/listing"]',
        )
    )
    assert [str(address) for address in config.addresses] == ["10.0.1.1", "fd00::1"]
    assert config.poll_ms == 5
    assert config.logs == ("/data/{job}/*.log",)
    assert [section.name for section in config.formats] == ["mine"]
    assert config.report_socket == "/run/leveller/agent.sock"
    assert [str(network) for network in config.container_networks] == ["10.244.0.0/16", "fd00:244::/64"]
    assert str(config.nccl_socket) == "/run/nccl.sock"
    assert config.rdma_command == ("cat", "/tmp/listing")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"host": None}, "agent.host is missing"),
        ({"host": '"a b"'}, "'a b' is not a name"),
        ({"controllers": "[]"}, "agent.controllers = "),
        ({"controllers": '["10.255.0.1"]'}, "'10.255.0.1' is not HOST:PORT"),
        ({"controllers": '["10.255.0.1:0"]'}, "'10.255.0.1:0' is not HOST:PORT"),
        ({"controllers": '["10.255.0.1:99999"]'}, "is not HOST:PORT"),
        ({"addresses": '["10.0.1"]'}, "agent.addresses.0"),
        ({"gateway_mac": '"02:00"'}, "'02:00' is not a MAC address"),
        ({"network_namespace": '"mine"'}, "agent.network_namespace = 'mine'"),
        ({"container_networks": '["10.0.0.1/8"]'}, "agent.container_networks.0"),
        ({"rdma_command": "[]"}, "agent.rdma_command"),
        ({"poll_ms": "0"}, "agent.poll_ms = 0"),
        ({"report_ms": "60000"}, "agent.report_ms = 60000"),
        ({"logs": '["train.log"]'}, "'train.log' is not the name of a file from /"),
        ({"formats": '[{name = "Mine", pattern = "x"}]'}, "agent.formats.0.name"),
        (
            {"formats": '[{name = "nanogpt", pattern = "(?P<iteration>x)"}]'},
            "nanogpt is a format that is known",
        ),
        ({"formats": '[{name = "mine", pattern = "x"}]'}, "it needs one group (?P<iteration>..)"),
        ({"formats": '[{name = "mine", pattern = "(a+)+(?P<iteration>x)"}]'}, "inside a repeat"),
        ({"hung_after": "0"}, "agent.hung_after = 0"),
        ({"colour": '"red"'}, "agent.colour is not a known key"),
    ],
)
def test_mistakes_are_one_line_that_names_the_field(tmp_path, changes, text):
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, **changes))
    assert text in str(caught.value)
    assert "agent.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    authority = Authority(folder)
    authority.sign("h1", "DNS:h1,IP:10.0.1.1")
    authority.sign("h2", "DNS:h2,IP:10.0.1.1")
    authority.sign("old", "DNS:h1", days=-1)
    return folder


def tls(folder, cert, key=None):
    return f'{{cert = "{folder}/{cert}.pem", key = "{folder}/{key or cert}.key", ca = "{folder}/ca.pem"}}'


def test_mutual_tls(tmp_path, keys):
    config = load(write(tmp_path, tls=tls(keys, "h1"), addresses='["10.0.1.1"]'))
    assert (config.tls.cert, config.tls.key, config.tls.ca, config.tls.server_name) == (
        keys / "h1.pem", keys / "h1.key", keys / "ca.pem", None,
    )  # fmt: skip
    assert load(write(tmp_path)).tls is None


@pytest.mark.parametrize(
    ("files", "changes", "text"),
    [
        (("none",), {}, "agent.tls.cert: "),
        (("h1", "h2"), {}, "agent.tls.key: "),
        (("old",), {}, "certificate has expired"),
        (("h2",), {}, "is for h2, not for agent.host = h1"),
        (("h1",), {"addresses": '["10.0.1.1", "10.0.1.2"]'}, "does not have 10.0.1.2 of agent.addresses"),
    ],
)
def test_certificates_that_would_be_refused_are_told_at_start(tmp_path, keys, files, changes, text):
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, tls=tls(keys, *files), **changes))
    assert text in str(caught.value)
    assert "agent.toml: agent.tls." in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tls_needs_all_three_files(tmp_path):
    with pytest.raises(UserError, match=r"agent\.tls\.key is missing"):
        load(write(tmp_path, tls='{cert = "a.pem", ca = "b.pem"}'))


def test_files_that_are_not_named_are_in_the_units_directories(tmp_path, monkeypatch):
    section = AgentSection(host="h1", controllers=("127.0.0.1:9",), interface="lo")
    for name in ("RUNTIME_DIRECTORY", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    assert in_unit(section) == section
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/leveller:/run/other")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/leveller")
    found = in_unit(section)
    assert (found.report_socket, str(found.nccl_socket), str(found.state_file)) == (
        hostagent.report.PATH,
        "/run/leveller/nccl.sock",
        "/var/lib/leveller/agent.json",
    )
    files = {"report_socket": "/x", "nccl_socket": tmp_path, "state_file": tmp_path}
    named = section.model_copy(update=files)
    assert in_unit(named) == named
