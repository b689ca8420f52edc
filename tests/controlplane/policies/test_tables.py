"""Tables, as lists and as arrays."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.policies import tables
from controlplane.policies.tables import Tables


def test_making_tables(kind):
    assert list(kind.of(iter([3, 1, 2]), 2)) == [3, 1]
    assert (list(kind.filled(3)), list(kind.filled(2, -1)), list(kind.counting(3))) == (
        [0] * 3,
        [-1] * 2,
        [0, 1, 2],
    )
    assert list(kind.taken(kind.of([7, 8, 9], 3), kind.of([2, 0], 2))) == [9, 7]


def test_a_relation_by_columns(kind):
    starts, rows = kind.transposed(kind.of([0, 2, 2, 4], 4), kind.of([1, 0, 3, 1], 4), 4)
    assert (list(starts), list(rows)) == ([0, 1, 3, 3, 4], [0, 0, 2, 2])


@given(st.lists(st.lists(st.integers(0, 6), unique=True), max_size=8))
def test_turned_twice_it_is_the_same(relation):
    plain = Tables(compiled=False)
    starts = [sum(map(len, relation[:row])) for row in range(len(relation) + 1)]
    columns = [column for row in relation for column in sorted(row)]
    turned = plain.transposed(starts, columns, 7)
    assert plain.transposed(*turned, len(relation)) == (starts, columns)


def test_large_tables_are_compiled_where_that_can_be(monkeypatch):
    assert not Tables.for_size(tables.COMPILED_FROM - 1).compiled
    monkeypatch.setattr(tables, "_njit", lambda: None)
    assert not Tables.for_size(tables.COMPILED_FROM).compiled
    monkeypatch.setattr(tables, "_njit", lambda: lambda loop: loop)
    assert Tables.for_size(tables.COMPILED_FROM).compiled


def test_tables_of_tables_and_what_is_in_them(kind):
    assert [list(row) for row in kind.rows(2, 3)] == [[0, 0, 0], [0, 0, 0]]
    one, other = kind.of([1, 2], 2), kind.of([1, 3], 2)
    assert (kind.equal(one, one), kind.equal(one, other)) == (True, False)


def test_rows_and_ranges(kind):
    assert list(kind.ranges(kind.of([0, 0, 2], 3), 4)) == [0, 2, 2, 3, 3]
    assert list(kind.row_of(kind.of([0, 1, 2, 3], 4), kind.of([0, 2, 2, 4], 4))) == [0, 0, 2, 2]
