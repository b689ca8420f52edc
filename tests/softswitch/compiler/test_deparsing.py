"""Which packets are patched in place and which are put together; the bytes are tested everywhere else."""

import pytest


def test_a_program_that_moves_nothing_patches_in_place(ours):
    source = ours("match").pipeline.source
    assert "out = bytearray(packet)" in source
    assert "moved" not in source


def test_a_program_that_moves_headers_can_do_both(ours):
    source = ours("parse").pipeline.source
    assert "if moved:" in source
    assert "out += packet[off:]" in source


def test_an_unchanged_packet_is_sent_as_it_is(ours):
    switch = ours("leveller")
    sent = []
    switch.pipeline.transmit = lambda port, queue, packet: sent.append(packet)
    packet = b"\3\0" + bytes(60)
    switch.pipeline.process(packet, 510, 0)
    assert bytes(sent[0]) == packet[2:]


@pytest.mark.parametrize(("name", "packet"), [("match", bytes(30)), ("plain", b"whatever")])
def test_what_is_sent_is_never_the_buffer_that_came_in(ours, name, packet):
    switch = ours(name)
    sent = []
    switch.pipeline.transmit = lambda port, queue, packet: sent.append(packet)
    buffer = bytearray(packet)
    switch.pipeline.process(memoryview(buffer), 1, 0)
    buffer[0] = 99
    assert sent[0][0] == packet[0]
