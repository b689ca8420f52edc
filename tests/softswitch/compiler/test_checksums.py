import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

RESULTS = struct.Struct("!HIHHQHHB")


def run(switch, packet):
    ((port, data),) = switch.ports(packet)
    assert port == 1
    return RESULTS.unpack_from(data)[-1], data[RESULTS.size :]


def udp(payload=b"hello", **fields):
    return bytes(
        IP(src="192.168.1.2", dst="10.0.0.1", id=77, tos=5, **fields)
        / UDP(sport=1234, dport=99)
        / Raw(payload)
    )


def test_checksums_are_updated_to_what_scapy_computes(ours):
    switch = ours("hashes")
    for payload in (b"", b"a", b"ab", bytes(range(255)) * 5):
        _, data = run(switch, udp(payload))
        expected = IP(udp(payload))
        expected.ttl -= 1
        expected[UDP].dport += 1
        del expected.chksum, expected[UDP].chksum
        assert data == bytes(expected)


def test_a_udp_packet_without_checksum_keeps_none(ours):
    packet = IP(udp())
    packet[UDP].chksum = 0
    _, data = run(ours("hashes"), bytes(packet))
    assert IP(data)[UDP].chksum == 0


def test_wrong_checksums_are_noticed(ours):
    switch = ours("hashes")
    good = udp()
    assert run(switch, good)[0] == 0
    for at in (10, 15, 26, len(good) - 1):  # the IPv4 checksum, an address, the UDP checksum, the payload
        bad = bytearray(good)
        bad[at] ^= 1
        assert run(switch, bytes(bad))[0] == 1, at


@pytest.mark.parametrize("checksum", [0, 0xFFFF])
def test_both_zeros_are_told_apart_as_bmv2_does(ours, checksum):
    """An IPv4 header whose other words add up to 0xFFFF has the checksum 0, not 0xFFFF."""
    header = bytearray(bytes(IP(src="192.168.1.2", dst="10.0.0.1", proto=6)))
    rest = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2) if i not in (4, 10)) % 65535
    header[4:6] = (65535 - rest).to_bytes(2, "big")
    header[10:12] = checksum.to_bytes(2, "big")
    wrong, _ = run(ours("hashes"), bytes(header))
    assert wrong == int(checksum != 0)
