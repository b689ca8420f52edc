"""Packet-in and packet-out: controller headers (ControllerPacketMetadata), packed as the P4 header is."""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4i, p4r

from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.values import decode, encode


class ControllerHeader:
    """A header that precedes the packet on the CPU port: its fields, in order, first field highest bits.

    P4Info lists every field of the header with its width, padding included, so the header is a whole
    number of bytes; where it is not (a P4 target would refuse it), the last byte is padded with zeros.
    """

    def __init__(self, metadata: p4i.ControllerPacketMetadata) -> None:
        """Lay out the header; the default message is the header of a program that has none: no bytes."""
        self.name = metadata.preamble.name
        bits = sum(field.bitwidth for field in metadata.metadata)
        self.size = (bits + 7) // 8
        """Length in bytes."""
        self._fields: list[tuple[int, str, int, int, bool]] = []
        position = self.size * 8
        for field in metadata.metadata:
            position -= field.bitwidth
            padding = any(annotation.startswith("@padding") for annotation in field.annotations)
            self._fields.append((field.id, field.name, field.bitwidth, position, padding))

    def unpack(self, packet: bytes) -> p4r.PacketIn:
        """Turn what the pipeline sent to the CPU port into a PacketIn, with every field of the header."""
        value = int.from_bytes(packet[: self.size], "big")
        message = p4r.PacketIn(payload=packet[self.size :])
        for field_id, _, width, position, _ in self._fields:
            message.metadata.add(metadata_id=field_id, value=encode(value >> position & (1 << width) - 1))
        return message

    def pack(self, metadata: Iterable[p4r.PacketMetadata]) -> bytes:
        """Return the header's bytes for a PacketOut's metadata; fields annotated @padding may be left out.

        Raises INVALID_ARGUMENT for a field that is unknown, missing or twice there, OUT_OF_RANGE for a value
        wider than its field.
        """
        given = {item.metadata_id: item.value for item in metadata}
        value = 0
        for field_id, name, width, position, padding in self._fields:
            data = given.pop(field_id, None)
            if data is not None:
                value |= decode(data, width, f"{self.name}.{name}") << position
            elif not padding:
                raise invalid(f"{self.name}.{name} (metadata id {field_id}) is missing")
        if given:
            raise invalid(f"{self.name} has no metadata with id {min(given)}")
        return value.to_bytes(self.size, "big")


def stream_error(error: P4Error, packet_out: p4r.PacketOut) -> p4r.StreamMessageResponse:
    """Return what a client is told of a packet-out that was dropped (spec, Stream Error Reporting)."""
    code: int = error.code.value[0]
    return p4r.StreamMessageResponse(
        error=p4r.StreamError(
            canonical_code=code,
            message=error.message,
            packet_out=p4r.PacketOutError(packet_out=packet_out),
        )
    )
