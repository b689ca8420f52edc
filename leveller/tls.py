"""Certificates of a mutually authenticated channel: the PEM files, and whom a certificate names.

gRPC takes any files and fails in its first handshake without saying which of them is wrong. So they are
tried beforehand: OpenSSL reads them, and shakes hands with itself, in memory, as the peer would.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Literal

from leveller.config import Section
from leveller.errors import UserError

Role = Literal["server", "client"]
"""The end of a channel that a certificate is shown by."""


@dataclass(frozen=True, slots=True)
class Pem:
    """A PEM file, and what goes before its path in a message: the field or option that names it."""

    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name}{self.path}"

    def read(self) -> bytes:
        """Return what it holds. Raises UserError where it cannot be read."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise UserError(f"{self} cannot be read ({error.strerror})", "give a PEM file") from None
        except ValueError as error:  # no path at all, such as one with a null byte
            what = f"{self.name}{str(self.path)!r} cannot be read ({error})"
            raise UserError(what, "give a PEM file") from None


@dataclass(frozen=True, slots=True)
class Names:
    """Whom a certificate is for: its DNS names (or, where it has none, its common name) and IP addresses."""

    hosts: frozenset[str]
    addresses: frozenset[IPv4Address | IPv6Address]

    @classmethod
    def of(cls, dns: Iterable[str], addresses: Iterable[str], common: Iterable[str]) -> Names:
        """Make it of a certificate's subject alternative names and its common name."""
        return cls(
            frozenset(dns) or frozenset(common), frozenset(ip_address(text.strip()) for text in addresses)
        )

    def host(self, name: str) -> str | None:
        """Return host ``name`` as the certificate spells it (no wildcard counts); None: it is another's."""
        return min((host for host in self.hosts if host.casefold() == name.casefold()), default=None)

    def __str__(self) -> str:
        return ", ".join(sorted(self.hosts)) or "nobody"


class TlsSection(Section):
    """``[controller.tls]`` and ``[agent.tls]``: one end of a channel by mutual TLS; PEM files."""

    cert: Path
    """One's own certificate, with any intermediate ones behind it, ..."""
    key: Path
    """... and its key, without a passphrase."""
    ca: Path
    """The CA, or several, that the other end's certificate is from."""

    def check(self, where: str, role: Role) -> Names:
        """Return whom the certificate is for. Raises UserError naming the field of ``where`` and the file."""
        return check(
            role,
            cert=Pem(f"{where}.cert: ", self.cert),
            key=Pem(f"{where}.key: ", self.key),
            ca=Pem(f"{where}.ca: ", self.ca),
        )


def check(role: Role, *, cert: Pem | None = None, key: Pem | None = None, ca: Pem | None = None) -> Names:
    """Return whom ``cert`` is for; nobody, where there is none. ``key`` may be in the certificate's file.

    Raises UserError for files that are missing or no PEM, a key that is not the certificate's, and what has
    expired or is not for that ``role``. Whether the other end trusts the certificate only that one knows.
    """
    for pem in (cert, key, ca):
        if pem is not None:
            pem.read()
    if ca is not None:
        _check_authority(ca)
    if cert is None:
        return Names(frozenset(), frozenset())
    return _check_own(role, cert, key or cert)


def _check_authority(ca: Pem) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca.path)
    except ssl.SSLError as error:
        raise UserError(f"{ca} is no certificate ({error})", "give a CA's PEM file") from None
    ends = [str(certificate["notAfter"]) for certificate in context.get_ca_certs()]
    if not ends:
        raise UserError(f"{ca} has no CA's certificate", "give the one that signed the other end's")
    latest = max(ends, key=ssl.cert_time_to_seconds)
    if ssl.cert_time_to_seconds(latest) <= time.time():
        raise UserError(f"{ca} has expired on {latest}", "make a new CA, and certificates by it")


def _check_own(role: Role, cert: Pem, key: Pem) -> Names:
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if role == "server" else ssl.PROTOCOL_TLS_CLIENT)
    peer = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if role == "server" else ssl.PROTOCOL_TLS_SERVER)
    mine.check_hostname = peer.check_hostname = False
    mine.verify_mode, peer.verify_mode = ssl.CERT_NONE, ssl.CERT_REQUIRED
    try:
        mine.load_cert_chain(cert.path, key.path, password=lambda: b"")
        # The certificate vouches for itself: who signed it is for the other end to judge.
        peer.load_verify_locations(cert.path)
        peer.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if role == "client":
            peer.load_cert_chain(cert.path, key.path, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UserError(
                f"{key} is not the key of {cert.path}", "give the certificate's own key"
            ) from None
        raise UserError(
            f"{cert} with {key.path} cannot be used ({error})",
            "give a certificate and its own key, as PEM files, the key without a passphrase",
        ) from None
    try:
        found = _handshake(mine, peer, mine_is_server=role == "server")
    except ssl.SSLCertVerificationError as error:
        raise UserError(
            f"{cert} cannot be used as a {role}'s: {error.verify_message}", "have a new one signed"
        ) from None
    names = found.get("subjectAltName", ())
    return Names.of(
        [value for kind, value in names if kind == "DNS"],
        [value for kind, value in names if kind == "IP Address"],
        [value for part in found.get("subject", ()) for kind, value in part if kind == "commonName"],
    )


def _handshake(mine: ssl.SSLContext, peer: ssl.SSLContext, *, mine_is_server: bool) -> dict[str, Any]:
    """Let the two shake hands in memory; return what ``peer`` sees of ``mine``'s certificate."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = mine.wrap_bio(there, back, server_side=mine_is_server)
    theirs = peer.wrap_bio(back, there, server_side=not mine_is_server)
    waiting = [ours, theirs]
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    return theirs.getpeercert() or {}
