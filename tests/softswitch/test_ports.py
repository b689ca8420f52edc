"""A port on a real veth pair: what arrives, as it was on the wire, and what is sent."""

import select
import socket
import struct
import time

import pytest

from leveller.errors import UserError
from softswitch.ports import Port, finish_checksum
from softswitch.queues import Backlog

SOL_PACKET, PACKET_VNET_HDR, PACKET_AUXDATA = 263, 15, 8


@pytest.fixture
def port(veth):
    """A port on one end of a pair, and a raw socket on the other."""
    opened = []

    def make(mtu=1500, queues=8):
        veth("near", "far", mtu=mtu)
        backlog = Backlog()
        near = Port(1, "near", queues, 64, backlog)
        far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        far.bind(("far", 0))
        far.settimeout(5)
        opened.extend((backlog, near, far))
        return near, far

    yield make
    for item in opened:
        item.close()


def frame(length, tag=b"", ethertype=b"\x12\x34"):
    head = b"\x02" * 12 + tag + ethertype
    return head + bytes(i & 0xFF for i in range(length - len(head)))


def receive(port, count=1):
    """Wait for ``count`` frames."""
    frames = []
    poll = select.poll()
    poll.register(port.fileno(), select.POLLIN)
    while len(frames) < count and poll.poll(2000):
        frames += port.receive(8)
    return frames


def wait_for(condition):
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(("mtu", "length"), [(1500, 60), (1500, 1514), (9000, 9014)])
def test_frames_arrive_whole_and_in_order(port, mtu, length):
    near, far = port(mtu)
    sent = [frame(length)[:-1] + bytes([number]) for number in range(20)]
    for item in sent:
        far.send(item)
    assert receive(near, 20) == sent


def test_the_ring_goes_round(port):
    near, far = port()
    rounds = len(near._starts) + 10
    for number in range(rounds):
        far.send(frame(60) + number.to_bytes(4, "big"))
        assert receive(near) == [frame(60) + number.to_bytes(4, "big")]


@pytest.mark.parametrize("tag", [b"\x81\x00\x60\x05", b"\x88\xa8\x00\x07\x81\x00\x00\x08"])
def test_vlan_tags_are_put_back(port, tag):
    near, far = port()
    sent = frame(100, tag)
    far.send(sent)
    assert receive(near) == [sent]


def test_what_the_port_sends_does_not_come_back(port):
    near, far = port()
    assert near.senders[0].put(frame(60))
    near.senders[0].flush()
    assert far.recv(2000) == frame(60)
    far.send(frame(61))
    assert receive(near) == [frame(61)]


def test_a_checksum_left_to_the_card_is_finished(port):
    near, far = port()
    far.close()
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    far.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    far.bind(("far", 0))
    data = bytes.fromhex("0200000000010200000000020800") + bytes(20) + b"\x03\xe8\x07\xd0\x00\x0c"
    partial = data + (0x1234).to_bytes(2, "big") + b"abcd"  # the field holds the pseudo-header's sum
    far.send(struct.pack("=BBHHHH", 1, 0, 0, 0, 34, 6) + partial)
    [got] = receive(near)
    far.close()
    total = 0x1234 + 0x03E8 + 0x07D0 + 0x000C + 0x6162 + 0x6364
    expected = 0xFFFF ^ ((total & 0xFFFF) + (total >> 16))
    assert got == data + expected.to_bytes(2, "big") + b"abcd"


def test_segments_in_one_frame_are_refused_and_counted(port):
    near, far = port()
    far.close()
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    far.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    far.bind(("far", 0))
    ip = bytes.fromhex("4500 0fb8 0000 4000 4006 0000 0a000001 0a000002")
    tcp = bytes.fromhex("03e8 07d0 00000000 00000000 5010 ffff 0000 0000")
    data = bytes.fromhex("0200000000010200000000020800") + ip + tcp + bytes(4000 - 40)
    far.send(struct.pack("=BBHHHH", 1, 1, 54, 1460, 34, 16) + data)
    assert receive(near) == []
    far.close()
    assert near.lost["longer than the MTU: the sender's segmentation offload is on"] == 1


def test_a_frame_longer_than_the_mtu_is_not_sent(port):
    near, _ = port()
    near.senders[0].put(frame(1519))
    near.senders[0].flush()
    near.senders[0].put(frame(9000))
    near.senders[0].flush()
    assert near.lost["longer than the MTU"] == 2


def test_a_port_that_goes_down_and_up(port, namespace):
    near, far = port()
    assert near.is_up()
    index = namespace.link_lookup(ifname="far")[0]
    namespace.link("set", index=index, state="down")
    assert wait_for(lambda: not near.is_up())  # the kernel takes a moment to see the carrier go
    namespace.link("set", index=namespace.link_lookup(ifname="near")[0], state="down")
    near.senders[0].put(frame(60))
    near.senders[0].flush()
    assert near.lost["port down"] == 1
    near.clear_error()
    for name in ("near", "far"):
        namespace.link("set", index=namespace.link_lookup(ifname=name)[0], state="up")
    assert wait_for(near.is_up)
    far.close()
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    far.bind(("far", 0))
    far.send(frame(60))
    assert receive(near) == [frame(60)]
    far.close()


def test_an_interface_that_is_not_there(namespace):
    with pytest.raises(UserError, match="no interface nothere"):
        Port(1, "nothere", 8, 64, Backlog())


def test_an_interface_that_is_not_ethernet_is_still_a_port(namespace):
    port = Port(1, "lo", 8, 64, Backlog())
    assert port.is_up()
    port.close()


def test_an_odd_length_checksum():
    data = bytes.fromhex("0000 0102 03")
    assert finish_checksum(data, 2, 0)[2:4] == (0xFFFF - (0x0102 + 0x0300)).to_bytes(2, "big")
