import pytest
from hypothesis import given
from hypothesis import strategies as st
from leveller_proto import agent_pb2 as pb

from hostagent import state as module
from hostagent.flows.connection import FiveTuple
from hostagent.flows.flow import Flow, FlowKind
from hostagent.flows.rdma import JobQueuePair
from hostagent.flows.tracker import Brief, Changes
from hostagent.jobs.job import TrackedJob
from hostagent.nccl.communicators import JobCommunicator
from hostagent.state import HostState, tuple_message
from hostagent.timing import Timing

TIMING = Timing(1000, 10, 20, 0.5, 300, 0)


def flow_key(port):
    return FiveTuple(b"\x0a\0\x01\1", b"\x0a\0\2\1", 6, port, 5001)


@pytest.fixture
def urgent():
    return []


@pytest.fixture
def state(urgent):
    return HostState(lambda: urgent.append(1))


def job(id_="job1", iterations=0, started_ns=5):
    tracked = TrackedJob(id_, started_ns, world_size=4, local_ranks=2)
    tracked.counter.iterations = iterations
    tracked.counter.last_ns = 1000 * iterations
    return tracked


def test_job_as_it_is(state, urgent):
    state.job_changed(job(iterations=3), [10, 20, 30])
    report = state.report(None, 7, 99)
    assert (report.sequence, report.monotonic_ns, report.full) == (7, 99, True)
    assert list(report.jobs) == [
        pb.JobProgress(
            job="job1",
            state=pb.JOB_STATE_RUNNING,
            iterations=3,
            started_ns=5,
            last_iteration_ns=3000,
            world_size=4,
            local_ranks=2,
            source="none",
        )
    ]
    assert len(urgent) == 1


def test_only_what_changed_and_durations_once(state):
    state.job_changed(job("a", 1), [10])
    state.job_changed(job("b", 1), [10])
    since = state.version
    assert not state.report(since, 1, 0).jobs
    state.job_changed(job("a", 3), [11, 12])
    (entry,) = state.report(since, 1, 0).jobs
    assert (entry.job, entry.iterations, list(entry.iteration_ns)) == ("a", 3, [11, 12])
    since = state.version
    state.job_changed(job("a", 4), [13])
    (entry,) = state.report(since, 2, 0).jobs
    assert list(entry.iteration_ns) == [13]


def test_nothing_new_is_no_change(state, urgent):
    state.job_changed(job())
    version = state.version
    state.job_changed(job())
    assert state.version == version
    assert len(urgent) == 1


def test_a_slow_controller_gets_everything_merged(state):
    state.job_changed(job())
    since = state.version
    for n in range(1, 101):
        state.job_changed(job(iterations=n), [n])
    (entry,) = state.report(since, 1, 0).jobs
    assert entry.iterations == 100
    assert list(entry.iteration_ns) == list(range(1, 101))


def test_durations_that_wait_are_bounded(state):
    state.job_changed(job())
    for n in range(1, module.KEEP_DURATIONS + 101):
        state.job_changed(job(iterations=n), [n])
    (entry,) = state.report(0, 1, 0).jobs
    assert list(entry.iteration_ns) == list(range(101, module.KEEP_DURATIONS + 101))


def test_ended_job(state):
    state.job_changed(job(iterations=3))
    since = state.version
    state.job_changed(job(iterations=3), ended=True)
    (entry,) = state.report(since, 1, 0).jobs
    assert (entry.state, entry.iterations) == (pb.JOB_STATE_ENDED, 3)
    assert not state.report(None, 1, 0).jobs


def test_job_that_starts_again_has_no_old_durations(state):
    state.job_changed(job(iterations=3), [1, 2, 3])
    state.job_changed(job(iterations=3), ended=True)
    state.job_changed(job(iterations=1, started_ns=77), [9])
    (entry,) = state.report(0, 1, 0).jobs
    assert (entry.started_ns, list(entry.iteration_ns)) == (77, [9])


def test_flows(state, urgent):
    flows = {flow_key(1): Flow("job1", 11, 100, 0), flow_key(2): Flow("job1", 12, 100, 5)}
    state.flows_changed(Changes(opened=list(flows)), flows)
    assert len(urgent) == 1
    since = state.version
    flows[flow_key(2)].bytes_sent = 500
    state.flows_changed(Changes(changed=[flow_key(2)]), flows)
    assert len(urgent) == 1  # bytes can wait for the next report
    report = state.report(since, 1, 0)
    assert list(report.flows) == [
        pb.FlowState(
            tuple=tuple_message(flow_key(2)),
            job="job1",
            opened_ns=100,
            bytes_sent=500,
            kind=pb.FLOW_KIND_CONTROL,
        )
    ]
    since = state.version
    del flows[flow_key(1)]
    state.flows_changed(Changes(closed=[flow_key(1)]), flows)
    assert len(urgent) == 2
    report = state.report(since, 2, 0)
    assert (list(report.flows), list(report.closed)) == ([], [tuple_message(flow_key(1))])
    full = state.report(None, 0, 0)
    assert ([flow.bytes_sent for flow in full.flows], list(full.closed)) == ([500], [])


def test_five_tuple_that_opens_again_is_not_closed(state):
    flows = {flow_key(1): Flow("a", 1, 100, 0)}
    state.flows_changed(Changes(opened=[flow_key(1)]), flows)
    since = state.version
    state.flows_changed(Changes(closed=[flow_key(1)]), {})
    flows[flow_key(1)] = Flow("b", 2, 200, 0)
    state.flows_changed(Changes(opened=[flow_key(1)]), flows)
    report = state.report(since, 1, 0)
    assert [(flow.job, flow.opened_ns) for flow in report.flows] == [("b", 200)]
    assert not report.closed


def test_what_is_measured_goes_along_with_the_job(state, urgent):
    state.timing_changed("job1", TIMING)  # of no job (any more)
    assert state.version == 0
    state.job_changed(job(iterations=3))
    since = state.version
    state.timing_changed("job1", TIMING)
    state.brief_changed("job1", Brief(2, 700))
    state.communicators_changed("job1", {77: JobCommunicator("world", 8, 2, {1, 0}, {0: 5, 1: 6})})
    assert len(urgent) == 1  # it can wait for the next report
    (entry,) = state.report(since, 1, 0).jobs
    assert entry.iterations == 3
    assert entry.timing == pb.Timing(
        iteration_ns=1000, spread_ns=10, iterations=20, confidence=0.5, communication_ns=300, slack_ns=0
    )
    assert (entry.brief_flows, entry.brief_bytes) == (2, 700)
    assert list(entry.communicators) == [
        pb.Communicator(id=77, name="world", ranks=8, nodes=2, local_ranks=[0, 1], collectives=6)
    ]
    # Again the same is no change, and it stays when the job gets on.
    since = state.version
    state.timing_changed("job1", TIMING)
    state.brief_changed("job1", Brief(2, 700))
    assert state.version == since
    state.job_changed(job(iterations=4))
    assert state.report(since, 2, 0).jobs[0].timing.iteration_ns == 1000
    # A job that starts anew under its name has not inherited it.
    state.job_changed(job(iterations=0, started_ns=77))
    assert not state.report(None, 3, 0).jobs[0].HasField("timing")


def test_timing_that_could_not_be_measured_is_not_there(state):
    state.job_changed(job())
    state.timing_changed("job1", Timing(1000, 10, 20, 0.5))
    timing = state.report(None, 1, 0).jobs[0].timing
    assert timing.iteration_ns == 1000
    assert not timing.HasField("communication_ns")
    assert not timing.HasField("slack_ns")


def test_queue_pairs_are_told_when_they_change_and_in_full_reports(state, urgent):
    assert not state.report(None, 0, 0).HasField("queue_pairs")
    state.queue_pairs_changed([JobQueuePair(b"\x0a\0\x01\1", "job1", 3, 8, 7)])
    assert len(urgent) == 1
    expected = pb.QueuePair(
        source=b"\x0a\0\x01\1", job="job1", local_qp=3, remote_qp=8, source_port=0xC018, communicator=7
    )
    assert list(state.report(0, 1, 0).queue_pairs.pairs) == [expected]
    assert list(state.report(None, 1, 0).queue_pairs.pairs) == [expected]
    since = state.version
    assert not state.report(since, 2, 0).HasField("queue_pairs")
    state.queue_pairs_changed([])
    assert state.report(since, 3, 0).HasField("queue_pairs")
    assert not state.report(since, 3, 0).queue_pairs.pairs


def test_a_flows_communicator(state):
    flows = {flow_key(1): Flow("job1", 1, 100, 0, kind=FlowKind.COLLECTIVE, communicator=77)}
    state.flows_changed(Changes(opened=list(flows)), flows)
    (told,) = state.report(None, 1, 0).flows
    assert (told.kind, told.communicator) == (pb.FLOW_KIND_COLLECTIVE, 77)


def test_every_change_is_noted_urgent_or_not():
    noted = []
    state = HostState(lambda: noted.append("urgent"), lambda: noted.append("soon"))
    flows = {flow_key(1): Flow("job1", 1, 100, 0)}
    state.flows_changed(Changes(opened=list(flows)), flows)
    state.flows_changed(Changes(changed=list(flows)), flows)
    state.flows_changed(Changes(), flows)
    assert noted == ["urgent", "soon"]


def test_no_change_no_version(state):
    state.flows_changed(Changes(), {})
    assert state.version == 0


def test_who_was_away_too_long_gets_a_full_report(state, monkeypatch):
    monkeypatch.setattr(module, "KEEP_CLOSED", 10)
    flows = {flow_key(port): Flow("a", port, 100, 0) for port in range(30)}
    state.flows_changed(Changes(opened=list(flows)), flows)
    state.job_changed(job(iterations=1), [5])
    since = state.version
    for port in range(20):
        del flows[flow_key(port)]
        state.flows_changed(Changes(closed=[flow_key(port)]), flows)
    report = state.report(since, 1, 0)
    assert report.full
    assert len(report.flows) == 10
    assert [list(entry.iteration_ns) for entry in report.jobs] == [[]]
    recent = state.report(state.version - 5, 1, 0)
    assert not recent.full
    assert len(recent.closed) == 5


def test_ended_jobs_that_are_remembered_are_bounded(state, monkeypatch):
    monkeypatch.setattr(module, "KEEP_CLOSED", 3)
    for n in range(10):
        state.job_changed(job(f"job{n}"))
        state.job_changed(job(f"job{n}"), ended=True)
    assert len(state._jobs) == 3
    assert state.report(0, 1, 0).full


STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "change", "close", "report"]), st.integers(0, 5)), max_size=60
)


@given(STEPS)
def test_reports_add_up_to_what_is_there(steps):
    """Who applies every Report, however rarely it reads, knows exactly the flows that are open."""
    state, flows, known, since = HostState(lambda: None), {}, {}, None
    for clock, (step, port) in enumerate([*steps, ("report", 0)]):
        key = flow_key(port)
        if step == "open" and key not in flows:
            flows[key] = Flow("a", clock, clock, 0)
            state.flows_changed(Changes(opened=[key]), flows)
        elif step == "change" and key in flows:
            flows[key].bytes_sent += 1
            state.flows_changed(Changes(changed=[key]), flows)
        elif step == "close" and flows.pop(key, None):
            state.flows_changed(Changes(closed=[key]), flows)
        elif step == "report":
            report = state.report(since, 0, 0)
            since = state.version
            if report.full:
                known = {}
            for closed in report.closed:
                known.pop(closed.source_port, None)
            known |= {flow.tuple.source_port: flow.bytes_sent for flow in report.flows}
    assert known == {key.source_port: flow.bytes_sent for key, flow in flows.items()}
