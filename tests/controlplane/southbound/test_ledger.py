import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Error

from controlplane.southbound.diff import Change
from controlplane.southbound.ledger import DriftError, Ledger
from controlplane.southbound.tables import Call

LEVEL = Call("set_level", (1, 0, 0))
HOST, FABRIC = Call("host_facing"), Call("fabric_facing")


def error(code, message=""):
    return P4Error(code, message, "", 0)


def insert(group, call=LEVEL):
    return Change("group_level", (0, group), call, replace=False)


def delete(group):
    return Change("group_level", (0, group), None)


FULL = error(GRPCStatusCode.RESOURCE_EXHAUSTED, "table is full")


@pytest.fixture
def ledger():
    return Ledger({"group_level": {(0, 9): LEVEL}, "edge_port": {}})


def test_what_is_acknowledged_is_held(ledger):
    ledger.note([insert(1), delete(9)], {}, strict=True)
    assert ledger.contents["group_level"] == {(0, 1): LEVEL}


def port(number, call=HOST):
    return Change("edge_port", (number,), call, replace=False)


def test_mixed_results_keep_what_was_applied(ledger):
    ledger.note([port(1), port(2), port(3)], {1: FULL}, strict=True)
    assert set(ledger.contents["edge_port"]) == {(1,), (3,)}
    assert ledger.refused == {("edge_port", (2,)): HOST}
    assert ledger.reason == "edge_port: RESOURCE_EXHAUSTED table is full"


def test_a_refused_row_is_not_tried_again_until_it_differs_or_there_is_room(ledger):
    gone = Change("edge_port", (2,), None)
    ledger.note([port(1), port(2)], {1: FULL}, strict=True)
    assert list(ledger.worth_writing([port(2), port(3), gone])) == [port(3), gone]
    assert list(ledger.worth_writing([port(2, FABRIC)])) == [port(2, FABRIC)]
    ledger.note([delete(9)], {}, strict=True)  # room in another table
    assert list(ledger.worth_writing([port(2)])) == []
    ledger.note([Change("edge_port", (1,), None)], {}, strict=True)
    assert list(ledger.worth_writing([port(2)])) == [port(2)]
    assert ledger.refused == {}


@pytest.mark.parametrize("code", [GRPCStatusCode.RESOURCE_EXHAUSTED, GRPCStatusCode.UNKNOWN])
def test_rows_that_give_way_to_each_other_and_found_no_room_are_told_apart(ledger, code):
    change = Change("group_level", (0, 9), LEVEL, replace=True)
    ledger.note([insert(1), insert(2), change], {1: error(code), 2: error(code)}, strict=True)
    assert ledger.refused == {("group_level", (0, 9)): LEVEL}  # a modification needs no room
    assert ledger.take_no_room() == {("group_level", (0, 2)): LEVEL}
    assert ledger.take_no_room() == {}
    ledger.note([insert(3)], {0: error(GRPCStatusCode.INVALID_ARGUMENT)}, strict=True)
    assert ledger.take_no_room() == {}


@pytest.mark.parametrize("code", [GRPCStatusCode.NOT_FOUND, GRPCStatusCode.ALREADY_EXISTS])
def test_drift_is_told_after_the_rest_is_noted_and_once_only_where_strict(ledger, code):
    with pytest.raises(DriftError, match=code.name):
        ledger.note([insert(1), insert(2)], {0: error(code)}, strict=True)
    assert (0, 2) in ledger.contents["group_level"]
    assert ledger.refused == {}
    ledger.note([insert(1)], {0: error(code)}, strict=False)
    assert ledger.refused == {("group_level", (0, 1)): LEVEL}


def test_deleting_what_is_not_there_is_as_good(ledger):
    ledger.note([delete(9)], {0: error(GRPCStatusCode.NOT_FOUND)}, strict=True)
    assert ledger.contents["group_level"] == {}


def test_a_row_that_is_taken_after_all_is_no_refusal_any_more(ledger):
    ledger.note([port(1), port(2)], {0: FULL, 1: FULL}, strict=True)
    assert ledger.refused == {("edge_port", (1,)): HOST, ("edge_port", (2,)): HOST}
    ledger.note([port(2, FABRIC)], {}, strict=True)
    assert ledger.refused == {("edge_port", (1,)): HOST}


def test_a_refused_row_that_is_not_wanted_as_it_is_is_forgotten(ledger):
    ledger.note([port(1), port(2), port(3)], dict.fromkeys(range(3), FULL), strict=True)
    ledger.forget_unwanted({"edge_port": {(1,): HOST, (2,): FABRIC}, "group_level": {(3,): HOST}})
    assert ledger.refused == {("edge_port", (1,)): HOST}
    ledger.forget_unwanted({})
    assert ledger.refused == {}
