import pytest

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.nccl import communicators as module
from hostagent.nccl.communicators import Communicators, JobCommunicator
from hostagent.nccl.messages import Collectives, Communicator, Connection, End, Header


def header(comm=77, rank=0, dropped=0):
    return Header(comm, rank, 1000, dropped)


def made(comm=77, rank=0, name="world"):
    return Communicator(header(comm, rank), name, 8, 2)


def socket(comm=77, port=4000):
    return Connection(header(comm), 3, True, 0, 0, key(port))


def key(port=4000):
    return FiveTuple(b"\x0a\0\0\1", b"\x0a\0\0\2", TCP, port, 5000)


def pair(number, comm=77):
    return Connection(header(comm), 3, True, number, 0, None)


@pytest.fixture
def known():
    known = Communicators()
    known.see(1, "job1", made())
    return known


def test_a_communicator_of_two_local_ranks(known):
    known.see(2, "job1", made(rank=1))
    known.see(1, "job1", Collectives(header(), 5, 4, 100, 900, "AllReduce"))
    known.see(1, "job1", Collectives(header(), 9, 3, 100, 900, "AllReduce"))
    known.see(2, "job1", Collectives(header(rank=1), 9, 6, 100, 900, "AllReduce"))
    assert known.changed() == {"job1": {77: JobCommunicator("world", 8, 2, {0, 1}, {0: 7, 1: 6})}}
    assert known.changed() == {}


def test_connections_belong_to_a_communicator_of_their_job(known):
    known.see(1, "job1", socket())
    known.see(1, "job1", pair(9))
    assert (known.of_socket("job1", key()), known.of_queue_pair("job1", 9)) == (77, 77)
    assert (known.of_socket("job1", key(1)), known.of_queue_pair("job1", 8)) == (0, 0)
    # What one job says of a connection does not count for another's.
    assert (known.of_socket("job2", key()), known.of_queue_pair("job2", 9)) == (0, 0)


def test_what_is_told_before_the_communicator_itself_counts(known):
    known.see(1, "job3", socket(comm=5))
    assert known.of_socket("job3", key()) == 5


def test_a_communicator_ends_with_its_last_local_rank(known):
    known.see(2, "job1", made(rank=1))
    known.see(1, "job1", socket())
    known.see(1, "job1", pair(9))
    known.see(1, "job1", made(comm=88))
    known.see(1, "job1", socket(comm=88, port=1))
    known.see(1, "job1", End(header()))
    assert known.of_socket("job1", key()) == 77
    known.see(2, "job1", End(header(rank=1)))
    assert (known.of_socket("job1", key()), known.of_queue_pair("job1", 9)) == (0, 0)
    assert known.of_socket("job1", key(1)) == 88
    assert set(known.changed()["job1"]) == {88}
    known.see(2, "job1", End(header(comm=99)))  # never heard of


def test_jobs_that_are_gone_are_forgotten(known):
    known.keep(["job2"])
    assert (known.changed(), known.of_socket("job1", key()), known.lost("job1")) == ({}, 0, 0)


def test_what_is_lost_is_counted(known, monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    known.see(2, "job1", Communicator(header(88, dropped=4), "b", 8, 2))
    known.see(2, "job1", Communicator(header(99, dropped=6), "c", 8, 2))
    assert known.lost("job1") == 7
    for number in range(1, 6):
        known.see(1, "job1", pair(number))
    assert known.lost("job1") == 9
    assert [known.of_queue_pair("job1", number) for number in range(1, 6)] == [77, 77, 77, 0, 0]


def test_no_more_collectives_are_counted_than_a_report_takes(known):
    for _ in range(2):
        known.see(1, "job1", Collectives(header(), 5, 2**64 - 1, 100, 900, "AllReduce"))
    assert known.changed()["job1"][77].collectives == {0: 2**64 - 1}


def test_no_more_ranks_are_kept_than_reports_have_room_for(monkeypatch):
    monkeypatch.setattr(module, "MOST_RANKS", 3)
    known = Communicators()
    for rank in range(5):
        known.see(1, "job1", made(rank=rank))
        known.see(1, "job1", Collectives(header(rank=rank), 5, 4, 100, 900, "AllReduce"))
    known.see(1, "job2", made())  # another job's are its own
    changed = known.changed()
    assert changed["job1"][77].local_ranks == {0, 1, 2}
    assert changed["job1"][77].collectives == {0: 4, 1: 4, 2: 4}
    assert known.lost("job1") == 4
    assert changed["job2"][77].local_ranks == {0}
