import pytest

from softswitch.errors import Code, TableError
from softswitch.replication import CloneSessions, MulticastGroups, Replica


def fails(code, operation, *args):
    with pytest.raises(TableError) as error:
        operation(*args)
    assert error.value.code == code


@pytest.mark.parametrize("kind", [MulticastGroups, CloneSessions])
def test_insert_modify_delete(kind):
    table = kind()
    fails(Code.NOT_FOUND, table.modify, 1, [(1, 1)])
    fails(Code.NOT_FOUND, table.delete, 1)
    table.insert(1, [(1, 1)])
    fails(Code.ALREADY_EXISTS, table.insert, 1, [])
    fails(Code.INVALID_ARGUMENT, table.modify, 1, [(1, 1), (1, 1)])
    table.modify(1, [(2, 1)])
    table.delete(1)
    fails(Code.NOT_FOUND, table.get, 1)


def test_copies_leave_by_instance_then_port():
    groups = MulticastGroups()
    groups.insert(1, [(3, 2), (1, 2), (2, 1)])
    assert groups.get(1) == (Replica(1, 2), Replica(2, 1), Replica(2, 3))
    fails(Code.INVALID_ARGUMENT, groups.insert, 0, [])
