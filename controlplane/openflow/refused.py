"""What an OpenFlow switch refuses, in the words of P4Runtime, which all that is above the session goes by."""

from __future__ import annotations

from typing import Any

from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Error
from os_ken.ofproto import ofproto_v1_3 as of

_CODES = {
    (of.OFPET_FLOW_MOD_FAILED, of.OFPFMFC_TABLE_FULL): GRPCStatusCode.RESOURCE_EXHAUSTED,
    (of.OFPET_GROUP_MOD_FAILED, of.OFPGMFC_OUT_OF_GROUPS): GRPCStatusCode.RESOURCE_EXHAUSTED,
    (of.OFPET_METER_MOD_FAILED, of.OFPMMFC_OUT_OF_METERS): GRPCStatusCode.RESOURCE_EXHAUSTED,
    # What shows that the switch does not hold what was thought: it is read back.
    (of.OFPET_GROUP_MOD_FAILED, of.OFPGMFC_GROUP_EXISTS): GRPCStatusCode.ALREADY_EXISTS,
    (of.OFPET_GROUP_MOD_FAILED, of.OFPGMFC_UNKNOWN_GROUP): GRPCStatusCode.NOT_FOUND,
    (of.OFPET_METER_MOD_FAILED, of.OFPMMFC_METER_EXISTS): GRPCStatusCode.ALREADY_EXISTS,
    (of.OFPET_METER_MOD_FAILED, of.OFPMMFC_INVALID_METER): GRPCStatusCode.NOT_FOUND,
    (of.OFPET_METER_MOD_FAILED, of.OFPMMFC_UNKNOWN_METER): GRPCStatusCode.NOT_FOUND,
}


class RefusedError(Exception):
    """An ``OFPT_ERROR``."""

    def __init__(self, message: Any) -> None:  # noqa: ANN401
        self.type, self.code = message.type, message.code
        kind = of.ofp_error_type_to_str(self.type)
        super().__init__(f"{kind}: {of.ofp_error_code_to_str(self.type, self.code)}")

    def as_p4(self) -> P4Error:
        """Return it as the P4Runtime error that says the same, which ledger and room go by."""
        return p4_error(_CODES.get((self.type, self.code), GRPCStatusCode.INVALID_ARGUMENT), str(self))


def p4_error(code: GRPCStatusCode, text: str) -> P4Error:
    """Return a P4Runtime error of a single update."""
    return P4Error(canonical_code=code, message=text, space="openflow", code=0)
