"""Each test here runs in namespaces of its own (network, PID, mount), as PID 1 of which pytest starts anew.

So a test that fails half-way, or is killed, leaves nothing behind, and nothing it does is seen outside.
"""

import functools
import json
import os
import tempfile
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console

import p4src
from controlplane import config
from controlplane.desired import setups
from controlplane.southbound import Fabric, Target
from leveller.errors import UserError
from topo import demo, mininet, namespace, scenario
from topo.files import Policy
from topo.lab import Lab

REPORTS = "LEVELLER_TEST_REPORTS"
"""Environment variable: the file into which the inner pytest writes its reports."""


def pytest_configure():
    if namespace.inside():
        namespace.prepare()


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(400))
            if os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason="the lab needs root"))


def pytest_generate_tests(metafunc):
    """Every test that takes ``kind`` runs on both switches, where bmv2 is installed."""
    if "kind" in metafunc.fixturenames:
        bmv2 = pytest.param("bmv2", marks=[pytest.mark.skip(reason=reason)] if (reason := missing()) else [])
        metafunc.parametrize("kind", ["softswitch", bmv2])


@functools.cache
def missing():
    """Why bmv2 cannot be used here; None when it can."""
    try:
        mininet.Bmv2.executable()
    except UserError as error:
        return str(error)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if namespace.inside() or not item.get_closest_marker("lab") or item.get_closest_marker("skip"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_in_namespace(item):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if namespace.inside() and (path := os.environ.get(REPORTS)):
        data = _config.hook.pytest_report_to_serializable(config=_config, report=report)
        with Path(path).open("a") as file:
            file.write(json.dumps(data) + "\n")


def pytest_sessionstart(session):
    global _config
    _config = session.config


def run_in_namespace(item):
    """Run one test in fresh namespaces; yield its reports."""
    with tempfile.TemporaryDirectory() as directory:
        reports, output = Path(directory, "reports"), Path(directory, "output")
        with output.open("wb") as stream:
            code = namespace.run(
                namespace.python("pytest", "-p", "no:cacheprovider", item.nodeid),
                cwd=item.config.rootpath,
                environment={REPORTS: str(reports)},
                output=stream,
            )
        lines = reports.read_text().splitlines() if reports.exists() else []
        found = [
            item.config.hook.pytest_report_from_serializable(config=item.config, data=json.loads(line))
            for line in lines
        ]
        if not any(report.when == "teardown" for report in found):
            text = output.read_text(errors="replace")
            found.append(
                pytest.TestReport(
                    item.nodeid,
                    item.location,
                    {},
                    "failed",
                    f"the test's namespace ended with code {code}\n{text}",
                    "call",
                )
            )
        yield from found


@pytest.fixture
def directory():
    """A fresh directory for a lab's files."""
    return Path(tempfile.mkdtemp(dir=namespace.DIRECTORY))


@pytest.fixture
def start_lab(kind, directory):
    """``start_lab(scenario, policy)``: a lab with controller, agents and the scenario's jobs, which begin."""
    with ExitStack() as labs:

        def start(wanted, policy="leveller"):
            lab = labs.enter_context(Lab(wanted.fabric.build(), kind, directory))
            lab.start_controller(Policy(policy, intensity=wanted.intensities()))
            lab.start_agents()
            lab.wait_ready()
            lab.start_jobs(wanted)
            return lab

        yield start


@pytest.fixture
def measure(kind):
    """``measure(scenario, policy)``: one policy, measured by the demonstration.

    On softswitch from the second minute on. On bmv2 sooner, so that both together take no hour.
    """

    def run(name, policy, warmup=60.0, seconds=45.0):
        if kind == "bmv2":
            warmup, seconds = min(warmup, 30.0), 40.0
        plan = demo.Plan(name, scenario.find(name), [policy], kind, "fabric", warmup, seconds)
        (outcome,) = demo.run(plan, Console(quiet=True))
        print(outcome)  # noqa: T201 (seen with pytest -rP)
        return outcome

    return run


@pytest.fixture
def connected_fabric():
    """``connected_fabric(lab)``: the controller's own southbound as primary of the lab's switches.

    Yields it, and each switch's configured set-up by name.
    """

    @asynccontextmanager
    async def connect(lab):
        loaded = config.load(lab.write_config(Policy("leveller")))
        targets = [Target(switch.name, switch.address, switch.device_id) for switch in loaded.switches]
        async with Fabric(targets, p4src.program("v1model")) as fabric:
            await fabric.connected()
            yield fabric, setups(loaded)

    return connect


@pytest.fixture(autouse=True)
def nothing_left():
    """A lab that has stopped leaves no process, interface or file but the test's own directory."""
    yield
    assert Path("/proc/1/task/1/children").read_text() == ""
    assert {path.name for path in Path("/sys/class/net").iterdir()} == {"lo"}
