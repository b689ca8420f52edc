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
