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
    assert report.jobs == (JobReport("a", True, True, 3, 1, 9, (2, 3)),)
    assert report.flows == (FlowReport(V4, "a", 7),)
    assert report.closed == (V6,)
    assert (report.monotonic_ns, report.full) == (10, True)
    assert len(refused) == 5


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
