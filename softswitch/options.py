"""The command line of ``softswitch``: simple_switch_grpc's, and the switch's own options for its queues."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from leveller.errors import UserError
from softswitch.logs import LEVELS, Destination
from softswitch.p4runtime.server import Tls
from softswitch.queues import MAX_QUEUES

_UNITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_MAX_PORT = 510
"""The highest port number: 9 bits, without simple_switch's drop port."""

_EPILOG = """\
Options after "--" are those that simple_switch_grpc has there; they may stand before it as well.

Queues are strict: a packet leaves queue N-1 first, queue 0 last (v1model's standard_metadata.priority). They
are the kernel's (an HTB on each interface, removed on exit). Without --port-rate a port is as fast as its
interface, and queues build only where the interface itself holds packets back (a veth never does).

Example:
  softswitch -i 1@veth1 -i 2@veth2 --device-id 1 --port-rate 100mbit leveller.json -- \\
      --grpc-server-addr 127.0.0.1:50051 --cpu-port 510 --priority-queues 8
"""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    interfaces: dict[int, str]
    """Port number -> interface."""
    device_id: int
    log_level: str
    log: Destination
    pcap: Path | None
    """The directory for the ports' packets."""
    config: Path | None
    """The compiled program to start with; None for --no-p4."""
    ignored: Path | None
    """The program that --no-p4 has ignored, as in simple_switch_grpc."""
    grpc_address: str
    cpu_port: int
    queues: int
    depth: int
    """Packets that each queue holds."""
    rates: dict[int, int]
    """Port number -> bit/s, for the ports that are limited."""
    dump_python: bool
    tls: Tls | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, as every command of this project does."""
        raise UserError(message, "see softswitch --help")


def parse(argv: Sequence[str]) -> Options:
    """Read the command line. Raises UserError naming the option that is wrong; --help exits."""
    # A directory belongs to --pcap only with "=", in simple_switch_grpc too.
    argv = ["--pcap=." if argument == "--pcap" else argument for argument in argv if argument != "--"]
    given = _parser().parse_args(argv)
    if not given.no_p4 and given.config is None:
        raise UserError(
            "there must be a CONFIG.json, or --no-p4",
            "give the JSON that p4c wrote, or --no-p4 to wait for a controller to push one",
        )
    config = None if given.no_p4 else given.config
    if given.dump_python and config is None:
        raise UserError("--dump-python has nothing to compile", "give a CONFIG.json, and not --no-p4")
    if given.log_console and given.log_file is not None:
        raise UserError("--log-console and --log-file exclude each other", "give one of them")
    if given.pcap is not None and not given.pcap.is_dir():
        raise UserError(f"--pcap={given.pcap} is no directory", "make it, or name another")
    interfaces: dict[int, str] = {}
    for number, name in given.interface:
        if number in interfaces or name in interfaces.values():
            raise UserError(f"-i {number}@{name} names a port or interface twice", "give each of them once")
        interfaces[number] = name
    if given.cpu_port in interfaces:
        raise UserError(
            f"--cpu-port {given.cpu_port} is also a port with an interface", "choose another number"
        )
    files = (given.grpc_server_cert, given.grpc_server_key, given.grpc_server_cacert)
    if not given.grpc_server_ssl and any(files):
        raise UserError("a certificate, key or CA without --grpc-server-ssl", "add --grpc-server-ssl")
    if given.grpc_server_ssl and not all(files[:2]):
        raise UserError(
            "--grpc-server-ssl wants the server's certificate and key",
            "give --grpc-server-cert FILE and --grpc-server-key FILE",
        )
    return Options(
        interfaces=interfaces,
        device_id=given.device_id,
        log_level=given.log_level,
        log=Destination(given.log_console, given.log_file, given.log_file_max_size, given.log_file_max_files),
        pcap=given.pcap,
        config=config,
        ignored=given.config if given.no_p4 else None,
        grpc_address=given.grpc_server_addr,
        cpu_port=given.cpu_port,
        queues=given.priority_queues,
        depth=given.queue_depth,
        rates=_rates(given.port_rate, interfaces),
        dump_python=given.dump_python,
        tls=Tls(*files) if given.grpc_server_ssl else None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="softswitch",
        usage="softswitch [-i PORT@INTERFACE ...] [options] (CONFIG.json | --no-p4) [-- target options]",
        description="Run a compiled v1model P4 program on Linux interfaces and serve P4Runtime.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG.json", help="program to start with")
    parser.add_argument(
        "--no-p4", action="store_true", help="start without a program; forward nothing until one is pushed"
    )
    parser.add_argument(
        "-i",
        "--interface",
        action="append",
        default=[],
        type=_interface,
        metavar="PORT@INTERFACE",
        help="attach an interface as a port; may be repeated",
    )
    parser.add_argument(
        "--device-id",
        type=_number(0, 2**64 - 1),
        default=0,
        metavar="N",
        help="P4Runtime device id; default: 0",
    )
    parser.add_argument("-L", "--log-level", choices=tuple(LEVELS), default="info", help="default: info")
    parser.add_argument("--log-console", action="store_true", help="log to stdout; default: to stderr")
    parser.add_argument(
        "--log-file", metavar="FILE", help="log to FILE.txt, and keep older files (FILE.1.txt ..)"
    )
    parser.add_argument("--log-flush", action="store_true", help="as it always is: flush by every line")
    parser.add_argument(
        "--log-file-max-size",
        type=_number(1000, 2**40),
        default=5 << 20,
        metavar="BYTES",
        help="put a log file away before it becomes larger; default: 5242880",
    )
    parser.add_argument(
        "--log-file-max-files",
        type=_number(0, 1000),
        default=3,
        metavar="N",
        help="older log files that are kept; default: 3",
    )
    parser.add_argument(
        "--pcap",
        type=Path,
        metavar="=DIR",
        help="write packets into DIR/INTERFACE_in.pcap and _out.pcap; default of DIR: .",
    )
    parser.add_argument(
        "--port-rate",
        action="append",
        default=[],
        metavar="[PORT@]RATE",
        help="limit ports to RATE bit/s (100mbit, 2.5gbit, 100000000): one port, or all that are not named",
    )
    parser.add_argument(
        "--queue-depth",
        type=_number(1, 100_000),
        default=64,
        metavar="PACKETS",
        help="packets that each queue holds; default: 64, as in bmv2",
    )
    parser.add_argument(
        "--dump-python", action="store_true", help="print the Python that CONFIG.json becomes, and exit"
    )
    target = parser.add_argument_group("target options")
    target.add_argument(
        "--grpc-server-addr",
        default="0.0.0.0:9559",
        metavar="HOST:PORT",
        help="serve P4Runtime there; default: 0.0.0.0:9559",
    )
    target.add_argument("--grpc-server-ssl", action="store_true", help="serve by TLS, and not without")
    for name, what in (
        ("cert", "the server's certificate"),
        ("key", "its key"),
        ("cacert", "CA whose certificates clients must show; default: they need none"),
    ):
        target.add_argument(f"--grpc-server-{name}", type=Path, metavar="PEM", help=what)
    target.add_argument(
        "--cpu-port", type=_number(1, _MAX_PORT), default=510, metavar="PORT", help="default: 510"
    )
    target.add_argument(
        "--priority-queues",
        type=_number(1, MAX_QUEUES),
        default=MAX_QUEUES,
        metavar="N",
        help=f"queues of each port, 1 to {MAX_QUEUES}; default: {MAX_QUEUES}",
    )
    return parser


def rate(text: str) -> int:
    """Read a rate in bit/s: a number with bit, kbit, mbit or gbit, or nothing, after it. Raises UserError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?bit)?", text.lower())
    value = round(float(match[1]) * _UNITS[match[2] or ""]) if match else 0
    if value < 8000:
        raise UserError(
            f"--port-rate {text!r} is not a rate", "give at least 8kbit, as in 100mbit or 2.5gbit"
        )
    return value


def _rates(given: Sequence[str], interfaces: dict[int, str]) -> dict[int, int]:
    rates: dict[int, int] = {}
    named: dict[int, int] = {}
    for text in given:
        port, at, value = text.rpartition("@")
        if not at:
            rates = dict.fromkeys(interfaces, rate(value))
        elif not port.isdecimal() or int(port) not in interfaces:
            raise UserError(f"--port-rate {text}: there is no port {port}", "name a port that -i attaches")
        else:
            named[int(port)] = rate(value)
    return rates | named


def _interface(text: str) -> tuple[int, str]:
    port, at, name = text.partition("@")
    if not at or not name or not port.isdecimal() or int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not PORT@INTERFACE with a PORT from 0 to {_MAX_PORT}")
    return int(port), name


class _number:  # noqa: N801  (argparse shows a type's name when it complains)
    """A whole number within limits."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def __call__(self, text: str) -> int:
        if not text.isdecimal() or not self._low <= int(text) <= self._high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {self._low} to {self._high}"
            )
        return int(text)
