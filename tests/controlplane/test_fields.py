import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.fields import Address, GrpcAddress, Interface, Mac, Network, Port, known, unique


@pytest.mark.parametrize(
    ("kind", "good", "bad", "says"),
    [
        (Address, "[::1]:9559", "::1", "is not HOST:PORT"),
        (Address, "h:65535", "h:65536", "is not HOST:PORT"),
        (Address, "h:0", " h:1", "' h:1' is not HOST:PORT"),
        (Address, "[::1]:1", "h:1\n", "is not HOST:PORT"),
        (Address, "h:1", "h:" + 5000 * "9", "'h:9{78}[.]{3}' is not HOST:PORT"),
        (GrpcAddress, "unix:/run/x", "unix:x", "is not HOST:PORT"),
        (Mac, "02:00:00:00:00:0a", "2:0:0:0:0:a", "is not a MAC address"),
        (Mac, "00:00:5e:00:01:01", "ff:ff:ff:ff:ff:ff", "is a group's address; give that of one interface"),
        (Mac, "fe:00:00:00:00:01", "01:00:5e:00:00:01", "is a group's address"),
        (Network, "10.0.0.0/8", 167772160, "167772160 is not a network, such as '10.0.2.0/24'"),
        (Network, "fe80::/64", "fe80::1%eth0/128", "is not a network"),
        (Port, 0, "1", "should be a valid integer"),
        (Port, 65279, True, "should be a valid integer"),
        (Port, 1, 1.0, "should be a valid integer"),
        (Interface, "s1-eth1", "", "at least 1 character"),
        (Interface, "fifteen-letters", "sixteen--letters", "at most 15 characters"),
        (Network, "fd00::/64", "10.0.1.1/24", "has host bits set; give a network"),
    ],
)
def test_kinds(kind, good, bad, says):
    adapter = TypeAdapter(kind)
    assert str(adapter.validate_python(good)) == str(good)
    with pytest.raises(ValidationError, match=says):
        adapter.validate_python(bad)


def test_known_names_what_there_is():
    assert known("a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="'c' is not known; give one of: a, b"):
        known("c", ("a", "b"))


def test_unique_names_what_is_there_twice():
    unique("ports", [1, 2, 3])
    with pytest.raises(ValueError, match="ports has 2 twice"):
        unique("ports", [1, 2, 2])
