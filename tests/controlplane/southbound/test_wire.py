"""The bytes that are written by hand, against protobuf's own."""

import pytest
from finsy import P4Schema
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

import p4src
from controlplane.southbound.contract import CONTRACT, bind
from controlplane.southbound.tables import Call
from controlplane.southbound.wire import TableWriter, canonical, masked, varint

PROGRAM = p4src.program("v1model")
BINDING = bind(P4Schema(PROGRAM.p4info, PROGRAM.json).p4info, "leveller.p4info.txtpb")
KINDS = (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, b"\x00"), (1, b"\x01"), (255, b"\xff"), (256, b"\x01\x00"), (0x20000, b"\x02\x00\x00")],
)
def test_canonical_byte_strings(value, encoded):
    assert canonical(value) == encoded


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")]
)
def test_varint(value, encoded):
    assert varint(value) == encoded


@st.composite
def row(draw):
    """A table's name and any row of it."""
    name = draw(st.sampled_from(sorted(CONTRACT)))
    spec = CONTRACT[name]
    key = []
    for width in spec.keys.values():
        value = draw(st.integers(0, 2**width - 1))
        key.append(value if spec.kind == "exact" else (value, draw(st.integers(0, width))))
    action = draw(st.sampled_from(sorted(spec.actions)))
    args = tuple(draw(st.integers(0, 2**width - 1)) for width in spec.actions[action].values())
    return name, tuple(key), Call(action, args)


def by_protobuf(name, kind, key, call):
    table = BINDING[name]
    entry = p4r.TableEntry(table_id=table.id, is_default_action=not table.keys)
    for field, width, value in zip(table.keys, table.widths, key, strict=True):
        if isinstance(value, int):
            entry.match.add(field_id=field, exact=p4r.FieldMatch.Exact(value=canonical(value)))
        elif value[1]:
            bits = canonical(masked(*value, width))
            entry.match.add(field_id=field, lpm=p4r.FieldMatch.LPM(value=bits, prefix_len=value[1]))
    if kind != p4r.Update.DELETE:
        ids = table.actions[call.action]
        entry.action.action.action_id = ids.id
        for param, value in zip(ids.params, call.args, strict=True):
            entry.action.action.params.add(param_id=param, value=canonical(value))
    update = p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))
    return p4r.WriteRequest(updates=[update]).SerializeToString(deterministic=True)


@given(row(), st.sampled_from(KINDS))
def test_the_bytes_are_protobufs_own(there, kind):
    name, key, call = there
    writer = TableWriter(BINDING[name])
    written = writer.write_request(kind, key, None if kind == p4r.Update.DELETE else call)
    assert written == by_protobuf(name, kind, key, call)
