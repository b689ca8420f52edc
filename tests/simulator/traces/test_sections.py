from pathlib import Path

import pytest
from pydantic import ValidationError

from simulator.profiles import COMPLETE
from simulator.traces.sections import AcmeTrace, LingjunPeak, LingjunTrace


def test_paths_are_relative_to_the_scenario():
    found = LingjunTrace(kind="lingjun", jobs=Path("a/job.csv"), workers=Path("/w.csv")).within(Path("/x"))
    assert found.files == (Path("/x/a/job.csv"), Path("/w.csv"))
    assert AcmeTrace(kind="acme", jobs=Path("k.csv")).within(Path("/x")).files == (Path("/x/k.csv"),)
    assert LingjunPeak(kind="lingjun-peak").within(Path("/x")).files == ()


def test_profiles():
    assert LingjunPeak(kind="lingjun-peak").profiles == list(COMPLETE)
    with pytest.raises(ValidationError, match="there is no profile 'gpt-9': choose from vgg16, "):
        LingjunPeak(kind="lingjun-peak", profiles=["gpt-9"])
    with pytest.raises(ValidationError, match="profile 'bert' has no public compute time"):
        LingjunPeak(kind="lingjun-peak", profiles=["vgg16", "bert"])


def test_a_window_in_the_wrong_order():
    with pytest.raises(ValidationError, match="put the earlier time first"):
        AcmeTrace(kind="acme", jobs=Path("k.csv"), window_s=(10, 5))
