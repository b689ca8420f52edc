import pytest

from hostagent.config import load
from leveller.errors import UserError

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
    assert (config.addresses, config.gateway_mac, config.network_namespace) == ((), None, "own")
    assert str(config.proc) == "/proc"


def test_everything(tmp_path):
    config = load(
        write(
            tmp_path,
            controllers='["[fd00::1]:9559", "unix:/run/leveller.sock"]',
            addresses='["10.0.1.1", "fd00::1"]',
            gateway_mac='"02:00:00:00:00:01"',
            network_namespace='"any"',
            poll_ms="5",
        )
    )
    assert [str(address) for address in config.addresses] == ["10.0.1.1", "fd00::1"]
    assert config.poll_ms == 5


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
        ({"poll_ms": "0"}, "agent.poll_ms = 0"),
        ({"report_ms": "60000"}, "agent.report_ms = 60000"),
        ({"colour": '"red"'}, "agent.colour is not a known key"),
    ],
)
def test_mistakes_are_one_line_that_names_the_field(tmp_path, changes, text):
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, **changes))
    assert text in str(caught.value)
    assert "agent.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
