"""A port: a Linux interface, read through one packet ring and written through a socket per queue.

Receiving: an AF_PACKET ring (TPACKET_V2: the block timeout of V3 would delay single packets) that the
kernel fills and Python reads without a system call per packet. Sending: a socket per queue, whose
SO_PRIORITY names the queue's HTB class (``softswitch.queues``).
"""

from __future__ import annotations

import fcntl
import mmap
import socket
import struct
from collections import Counter

import structlog

from leveller.errors import UserError
from softswitch.queues import Backlog, classid
from softswitch.sender import Sender

_log = structlog.get_logger(__name__)

_SOL_PACKET = 263
_ADD_MEMBERSHIP, _RX_RING, _STATISTICS, _VERSION, _VNET_HDR, _IGNORE_OUTGOING = 1, 5, 6, 10, 15, 23
_TPACKET_V2 = 1
_MR_PROMISC = 1
_ETH_P_ALL = 3
_SIOCGIFMTU = 0x8921
_SIOCGIFFLAGS = 0x8913
_IFF_UP_RUNNING = 0x1 | 0x40

_HEADER = struct.Struct("=IIIHHIIHH")
"""struct tpacket2_hdr: status, length, captured length, MAC and network offset, time, VLAN TCI and TPID."""
_VIRTIO = struct.Struct("=BBHHHH")
"""struct virtio_net_hdr, just before the frame: flags, segmentation, ..., checksum start and offset."""
_IN_USE, _CHECKSUM_MISSING, _VLAN = 0x1, 0x8, 0x10
_UNUSUAL = _CHECKSUM_MISSING | _VLAN
_FRAME_OVERHEAD = 96 + 18
"""What a ring frame holds beside the MTU: the kernel's headers, and Ethernet with one VLAN tag."""
_BLOCK = 1 << 18
_FRAMES = 2048
"""Frames of a port's ring: 20 ms at 100,000 packets/s; 3.5 MB at 1,500 bytes, 19 MB at 9,000."""
_LARGEST = 1 << 25
"""Bytes of a ring at most, whatever the MTU."""


class Port:
    """One interface as a port of the switch. Its counts say what was lost, and why, by reason."""

    def __init__(self, number: int, interface: str, queues: int, depth: int, backlog: Backlog) -> None:
        """Open the interface. Raises UserError when it is not there, is not Ethernet, or without root."""
        self.number = number
        self.interface = interface
        self.lost: Counter[str] = Counter()
        """Packets that this port did not take in or send, by reason."""
        self._handles = [classid(queue, queues) for queue in range(queues)]
        self._backlog = backlog
        self.senders: list[Sender] = []
        """The ways out, by queue."""
        try:
            self.index = socket.if_nametoindex(interface)
        except OSError:
            raise UserError(
                f"there is no interface {interface}", "see 'ip link' for those there are"
            ) from None
        try:
            self._receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        except PermissionError:
            raise UserError(
                "packets can be received and sent only by root", "run as root or with CAP_NET_RAW"
            ) from None
        self._position = 0
        try:
            self._open_ring()
            for handle in self._handles:
                sender = Sender(interface, handle, self._mtu, depth, self.lost, self.warn)
                self.senders.append(sender)
        except OSError as error:
            self.close()
            if isinstance(error, PermissionError):
                raise UserError(
                    f"interface {interface} cannot be set up ({error.strerror})",
                    "run as root, with CAP_NET_RAW and CAP_NET_ADMIN",
                ) from None
            raise UserError(
                f"interface {interface} cannot be used ({error.strerror})", "it must be an Ethernet interface"
            ) from None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when packets have arrived."""
        return self._receiver.fileno()

    def receive(self, limit: int) -> list[bytes]:
        """Return up to ``limit`` frames that have arrived, oldest first, as they were on the wire."""
        frames: list[bytes] = []
        ring, words, starts, position = self._ring, self._words, self._starts, self._position
        while len(frames) < limit:
            start = starts[position]
            if not words[start >> 2] & _IN_USE:
                break
            status, length, captured, mac, _, _, _, tci, tpid = _HEADER.unpack_from(ring, start)
            frame: bytes | None = ring[start + mac : start + mac + captured]
            if status & _UNUSUAL or captured != length:
                frame = self._mend(start + mac, status, length, captured, tci, tpid)
            words[start >> 2] = 0
            position += 1
            if position == len(starts):
                position = 0
            if frame is not None:
                frames.append(frame)
        self._position = position
        return frames

    def queue_depth(self, queue: int) -> int:
        """Return how many packets wait in ``queue`` now."""
        # Nothing of the queue's socket is unsent: nothing waits. That is most of the time, and quick to know.
        if queue >= len(self.senders) or not self.senders[queue].has_unsent():
            return 0
        return self._backlog.packets(self.index, self._handles[queue])

    def clear_error(self) -> None:
        """Take note that the interface has gone down, so that the descriptor stops saying so."""
        self._receiver.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def is_up(self) -> bool:
        """Whether the interface is up and has a carrier."""
        request = struct.pack("16sh14x", self.interface.encode(), 0)
        try:
            answer = fcntl.ioctl(self._receiver.fileno(), _SIOCGIFFLAGS, request)
        except OSError:
            return False
        flags: int = struct.unpack_from("=H", answer, 16)[0]
        return flags & _IFF_UP_RUNNING == _IFF_UP_RUNNING

    def read_kernel_losses(self) -> None:
        """Add to ``lost`` the packets that arrived while the ring was full."""
        _, drops = struct.unpack("=II", self._receiver.getsockopt(_SOL_PACKET, _STATISTICS, 8))
        self.lost["ring full"] += drops

    def close(self) -> None:
        """Close every socket; the interface stops being promiscuous."""
        for sender in self.senders:
            sender.close()
        self._receiver.close()

    def _open_ring(self) -> None:
        receiver = self._receiver
        receiver.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
        receiver.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
        receiver.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        mtu = struct.unpack_from(
            "=i",
            fcntl.ioctl(receiver.fileno(), _SIOCGIFMTU, struct.pack("16s16x", self.interface.encode())),
            16,
        )[0]
        frame = (mtu + _FRAME_OVERHEAD + 15) & ~15
        block = max(_BLOCK, 1 << (frame - 1).bit_length())
        per_block = block // frame
        blocks = min(-(-_FRAMES // per_block), _LARGEST // block)
        receiver.setsockopt(
            _SOL_PACKET, _RX_RING, struct.pack("=IIII", block, blocks, frame, blocks * per_block)
        )
        receiver.setsockopt(
            _SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("=iHH8s", self.index, _MR_PROMISC, 0, b"")
        )
        self._mtu = mtu
        self._ring = mmap.mmap(receiver.fileno(), block * blocks)
        self._words = memoryview(self._ring).cast("I")
        self._starts = [b * block + f * frame for b in range(blocks) for f in range(per_block)]
        receiver.bind((self.interface, _ETH_P_ALL))

    def _mend(self, at: int, status: int, length: int, captured: int, tci: int, tpid: int) -> bytes | None:
        """Undo what offloads did to the frame at ``at``: put back its VLAN tag, finish its checksum.

        None for a frame that no wire carries: several segments in one, or longer than the MTU.
        """
        _, segmentation, _, _, start, offset = _VIRTIO.unpack_from(self._ring, at - _VIRTIO.size)
        if segmentation or captured != length:
            self.warn(
                "longer than the MTU: the sender's segmentation offload is on",
                length=length,
                mend="on the interface at the other end: ethtool -K INTERFACE tx off tso off gso off gro off",
            )
            return None
        frame = self._ring[at : at + captured]
        if status & _CHECKSUM_MISSING:
            frame = finish_checksum(frame, start, offset)
        if status & _VLAN:
            frame = frame[:12] + struct.pack(">HH", tpid or 0x8100, tci) + frame[12:]
        return frame

    def warn(self, reason: str, **details: object) -> None:
        """Count a lost packet; log the first one of its kind, for the user can do something about it."""
        self.lost[reason] += 1
        if self.lost[reason] == 1:
            _log.warning("packet lost", port=self.number, interface=self.interface, reason=reason, **details)


def finish_checksum(frame: bytes, start: int, offset: int) -> bytes:
    """Complete an Internet checksum as a network card would: of ``frame[start:]``, stored ``offset`` into it.

    The field already has the pseudo-header's sum (Linux CHECKSUM_PARTIAL).
    """
    data = frame[start:]
    if len(data) & 1:
        data += b"\0"
    # 2**16 is 1 modulo 2**16 - 1, so one big remainder is the end-around-carry sum of all 16-bit words
    # (0 for 0xFFFF, so that the checksum is never 0, which UDP takes for none).
    checksum = 0xFFFF - int.from_bytes(data, "big") % 0xFFFF
    at = start + offset
    return frame[:at] + checksum.to_bytes(2, "big") + frame[at + 2 :]
