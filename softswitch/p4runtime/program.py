"""A forwarding-pipeline config that has been realized: its P4Info indexed, its pipeline, and its state."""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

from softswitch import compiler
from softswitch.p4runtime import info as p4info
from softswitch.p4runtime.errors import invalid
from softswitch.p4runtime.learner import Learner
from softswitch.pipeline import Pipeline


@dataclass
class Program:
    """What reads and writes refer to."""

    config: p4r.ForwardingPipelineConfig
    info: p4info.Info
    pipeline: Pipeline
    multicast: dict[int, p4r.MulticastGroupEntry] = field(default_factory=dict)
    """Multicast groups as they were written: what a read returns."""
    clones: dict[int, p4r.CloneSessionEntry] = field(default_factory=dict)
    """Clone sessions as they were written."""
    digests: dict[int, Learner] = field(default_factory=dict)
    """Digests that are switched on."""


def realize(config: p4r.ForwardingPipelineConfig, queues: int) -> Program:
    """Compile ``config``'s program and check that its P4Info describes it.

    Raises INVALID_ARGUMENT (P4Error) for a config that is incomplete, that contradicts itself, or whose
    program needs constructs that this switch does not have; they are named.
    """
    if not config.HasField("p4info") or not config.p4_device_config:
        raise invalid("the config must have both p4info and p4_device_config (the JSON that p4c writes)")
    info = p4info.Info(config.p4info)
    # p4c's JSON calls an optional key ternary; P4Info tells them apart.
    optional = {
        (table.name, key.name)
        for table in info.tables.values()
        for key in table.fields
        if key.kind == "optional"
    }
    try:
        pipeline = compiler.compile_program(config.p4_device_config, queues, optional)
    except compiler.Unsupported as error:
        raise invalid(f"the program cannot run here: {error}") from None
    except (ValueError, RecursionError) as error:  # the latter: nested deeper than Python goes
        raise invalid(f"p4_device_config is not a program that p4c wrote for v1model: {error}") from None
    p4info.check(info, pipeline)
    for profile in info.profiles.values():
        pipeline.action_profiles[profile.preamble.name].max_group_size = profile.max_group_size
    return Program(config, info, pipeline)
