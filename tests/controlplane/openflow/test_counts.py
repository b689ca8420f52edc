from controlplane.openflow.counts import Counts
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call

FLOW = ("flow_group_v4", (1, 2, 6, 3, 4))
CALL = Call("set_group", (5, 6))
INSERT, REPLACE, DELETE = Change(*FLOW, CALL, replace=False), Change(*FLOW, CALL), Change(*FLOW, None)


def test_what_is_written_counts() -> None:
    counts = Counts()
    counts.read(10, {})
    after = []
    for change in (INSERT, REPLACE, DELETE):
        counts.note(change, 2, 0)
        after.append(counts.expected)
    assert after == [12, 12, 10]


def test_what_was_refused_counts_as_far_as_it_got() -> None:
    counts = Counts()
    counts.read(10, {})
    counts.note(INSERT, 2, 1)
    assert counts.expected == 11
    counts.note(INSERT, 2, 2)
    assert counts.expected == 11
    counts.note(INSERT, 2, 0)
    counts.note(DELETE, 2, 2)
    assert counts.expected == 12
    counts.note(DELETE, 2, 0)
    assert counts.expected == 10


def test_a_row_that_was_not_whole_is_made_whole_or_goes() -> None:
    for change, then in ((REPLACE, 11), (DELETE, 9)):
        counts = Counts()
        counts.read(10, {FLOW: 1})
        counts.note(change, 2, 0)
        assert counts.expected == then


def test_what_has_no_entries_that_are_counted() -> None:
    counts = Counts()
    counts.read(10, {})
    counts.note(Change("edge_port", (1,), Call("host_facing"), replace=False), 0, 0)
    assert counts.expected == 10
