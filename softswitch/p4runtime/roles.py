"""What a role may do: Stratum's P4RoleConfig, the one role description that clients in the field send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from finsy.proto import p4r, stratum
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from softswitch.p4runtime.errors import invalid


@dataclass(frozen=True)
class RoleConfig:
    """The rights of one role (stratum.P4RoleConfig). ``FULL`` is the right of a role without a config."""

    exclusive: frozenset[int] = frozenset()
    """P4 ids that only this role may write."""
    shared: frozenset[int] = frozenset()
    """P4 ids that this role may write beside others."""
    packet_in_filter: tuple[int, bytes] | None = None
    """(metadata id, canonical value) that a packet-in must carry to be sent to this role."""
    receives_packet_ins: bool = True
    can_push_pipeline: bool = True
    everything: bool = False
    """No config: full pipeline access."""

    def may_access(self, p4_id: int) -> bool:
        """Whether the role may write, and is shown, the object with this P4Info id; 0: replication."""
        return self.everything or p4_id == 0 or p4_id in self.exclusive or p4_id in self.shared

    def wants(self, metadata: Iterable[p4r.PacketMetadata]) -> bool:
        """Whether a packet-in with this metadata goes to the role's primary."""
        if not self.receives_packet_ins:
            return False
        if self.packet_in_filter is None:
            return True
        return any((field.metadata_id, field.value) == self.packet_in_filter for field in metadata)


FULL = RoleConfig(everything=True)


def parse(config: Any) -> RoleConfig:
    """Read ``Role.config``. Raises INVALID_ARGUMENT for any scheme other than stratum.P4RoleConfig."""
    message = stratum.P4RoleConfig()
    try:
        known = config.Unpack(message)
    except DecodeError:
        known = False
    if not known:
        raise invalid(f"role.config is a {config.type_url!r}; only stratum.P4RoleConfig is understood")
    packet_in_filter = None
    if message.HasField("packet_in_filter"):
        packet_in_filter = (message.packet_in_filter.metadata_id, message.packet_in_filter.value)
    return RoleConfig(
        exclusive=frozenset(message.exclusive_p4_ids),
        shared=frozenset(message.shared_p4_ids),
        packet_in_filter=packet_in_filter,
        receives_packet_ins=message.receives_packet_ins,
        can_push_pipeline=message.can_push_pipeline,
    )
