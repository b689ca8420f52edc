"""Client arbitration, rule by rule (spec, Client Arbitration and Controller Replication)."""

import threading

import pytest
from finsy.proto import U128, p4r, rpc_code, stratum
from grpc import StatusCode

from softswitch.p4runtime.arbitration import MAX_STREAMS, Arbitration
from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.session import Session

DEVICE = 7


class Client(Session):
    """A session whose notifications are kept instead of streamed."""

    def __init__(self):
        super().__init__()
        self.told = []

    def send(self, message):
        self.told.append(message.arbitration)

    @property
    def last(self):
        return rpc_code.Code.Name(self.told[-1].status.code)


def update(election_id, device=DEVICE, role=None, config=None):
    message = p4r.MasterArbitrationUpdate(device_id=device)
    if election_id is not None:
        message.election_id.CopyFrom(U128.encode(election_id))
    if role is not None:
        message.role.name = role
    if config is not None:
        message.role.config.Pack(config)
    return message


def write(election_id, device=DEVICE, role=""):
    request = p4r.WriteRequest(device_id=device, role=role)
    if election_id is not None:
        request.election_id.CopyFrom(U128.encode(election_id))
    return request


@pytest.fixture
def arbitration():
    return Arbitration(DEVICE)


def code(arbitration, client, message):
    with pytest.raises(P4Error) as caught:
        arbitration.update(client, message)
    return caught.value.code


def refused(arbitration, request):
    with pytest.raises(P4Error) as caught:
        arbitration.authorize(request)
    return caught.value.code


def test_the_only_client_becomes_primary(arbitration):
    client = Client()
    arbitration.update(client, update(5))
    assert client.last == "OK"
    assert U128.decode(client.told[-1].election_id) == 5
    assert arbitration.is_primary(client)
    assert arbitration.authorize(write(5)).everything


def test_a_lower_id_is_backup_and_only_it_is_told(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(5))
    arbitration.update(second, update(4))
    assert second.last == "ALREADY_EXISTS"
    assert U128.decode(second.told[-1].election_id) == 5
    assert len(first.told) == 1
    assert refused(arbitration, write(4)) is StatusCode.PERMISSION_DENIED


def test_a_higher_id_takes_over_and_both_are_told(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(5))
    arbitration.update(second, update((1 << 64) + 1))
    assert first.last == "ALREADY_EXISTS"
    assert second.last == "OK"
    assert first.told[-1].election_id == p4r.Uint128(high=1, low=1)
    assert refused(arbitration, write(5)) is StatusCode.PERMISSION_DENIED
    arbitration.authorize(write((1 << 64) + 1))


def test_after_the_primary_has_gone_there_is_none_until_someone_asserts_the_highest_id(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(5))
    arbitration.update(second, update(4))
    arbitration.disconnect(first)
    assert second.last == "NOT_FOUND"
    assert U128.decode(second.told[-1].election_id) == 5
    assert refused(arbitration, write(4)) is StatusCode.PERMISSION_DENIED
    arbitration.update(second, update(4))  # still below the highest ever seen
    assert second.last == "NOT_FOUND"
    arbitration.update(second, update(5))
    assert second.last == "OK"
    arbitration.authorize(write(5))


def test_a_primary_may_step_down(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(5))
    arbitration.update(second, update(4))
    arbitration.update(first, update(3))
    assert first.last == second.last == "NOT_FOUND"
    assert refused(arbitration, write(3)) is StatusCode.PERMISSION_DENIED
    arbitration.update(first, update(None))
    assert first.last == "NOT_FOUND"


def test_an_unset_id_is_never_primary_and_differs_from_zero(arbitration):
    unset, zero = Client(), Client()
    arbitration.update(unset, update(None))
    assert unset.last == "NOT_FOUND"
    assert not unset.told[-1].HasField("election_id")
    arbitration.update(zero, update(0))
    assert zero.last == "OK"
    assert zero.told[-1].HasField("election_id")
    assert unset.told[-1].HasField("election_id")
    assert unset.last == "ALREADY_EXISTS"
    arbitration.authorize(write(0))
    assert refused(arbitration, write(None)) is StatusCode.PERMISSION_DENIED
    another = Client()
    arbitration.update(another, update(None))  # unset ids do not collide
    assert another.last == "ALREADY_EXISTS"


def test_an_id_in_use_ends_the_stream(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(5))
    assert code(arbitration, second, update(5)) is StatusCode.INVALID_ARGUMENT
    arbitration.update(second, update(4))
    assert code(arbitration, second, update(5)) is StatusCode.INVALID_ARGUMENT
    assert arbitration.is_primary(first)
    arbitration.update(first, update(5))  # its own id is no duplicate
    assert first.last == "OK"
    assert second.last == "ALREADY_EXISTS"


def test_unknown_device_role_change_and_device_change(arbitration):
    client = Client()
    assert code(arbitration, client, update(1, device=8)) is StatusCode.NOT_FOUND
    arbitration.update(client, update(1))
    assert code(arbitration, client, update(1, device=8)) is StatusCode.FAILED_PRECONDITION
    assert code(arbitration, client, update(1, role="other")) is StatusCode.FAILED_PRECONDITION
    assert refused(arbitration, write(1, device=8)) is StatusCode.NOT_FOUND
    assert refused(arbitration, write(1, role="other")) is StatusCode.NOT_FOUND


def test_roles_have_primaries_of_their_own_with_their_rights(arbitration):
    full, limited = Client(), Client()
    config = stratum.P4RoleConfig(exclusive_p4_ids=[1], shared_p4_ids=[2], receives_packet_ins=True)
    arbitration.update(full, update(5))
    arbitration.update(limited, update(5, role="acl", config=config))
    assert full.last == limited.last == "OK"
    assert limited.told[-1].role.name == "acl"
    assert limited.told[-1].role.config.Is(stratum.P4RoleConfig.DESCRIPTOR)
    rights = arbitration.authorize(write(5, role="acl"))
    assert [rights.may_access(i) for i in (1, 2, 3)] == [True, True, False]
    assert not rights.can_push_pipeline
    assert arbitration.role_config("acl") == rights


def test_a_role_config_of_another_scheme_is_refused(arbitration):
    assert code(arbitration, Client(), update(1, role="x", config=p4r.Index())) is StatusCode.INVALID_ARGUMENT


def test_streams_are_limited(arbitration):
    for election_id in range(MAX_STREAMS):
        arbitration.update(Client(), update(election_id))
    assert code(arbitration, Client(), update(99)) is StatusCode.RESOURCE_EXHAUSTED


def test_a_new_primary_waits_for_the_write_in_flight(arbitration):
    first, second = Client(), Client()
    arbitration.update(first, update(1))
    with arbitration.write_lock:  # as a Write does
        thread = threading.Thread(target=arbitration.update, args=(second, update(2)))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert first.last == "ALREADY_EXISTS"  # told at once
        assert not second.told
        assert refused(arbitration, write(2)) is StatusCode.PERMISSION_DENIED
    thread.join()
    assert second.last == "OK"
