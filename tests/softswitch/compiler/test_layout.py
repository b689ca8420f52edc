import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from softswitch.compiler.layout import patch, read, runs, write
from softswitch.compiler.model import FieldDef, HeaderDef


@st.composite
def headers(draw):
    widths = draw(st.lists(st.integers(1, 70), min_size=1, max_size=8))
    if sum(widths) % 8:
        widths.append(8 - sum(widths) % 8)
    fields = [FieldDef(f"f{i}", w, signed=w > 1 and draw(st.booleans())) for i, w in enumerate(widths)]
    return HeaderDef("h", tuple(fields), metadata=False, max_bytes=0)


def values_in(header, data):
    whole, left, found = int.from_bytes(data, "big"), len(data) * 8, {}
    for f in header.fields:
        left -= f.width
        value = whole >> left & (1 << f.width) - 1
        found[f.name] = value - (1 << f.width) if f.signed and value >> f.width - 1 else value
    return found


def random_bytes(draw, header):
    return draw(st.binary(min_size=header.fixed_bytes, max_size=header.fixed_bytes))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_reading_gives_the_bits_of_each_wanted_field(data):
    header = data.draw(headers())
    packet = random_bytes(data.draw, header)
    wanted = {f.name for f in header.fields if data.draw(st.booleans())}
    form, names, after = read(header, wanted, lambda f: f, "t")
    assert struct.calcsize(form) == header.fixed_bytes
    scope = dict(zip(names, struct.unpack(form, packet), strict=True))
    exec("\n".join(after), scope)
    expected = values_in(header, packet)
    assert {f: scope[f] for f in wanted} == {f: expected[f] for f in wanted}


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_writing_gives_back_what_was_read(data):
    header = data.draw(headers())
    packet = random_bytes(data.draw, header)
    scope = values_in(header, packet)
    form, values = write(header, lambda f: f"({f.name} & {(1 << f.width) - 1})")
    assert struct.pack(form, *(eval(v, scope) for v in values)) == packet


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_patching_changes_the_chosen_fields_only(data):
    header = data.draw(headers())
    old, new = random_bytes(data.draw, header), random_bytes(data.draw, header)
    changed = {f.name for f in header.fields if data.draw(st.booleans())}
    out = bytearray(b"pad" + old)
    scope = {"out": out, "base": 3, **values_in(header, new)}

    def put(form):
        name = f"put_{form[1:]}"
        scope[name] = struct.Struct(form).pack_into
        return name

    for run in runs(header):
        names = [f.name for f in run.fields if f.name in changed]
        if names:
            lines = patch(run, names, lambda f: f"({f.name} & {(1 << f.width) - 1})", put, "base")
            exec("\n".join(lines), scope)
    before, after, wanted = values_in(header, old), values_in(header, out[3:]), values_in(header, new)
    assert after == {f: wanted[f] if f in changed else v for f, v in before.items()}
    assert out[:3] == b"pad"
