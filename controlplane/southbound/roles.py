"""A role of the controller's own, beside another controller of the same switch. Pure.

Specification, section 5.2: each role has a primary of its own, and what a role may do is up to the switch, by
a configuration message that the specification leaves open. The one in the field is Stratum's P4RoleConfig,
which the softswitch knows too. The level control's tables are ours alone; the forwarding's may be the
other controller's.
"""

from __future__ import annotations

from finsy.proto import p4i, p4r, stratum

from controlplane.southbound.contract import CONTRACT
from controlplane.southbound.tables import FORWARDING_TABLES


def message(name: str, p4info: p4i.P4Info) -> p4r.Role:
    """Return the role ``name`` with the rights that the controller needs in the program of ``p4info``."""
    ids = {table.preamble.alias: table.preamble.id for table in p4info.tables}
    config = stratum.P4RoleConfig(
        exclusive_p4_ids=[ids[table] for table in CONTRACT if table not in FORWARDING_TABLES],
        shared_p4_ids=[
            *(ids[table] for table in FORWARDING_TABLES if table in ids),
            *(counter.preamble.id for counter in p4info.counters),
            *(counter.preamble.id for counter in p4info.direct_counters),
        ],
        receives_packet_ins=True,
        can_push_pipeline=False,
    )
    role = p4r.Role(name=name)
    role.config.Pack(config)
    return role
