"""Are a switch's queues strict? P4Runtime does not know; the kernel does where the queues are its own."""

from __future__ import annotations

from collections.abc import Iterator

from pyroute2 import IPRoute
from pyroute2.netlink.rtnl import TC_H_ROOT

from controlplane.config import LevelsSection
from controlplane.findings import Finding, Note
from controlplane.switch_config import SwitchSection

_UP = 1
"""IFF_UP."""


def local_queues(
    switch: SwitchSection, levels: LevelsSection, listed: frozenset[int] | None
) -> Iterator[Finding | Note]:
    """Check the queues that ``levels`` use: on the kernel's interfaces where they are configured.

    ``listed``: the queues that the switch's gNMI lists; that they are strict it does not say.
    """
    used = sorted({*levels.queues, levels.control_queue})
    if switch.interfaces:
        with IPRoute() as netlink:
            for port in switch.ports:
                if port not in switch.interfaces:
                    what = f"interfaces has none for port {port}"
                    yield Finding(switch.name, "port map", what, "add it, or remove interfaces altogether")
                else:
                    yield from _interface(netlink, switch, switch.interfaces[port], used)
        return
    if listed is not None:
        missing = [queue for queue in used if queue not in listed]
        if missing:
            what = f"its gNMI does not list queue {', '.join(map(str, missing))}, which levels use"
            mend = "add what `leveller qos --target stratum` prints to its chassis config"
            yield Finding(switch.name, "queues", what, mend)
        yield Note(
            switch.name,
            "scheduler",
            "its gNMI lists the queues but not their priorities: compare its chassis config with what"
            " `leveller qos` prints",
        )
        return
    if switch.protocol == "openflow":
        what = "see that its ports have queues, each its own priority, or that what follows goes by the DSCP"
        yield Note(switch.name, "scheduler", f"{what} (docs/openflow.md)")
        return
    yield Note(
        switch.name,
        "scheduler",
        "P4Runtime tells neither the number of queues nor their priorities: see that it was started with"
        f" --priority-queues {max(used) + 1} or more (bmv2, softswitch) or configured by `leveller qos`;"
        " where its queues are this machine's HTB, give switches.interfaces",
    )


def _interface(netlink: IPRoute, switch: SwitchSection, interface: str, used: list[int]) -> Iterator[Finding]:
    found = netlink.link_lookup(ifname=interface)
    if not found:
        what = f"interface {interface} is not there"
        yield Finding(
            switch.name, "port map", what, "mend switches.interfaces, or run this beside the switch"
        )
        return
    index = found[0]
    if not netlink.get_links(index)[0]["flags"] & _UP:
        yield Finding(switch.name, "port map", f"{interface} is down", f"ip link set {interface} up")
    roots = [each.get_attr("TCA_KIND") for each in netlink.get_qdiscs(index) if each["parent"] == TC_H_ROOT]
    if "htb" not in roots:
        what = f"{interface} has no strict queues (its qdisc is {', '.join(roots) or 'none'})"
        mend = "start the softswitch on it, or set up an HTB with a class for each queue, each its own prio"
        yield Finding(switch.name, "scheduler", what, mend)
        return
    priorities = _priorities(netlink, index)
    if len(set(priorities)) < len(priorities):
        what = f"{interface} has queues that share a priority ({sorted(priorities)})"
        yield Finding(switch.name, "scheduler", what, "give each HTB class a prio of its own")
    if len(priorities) <= max(used):
        what = f"{interface} has {len(priorities)} queues, and levels use queue {max(used)}"
        mend = f"start the switch with --priority-queues {max(used) + 1}, or lower levels.count"
        yield Finding(switch.name, "queues", what, mend)


def _priorities(netlink: IPRoute, index: int) -> list[int]:
    """Return the priorities of an interface's HTB leaves."""
    leaves = []
    classes = list(netlink.get_classes(index))
    parents = {each["parent"] for each in classes}
    for each in classes:
        options = each.get_attr("TCA_OPTIONS")
        if each["handle"] not in parents and options is not None:
            leaves.append(options.get_attr("TCA_HTB_PARMS")["prio"])
    return leaves
