"""The policies a simulation can run: the controller's, and those that need what only a simulator knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controlplane.policies import (
    POLICIES,
    Policy,
    Scope,
    fair,
    hermod,
    leveller_hermod,
    leveller_host,
    symphony_like,
)
from controlplane.policies.blend import blend
from leveller.errors import UserError
from simulator.scenario import PolicySection


@dataclass(frozen=True, slots=True)
class Simulated:
    """How a policy is run.

    One that goes ``by_progress`` is asked every tau, others when jobs come or go. One that ``sees_flows`` is
    told what each group has sent. For one with ``shifts`` jobs also start their iterations as
    `controlplane.policies.cassini` says.
    """

    levels: Policy
    by_progress: bool = True
    sees_flows: bool = False
    shifts: bool = False


SIMULATED: Mapping[str, Simulated] = MappingProxyType(
    {
        **{
            name: Simulated(levels, name not in ("crux", "fair", "sincronia", "static"))
            for name, levels in POLICIES.items()
        },
        "cassini": Simulated(fair.levels, by_progress=False, shifts=True),
        "hermod": Simulated(hermod.levels, by_progress=False),
        "leveller+hermod": Simulated(leveller_hermod.levels),
        "leveller-host": Simulated(leveller_host.levels),
        "symphony_like": Simulated(symphony_like.levels, sees_flows=True),
    }
)
"""What ``leveller sim --policy`` may say."""


def choose(name: str, settings: PolicySection) -> tuple[Simulated, PolicySection]:
    """Return the policy ``name`` and the settings to run it with. Raises UserError where there is none."""
    if name not in SIMULATED:
        raise UserError(f"there is no policy {name!r}", f"choose one of {', '.join(sorted(SIMULATED))}")
    if name == "leveller":
        return Simulated(blend(settings.efficiency)), settings
    if name == "leveller-host":
        host = {"tau_s": settings.host_tau_s, "stall_s": settings.host_stall_s, "scope": Scope.FABRIC}
        return SIMULATED[name], settings.model_copy(update=host)
    if name == "crux" and settings.paths is None:
        return SIMULATED[name], settings.model_copy(update={"paths": "crux"})
    return SIMULATED[name], settings
