"""Tofino's SDE: a script for bfrt_python, ``bfshell -b FILE``.

``tm.port.cfg`` translates a port and a queue id into the traffic manager's port group and queue (the
inverse is ``tm.queue.map``). A queue has two priorities, one below its guaranteed rate and one above; a
queue is strict only when both are set. All else stays as it is.
"""

from __future__ import annotations

from controlplane.qos.plan import Plan

_SCRIPT = """\
# {switch}: strict priority, and the PFC class, for the queues that Leveller uses.
# Run it with `bfshell -b FILE` once the pipeline is loaded and the ports are added.

# queue: (priority, PFC class or None)
QUEUES = {{
{queues}
}}
PORTS = {ports}


def configure(tm):
    for port in PORTS:
        entry = tm.port.cfg.get(dev_port=port, print_ents=False)
        group = entry.data[b"pg_id"]
        pipe = port >> 7
        for queue, (priority, pfc_class) in QUEUES.items():
            key = dict(pipe=pipe, pg_id=group, pg_queue=entry.data[b"egress_qid_queues"][queue])
            tm.queue.sched_cfg.mod(min_priority=str(priority), max_priority=str(priority), **key)
            if pfc_class is not None:
                tm.queue.cfg.mod(pfc_cos=pfc_class, **key)
            tm.queue.sched_cfg.get(**key)


configure(bfrt.tf2.tm if hasattr(bfrt, "tf2") else bfrt.tf1.tm)
"""


def render(plan: Plan) -> str:
    """Return the script."""
    queues = "\n".join(
        f"    {queue.queue}: ({queue.priority}, {queue.pfc_class}),  # {queue.use}" for queue in plan.queues
    )
    return _SCRIPT.format(switch=plan.switch, queues=queues, ports=list(plan.ports))
