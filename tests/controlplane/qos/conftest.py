"""A configuration with two switches, its levels marked or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane import config

TEXT = """\
[levels]
count = 3
queues = [0, 2, 5]
control_queue = 7
{dscp}
[[switches]]
name = "S1"
address = "10.0.0.1:9339"
device_id = 1
node_id = 1
ports = [132, 140]

[[switches]]
name = "S2"
address = "10.0.0.2:9339"
device_id = 2
node_id = 2
ports = [8]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file, levels unmarked."""
    file = tmp_path / "leveller.toml"
    file.write_text(TEXT.format(dscp=""))
    return file


@pytest.fixture
def unmarked(path: Path) -> config.Config:
    return config.load(path)


@pytest.fixture
def marked(path: Path) -> config.Config:
    """DSCP 10, 18, 26: assured forwarding classes 1, 2 and 3."""
    path.write_text(TEXT.format(dscp="dscp = [10, 18, 26]"))
    return config.load(path)
