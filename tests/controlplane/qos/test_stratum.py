"""stratum.py: the text is what Stratum's protobuf takes, read back here by a description of that message."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from controlplane.config import Config
from controlplane.qos import stratum
from controlplane.qos.plan import plan

F = descriptor_pb2.FieldDescriptorProto


def vendor_config_class() -> type:
    """The part of stratum/hal/lib/common/common.proto that is used, by its names and numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="stratum.proto", package="stratum", syntax="proto3")

    def enum(name: str, **values: int) -> None:
        added = file.enum_type.add(name=name)
        for value, number in values.items():
            added.value.add(name=value, number=number)

    def message(name: str, *fields: tuple[str, int, str | int, bool]) -> None:
        added = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
            if isinstance(kind, int):
                added.field.add(name=field, number=number, type=kind, label=label)
            else:
                made = F.TYPE_ENUM if kind in ("Prio", "Pool", "Baf") else F.TYPE_MESSAGE
                added.field.add(
                    name=field, number=number, type=made, type_name=f".stratum.{kind}", label=label
                )

    enum("Prio", UNKNOWN_PRIO=0, **{f"PRIO_{number}": number + 1 for number in range(8)})
    enum("Pool", UNKNOWN_APP_POOL=0, EGRESS_APP_POOL_0=5)
    enum("Baf", UNKNOWN_BAF=0, BAF_80_PERCENT=9)
    message(
        "QueueMapping", ("queue_id", 1, F.TYPE_INT32, False), ("priority", 2, "Prio", False),
        ("weight", 3, F.TYPE_UINT32, False), ("pool", 5, "Pool", False),
        ("base_use_limit", 6, F.TYPE_UINT32, False), ("baf", 7, "Baf", False),
        ("hysteresis", 8, F.TYPE_UINT32, False),
    )  # fmt: skip
    message("QueueConfig", ("sdk_port", 2, F.TYPE_UINT32, False), ("queue_mapping", 3, "QueueMapping", True))
    message("QosConfig", ("queue_configs", 6, "QueueConfig", True))
    message("QosEntry", ("key", 1, F.TYPE_UINT64, False), ("value", 2, "QosConfig", False))
    message("TofinoConfig", ("node_id_to_qos_config", 3, "QosEntry", True))
    message("VendorConfig", ("tofino_config", 2, "TofinoConfig", False))
    message("ChassisConfig", ("vendor_config", 7, "VendorConfig", False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stratum.ChassisConfig"))


def test_every_queue_of_every_port_is_strict(unmarked: Config) -> None:
    parsed = text_format.Parse(
        stratum.render(plan(unmarked, unmarked.switches[0], 3)), vendor_config_class()()
    )
    (node,) = parsed.vendor_config.tofino_config.node_id_to_qos_config
    assert [config.sdk_port for config in node.value.queue_configs] == [132, 140]
    for config in node.value.queue_configs:
        # PRIO_n is n + 1 on the wire.
        assert [(queue.queue_id, queue.priority) for queue in config.queue_mapping] == [
            (0, 1),
            (2, 3),
            (5, 6),
            (7, 8),
        ]
        # Stratum refuses a queue whose pool or burst factor is left unknown.
        assert all(queue.pool and queue.baf and queue.base_use_limit for queue in config.queue_mapping)
