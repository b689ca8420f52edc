"""The generated modules are what the protocol's source makes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_modules_are_current(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = ("python_out=", "mypy_out=quiet:", "grpc_python_out=", "mypy_grpc_out=quiet:")
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "proto"]
    command += [f"--{output}{tmp_path}" for output in outputs]
    command.append("proto/leveller_proto/agent.proto")
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, check=True)
    made = sorted((tmp_path / "leveller_proto").iterdir())
    assert len(made) == 4
    for new in made:
        assert new.read_text() == (ROOT / "proto/leveller_proto" / new.name).read_text(), "run: make proto"
