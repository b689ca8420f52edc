"""The gRPC server that serves one Device."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc
from finsy.proto import p4r_grpc

from leveller import tls, unix_sockets
from leveller.errors import UserError
from softswitch.p4runtime.arbitration import MAX_STREAMS
from softswitch.p4runtime.device import Device
from softswitch.p4runtime.service import P4RuntimeService

_UNARY_THREADS = 8
_MAX_MESSAGE = 128 * 1024 * 1024
"""Bytes of a message that is accepted: pipeline configs are large (spec, Guidelines for Implementations)."""


@dataclass(frozen=True)
class Tls:
    """PEM files for a server that clients reach by TLS only."""

    certificate: Path
    key: Path
    authority: Path | None
    """Whose certificates clients must show; None: they need none."""


def start(device: Device, address: str, files: Tls | None = None) -> tuple[grpc.Server, int]:
    """Serve ``device`` on ``address`` (HOST:PORT); return the server and its port, for one asked for as 0.

    Raises UserError when the address is taken or is not this machine's, or when a PEM file is no good.
    """
    credentials = _credentials(files) if files else None
    _try_bind(address)
    server = grpc.server(
        # A stream holds its thread: leave room for one too many, which is told so, and for the unary calls.
        ThreadPoolExecutor(MAX_STREAMS + 2 * _UNARY_THREADS, thread_name_prefix="grpc"),
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.so_reuseport", 0),
            # A client that has vanished without a word must not stay primary; one that asks often may.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 5_000),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    p4r_grpc.add_P4RuntimeServicer_to_server(P4RuntimeService(device), server)
    try:
        port = (
            server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
        )
    except RuntimeError:
        raise _unusable(address, "gRPC refuses it") from None
    server.start()
    return server, port


def _credentials(files: Tls) -> grpc.ServerCredentials:
    """Check and read the PEM files."""
    cert = tls.Pem("--grpc-server-cert ", files.certificate)
    key = tls.Pem("--grpc-server-key ", files.key)
    ca = tls.Pem("--grpc-server-cacert ", files.authority) if files.authority else None
    tls.check("server", cert=cert, key=key, ca=ca)
    return grpc.ssl_server_credentials(
        [(key.read(), cert.read())],
        root_certificates=ca.read() if ca else None,
        require_client_auth=ca is not None,
    )


def _try_bind(address: str) -> None:
    """Raise UserError for an address that cannot be bound; gRPC would add lines of its own."""
    if address.startswith("unix:"):
        try:
            return unix_sockets.check(address)
        except OSError as error:
            raise _unusable(address, str(error.strerror or error)) from None
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise _unusable(address, "it is not HOST:PORT")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen(1)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host can have that name
        raise _unusable(address, str(error)) from None


def _unusable(address: str, why: str) -> UserError:
    return UserError(
        f"cannot serve P4Runtime on {address} ({why})",
        "give a free HOST:PORT of this machine with --grpc-server-addr",
    )
