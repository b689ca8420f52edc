"""SONiC: ``SCHEDULER`` and ``QUEUE`` of config DB (JSON for ``config load``).

SONiC's queues of type STRICT are served by their number, the highest first. A PFC class pauses one queue
there (``PFC_PRIORITY_TO_QUEUE_MAP``), so only levels that mark DSCPs of different classes can be paused one
by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from controlplane.qos.plan import Plan, interface_names
from leveller.errors import UserError

SCHEDULER = "leveller.strict"
"""One scheduler serves all: SONiC cannot change one that exists, and this has no numbers to change."""
PFC_MAP = "leveller"


def render(plan: Plan, interfaces: Sequence[str]) -> str:
    """Return the JSON; ``interfaces`` are SONiC's names of the plan's ports, in order. Raises UserError."""
    names = interface_names(plan, interfaces)
    tables: dict[str, dict[str, dict[str, str]]] = {
        "SCHEDULER": {SCHEDULER: {"type": "STRICT"}},
        "QUEUE": {
            f"{names[port]}|{queue.queue}": {"scheduler": SCHEDULER}
            for port in plan.ports
            for queue in plan.queues
        },
    }
    classes = [(queue.pfc_class, queue.queue) for queue in plan.queues if queue.pfc_class is not None]
    if len({pfc_class for pfc_class, _ in classes}) == len(classes):
        tables["PFC_PRIORITY_TO_QUEUE_MAP"] = {
            PFC_MAP: {str(pfc_class): str(queue) for pfc_class, queue in classes}
        }
        tables["PORT_QOS_MAP"] = {names[port]: {"pfc_to_queue_map": PFC_MAP} for port in plan.ports}
    elif len(classes) > 1 and len({pfc_class for pfc_class, _ in classes}) > 1:
        raise UserError(
            "levels.dscp gives two levels the same PFC class, and SONiC pauses one queue for a class",
            "give every level a DSCP of its own class: the DSCP's top three bits",
        )
    return json.dumps(tables, indent=4) + "\n"
