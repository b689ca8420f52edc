"""The agents' channel by TLS: the controller's credentials, and whom an agent's certificate names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import grpc
import structlog

from leveller.errors import UserError
from leveller.tls import Names, TlsSection

WHERE = "controller.tls"


def server_credentials(tls: TlsSection) -> grpc.ServerCredentials:
    """Return credentials that want a certificate of every agent.

    The files are read again for the first connection after they have changed, since certificates are
    replaced now and then; those that cannot be used then are said in the log, and the old ones stay.
    Raises UserError for files that cannot be used now.
    """
    files = _Files(tls)
    return grpc.dynamic_ssl_server_credentials(
        files.read(),
        files.changed,  # type: ignore[arg-type]  # None means as before, which its stubs do not know
        require_client_authentication=True,
    )


def names(auth_context: Mapping[str, Iterable[bytes]]) -> Names:
    """Return whom the certificate of a connected peer names, by what gRPC found in it."""

    def texts(key: str) -> list[str]:
        return [value.decode(errors="replace") for value in auth_context.get(key, ())]

    return Names.of(texts("peer_dns"), texts("peer_ip"), texts("x509_common_name"))


class _Files:
    """The PEM files, and what they were when they were last read."""

    def __init__(self, tls: TlsSection) -> None:
        self._tls = tls
        self._read: list[tuple[int, int]] = []
        self._said = ""
        self._log = structlog.get_logger("controlplane.agents")

    def read(self) -> grpc.ServerCertificateConfiguration:
        """Check and read the files."""
        self._read = self._stamps()
        self._tls.check(WHERE, "server")
        return grpc.ssl_server_certificate_configuration(
            [(self._tls.key.read_bytes(), self._tls.cert.read_bytes())],
            root_certificates=self._tls.ca.read_bytes(),
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return them where they have changed and can be used; gRPC asks at every connection."""
        try:
            new = self.read() if self._stamps() != self._read else None
        except (UserError, OSError) as error:
            # As long as a file is missing, every handshake comes here: anybody can make many.
            if str(error) != self._said:
                self._said = str(error)
                self._log.warning("new certificates cannot be used; the old ones stay", reason=self._said)
            return None
        self._said = ""
        return new

    def _stamps(self) -> list[tuple[int, int]]:
        found = [path.stat() for path in (self._tls.cert, self._tls.key, self._tls.ca)]
        return [(stat.st_mtime_ns, stat.st_ino) for stat in found]
