from hostagent.flows.connection import TCP, UDP, FiveTuple


def test_flows_read_well():
    assert (
        str(FiveTuple(bytes([10, 0, 1, 1]), bytes([10, 0, 2, 1]), TCP, 5000, 6000))
        == "tcp 10.0.1.1:5000 > 10.0.2.1:6000"
    )
    six = FiveTuple(b"\xfd" + bytes(15), b"\xfd" + bytes(14) + b"\1", UDP, 1, 4791)
    assert str(six) == "udp fd00:::1 > fd00::1:4791"
