"""Whose words were refused of late."""

from controlplane.refusals import KEEP, Refusal, Refusals


def test_counts_the_last_reason_and_when():
    refusals = Refusals()
    refusals.note("h1", "a", 1)
    refusals.note("h2", "b", 2)
    refusals.note("h1", "c", 3)
    assert refusals.last == {"h2": Refusal(1, "b", 2), "h1": Refusal(2, "c", 3)}
    assert list(refusals.last) == ["h2", "h1"]


def test_so_many_are_remembered_the_latest():
    refusals = Refusals()
    for number in range(KEEP + 3):
        refusals.note(f"h{number}", "a", number)
        refusals.note("h0", "b", number)
    assert len(refusals.last) == KEEP
    assert "h0" in refusals.last
    assert "h1" not in refusals.last
