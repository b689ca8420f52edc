import pytest

from controlplane.policies import POLICIES, Scope
from leveller.errors import UserError
from simulator.policies import SIMULATED, choose
from simulator.scenario import PolicySection


def test_the_controllers_policies_are_there_unchanged():
    for name, levels in POLICIES.items():
        assert SIMULATED[name].levels is levels
    assert {name for name, policy in SIMULATED.items() if policy.by_progress} == {
        "leveller", "leveller+hermod", "leveller-host", "symphony_like",
    }  # fmt: skip


def test_settings_of_the_published_system():
    settings = PolicySection(tau_s=0.25, scope=Scope.PORT, levels=4)
    assert choose("leveller", settings)[1] is settings
    host = choose("leveller-host", settings)[1]
    assert (host.tau_s, host.stall_s, host.scope, host.levels) == (60, 0.005, Scope.FABRIC, 4)


def test_an_unknown_name():
    with pytest.raises(UserError, match="no policy 'magic': choose one of cassini, crux, fair"):
        choose("magic", PolicySection())
