"""P4Data (spec, Representation of Arbitrary P4 Types): registers' cells and digests' fields."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4d, p4t
from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.values import decode, decode_signed, encode, encode_signed


def encode_data(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, values: Iterator[int]) -> p4d.P4Data:
    """Write a value of type ``spec``, taking its fields, depth first, from ``values`` (each as its bits).

    Raises UNIMPLEMENTED for types that have no bits to take (unions, stacks, enums without values).
    """
    match spec.WhichOneof("type_spec"):
        case "bitstring" if spec.bitstring.HasField("bit"):
            return p4d.P4Data(bitstring=encode(next(values)))
        case "bitstring" if spec.bitstring.HasField("int"):
            return p4d.P4Data(bitstring=encode_signed(_signed(next(values), spec.bitstring.int.bitwidth)))
        case "bool":
            return p4d.P4Data(bool=bool(next(values)))
        case "serializable_enum":
            return p4d.P4Data(enum_value=encode(next(values)))
        case "new_type":
            return encode_data(original_type(spec, types), types, values)
        case "tuple":
            members = [encode_data(member, types, values) for member in spec.tuple.members]
            return p4d.P4Data(tuple=p4d.P4StructLike(members=members))
        case "struct":
            fields = types.structs[spec.struct.name].members
            members = [encode_data(member.type_spec, types, values) for member in fields]
            return p4d.P4Data(struct=p4d.P4StructLike(members=members))
        case "header":
            bitstrings = [encode(next(values)) for _ in types.headers[spec.header.name].members]
            return p4d.P4Data(header=p4d.P4Header(is_valid=True, bitstrings=bitstrings))
        case kind:
            raise P4Error(StatusCode.UNIMPLEMENTED, f"data of type {kind}")


def decode_scalar(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, data: p4d.P4Data, what: str) -> int:
    """Read a value of the scalar type ``spec``, as its bits.

    Raises INVALID_ARGUMENT for data of another type or out of range, UNIMPLEMENTED for types that have parts.
    """
    given = data.WhichOneof("data")
    kind = spec.WhichOneof("type_spec")
    match kind:
        case "new_type":
            return decode_scalar(original_type(spec, types), types, data, what)
        case "bool" if given == "bool":
            return int(data.bool)
        case "bitstring" if given == "bitstring" and spec.bitstring.HasField("bit"):
            return decode(data.bitstring, spec.bitstring.bit.bitwidth, what)
        case "bitstring" if given == "bitstring" and spec.bitstring.HasField("int"):
            width = spec.bitstring.int.bitwidth
            return decode_signed(data.bitstring, width, what) & ((1 << width) - 1)
        case "serializable_enum" if given == "enum_value":
            enum = types.serializable_enums[spec.serializable_enum.name]
            return decode(data.enum_value, enum.underlying_type.bitwidth, what)
        case "bool" | "bitstring" | "serializable_enum":
            raise invalid(f"{what}: the data is a {given}, the program's type is {kind}")
        case _:
            raise P4Error(StatusCode.UNIMPLEMENTED, f"{what}: data of type {kind}")


def original_type(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> p4t.P4DataTypeSpec:
    """Return what a user-defined type stands for in the data plane."""
    new_type = types.new_types[spec.new_type.name]
    if new_type.HasField("original_type"):
        return new_type.original_type
    width = new_type.translated_type.sdn_bitwidth
    if not width:
        raise P4Error(StatusCode.UNIMPLEMENTED, f"type {spec.new_type.name}: translation to strings")
    return p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=p4t.P4BitTypeSpec(bitwidth=width)))


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits
