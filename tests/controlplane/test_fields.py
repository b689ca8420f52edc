import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.fields import Address, GrpcAddress, Mac, Network, known, unique


@pytest.mark.parametrize(
    ("kind", "good", "bad", "says"),
    [
        (Address, "[::1]:9559", "::1", "is not HOST:PORT"),
        (Address, "h:65535", "h:65536", "is not HOST:PORT"),
        (GrpcAddress, "unix:/run/x", "unix:x", "is not HOST:PORT"),
        (Mac, "02:00:00:00:00:0a", "2:0:0:0:0:a", "is not a MAC address"),
        (Network, "fd00::/64", "10.0.1.1/24", "has host bits set; give a network"),
    ],
)
def test_kinds(kind, good, bad, says):
    adapter = TypeAdapter(kind)
    assert str(adapter.validate_python(good)) == good
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
