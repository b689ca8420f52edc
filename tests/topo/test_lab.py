"""What a lab refuses; labs that run are in mininet-tests."""

import pytest

from leveller.errors import UserError
from topo import fabric, namespace
from topo.lab import Lab

FABRIC = fabric.pair(1, 100_000_000, 1_000_000_000)


def test_outside_its_namespace_there_is_no_lab():
    with pytest.raises(UserError, match="a lab runs in its own namespace"):
        Lab(FABRIC)


def test_an_unknown_switch_lists_those_there_are(monkeypatch):
    monkeypatch.setattr(namespace, "inside", lambda: True)
    with pytest.raises(UserError, match="there is no switch 'tofino': choose one of softswitch, bmv2"):
        Lab(FABRIC, "tofino")
