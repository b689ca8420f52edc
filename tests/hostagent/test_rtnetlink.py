import struct

import pytest

from hostagent.rtnetlink import DUMP, REQUEST, ask, attribute, attributes, connect

RTM_GETLINK = 18
IFLA_IFNAME = 3


def test_the_kernels_answers():
    with connect() as netlink:
        answers = ask(netlink, RTM_GETLINK, REQUEST | DUMP, bytes(16))
        names = {attributes(answer[16:])[IFLA_IFNAME] for answer in answers}
        assert b"lo\0" in names
        (one,) = ask(netlink, RTM_GETLINK, REQUEST, struct.pack("=BxHiII", 0, 0, 1, 0, 0))
        assert attributes(one[16:])[IFLA_IFNAME] == b"lo\0"


def test_what_the_kernel_refuses_is_an_error():
    with connect() as netlink, pytest.raises(OSError, match="No such device"):
        ask(netlink, RTM_GETLINK, REQUEST, struct.pack("=BxHiII", 0, 0, 2**30, 0, 0))


def test_attributes():
    data = attribute(1, b"abcd") + attribute(0x8002, b"efgh") + struct.pack("=HH", 2, 9) + b"more"
    assert attributes(data) == {1: b"abcd", 2: b"efgh"}  # and broken ones end it
