"""Runs in p4runtime-shell's own environment, never in ours: p4runtime-shell as a client that can only read.

Usage: python shell_start.py JSON, with device_id, address, and ca, cert, key, server_name or null each. The
stream takes a role of its own, whose configuration (stratum.P4RoleConfig) grants nothing, and asserts no
election id, which makes no client primary (P4Runtime specification, 5): a switch without roles takes it for
a backup. Reads name no role, and so show everything.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any, NoReturn

import grpc
from p4.v1 import p4runtime_pb2  # type: ignore[import-not-found]
from p4runtime_sh import p4runtime, shell  # type: ignore[import-not-found]

ROLE = "leveller-shell"
ROLE_CONFIG = "type.googleapis.com/stratum.P4RoleConfig"
"""An empty one: no table to write, no packet-in, no pipeline to push."""


class ReadOnlyClient(p4runtime.P4RuntimeClient):  # type: ignore[misc]
    """P4RuntimeClient without a claim to be primary, and without writes."""

    def handshake(self) -> None:
        """Open the stream as a reader; without one reads work all the same."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.role.name = ROLE
        request.arbitration.role.config.type_url = ROLE_CONFIG
        self.stream_out_q.put(request)
        reply = self.get_stream_packet("arbitration", timeout=2)
        has_roles = reply is not None and reply.arbitration.role.name == ROLE
        sys.stderr.write(f"read-only{', in a role of its own' if has_roles else ''}\n")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise PermissionError("this shell is read-only; levels are the controller's to write")

    write = write_update = set_fwd_pipe_config = _refuse


def main(settings: dict[str, Any]) -> None:
    """Open the shell; what is piped in is run line by line."""
    if settings["server_name"]:
        options = [("grpc.ssl_target_name_override", settings["server_name"])]
        p4runtime.grpc.secure_channel = partial(grpc.secure_channel, options=options)
    shell.P4RuntimeClient = ReadOnlyClient
    arguments = ["--device-id", str(settings["device_id"]), "--grpc-addr", settings["address"]]
    if settings["ca"]:
        arguments += ["--ssl", "--cacert", settings["ca"]]
        if settings["cert"]:
            arguments += ["--cert", settings["cert"], "--private-key", settings["key"]]
    sys.argv = ["p4runtime-shell", *arguments]
    shell.main()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
