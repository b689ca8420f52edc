"""Stratum on Tofino: the ``vendor_config`` of a chassis config (protobuf text, stratum's common.proto).

Stratum sets both of a queue's priorities (guaranteed and remaining bandwidth) from the one that is written
here, its DWRR weight, and its use of the shared buffer, which a queue that is named cannot leave out.
"""

from __future__ import annotations

from controlplane.qos.plan import Plan

WEIGHT = 1
"""DWRR weight; without meaning, since no two queues share a priority."""

_BUFFER = """\
            pool: EGRESS_APP_POOL_0
            base_use_limit: 400
            baf: BAF_80_PERCENT
            hysteresis: 50
"""
"""The buffer's share: what Stratum's own example gives a queue. In cells."""


def render(plan: Plan) -> str:
    """Return the text that goes behind the chassis config's ports."""
    lines = [
        f"# {plan.switch}: strict priority for the queues that Leveller uses. Append to its chassis config.",
        "# Stratum sets pool, base_use_limit, baf and hysteresis of each queue here: make them yours.",
        "# It has no field for a queue's PFC class, which then is 0; see `leveller qos --target bfrt`.",
        "vendor_config {",
        "  tofino_config {",
        "    node_id_to_qos_config {",
        "      key: 1  # the id of the node in the chassis config",
        "      value {",
    ]
    for port in plan.ports:
        lines += ["        queue_configs {", f"          sdk_port: {port}"]
        for queue in plan.queues:
            lines += [
                f"          queue_mapping {{  # {queue.use}",
                f"            queue_id: {queue.queue}",
                f"            priority: PRIO_{queue.priority}",
                f"            weight: {WEIGHT}",
                *_BUFFER.splitlines(),
                "          }",
            ]
        lines.append("        }")
    lines += ["      }", "    }", "  }", "}"]
    return "\n".join(lines) + "\n"
