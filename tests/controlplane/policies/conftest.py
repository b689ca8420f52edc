"""The loops of a ranking: plain here, compiled where ``test_compiled.py`` runs these tests again."""

import os

import pytest

from controlplane.policies.tables import Tables


@pytest.fixture(scope="session")
def kind():
    return Tables(compiled=os.environ["NUMBA_DISABLE_JIT"] == "0")
