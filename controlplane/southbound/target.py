"""A switch to connect to, and the channel to its P4Runtime server."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import grpc

from controlplane.southbound.encode import MAX_UPDATES
from leveller import tls

CHANNEL_OPTIONS = (
    # A failed update costs a switch up to 100 bytes of status, half as much again in base64 (bmv2: 130).
    ("grpc.max_metadata_size", 8192 + 200 * MAX_UPDATES),
    ("grpc.absolute_max_metadata_size", 2 * (8192 + 200 * MAX_UPDATES)),
    ("grpc.max_receive_message_length", 1 << 28),
    # Do not take over the back-off of an earlier channel to the same switch: the session has its own.
    ("grpc.use_local_subchannel_pool", 1),
)

NO_OPENFLOW = ("it speaks OpenFlow, and os-ken is not installed", "pip install 'leveller[openflow]'")
"""What is wrong where `openflow_installed` says no, and the mend."""


def openflow_installed() -> bool:
    """Return whether os-ken, an extra, is there."""
    return find_spec("os_ken") is not None


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files of a TLS channel: whom we trust, and, where the switch asks for it, who we are.

    ``server_name``: the name in the switch's certificate, where it is not the address's.
    """

    authority: Path
    certificate: Path | None = None
    key: Path | None = None
    server_name: str | None = None

    def check(self) -> None:
        """Raise UserError for files that cannot be used; gRPC would say so only in its first handshake."""
        cert, key, ca = self._files()
        tls.check("client", cert=cert, key=key, ca=ca)

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files, which are replaced now and then. Raises UserError for one that cannot be read."""
        cert, key, ca = self._files()
        return grpc.ssl_channel_credentials(
            ca.read(), key.read() if key else None, cert.read() if cert else None
        )

    def _files(self) -> tuple[tls.Pem | None, tls.Pem | None, tls.Pem]:
        cert = tls.Pem("cert: ", self.certificate) if self.certificate else None
        key = tls.Pem("key: ", self.key) if self.key else None
        return cert, key, tls.Pem("ca: ", self.authority)


@dataclass(frozen=True, slots=True)
class Target:
    """A switch: its name in the configuration, ``host:port``, P4Runtime device id.

    ``role``: the P4Runtime role to take; None: the default one, which has all rights.
    ``tls`` None: in plain text.
    """

    name: str
    address: str
    device_id: int
    role: str | None = None
    tls: Tls | None = None

    def channel(self) -> grpc.aio.Channel:
        """Open a channel. Raises UserError for a PEM file that cannot be read any more."""
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        options: list[tuple[str, int | str]] = list(CHANNEL_OPTIONS)
        if self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return grpc.aio.secure_channel(self.address, self.tls.credentials(), options=options)


@dataclass(frozen=True, slots=True)
class OpenFlowTarget:
    """A switch that connects to us: its name in the configuration, datapath id, and where we listen.

    ``node_id`` stands for it in paths: it adds no hops to probes.
    """

    name: str
    datapath_id: int
    node_id: int
    listen: str
