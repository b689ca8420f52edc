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
MAX_WORD = 32
"""Longest name of a log's format or of where progress is read."""
MAX_ITERATION_NS = 24 * 3600 * 10**9
"""No iteration takes longer than a day."""

_LONGEST_ADDRESS = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

HostAddress = IPv4Address | IPv6Address


class Timing(NamedTuple):
    """What an iteration of a job is made of, as one host measured it; None: it could not."""

    iteration_ns: int
    spread_ns: int
    """One standard deviation of ``iteration_ns``, the median of ``iterations``."""
    iterations: int
    confidence: float
    """From 0 to 1: how far to trust ``iteration_ns``."""
    communication_ns: int | None = None
    """While the job's flows send."""
    slack_ns: int | None = None
    """How long a communication can wait without making the iteration longer."""
    slack_confirmed: bool = False
    """False: the slack is at least that."""
    bursts: int = 0
    """In an iteration; 0: unknown."""


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
    timing: Timing | None = None
    log_format: str = ""
    """Name of the log's format."""
    source: str = ""
    """Where progress is read; ``none``: there is nothing to read; empty: not told."""
    estimated: int = 0
    """Iterations believed completed since the log's last line, on top of ``iterations``."""
    estimated_error: int = 0
    died: bool = False
    """It does not run, and was in the middle."""
    hung: bool = False
    """It runs, and has completed no iteration for many times an iteration's time."""
    brief_flows: int = 0
    """Connections to the job's peers that were gone before the host listed them."""
    communicators: int = 0
    """NCCL's, where the job loads the profiler plugin."""
    world_size: int = 0
    """Ranks in the whole job; 0: not known."""


class FlowReport(NamedTuple):
    """One flow that the host sends."""

    flow: FiveTuple
    job: str
    bytes_sent: int
    control: bool = False
    """It is no collective: a rendezvous, storage, ..."""


class QueuePairReport(NamedTuple):
    """One end of an RDMA connection."""

    source: HostAddress
    job: str
    local: int
    remote: int
    source_port: int
    """UDP."""
    communicator: int = 0
    """NCCL's; 0 where it is not known."""


@dataclass(frozen=True, slots=True)
class HostReport:
    """A whole report; ``full`` means that what is not in it is gone."""

    monotonic_ns: int
    full: bool
    jobs: tuple[JobReport, ...] = ()
    flows: tuple[FlowReport, ...] = ()
    closed: tuple[FiveTuple, ...] = ()
    queue_pairs: tuple[QueuePairReport, ...] | None = None
    """All there are; None: the same as before."""


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
        + len(report.queue_pairs.pairs)
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
                running=job.state in (agent_pb2.JOB_STATE_RUNNING, agent_pb2.JOB_STATE_HUNG),
                has_source=bool(job.log_format),
                iterations=job.iterations,
                started_ns=job.started_ns,
                last_iteration_ns=job.last_iteration_ns,
                iteration_ns=tuple(job.iteration_ns),
                timing=_decode_timing(job.timing) if job.HasField("timing") else None,
                brief_flows=job.brief_flows,
                communicators=len(job.communicators),
                world_size=job.world_size,
                log_format=_word(job.log_format),
                source=_word(job.source),
                estimated=job.estimated,
                estimated_error=job.estimated_error,
                died=job.state == agent_pb2.JOB_STATE_DIED,
                hung=job.state == agent_pb2.JOB_STATE_HUNG,
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
            control = state.kind == agent_pb2.FLOW_KIND_CONTROL
            flows.append(FlowReport(flow, state.job, state.bytes_sent, control))
        else:
            refused.append(f"flow {flow}: no job id")
    closed: list[FiveTuple] = []
    for message in report.closed[:MAX_FLOWS]:
        try:
            closed.append(decode_flow(message, addresses))
        except ValueError as error:
            refused.append(str(error))
    queue_pairs: list[QueuePairReport] = []
    for pair in report.queue_pairs.pairs[:MAX_FLOWS]:
        try:
            queue_pairs.append(_decode_queue_pair(pair, addresses))
        except ValueError as error:
            refused.append(str(error))
    over = (
        max(len(report.queue_pairs.pairs) - MAX_FLOWS, 0)
        + max(len(report.jobs) - MAX_JOBS, 0)
        + max(len(report.flows) - MAX_FLOWS, 0)
        + max(len(report.closed) - MAX_FLOWS, 0)
    )
    if over:
        refused.append(f"{over} more jobs or flows than one host may report")
    told = report.full or report.HasField("queue_pairs")
    return (
        HostReport(
            report.monotonic_ns,
            report.full,
            tuple(jobs),
            tuple(flows),
            tuple(closed),
            tuple(queue_pairs) if told else None,
        ),
        refused,
    )


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


def _word(text: str) -> str:
    """Return a name as it may be shown; ``?`` where it is none."""
    return text if len(text) <= MAX_WORD and text.isprintable() else "?"


def _decode_queue_pair(message: agent_pb2.QueuePair, addresses: Set[HostAddress]) -> QueuePairReport:
    """Decode a queue pair. ValueError: it is none, or its source is not one of ``addresses``."""
    if len(message.source) not in (4, 16) or (source := ip_address(message.source)) not in addresses:
        raise ValueError("a queue pair at what is not an address of that host")
    if not (0 < message.local_qp < 1 << 24 and 0 < message.remote_qp < 1 << 24):
        raise ValueError(f"a queue pair at {source} with numbers that cannot be")
    if not 0 < message.source_port < 65536:
        raise ValueError(f"a queue pair at {source} with port {message.source_port}")
    if not _is_id(message.job):
        raise ValueError(f"a queue pair at {source}: no job id")
    return QueuePairReport(
        source, message.job, message.local_qp, message.remote_qp, message.source_port, message.communicator
    )


def _decode_timing(message: agent_pb2.Timing) -> Timing | None:
    """Decode a timing; None where its numbers cannot be true."""
    communication_ns = message.communication_ns if message.HasField("communication_ns") else None
    slack_ns = message.slack_ns if message.HasField("slack_ns") else None
    longest_ns = max(communication_ns or 0, slack_ns or 0)
    if not (0 < message.iteration_ns <= MAX_ITERATION_NS and 0 <= message.confidence <= 1):
        return None
    if longest_ns > message.iteration_ns:
        return None
    return Timing(
        message.iteration_ns,
        message.spread_ns,
        message.iterations,
        message.confidence,
        communication_ns,
        slack_ns,
        message.slack_confirmed,
        message.bursts,
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
