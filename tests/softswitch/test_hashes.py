import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import checksum

from softswitch import hashes

CHECK = b"123456789"  # the input of the published check values of CRCs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("crc16", 0xBB3D),  # CRC-16/ARC
        ("crc16_custom", 0xBB3D),
        ("crc32", 0xCBF43926),  # CRC-32/ISO-HDLC
        ("crc32_custom", 0xCBF43926),
        ("crcCCITT", 0x29B1),  # CRC-16/IBM-3740
        ("xor16", 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900),
        ("identity", 0x3132333435363738),
    ],
)
def test_known_values(name, value):
    assert hashes.ALGORITHMS[name][0](CHECK) == value


def test_a_crc_that_is_not_reflected():
    xmodem = hashes.crc(16, 0x1021, 0, 0, reflected=False)
    assert xmodem(CHECK) == 0x31C3
    assert xmodem(CHECK) == 0x31C3  # the remembered one


@given(st.binary(max_size=100))
def test_csum16_is_the_internet_checksum(data):
    assert hashes.csum16(data) == checksum(data)


def test_csum16_of_nothing_and_of_zeros():
    assert hashes.csum16(b"") == hashes.csum16(bytes(4)) == 0xFFFF
    assert hashes.csum16(b"\xff\xff") == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 2**40 - 1))))
def test_gather_packs_bits_from_the_left(parts):
    parts = [(included, width, value % (1 << width)) for included, width, value in parts]
    text = "".join(f"{value:0{width}b}" for included, width, value in parts if included)
    text += "0" * (-len(text) % 8)
    assert hashes.gather(parts) == bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
