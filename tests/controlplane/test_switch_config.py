"""One switch's section by itself; as a part of the whole file it is tested in test_config.py."""

from ipaddress import ip_network

import pytest
from pydantic import ValidationError

from controlplane.southbound import Target
from controlplane.switch_config import SwitchSection

P4 = {"name": "S1", "address": "h:1", "device_id": 1, "node_id": 1, "ports": [0, 509]}
OPENFLOW = {
    "name": "V1", "protocol": "openflow", "device_id": 7, "node_id": 7,
    "ports": [1, 65279], "host_ports": [1, 65279],
}  # fmt: skip


def test_a_target():
    assert SwitchSection.model_validate(P4).target() == Target("S1", "h:1", 1)


def test_port_0_is_no_address():
    with pytest.raises(ValidationError, match="address h:0 has port 0; give the one that it listens on"):
        SwitchSection.model_validate(P4 | {"address": "h:0"})
    assert SwitchSection.model_validate(P4 | {"address": "unix:/run/s1:0"}).address == "unix:/run/s1:0"


def test_an_interface_is_one_ports():
    section = SwitchSection.model_validate(P4 | {"interfaces": {"0": "eth0", "509": "eth1"}})
    assert section.interfaces == {0: "eth0", 509: "eth1"}
    with pytest.raises(ValidationError, match="interfaces has eth0 twice"):
        SwitchSection.model_validate(P4 | {"interfaces": {"0": "eth0", "509": "eth0"}})


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        ((1, 65279, 65279), "cables.port has 65279 twice"),
        ((65279, 9), "cables has port 9, which is not among ports; add it there"),
        ((65279, 1), "port 1 has a cable to a switch, and is among host_ports; remove one"),
    ],
)
def test_cables_of_ports_that_lead_to_switches(ports, says):
    leaf = OPENFLOW | {"host_ports": [1]}
    cables = [{"port": port, "peer": "S1", "peer_port": at} for at, port in enumerate(ports)]
    good = [{"port": 65279, "peer": "S1", "peer_port": 3}]
    assert SwitchSection.model_validate(leaf | {"cables": good}).cables[0].port == 65279
    with pytest.raises(ValidationError, match=says):
        SwitchSection.model_validate(leaf | {"cables": cables})


def test_ports_of_each_protocol():
    assert SwitchSection.model_validate(P4).ports == (0, 509)
    assert SwitchSection.model_validate(OPENFLOW).ports == (1, 65279)
    with pytest.raises(ValidationError, match="ports has 512; p4runtime has ports 0 to 511"):
        SwitchSection.model_validate(P4 | {"ports": [512]})
    with pytest.raises(ValidationError, match="ports has 0; openflow has ports 1 to 65279"):
        SwitchSection.model_validate(OPENFLOW | {"ports": [0, 1], "host_ports": [0, 1]})


def test_what_refers_to_ports_names_one_that_there_is():
    with pytest.raises(ValidationError, match="interfaces has 3, which is not among ports"):
        SwitchSection.model_validate(P4 | {"interfaces": {3: "eth3"}})
    hop = {"port": 509, "mac": "02:00:00:00:00:01"}
    route = {"prefix": "10.0.1.0/24", "next_hops": [hop]}
    section = SwitchSection.model_validate(P4 | {"routes": [route]})
    assert [route.prefix for route in section.routes] == [ip_network("10.0.1.0/24")]
    with pytest.raises(ValidationError, match="uses port 509, which is not among ports"):
        SwitchSection.model_validate(P4 | {"ports": [0], "routes": [route]})
