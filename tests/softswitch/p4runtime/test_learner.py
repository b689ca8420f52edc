"""Digest lists: when they are sent, what is filtered, what an acknowledgement does (spec, DigestEntry)."""

from finsy.proto import p4r

from softswitch.p4runtime.learner import Learner

MS = 1_000_000


def learner(**config):
    return Learner(p4r.DigestEntry(digest_id=1, config=p4r.DigestEntry.Config(**config)))


def test_a_list_is_sent_when_it_is_full():
    learning = learner(max_timeout_ns=1000 * MS, max_list_size=2)
    assert learning.add((1,), 0) is None
    assert learning.add((1,), 0) is None  # a duplicate does not count
    assert learning.add((2,), 0) == (1, ((1,), (2,)))
    assert learning.poll(2000 * MS) is None


def test_a_list_is_sent_when_its_oldest_message_has_waited():
    learning = learner(max_timeout_ns=100 * MS, max_list_size=10)
    learning.add((1,), 0)
    learning.add((2,), 90 * MS)
    assert learning.poll(99 * MS) is None
    assert learning.poll(100 * MS) == (1, ((1,), (2,)))


def test_no_timeout_means_every_message_at_once():
    learning = learner(max_list_size=10)
    assert learning.add((1,), 0) == (1, ((1,),))


def test_what_is_not_acknowledged_is_not_sent_again_before_its_timeout():
    learning = learner(ack_timeout_ns=50 * MS)
    assert learning.add((1,), 0) is not None
    assert learning.add((1,), 49 * MS) is None
    assert learning.add((1,), 50 * MS) == (2, ((1,),))


def test_an_acknowledgement_lets_it_be_sent_again():
    learning = learner(ack_timeout_ns=1000 * MS)
    list_id, _ = learning.add((1,), 0)
    learning.acknowledge(list_id + 1)  # another list's
    assert learning.add((1,), MS) is None
    learning.acknowledge(list_id)
    assert learning.add((1,), MS) == (2, ((1,),))


def test_without_ack_timeout_nothing_is_remembered():
    learning = learner()
    assert learning.add((1,), 0) is not None
    assert learning.add((1,), 0) is not None
