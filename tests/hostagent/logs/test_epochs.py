import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs.epochs import KEPT, EpochParser
from hostagent.logs.format import MAX_ITERATION, Mark, RejectedLineError


def parse(line):
    if line == "-":
        return None
    epoch, _, count = line.partition(" ")
    done, _, total = count.partition("/")
    return Mark(int(done), None, int(total) if total else None, None if epoch == "x" else int(epoch))


def counts(*lines):
    see = EpochParser(parse)
    return [mark.completed for line in lines if (mark := see(line)) is not None]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["0 1/3", "0 3/3", "0 0/3", "1 0/3", "1 1/3", "2 2/3"], [1, 3, 4, 8]),
        (["0 1", "0 3", "1 1", "1 3", "2 1"], [1, 3, 4, 6, 7]),  # lengths as far as they were seen
        (["5 1/10", "5 2/10", "6 1/10"], [51, 52, 61]),  # resumed: full epochs are behind it
        (["0 3/3", "2 1/3"], [3, 7]),  # a whole epoch went unseen
        (["0 3/3", "1 2/3", "0 2/3", "1 1/3"], [3, 5, 2, 4]),  # back to a checkpoint
        (["x 5/9", "-", "x 6/9"], [5, 6]),  # no epochs
    ],
)
def test_the_count_goes_on(lines, expected):
    assert counts(*lines) == expected


def test_it_does_not_go_beyond_all_bounds():
    see = EpochParser(parse)
    with pytest.raises(RejectedLineError):
        see(f"{MAX_ITERATION} 5/1000")
    assert see("0 5/1000").completed == 5  # and nothing of that is remembered


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6)), max_size=50))
def test_whatever_the_log_says(marks):
    see = EpochParser(parse)
    for epoch, done, total in marks:
        try:
            mark = see(f"{epoch} {done}/{total}")
        except RejectedLineError:
            continue
        assert mark is None or 0 < mark.completed <= MAX_ITERATION
        assert mark is None or mark.epoch is None
    assert len(see._starts) <= KEPT


def test_what_it_remembers_can_be_recalled():
    lines = [f"{epoch} {n}" for epoch in range(12) for n in (1, 5, 10)]
    for stop in range(len(lines)):
        whole, before, after = EpochParser(parse), EpochParser(parse), EpochParser(parse)
        for line in lines[:stop]:
            assert whole(line) == before(line)
        after.recall(before.remember())
        for line in lines[stop:]:
            assert whole(line) == after(line)


@pytest.mark.parametrize("numbers", [(), (1, 2), (1,) * 99, (10**13,)])
def test_what_it_cannot_have_remembered_is_refused(numbers):
    with pytest.raises(ValueError, match="no epochs"):
        EpochParser(lambda _: None).recall(numbers)
