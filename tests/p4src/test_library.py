"""level_control.p4 in somebody else's pipeline: it compiles with nothing of ours around it, and works."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import MappingProxyType

import pytest

from p4src import ROOT, Program
from p4src.build_program import COMPILER
from tests.p4src.lab import DEVICE_ID, Lab, find_switch
from tests.p4src.network import Network, data

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed here")


@pytest.fixture(params=["softswitch", "bmv2"])
def operator(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    from tests.p4src.runtime import Runtime

    command = find_switch(request.param)
    if command is None:
        pytest.skip(f"{request.param} is not installed here")
    program = Program(
        json=tmp_path / "operator.json",
        p4info=tmp_path / "operator.p4info.txtpb",
        manifest=tmp_path / "none",
        constants=MappingProxyType({}),
    )
    subprocess.run(
        [COMPILER, "--std", "p4-16", "--Werror", "--Wdisable=unused", "-I", str(ROOT / "v1model"),
         "--p4runtime-files", str(program.p4info), "-o", str(program.json),
         str(Path(__file__).with_name("operator.p4"))],
        check=True,
    )  # fmt: skip
    lab = Lab(command, program.json, ports=2)
    runtime = Runtime(lab.address, DEVICE_ID, program)
    yield Network(lab, runtime)
    runtime.close()
    lab.close()


def test_operator_pipeline_gets_levels(operator: Network) -> None:
    operator.levels()
    frame = data(udp=True)
    assert operator.level_seen(frame) == 1
    group, _ = operator.flow(frame)
    operator.level(group, 6)
    assert operator.level_seen(frame) == 6
