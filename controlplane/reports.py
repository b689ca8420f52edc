"""What an agent says, as plain values: decoded from the wire and checked for form.

Form only: whether a number is believable is decided in ``progress`` and ``flows``, which know what came
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from typing import NamedTuple

from leveller_proto import agent_pb2

from controlplane.model import FiveTuple

MAX_JOBS = 256
"""Jobs that one host may report; what is beyond is refused, so that no agent can fill the memory."""
MAX_FLOWS = 16384
"""Flows that one host may report."""
MAX_DURATIONS = 4096
"""Durations that one report may give of a job's iterations."""
MAX_ADDRESSES = 64
"""Addresses that one host may speak for."""
MAX_ID = 256

_LONGEST_ADDRESS = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

HostAddress = IPv4Address | IPv6Address


class JobReport(NamedTuple):
    """One job as one host sees it; times are nanoseconds of the agent's clock."""

    job: str
    running: bool
    has_source: bool
    """The host has a log of the job to count iterations in."""
    iterations: int
    started_ns: int
    last_iteration_ns: int
    iteration_ns: tuple[int, ...]


class FlowReport(NamedTuple):
    """One flow that the host sends."""

    flow: FiveTuple
    job: str
    bytes_sent: int


@dataclass(frozen=True, slots=True)
class HostReport:
    """A whole report; ``full`` means that what is not in it is gone."""

    monotonic_ns: int
    full: bool
    jobs: tuple[JobReport, ...] = ()
    flows: tuple[FlowReport, ...] = ()
    closed: tuple[FiveTuple, ...] = ()


def decode_addresses(texts: Iterable[str]) -> frozenset[HostAddress]:
    """Read the addresses of a Hello. ValueError: one is no unicast address, or there are none or too many."""
    named = list(islice(texts, MAX_ADDRESSES + 1))
    if not named:
        raise ValueError("no address: an agent must name the addresses that it speaks for")
    if len(named) > MAX_ADDRESSES:
        raise ValueError(f"more addresses than {MAX_ADDRESSES}")
    for text in named:
        # Whatever stands behind a % is a zone, which no packet carries, and Python takes any text for one.
        if "%" in text or len(text) > _LONGEST_ADDRESS:
            raise ValueError(f"{text[:_LONGEST_ADDRESS]!r} is not an address in a packet")
    addresses = frozenset(map(ip_address, named))
    for address in addresses:
        if address.is_multicast or address.is_unspecified:
            raise ValueError(f"{address} is not the address of a host")
    return addresses


def size(report: agent_pb2.Report) -> int:
    """Count the things in a report: what it costs to take it in grows with them."""
    return (
        len(report.jobs)
        + len(report.flows)
        + len(report.closed)
        + sum(len(job.iteration_ns) for job in report.jobs)
    )


def decode(report: agent_pb2.Report, addresses: Set[HostAddress]) -> tuple[HostReport, list[str]]:
    """Decode a report of the host that owns ``addresses``; also return why any part of it was left out."""
    refused: list[str] = []
    jobs: list[JobReport] = []
    for job in report.jobs[:MAX_JOBS]:
        if not _is_id(job.job) or job.state == agent_pb2.JOB_STATE_UNSPECIFIED:
            refused.append(f"job {job.job[:32]!r} in state {job.state}: no id or no state")
            continue
        if len(job.iteration_ns) > MAX_DURATIONS:
            refused.append(f"job {job.job!r}: more than {MAX_DURATIONS} durations in one report")
            continue
        jobs.append(
            JobReport(
                job=job.job,
                running=job.state == agent_pb2.JOB_STATE_RUNNING,
                has_source=bool(job.log_format),
                iterations=job.iterations,
                started_ns=job.started_ns,
                last_iteration_ns=job.last_iteration_ns,
                iteration_ns=tuple(job.iteration_ns),
            )
        )
    flows: list[FlowReport] = []
    for state in report.flows[:MAX_FLOWS]:
        try:
            flow = decode_flow(state.tuple, addresses)
        except ValueError as error:
            refused.append(str(error))
            continue
        if _is_id(state.job):
            flows.append(FlowReport(flow, state.job, state.bytes_sent))
        else:
            refused.append(f"flow {flow}: no job id")
    closed: list[FiveTuple] = []
    for message in report.closed[:MAX_FLOWS]:
        try:
            closed.append(decode_flow(message, addresses))
        except ValueError as error:
            refused.append(str(error))
    over = (
        max(len(report.jobs) - MAX_JOBS, 0)
        + max(len(report.flows) - MAX_FLOWS, 0)
        + max(len(report.closed) - MAX_FLOWS, 0)
    )
    if over:
        refused.append(f"{over} more jobs or flows than one host may report")
    return HostReport(report.monotonic_ns, report.full, tuple(jobs), tuple(flows), tuple(closed)), refused


def decode_flow(message: agent_pb2.FiveTuple, addresses: Set[HostAddress]) -> FiveTuple:
    """Decode a 5-tuple. ValueError: it is none, or its source is not one of ``addresses``."""
    if len(message.source) != len(message.destination) or len(message.source) not in (4, 16):
        raise ValueError("a flow's addresses are not 4 or 16 bytes each")
    source, destination = ip_address(message.source), ip_address(message.destination)
    if source not in addresses:
        raise ValueError(f"a flow from {source}, which is not an address of that host")
    if message.protocol not in (6, 17):
        raise ValueError(f"a flow from {source} of protocol {message.protocol}, neither TCP nor UDP")
    if not (0 < message.source_port < 65536 and 0 < message.destination_port < 65536):
        raise ValueError(f"a flow from {source} with ports {message.source_port}, {message.destination_port}")
    if message.destination_qp >= 1 << 24:
        raise ValueError(f"a flow from {source} with queue pair {message.destination_qp}, above 24 bits")
    return FiveTuple(
        source,
        destination,
        message.protocol,
        message.source_port,
        message.destination_port,
        message.destination_qp,
    )


def encode_flow(flow: FiveTuple) -> agent_pb2.FiveTuple:
    """Encode a 5-tuple for the wire."""
    return agent_pb2.FiveTuple(
        source=flow.source.packed,
        destination=flow.destination.packed,
        protocol=flow.protocol,
        source_port=flow.source_port,
        destination_port=flow.destination_port,
        destination_qp=flow.destination_qp,
    )


def _is_id(text: str) -> bool:
    return 0 < len(text) <= MAX_ID and text.isprintable()
