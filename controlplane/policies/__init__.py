"""The policies by name: a module each, each with one pure function ``levels``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from controlplane.policies import crux, fair, leveller, sincronia, static
from controlplane.policies.incidence import Incidence
from controlplane.policies.interface import Policy, Scope

POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "crux": crux.levels,
        "fair": fair.levels,
        "leveller": leveller.levels,
        "sincronia": sincronia.levels,
        "static": static.levels,
    }
)
"""What ``[policy] name`` and ``--policy`` may say."""

__all__ = ["POLICIES", "Incidence", "Policy", "Scope"]
