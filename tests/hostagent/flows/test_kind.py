import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.flows.flow import HALF_LIFE_NS, Flow, FlowKind
from hostagent.flows.kind import HYSTERESIS, MIN_BYTES, SHARE, is_service, kinds

GB = 10**9


def flow(port=40_000, peer=2, to=50_000):
    return FiveTuple(bytes([10, 0, 0, 1]), bytes([10, 0, 0, peer]), TCP, port, to)


def told(volumes, before=None, shared=frozenset()):
    flows = {}
    for key, total in volumes.items():
        kind = (before or {}).get(key, FlowKind.CONTROL)
        flows[key] = Flow("job1", key.source_port, 0, kind=kind, service=is_service(key))
        flows[key].carry(total, 0)
    return {key: flow.kind for key, flow in flows.items()} | dict(kinds(flows, shared))


def test_a_ring_and_its_rendezvous_store():
    ring, back, store = flow(1), flow(2, peer=3), flow(3, to=29_500)
    assert told({ring: GB, back: GB - 7, store: 40_000}) == {
        ring: FlowKind.COLLECTIVE,
        back: FlowKind.COLLECTIVE,
        store: FlowKind.CONTROL,
    }


def test_a_chatty_store_is_told_by_its_share():
    ring, store = flow(1), flow(3, to=29_500)
    assert told({ring: 100 * GB, store: int(100 * GB * SHARE) - 1})[store] is FlowKind.CONTROL
    assert told({ring: 100 * GB, store: int(100 * GB * SHARE) + 1})[store] is FlowKind.COLLECTIVE


def test_too_little_to_tell_is_control():
    assert told({flow(): MIN_BYTES - 1}) == {flow(): FlowKind.CONTROL}
    assert told({flow(): MIN_BYTES}) == {flow(): FlowKind.COLLECTIVE}


@pytest.mark.parametrize("port", [22, 443, 988, 2049, 3260, 4420, 6789])
def test_services_are_control_however_much_they_carry(port):
    storage, ring = flow(to=port), flow(2)
    assert is_service(storage)
    assert is_service(flow(port))
    assert told({storage: 50 * GB, ring: GB}) == {
        storage: FlowKind.CONTROL,
        ring: FlowKind.COLLECTIVE,  # the busiest of those that could be collectives
    }


def test_what_two_jobs_are_connected_to_is_a_service():
    objects = flow(to=9000)
    shared = frozenset({(objects.destination, 9000)})
    assert told({objects: 50 * GB, flow(2): GB}, shared=shared)[objects] is FlowKind.CONTROL
    assert told({objects: 50 * GB, flow(2): GB})[objects] is FlowKind.COLLECTIVE


def test_a_connection_that_was_set_up_again_counts():
    # The new one soon carries as much as the old one did of late.
    old, new, now = Flow("job1", 1, 0), Flow("job1", 2, 0), 20 * HALF_LIFE_NS
    old.carry(100 * GB, 0)
    old.carry(100 * GB + 1000, now)
    new.carry(2 * MIN_BYTES, now)
    assert dict(kinds({flow(1): old, flow(2): new}, frozenset())) == dict.fromkeys(
        (flow(1), flow(2)), FlowKind.COLLECTIVE
    )
    old.kind = new.kind = FlowKind.COLLECTIVE
    for later in range(10):  # and what the old one did fades away
        new.carry(new.carried + 10**6, now + later * HALF_LIFE_NS)
    assert dict(kinds({flow(1): old, flow(2): new}, frozenset())) == {flow(1): FlowKind.CONTROL}


def test_what_a_communicator_is_known_of_is_a_collective():
    named = Flow("job1", 1, 0, service=True, communicator=7)
    assert list(kinds({flow(): named}, frozenset())) == [(flow(), FlowKind.COLLECTIVE)]


def test_a_collective_stays_one_until_it_is_clearly_none():
    before = {flow(2): FlowKind.COLLECTIVE}
    little = int(100 * GB * SHARE / HYSTERESIS)
    assert told({flow(1): 100 * GB, flow(2): little + 1}, before)[flow(2)] is FlowKind.COLLECTIVE
    assert told({flow(1): 100 * GB, flow(2): little - 1}, before)[flow(2)] is FlowKind.CONTROL


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=8))
def test_the_busiest_is_a_collective_whenever_anything_is(totals):
    volumes = {flow(port): total for port, total in enumerate(totals, 1000)}
    found = told(volumes)
    busiest = max(volumes, key=lambda key: volumes[key])
    assert (found[busiest] is FlowKind.COLLECTIVE) == (max(totals) >= MIN_BYTES)
    for key, kind in found.items():
        if kind is FlowKind.COLLECTIVE:
            assert volumes[key] >= max(MIN_BYTES, SHARE * max(totals) * 0.999)
