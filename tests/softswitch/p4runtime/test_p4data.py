"""P4Data: every type that has bits, both ways, and what is refused."""

import pytest
from finsy.proto import p4d, p4t
from google.protobuf import text_format

from softswitch.p4runtime.p4data import decode_scalar, encode_data, original_type
from tests.softswitch.p4runtime.helpers import refusal

TYPES = text_format.Parse(
    """
    structs { key: "pair" value {
        members { name: "flag" type_spec { bool {} } }
        members { name: "inner" type_spec { struct { name: "single" } } }
        members { name: "last" type_spec { bitstring { bit { bitwidth: 16 } } } }
    } }
    structs { key: "single" value { members { name: "x" type_spec { bitstring { int { bitwidth: 8 } } } } } }
    headers { key: "h" value {
        members { name: "a" type_spec { bit { bitwidth: 4 } } }
        members { name: "b" type_spec { bit { bitwidth: 12 } } }
    } }
    serializable_enums { key: "e" value {
        underlying_type { bitwidth: 4 }
        members { name: "A" value: "\\001" }
    } }
    new_types { key: "plain" value { original_type { bitstring { bit { bitwidth: 9 } } } } }
    new_types { key: "port" value { translated_type { uri: "u" sdn_bitwidth: 32 } } }
    new_types { key: "name" value { translated_type { uri: "u" sdn_string {} } } }
    """,
    p4t.P4TypeInfo(),
)
BIT12 = "bitstring { bit { bitwidth: 12 } }"
INT8 = "bitstring { int { bitwidth: 8 } }"
BOOL = "bool {}"
ENUM = 'serializable_enum { name: "e" }'


def spec(text):
    return text_format.Parse(text, p4t.P4DataTypeSpec())


def encode(text, *values):
    return encode_data(spec(text), TYPES, iter(values))


def decode(text, **data):
    return decode_scalar(spec(text), TYPES, p4d.P4Data(**data), "register r")


@pytest.mark.parametrize(
    ("text", "bits", "data"),
    [
        (BIT12, 0, {"bitstring": b"\0"}),
        (BIT12, 0xFFF, {"bitstring": b"\x0f\xff"}),
        (INT8, 0x7F, {"bitstring": b"\x7f"}),
        (INT8, 0x80, {"bitstring": b"\x80"}),
        (INT8, 0xFF, {"bitstring": b"\xff"}),
        ("bitstring { int { bitwidth: 16 } }", 0xFFFE, {"bitstring": b"\xfe"}),
        ("bitstring { int { bitwidth: 16 } }", 0x0080, {"bitstring": b"\0\x80"}),
        (BOOL, 1, {"bool": True}),
        (BOOL, 0, {"bool": False}),
        (ENUM, 3, {"enum_value": b"\x03"}),
        ('new_type { name: "plain" }', 0x1FF, {"bitstring": b"\x01\xff"}),
        ('new_type { name: "port" }', 1 << 31, {"bitstring": b"\x80\0\0\0"}),
    ],
)
def test_scalars_both_ways(text, bits, data):
    assert encode(text, bits) == p4d.P4Data(**data)
    assert decode(text, **data) == bits


def test_long_strings_are_read_by_value():
    assert decode(BIT12, bitstring=b"\0\0\x0f\xff") == 0xFFF
    assert decode(INT8, bitstring=b"\xff\xff") == 0xFF


def test_structs_take_their_fields_depth_first():
    single = p4d.P4Data(struct=p4d.P4StructLike(members=[p4d.P4Data(bitstring=b"\xfe")]))
    assert encode('struct { name: "pair" }', 1, 0xFE, 0x0102) == p4d.P4Data(
        struct=p4d.P4StructLike(members=[p4d.P4Data(bool=True), single, p4d.P4Data(bitstring=b"\x01\x02")])
    )


def test_tuples_and_headers():
    assert encode(f"tuple {{ members {{ {BOOL} }} members {{ {BIT12} }} }}", 0, 5) == p4d.P4Data(
        tuple=p4d.P4StructLike(members=[p4d.P4Data(bool=False), p4d.P4Data(bitstring=b"\x05")])
    )
    assert encode('header { name: "h" }', 0, 0x123) == p4d.P4Data(
        header=p4d.P4Header(is_valid=True, bitstrings=[b"\0", b"\x01\x23"])
    )


def test_types_that_have_no_bits():
    error = ("UNIMPLEMENTED", "data of type header_union")
    assert refusal(encode, 'header_union { name: "u" }') == error
    error = ("UNIMPLEMENTED", "register r: data of type struct")
    assert refusal(decode, 'struct { name: "pair" }', bitstring=b"\1") == error


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        (BIT12, {"bitstring": b"\x10\0"}, "0x1000 does not fit into 12 bits"),
        (BIT12, {"bitstring": b""}, "the value is empty; zero is one zero byte"),
        (BIT12, {"bool": True}, "the data is a bool, the program's type is bitstring"),
        (BIT12, {}, "the data is a None, the program's type is bitstring"),
        (INT8, {"bitstring": b"\0\x80"}, "128 does not fit into 8 signed bits"),
        (INT8, {"bitstring": b"\xff\x7f"}, "-129 does not fit into 8 signed bits"),
        (BOOL, {"bitstring": b"\1"}, "the data is a bitstring, the program's type is bool"),
        (ENUM, {"enum_value": b"\x10"}, "0x10 does not fit into 4 bits"),
        (ENUM, {"enum": "A"}, "the data is a enum, the program's type is serializable_enum"),
        ('new_type { name: "plain" }', {"bitstring": b"\2\0"}, "0x200 does not fit into 9 bits"),
    ],
)
def test_data_that_do_not_fit(text, data, message):
    assert refusal(decode, text, **data) == ("INVALID_ARGUMENT", f"register r: {message}")


def test_what_user_defined_types_stand_for():
    assert original_type(spec('new_type { name: "plain" }'), TYPES) == spec(
        "bitstring { bit { bitwidth: 9 } }"
    )
    assert original_type(spec('new_type { name: "port" }'), TYPES) == spec(
        "bitstring { bit { bitwidth: 32 } }"
    )
    assert refusal(original_type, spec('new_type { name: "name" }'), TYPES) == (
        "UNIMPLEMENTED",
        "type name: translation to strings",
    )
