"""The controller's P4Runtime side: what each switch should hold, and the sessions that see to it.

``Fabric`` is all a caller needs; the values it takes and gives are exported here.
"""

from controlplane.southbound.errors import SwitchError
from controlplane.southbound.fabric import Fabric
from controlplane.southbound.state import Desired, FlowEntry, GroupLevel, Held, LevelQueue, NextHop, Setup
from controlplane.southbound.status import Outcome, Result, SwitchStatus
from controlplane.southbound.target import Target, Tls

__all__ = [
    "Desired",
    "Fabric",
    "FlowEntry",
    "GroupLevel",
    "Held",
    "LevelQueue",
    "NextHop",
    "Outcome",
    "Result",
    "Setup",
    "SwitchError",
    "SwitchStatus",
    "Target",
    "Tls",
]
