"""``network``: the compiled program on each real switch there is, in a private network namespace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import p4src
from tests.p4src.lab import DEVICE_ID, Lab, find_switch
from tests.p4src.network import Network
from tests.p4src.runtime import Runtime


@pytest.fixture(scope="session", params=["softswitch", "bmv2"])
def running(request: pytest.FixtureRequest) -> Iterator[Network]:
    command = find_switch(request.param)
    if command is None:
        pytest.skip(f"{request.param} is not installed here")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    program = p4src.program("v1model")
    lab = Lab(command, Path(program.json))
    try:
        runtime = Runtime(lab.address, DEVICE_ID, program)
        yield Network(lab, runtime)
        runtime.close()
    finally:
        lab.close()


@pytest.fixture
def network(running: Network) -> Iterator[Network]:
    """A switch with nothing written, and its wires empty."""
    for wire in running.lab.wires.values():
        wire.drain()
    yield running
    running.runtime.reset()
