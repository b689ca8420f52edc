from ipaddress import ip_address

import pytest

from controlplane.model import FiveTuple, Link


@pytest.mark.parametrize(
    ("text", "link"), [("S1:3", Link("S1", 3)), ("leaf:1:12", Link("leaf:1", 12)), ("s:0", Link("s", 0))]
)
def test_a_link_is_written_as_it_is_read(text, link):
    assert Link.parse(text) == link
    assert str(link) == text


@pytest.mark.parametrize("text", ["", "S1", "S1:", ":3", "S1:x", "S1:-3", "S1:3.5", "S1:²"])
def test_what_is_no_link_is_said(text):
    with pytest.raises(ValueError, match="is not SWITCH:PORT") as caught:
        Link.parse(text)
    assert repr(text) in str(caught.value)


def test_a_flow_as_people_read_it():
    one, other = ip_address("10.0.0.1"), ip_address("10.0.0.2")
    assert str(FiveTuple(one, other, 6, 5000, 80)) == "tcp 10.0.0.1:5000 > 10.0.0.2:80"
    assert str(FiveTuple(one, other, 17, 49152, 4791, 7)) == "udp 10.0.0.1:49152 > 10.0.0.2:4791 qp 7"
    assert str(FiveTuple(one, other, 132, 1, 2)) == "132 10.0.0.1:1 > 10.0.0.2:2"
