"""The softswitch beside bmv2, where that is installed: packets by hypothesis, and the golden cases again."""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.softswitch.bmv2 import Bmv2
from tests.softswitch.golden import frames
from tests.softswitch.golden.inputs import INPUTS, inputs
from tests.softswitch.golden.replay import counted, listed, load, step, write
from tests.softswitch.ours import Ours

pytestmark = pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="bmv2 (simple_switch_grpc) is not on PATH"
)
CLOCK = 0x2C00
"""INT instructions that ask for times."""

ours_against_bmv2 = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
generators = st.randoms(use_true_random=False)


@pytest.fixture
def pair(request):
    """``pair(name)``: both switches with that program and its writes."""

    def start(name):
        bmv2 = Bmv2(name)
        request.addfinalizer(bmv2.close)
        ours = Ours(name)
        writes, _ = inputs(name)
        write(ours, writes)
        write(bmv2, writes)
        return ours, bmv2

    return start


def test_frames_of_every_kind_fare_alike(pair):
    ours, bmv2 = pair("leveller")

    @ours_against_bmv2
    @given(generators, st.sampled_from([1, 2, 3, 9]))
    def compare(g, port):
        packet = frames.frame(g)
        expected = listed(ours.ports(packet, port))
        assert listed(bmv2.ports(packet, port, len(expected))) == expected, packet.hex()

    compare()
    assert counted(bmv2) == counted(ours)


def test_probes_that_ask_for_times_are_as_long(pair):
    ours, bmv2 = pair("leveller")

    def lengths(sent):
        return [(port, len(packet)) for port, packet in sent]

    @ours_against_bmv2
    @given(generators)
    def compare(g):
        packet = frames.frame(g, CLOCK)
        expected = lengths(ours.ports(packet))
        assert lengths(bmv2.ports(packet, 1, len(expected))) == expected, packet.hex()

    compare()


@pytest.mark.parametrize("name", ["ahead", "tlv", "tunnel"])
def test_damaged_packets_are_parsed_alike(pair, name):
    """Packets of the golden cases with bytes changed, lost and put in."""
    ours, bmv2 = pair(name)
    _, packets = inputs(name)

    @ours_against_bmv2
    @given(st.sampled_from([packet for _, packet in packets if packet]), generators)
    def compare(packet, g):
        for _ in range(g.randrange(4)):
            at = g.randrange(len(packet) + 1)
            packet = packet[:at] + g.randbytes(g.randrange(3)) + packet[at + g.randrange(3) :]
        if packet:
            expected = listed(ours.ports(packet))
            assert listed(bmv2.ports(packet, 1, len(expected))) == expected, packet.hex()

    compare()


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_golden_cases_are_what_bmv2_does(name):
    case = load(name)
    bmv2 = Bmv2(case["program"])
    try:
        write(bmv2, case["writes"])
        for expected in case["packets"]:
            assert step(bmv2, expected["port"], bytes.fromhex(expected["packet"]), expected) == expected
        for key, value in counted(bmv2).items():
            assert value == case[key], key
    finally:
        bmv2.close()
