import pytest

from hostagent.jobs.told import MAX_WAITING, Told
from hostagent.logs.format import Mark


def test_what_is_told_is_read_once():
    told = Told()
    told.tell("5", "7")
    assert told.read(9) == ([Mark(7, first=5)], 9, True)
    assert told.read(9).marks == []


@pytest.mark.parametrize(("first", "now"), [("-5", "7"), ("5", str(10**18)), ("5", "-1")])
def test_what_cannot_be_is_counted(first, now):
    told = Told()
    told.tell(first, now)
    assert told.read(1).marks == []
    assert told.rejected == {"iteration out of range": 1}


def test_nothing_done_yet_is_nothing():
    told = Told()
    told.tell("0", "0")
    told.tell("0", "1")
    assert told.read(1).marks == [Mark(1, first=1)]


def test_what_waits_is_bounded():
    told = Told()
    for number in range(1, 2 * MAX_WAITING):
        told.tell("1", str(number))
    assert len(told.read(1).marks) == MAX_WAITING
