"""The controller's systemd unit."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

import controlplane

UNIT = Path(controlplane.__file__).with_name("systemd") / "leveller-controller.service"


def test_the_unit_starts_the_controller_without_any_right():
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str
    parser.read_string(UNIT.read_text())
    service = parser["Service"]
    assert service["ExecStart"].split()[1:] == ["controller", "--config", "/etc/leveller/leveller.toml"]
    assert (service["DynamicUser"], service["CapabilityBoundingSet"]) == ("yes", "")
    assert "AmbientCapabilities" not in service
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"
    assert service["RestartPreventExitStatus"] == "2"  # a mistake in the configuration


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/leveller/bin/leveller", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
