"""Rows of the contract, for hypothesis."""

from hypothesis import strategies as st

from controlplane.openflow.pipeline import Pipeline
from controlplane.southbound.tables import Call

INT_DSCP = 0x17
PIPELINE = Pipeline(INT_DSCP)

u8, u16, u32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))
bit = st.integers(0, 1)


def address(version: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2 ** (32 if version == 4 else 128) - 1)


@st.composite
def prefix(draw: st.DrawFn, version: int) -> tuple[int, int]:
    bits = 32 if version == 4 else 128
    length = draw(st.integers(0, bits))
    return draw(address(version)) >> bits - length << bits - length, length


def row(table: str, key: st.SearchStrategy, name: str, *args: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(st.just(table), key, st.builds(Call, st.just(name), st.tuples(*args)))


port = st.integers(1, 0xFFFF)
rows = st.one_of(
    row("active_bank", st.just(()), "set_bank", bit),
    *(
        row(
            f"flow_group_v{version}",
            st.tuples(address(version), address(version), st.sampled_from((6, 17, 132)), u16, u16),
            "set_group",
            u16,
            u32,
        )
        for version in (4, 6)
    ),
    row("group_level", st.tuples(bit, u16), "set_level", u8, u32, u32),
    row("default_level", st.just(()), "set_default_level", u8, u8),
    row("level_queue", st.tuples(u8), "set_queue", st.integers(0, 7), st.integers(0, 63), bit),
    row("edge_port", st.tuples(port), "host_facing"),
    row("edge_port", st.tuples(port), "fabric_facing"),
    row("int_sink", st.tuples(port), "relay"),
    *(row(f"ipv{v}_lpm", st.tuples(prefix(v)), "set_nhop", port, st.integers(0, 2**48 - 1)) for v in (4, 6)),
    *(row(f"ipv{v}_lpm", st.tuples(prefix(v)), "set_ecmp", port, port) for v in (4, 6)),
    *(row(f"ipv{v}_lpm", st.tuples(prefix(v)), "drop") for v in (4, 6)),
)
