"""``softswitch``: opens ports, starts the P4Runtime server, forwards packets, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from pyroute2 import IPRoute

from leveller.errors import UserError
from leveller.signals import stop_signals
from softswitch import compiler, logs, offloads, options, queues
from softswitch.dataplane import Dataplane
from softswitch.p4runtime import server
from softswitch.p4runtime.device import Device
from softswitch.p4runtime.notifications import Notifier
from softswitch.pcap import Capture
from softswitch.pipeline import Pipeline
from softswitch.ports import Port

_log = structlog.get_logger(__name__)

_SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread gives up Python's lock: what a Write may hold packets up, and the reverse."""
_GRACE = 0.5
"""Seconds that calls in progress are given at the end."""


def main() -> None:
    """Entry point of the ``softswitch`` command."""
    try:
        run(sys.argv[1:])
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def run(argv: Sequence[str]) -> None:
    """Run the switch until SIGINT, SIGTERM or SIGHUP. Raises UserError for what the user can mend."""
    given = options.parse(argv)
    logs.configure(given.log_level, given.log)
    if given.ignored is not None:
        _log.warning("--no-p4: the program on the command line is ignored", program=str(given.ignored))
    pipeline = _compile(given.config, given.queues) if given.config else None
    if given.dump_python and pipeline is not None:
        sys.stdout.write(pipeline.source)
        return
    if os.geteuid() != 0:
        raise UserError("packets can be received and sent only by root", "run as root")
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with contextlib.ExitStack() as stack:
        _on_signals(_interrupt)
        dataplane = Dataplane(_open_ports(given, stack), queues=given.queues, cpu_port=given.cpu_port)
        device = Device(given.device_id, dataplane)
        dataplane.on_packet_in = device.packet_in
        if given.pcap is not None:
            _capture(dataplane, given.interfaces, given.pcap, stack)
        if pipeline is not None:
            dataplane.load(pipeline)
        grpc_server, _ = server.start(device, given.grpc_address, given.tls)
        stack.callback(lambda: grpc_server.stop(_GRACE).wait())
        notifier = Notifier(device, dataplane)
        notifier.start()
        stack.callback(notifier.stop)
        if not given.device_id:
            _log.warning("the device id is 0, which P4Runtime 1.5 forbids; give one with --device-id")
        _on_signals(lambda *_: dataplane.stop())
        _log.info("ready", device_id=given.device_id, p4runtime=given.grpc_address, ports=given.interfaces)
        dataplane.run()
        _log.info("stopping")


def _open_ports(given: options.Options, stack: contextlib.ExitStack) -> list[Port]:
    """Open every port, its queues set up and its offloads off; ``stack`` undoes all of it."""
    netlink = stack.enter_context(IPRoute())
    backlog = queues.Backlog()
    stack.callback(backlog.close)
    ports = []
    for number, interface in sorted(given.interfaces.items()):
        port = Port(number, interface, given.queues, given.depth, backlog)
        stack.callback(_close, port)
        stack.callback(offloads.restore, interface, offloads.disable(interface))
        wanted = queues.PortQueues(interface, given.queues, given.rates.get(number), given.depth)
        stack.callback(queues.remove, netlink, interface)
        queues.install(netlink, wanted)
        ports.append(port)
    return ports


def _capture(
    dataplane: Dataplane, interfaces: dict[int, str], directory: Path, stack: contextlib.ExitStack
) -> None:
    """Write every port's packets into ``directory``, until ``stack`` ends."""
    for number, interface in interfaces.items():
        capture = dataplane.captures[number] = Capture(directory, interface)
        stack.callback(capture.close)


def _close(port: Port) -> None:
    port.read_kernel_losses()
    if +port.lost:
        _log.info("packets lost", port=port.number, interface=port.interface, lost=dict(+port.lost))
    port.close()


def _compile(path: Path, count: int) -> Pipeline:
    """Compile a program given on the command line. Raises UserError."""
    try:
        return compiler.compile_program(path.read_bytes(), count)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "give the JSON that p4c wrote") from None
    except compiler.Unsupported as error:
        raise UserError(f"{path}: {error}", "change the program, or run it on bmv2") from None
    except (ValueError, RecursionError) as error:  # the latter: nested deeper than Python goes
        raise UserError(
            f"{path} is not what p4c writes for v1model ({error})", "compile it with p4c"
        ) from None


def _on_signals(handler: Callable[..., None]) -> None:
    for number in stop_signals():
        signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
