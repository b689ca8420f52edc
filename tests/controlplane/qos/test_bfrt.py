"""bfrt.py: the script does what it says, run against an object with the SDE's tables."""

from __future__ import annotations

from types import SimpleNamespace

from controlplane.config import Config
from controlplane.qos import bfrt
from controlplane.qos.plan import plan


class Table:
    """A table of bfrt_python that keeps what it is told. ``get`` is that of ``tm.port.cfg``."""

    def __init__(self) -> None:
        self.written: list[dict[str, object]] = []

    def mod(self, **fields: object) -> None:
        self.written.append(fields)

    def get(self, dev_port: int = 0, **_: object) -> SimpleNamespace:
        first = dev_port % 64 * 8
        data = {b"pg_id": dev_port // 4 % 32, b"egress_qid_queues": list(range(first, first + 8))}
        return SimpleNamespace(data=data)


def run(script: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Execute the script; return what it wrote into ``sched_cfg`` and ``queue.cfg``."""
    scheduler, queue, port = Table(), Table(), Table()
    manager = SimpleNamespace(
        port=SimpleNamespace(cfg=port), queue=SimpleNamespace(sched_cfg=scheduler, cfg=queue)
    )
    exec(script, {"bfrt": SimpleNamespace(tf1=SimpleNamespace(tm=manager))})
    return scheduler.written, queue.written


def test_both_priorities_of_every_queue_on_every_port(unmarked: Config) -> None:
    scheduler, _ = run(bfrt.render(plan(unmarked, unmarked.switches[0], 3)))
    assert scheduler == [
        {
            "pipe": 1,
            "pg_id": group,
            "pg_queue": first + queue,
            "min_priority": str(queue),
            "max_priority": str(queue),
        }
        for group, first in ((1, 32), (3, 96))
        for queue in (0, 2, 5, 7)
    ]


def test_the_class_of_every_level_and_of_no_other_queue(marked: Config) -> None:
    _, queue = run(bfrt.render(plan(marked, marked.switches[1], 3)))
    assert queue == [
        {"pipe": 0, "pg_id": 2, "pg_queue": 64, "pfc_cos": 1},
        {"pipe": 0, "pg_id": 2, "pg_queue": 66, "pfc_cos": 2},
        {"pipe": 0, "pg_id": 2, "pg_queue": 69, "pfc_cos": 3},
    ]
