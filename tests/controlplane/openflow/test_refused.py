import pytest
from finsy.grpcutil import GRPCStatusCode
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controlplane.openflow.refused import RefusedError


@pytest.mark.parametrize(
    ("kind", "code", "expected", "text"),
    [
        (
            of.OFPET_FLOW_MOD_FAILED, of.OFPFMFC_TABLE_FULL, GRPCStatusCode.RESOURCE_EXHAUSTED,
            "OFPET_FLOW_MOD_FAILED(5): OFPFMFC_TABLE_FULL(1)",
        ),
        (
            of.OFPET_GROUP_MOD_FAILED, of.OFPGMFC_UNKNOWN_GROUP, GRPCStatusCode.NOT_FOUND,
            "OFPET_GROUP_MOD_FAILED(6): OFPGMFC_UNKNOWN_GROUP(8)",
        ),
        (
            of.OFPET_BAD_ACTION, of.OFPBAC_BAD_OUT_PORT, GRPCStatusCode.INVALID_ARGUMENT,
            "OFPET_BAD_ACTION(2): OFPBAC_BAD_OUT_PORT(4)",
        ),
    ],
)  # fmt: skip
def test_a_refusal_has_the_code_that_the_ledger_goes_by(kind, code, expected, text):
    error = RefusedError(parser.OFPErrorMsg(None, type_=kind, code=code, data=b"")).as_p4()
    assert (error.canonical_code, error.message, error.space) == (expected, text, "openflow")
