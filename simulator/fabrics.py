"""The kinds of a scenario's ``[fabric]`` (docs/simulator.md)."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from leveller.config import Section, kinds
from leveller.errors import UserError
from simulator.bounds import Gbps
from simulator.fabric import Fabric, Sizes, clos, parallel
from simulator.traces.rows import Report, rows

Small = Annotated[int, Field(ge=1, le=1024)]

MAX_LINKS = 2_000_000
"""Fabrics of more links than this are taken for a slip of the finger."""


class LinkFabric(Section):
    """``links`` separate links (S1:1, S1:2 ...) of ``rate_gbps`` each, without hosts."""

    kind: Literal["link"]
    rate_gbps: Gbps = 100.0
    links: Small = 1

    def build(self, folder: Path) -> Fabric:  # noqa: ARG002
        """Make the fabric."""
        return parallel(self.links, self.rate_gbps)


class _ClosFabric(Section):
    gpus_per_host: Small = 8
    nics_per_host: Small = 1
    nic_gbps: Gbps = 100.0
    uplink_gbps: Gbps = 100.0

    def sizes(self, aggs: int, cores: int, core_gbps: float) -> Sizes:
        return Sizes(
            aggs, cores, self.gpus_per_host, self.nics_per_host, self.nic_gbps, self.uplink_gbps, core_gbps
        )


def _not_too_large(cables: int) -> None:
    if 2 * cables > MAX_LINKS:
        raise ValueError(f"it has {2 * cables} links, of switches and hosts: keep to {MAX_LINKS}")


class LeafSpineFabric(_ClosFabric):
    """Hosts h1, h2 ... on ``leaves`` leaves; a leaf has one link of ``uplink_gbps`` to every spine."""

    kind: Literal["leaf-spine"]
    leaves: Small
    spines: Small
    hosts_per_leaf: Small

    @model_validator(mode="after")
    def _size(self) -> LeafSpineFabric:
        _not_too_large(self.leaves * (self.spines + self.hosts_per_leaf * self.nics_per_host))
        return self

    def build(self, folder: Path) -> Fabric:  # noqa: ARG002
        """Make the fabric."""
        pods = _named_hosts(1, self.leaves, self.hosts_per_leaf)
        return clos(pods, self.sizes(self.spines, 0, self.uplink_gbps), agg_name="spine")


class ThreeLayerFabric(_ClosFabric):
    """A three-layer Clos; ``core_gbps`` is the rate of an aggregation switch's link to a core."""

    kind: Literal["clos"]
    pods: Small
    leaves_per_pod: Small
    hosts_per_leaf: Small
    aggs_per_pod: Small
    cores_per_agg: Small
    core_gbps: Gbps = 100.0

    @model_validator(mode="after")
    def _size(self) -> ThreeLayerFabric:
        in_leaves = self.leaves_per_pod * (self.aggs_per_pod + self.hosts_per_leaf * self.nics_per_host)
        _not_too_large(self.pods * (in_leaves + self.aggs_per_pod * self.cores_per_agg))
        return self

    def build(self, folder: Path) -> Fabric:  # noqa: ARG002
        """Make the fabric."""
        pods = _named_hosts(self.pods, self.leaves_per_pod, self.hosts_per_leaf)
        return clos(pods, self.sizes(self.aggs_per_pod, self.cores_per_agg, self.core_gbps))


class LingjunFabric(_ClosFabric):
    """Alibaba's Lingjun 2023 cluster from its topo.csv (ip, DSW, PSW, ASW): pods by PSW, leaves by ASW.

    The trace has no link counts or speeds: those here are assumptions.
    """

    kind: Literal["lingjun"]
    topo: Path
    aggs_per_pod: Small = 8
    cores_per_agg: Small = 8
    core_gbps: Gbps = 100.0

    def build(self, folder: Path) -> Fabric:
        """Make the fabric; ``topo`` is relative to ``folder``. Raises UserError where it is no such file."""
        path = folder / self.topo
        try:
            pods = _topology(path)
        except UserError as error:
            raise UserError(f"fabric.topo = {error.what}", "give Lingjun's topo.csv") from None
        return clos(pods, self.sizes(self.aggs_per_pod, self.cores_per_agg, self.core_gbps))


@lru_cache(maxsize=4)
def _topology(path: Path) -> list[list[list[str]]]:
    """Return the hosts by pod and leaf. Rows that cannot be used are logged, once. Raises UserError."""
    report = Report(path)
    leaves: dict[tuple[str, str], list[str]] = {}
    seen: set[str] = set()
    for line, row in rows(report, ("ip", "PSW", "ASW")):
        host, pod, leaf = (row[column].strip() for column in ("ip", "PSW", "ASW"))
        if not (host and pod and leaf):
            report.skip(line, "without ip, PSW or ASW")
        elif host in seen:
            report.skip(line, "repeat an ip")
        else:
            seen.add(host)
            leaves.setdefault((pod, leaf), []).append(host)
    if report.skipped:
        logging.getLogger(__name__).warning("%s", report)
    if not leaves:
        raise UserError(f"{path} has no host", "give another file")
    pods: dict[str, list[list[str]]] = {}
    for (pod, _), hosts in sorted(leaves.items()):
        pods.setdefault(pod, []).append(sorted(hosts))
    return list(pods.values())


def _named_hosts(pods: int, leaves: int, hosts: int) -> list[list[list[str]]]:
    return [
        [
            [f"h{(pod * leaves + leaf) * hosts + number + 1}" for number in range(hosts)]
            for leaf in range(leaves)
        ]
        for pod in range(pods)
    ]


AnyFabric = Annotated[
    Annotated[LinkFabric, Tag("link")]
    | Annotated[LeafSpineFabric, Tag("leaf-spine")]
    | Annotated[ThreeLayerFabric, Tag("clos")]
    | Annotated[LingjunFabric, Tag("lingjun")],
    kinds("link", "leaf-spine", "clos", "lingjun"),
]
"""What ``[fabric]`` can be."""
