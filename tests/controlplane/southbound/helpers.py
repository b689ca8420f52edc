"""What the tests of the southbound share, besides their fixtures."""

import asyncio
from ipaddress import IPv4Address

import p4src
from controlplane.model import FiveTuple

PROGRAM = p4src.program("v1model")


async def connected(fabric):
    """Wait until every switch of ``fabric`` was read back, or is another's."""
    await asyncio.wait_for(fabric.connected(), 30)
    return fabric


def flow(number):
    """Return a flow with the source port 1000 + number."""
    return FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, 1000 + number, 29500)


def flow_key(number):
    """Return the key of flow `number`."""
    return (0x0A000101, 0x0A000202, 6, 1000 + number, 29500)
