"""The tables of valid and invalid byte strings in the specification (Bytestrings)."""

import pytest
from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.values import (
    cell_range,
    decode,
    decode_signed,
    encode,
    encode_signed,
    prefix_mask,
)


@pytest.mark.parametrize(
    ("width", "data", "value"),
    [
        (8, b"\x63", 99),
        (16, b"\x00\x63", 99),
        (16, b"\x63", 99),
        (16, b"\x00\x30\x64", 12388),
        (12, b"\x00\x00\x63", 99),
        (9, b"\x01\xff", 511),
        (1, b"\x00", 0),
    ],
)
def test_accepts_any_length_that_holds_the_value(width, data, value):
    assert decode(data, width, "x") == value


@pytest.mark.parametrize(
    ("width", "data"),
    [
        (8, b"\x01\x63"),
        (8, b""),
        (16, b"\x01\x00\x63"),
        (12, b"\x10\x63"),
        (12, b"\x01\x00\x63"),
        (12, b"\x00\x40\x63"),
    ],
)
def test_refuses_what_does_not_fit_and_names_it(width, data):
    with pytest.raises(P4Error, match="the key") as caught:
        decode(data, width, "the key")
    assert caught.value.code is StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("value", "data"), [(0, b"\x00"), (99, b"\x63"), (255, b"\xff"), (256, b"\x01\x00"), (12388, b"\x30\x64")]
)
def test_encodes_the_shortest_string(value, data):
    assert encode(value) == data


@pytest.mark.parametrize(
    ("width", "data", "value"),
    [
        (8, b"\x63", 99),
        (8, b"\x9d", -99),
        (8, b"\xff\x9d", -99),
        (12, b"\xfd\x1d", -739),
        (16, b"\x00\x00", 0),
    ],
)
def test_reads_signed_values(width, data, value):
    assert decode_signed(data, width, "x") == value


@pytest.mark.parametrize(("width", "data"), [(8, b"\x00\x9d"), (12, b"\x8d\x1d"), (16, b"")])
def test_refuses_signed_values_out_of_range(width, data):
    with pytest.raises(P4Error):
        decode_signed(data, width, "x")


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\x00"), (99, b"\x63"), (-99, b"\x9d"), (-739, b"\xfd\x1d"), (-128, b"\x80"), (128, b"\x00\x80")],
)
def test_encodes_signed_values_shortest(value, data):
    assert encode_signed(value) == data


def test_prefix_mask():
    assert prefix_mask(24, 32) == 0xFFFFFF00
    assert prefix_mask(0, 32) == 0
    assert prefix_mask(9, 9) == 0x1FF


def test_cells_of_an_index():
    assert list(cell_range(None, 3, "c")) == [0, 1, 2]
    assert list(cell_range(2, 3, "c")) == [2]
    with pytest.raises(P4Error) as caught:
        cell_range(-1, 3, "c")
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
    with pytest.raises(P4Error) as caught:
        cell_range(3, 3, "c")
    assert caught.value.code is StatusCode.OUT_OF_RANGE
