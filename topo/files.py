"""The configuration files of the lab's controller and agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from topo.fabric import Fabric, Host
from topo.routes import routes

MANAGEMENT = "10.255.0.1"
"""The controller's address on the management network."""

AGENTS = f"{MANAGEMENT}:9559"
HTTP = "127.0.0.1:9560"
OPENFLOW = "127.0.0.1:6653"

LEVELS = 7
"""K: one level a queue, but for the queue of control traffic."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the controller is to do: policy and scope by name; ``intensity`` by job, for policies that ask."""

    name: str
    scope: str = "fabric"
    intensity: Mapping[str, float] = field(default_factory=dict)
    tau_s: float = 0.25
    profile: bool = True
    guard_us: int = 0
    guard_roce_us: int = 0


def controller_toml(
    fabric: Fabric,
    addresses: Mapping[str, str],
    policy: Policy,
    store: Path,
    dscp: Sequence[int],
    queues: int,
) -> str:
    """Return ``leveller.toml`` for ``fabric``, whose switches serve P4Runtime at ``addresses`` (by name).

    Switches without an address speak OpenFlow.

    ``dscp`` marks the levels where a switch's queues are chosen by it; empty = no marking.
    """
    lines = [
        "[controller]",
        'name = "lab"',
        f"listen = {_text(AGENTS)}",
        f"http = {_text(HTTP)}",
        f"store = {_text(str(store))}",
        f"tau_s = {policy.tau_s}",
        f"min_interval_s = {min(0.05, policy.tau_s)}",
        "",
        "[policy]",
        f"name = {_text(policy.name)}",
        f"scope = {_text(policy.scope)}",
        f"profile = {_text(policy.profile)}",
    ]
    lines += [
        "",
        "[levels]",
        f"count = {LEVELS}",
        f"queues = {_text(list(range(LEVELS)))}",
        f"control_queue = {queues - 1}",
        f"guard_us = {policy.guard_us}",
        f"guard_roce_us = {policy.guard_roce_us}",
    ]
    if dscp:
        lines.append(f"dscp = {_text(list(dscp[:LEVELS]))}")
    if addresses.keys() != fabric.switches.keys():
        lines += ["", "[openflow]", f"listen = {_text(OPENFLOW)}"]
    for job, intensity in policy.intensity.items():
        lines += ["", "[[jobs]]", f"id = {_text(job)}", f"intensity = {float(intensity)}"]
    for switch in fabric.switches.values():
        lines += [
            "",
            "[[switches]]",
            f"name = {_text(switch.name)}",
            f"address = {_text(addresses[switch.name])}"
            if switch.name in addresses
            else 'protocol = "openflow"',
            f"device_id = {switch.number}",
            f"node_id = {switch.number}",
            f"ports = {_text(list(switch.ports))}",
            f"host_ports = {_text([port.number for port in switch.ports.values() if port.host_facing])}",
            f"queues = {queues}",
            f"ecmp_seed = {switch.number}",
        ]
        if switch.name not in addresses:
            for port in switch.ports.values():
                if not port.host_facing:
                    lines += ["[[switches.cables]]", f"port = {port.number}"]
                    lines += [f"peer = {_text(port.peer)}", f"peer_port = {port.peer_port}"]
        for route in routes(fabric, switch):
            hops = ", ".join(f"{{port = {hop.port}, mac = {_text(hop.mac)}}}" for hop in route.next_hops)
            lines += ["[[switches.routes]]", f"prefix = {_text(route.prefix)}", f"next_hops = [{hops}]"]
    return "\n".join(lines) + "\n"


def agent_toml(host: Host) -> str:
    """Return ``agent.toml`` for ``host``."""
    lines = [
        "[agent]",
        f"host = {_text(host.name)}",
        f"controllers = {_text([AGENTS])}",
        f"interface = {_text(host.interface)}",
        f"addresses = {_text([str(host.ipv4), str(host.ipv6)])}",
    ]
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    """Write a value as TOML; for these (text, numbers, booleans, lists of them) JSON is TOML."""
    return json.dumps(value)
