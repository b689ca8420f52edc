"""Decoding what agents send."""

from ipaddress import ip_address

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from leveller_proto import agent_pb2

from controlplane.model import FiveTuple
from controlplane.reports import (
    MAX_DURATIONS,
    MAX_FLOWS,
    MAX_JOBS,
    FlowReport,
    JobReport,
    QueuePairReport,
    Timing,
    decode,
    decode_addresses,
    decode_flow,
    encode_flow,
    size,
)

HOME = frozenset({ip_address("10.0.1.1"), ip_address("fd00::1")})
V4 = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)
V6 = FiveTuple(ip_address("fd00::1"), ip_address("fd00::2"), 17, 40000, 4791, 77)


@pytest.mark.parametrize("flow", [V4, V6])
def test_flows_come_back_as_they_were(flow):
    assert decode_flow(encode_flow(flow), HOME) == flow


def changed(**fields):
    message = encode_flow(V4)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (changed(source=ip_address("10.0.9.9").packed), "10.0.9.9, which is not an address of that host"),
        (changed(source=b"\x0a\x00\x01"), "not 4 or 16 bytes"),
        (changed(destination=ip_address("fd00::2").packed), "not 4 or 16 bytes"),
        (changed(protocol=1), "protocol 1"),
        (changed(source_port=0), "ports 0, 5000"),
        (changed(destination_port=65536), "ports 40000, 65536"),
        (changed(destination_qp=1 << 24), "above 24 bits"),
        (agent_pb2.FiveTuple(), "not 4 or 16 bytes"),
    ],
)
def test_what_is_no_flow_of_the_host_is_refused(message, reason):
    with pytest.raises(ValueError, match=reason):
        decode_flow(message, HOME)


@pytest.mark.parametrize(
    ("state", "running", "hung"),
    [
        (agent_pb2.JOB_STATE_RUNNING, True, False),
        (agent_pb2.JOB_STATE_HUNG, True, True),
        (agent_pb2.JOB_STATE_ENDED, False, False),
        (agent_pb2.JOB_STATE_DIED, False, False),
    ],
)
def test_how_a_job_is_and_where_its_progress_is_read(state, running, hung):
    message = agent_pb2.JobProgress(
        job="a",
        state=state,
        source="pipe",
        log_format="x\x1b[31m",
        iterations=300,
        estimated=37,
        estimated_error=2,
    )
    (job,) = decode(agent_pb2.Report(jobs=[message]), HOME)[0].jobs
    assert (job.running, job.hung, job.source, job.log_format) == (running, hung, "pipe", "?")
    assert job.died == (state == agent_pb2.JOB_STATE_DIED)
    assert (job.iterations, job.estimated, job.estimated_error) == (300, 37, 2)


def test_a_report_keeps_its_good_parts():
    good = agent_pb2.JobProgress(
        job="a", state=agent_pb2.JOB_STATE_RUNNING, log_format="nanogpt", iterations=3, started_ns=1,
        last_iteration_ns=9, iteration_ns=[2, 3],
    )  # fmt: skip
    report, refused = decode(
        agent_pb2.Report(
            monotonic_ns=10,
            full=True,
            jobs=[good, agent_pb2.JobProgress(job="b"), agent_pb2.JobProgress(job="", state=1)],
            flows=[
                agent_pb2.FlowState(tuple=encode_flow(V4), job="a", bytes_sent=7),
                agent_pb2.FlowState(tuple=encode_flow(V4)),
                agent_pb2.FlowState(tuple=changed(protocol=1), job="a"),
            ],
            closed=[encode_flow(V6), changed(source_port=0)],
        ),
        HOME,
    )
    assert report.jobs == (JobReport("a", True, True, 3, 1, 9, (2, 3), log_format="nanogpt"),)
    assert report.flows == (FlowReport(V4, "a", 7),)
    assert report.closed == (V6,)
    assert (report.monotonic_ns, report.full) == (10, True)
    assert len(refused) == 5


def test_control_flows_are_told_apart():
    kinds = [
        agent_pb2.FLOW_KIND_UNSPECIFIED,
        agent_pb2.FLOW_KIND_COLLECTIVE,
        agent_pb2.FLOW_KIND_CONTROL,
    ]
    flows = [agent_pb2.FlowState(tuple=encode_flow(V4), job="a", kind=kind) for kind in kinds]
    assert [flow.control for flow in decode(agent_pb2.Report(flows=flows), HOME)[0].flows] == [
        False,
        False,
        True,
    ]


TIMING = agent_pb2.Timing(
    iteration_ns=10**9, spread_ns=10**6, iterations=20, confidence=0.5, communication_ns=2 * 10**8, slack_ns=0
)


def test_timing_of_an_iteration():
    def decoded(**fields):
        message = agent_pb2.Timing()
        message.CopyFrom(TIMING)
        for name, value in fields.items():
            setattr(message, name, value)
        job = agent_pb2.JobProgress(job="a", state=agent_pb2.JOB_STATE_RUNNING, timing=message)
        return decode(agent_pb2.Report(jobs=[job]), HOME)[0].jobs[0].timing

    assert decoded() == Timing(10**9, 10**6, 20, 0.5, 2 * 10**8, 0, False)
    assert decoded(slack_confirmed=True).slack_confirmed
    job = agent_pb2.JobProgress(job="a", state=agent_pb2.JOB_STATE_RUNNING, brief_flows=3)
    job.communicators.add(id=7)
    told = decode(agent_pb2.Report(jobs=[job]), HOME)[0].jobs[0]
    assert (told.brief_flows, told.communicators, told.timing) == (3, 1, None)
    for bad in (
        {"iteration_ns": 0},
        {"iteration_ns": 10**18},
        {"confidence": 1.5},
        {"confidence": float("nan")},
        {"communication_ns": 10**9 + 1},
        {"slack_ns": 10**9 + 1},
    ):
        assert decoded(**bad) is None
    unmeasured = agent_pb2.Timing(iteration_ns=5, confidence=1)
    job = agent_pb2.JobProgress(job="a", state=agent_pb2.JOB_STATE_RUNNING, timing=unmeasured)
    assert decode(agent_pb2.Report(jobs=[job]), HOME)[0].jobs[0].timing == Timing(
        5, 0, 0, 1.0, None, None, False
    )


def test_queue_pairs():
    def pair(**fields):
        given = {"source": V4.source.packed, "job": "a", "local_qp": 3, "remote_qp": 8, "source_port": 50_000}
        return agent_pb2.QueuePair(**given | fields)

    def decoded(*pairs):
        return decode(agent_pb2.Report(queue_pairs=agent_pb2.QueuePairs(pairs=pairs)), HOME)

    report, refused = decoded(pair(communicator=7))
    assert (report.queue_pairs, refused) == ((QueuePairReport(V4.source, "a", 3, 8, 50_000, 7),), [])
    for bad, reason in (
        ({"source": b"\x0a\0\0\x63"}, "not an address of that host"),
        ({"source": b"abc"}, "not an address of that host"),
        ({"local_qp": 0}, "numbers"),
        ({"remote_qp": 1 << 24}, "numbers"),
        ({"source_port": 70_000}, "port 70000"),
        ({"job": ""}, "no job id"),
    ):
        report, refused = decoded(pair(**bad), pair())
        assert len(report.queue_pairs) == 1
        assert len(refused) == 1
        assert reason in refused[0]
    # Not told is not none; but a full report tells of all there are.
    assert decode(agent_pb2.Report(), HOME)[0].queue_pairs is None
    assert decode(agent_pb2.Report(full=True), HOME)[0].queue_pairs == ()
    assert decoded()[0].queue_pairs == ()
    many = [pair(local_qp=number % 1000 + 1) for number in range(MAX_FLOWS + 5)]
    report, refused = decoded(*many)
    assert (len(report.queue_pairs), refused) == (
        MAX_FLOWS,
        ["5 more jobs or flows than one host may report"],
    )


def test_a_report_is_bounded():
    job = agent_pb2.JobProgress(job="a", state=agent_pb2.JOB_STATE_RUNNING)
    report, refused = decode(agent_pb2.Report(jobs=[job] * (MAX_JOBS + 3)), HOME)
    assert (len(report.jobs), refused) == (MAX_JOBS, ["3 more jobs or flows than one host may report"])
    job.iteration_ns.extend([10**9] * (MAX_DURATIONS + 1))
    report, refused = decode(agent_pb2.Report(jobs=[job]), HOME)
    assert (report.jobs, refused) == ((), ["job 'a': more than 4096 durations in one report"])


def test_a_bomb_of_empty_flows_is_one_reason():
    bomb = agent_pb2.Report.FromString(b"\x2a\x00" * 100_000)
    assert size(bomb) == 100_000
    _, refused = decode(bomb, HOME)
    assert refused[-1] == f"{100_000 - MAX_FLOWS} more jobs or flows than one host may report"
    assert len(refused) == MAX_FLOWS + 1


@given(st.binary(max_size=200))
def test_any_report_that_parses_is_decoded_or_refused(data):
    message = agent_pb2.Report()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return
    decode(message, HOME)


def test_addresses_of_a_hello():
    assert decode_addresses(["10.0.1.1", "fd00::1"]) == HOME
    for bad, reason in (
        ([], "no address"),
        (["10.0.1"], "IPv4 or IPv6"),
        (["0.0.0.0"], "not the address"),
        (["224.0.0.1"], "not the address"),
        (["fe80::1%\x1b[2J"], r"'fe80::1%\\x1b\[2J' is not"),
        (["1" * 10**6], "^'1{45}' is not"),
        (["10.0.1.1"] * 65, "more addresses than 64"),
    ):
        with pytest.raises(ValueError, match=reason):
            decode_addresses(bad)
