"""Programs to run: through our compiler, and through bmv2 where it is installed."""

import shutil

import pytest

from tests.softswitch.bmv2 import Bmv2
from tests.softswitch.ours import Ours


@pytest.fixture
def ours():
    return Ours


@pytest.fixture
def both(request):
    """``both(name)``: (our switch, bmv2) with the program of that name; skips where bmv2 is not installed."""

    def start(name):
        if shutil.which("simple_switch_grpc") is None:
            pytest.skip("simple_switch_grpc is not on PATH")
        reference = Bmv2(name)
        request.addfinalizer(reference.close)
        return Ours(name), reference

    return start
