"""A switch to connect to, and the channel to its P4Runtime server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import grpc

from controlplane.southbound.encode import MAX_UPDATES
from leveller.errors import UserError

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
        for path in (self.authority, self.certificate, self.key):
            if path is not None and not path.is_file():
                raise UserError(f"{path} does not exist", "give a PEM file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise UserError(f"{self.authority} is no certificate ({error})", "give a CA's PEM file") from None
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            except (ssl.SSLError, OSError) as error:
                raise UserError(
                    f"{self.certificate} with {self.key} cannot be used ({error})",
                    "give a certificate and its own key, as PEM files, the key without a passphrase",
                ) from None


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
        """Open a channel; the PEM files are read anew, as certificates are replaced now and then.

        Raises UserError for a file that cannot be read any more.
        """
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        options: list[tuple[str, int | str]] = list(CHANNEL_OPTIONS)
        if self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        credentials = grpc.ssl_channel_credentials(
            _read(self.tls.authority), _read(self.tls.key), _read(self.tls.certificate)
        )
        return grpc.aio.secure_channel(self.address, credentials, options=options)


@dataclass(frozen=True, slots=True)
class OpenFlowTarget:
    """A switch that connects to us: its name in the configuration, datapath id, and where we listen.

    ``node_id`` stands for it in paths: it adds no hops to probes.
    """

    name: str
    datapath_id: int
    node_id: int
    listen: str


def _read(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "make it readable again") from None
