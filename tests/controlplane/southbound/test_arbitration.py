import time

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import U128, p4r, rpc_status

from controlplane.southbound import SwitchError
from controlplane.southbound.arbitration import Election


def message(code, election_id=0):
    return p4r.MasterArbitrationUpdate(
        election_id=U128.encode(election_id), status=rpc_status.Status(code=code, message="because")
    )


def test_the_rank_is_the_upper_half_so_that_tools_do_not_depose_a_controller():
    assert Election(1).begin() > 2**64 - 1
    assert Election(2).begin() > Election(1).begin()
    assert Election(2).begin() >> 64 == 2


def test_primary_backup_and_back():
    election = Election(1)
    mine = election.begin()
    assert election.update(message(GRPCStatusCode.OK, mine)) is None
    assert election.primary
    assert election.update(message(GRPCStatusCode.ALREADY_EXISTS, mine + 5)) is None
    assert not election.primary
    assert election.update(message(GRPCStatusCode.OK, mine)) is None  # bmv2 promotes the next one by itself
    assert election.primary
    election.begin()
    assert not election.primary


def test_without_a_primary_backups_claim_more_than_the_highest_ever_and_not_the_same():
    claims = set()
    for rank in (1, 2, 3):
        election = Election(rank)
        election.begin()
        claim = election.update(message(GRPCStatusCode.NOT_FOUND, 9 << 64))
        assert claim == election.id > 9 << 64
        assert not election.primary
        claims.add(claim)
    assert len(claims) == 3


def test_a_decreased_id_does_not_lower_the_claim():
    election = Election(4)
    mine = election.begin()
    assert election.update(message(GRPCStatusCode.NOT_FOUND, 3)) > mine


def test_a_session_is_above_the_one_before_it_also_after_a_restart():
    election = Election(1)
    ids = [election.begin() for _ in range(100)]
    assert len(set(ids)) == 100
    assert ids == sorted(ids)
    assert {number >> 64 for number in ids} == {1}
    time.sleep(0.001)
    assert Election(1).begin() > ids[-1]


def test_an_unknown_status_ends_the_session():
    with pytest.raises(SwitchError, match=r"status 13 \(because\)"):
        Election(1).update(message(GRPCStatusCode.INTERNAL))
