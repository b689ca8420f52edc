import socket

import pytest

from hostagent.flows.activity import TcpActivity, parse

TEXT = b"""Ip: Forwarding DefaultTTL
Ip: 2 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs
Tcp: 1 200 120000 -1 11 22 3 4 55 666
Udp: InDatagrams
Udp: 7
"""


def test_columns_are_found_by_name():
    assert parse(TEXT) == (11, 22, 55)


@pytest.mark.parametrize(
    "text", [b"", b"Tcp: ActiveOpens\nTcp: 1\n", b"Tcp: a\n", TEXT.replace(b" 55 666", b"")]
)
def test_other_files_are_refused(text):
    with pytest.raises(OSError, match="no TCP counters"):
        parse(text)


def test_opening_and_closing_are_seen(two_hosts):
    def inside():
        # A namespace of its own: in it nobody else opens connections.
        activity, seen = TcpActivity("/proc"), []

        def look():
            seen.append(activity.changed())

        look()
        look()
        with socket.create_server(("127.0.0.1", 0)) as server:
            look()
            client = socket.create_connection(server.getsockname())
            look()
            look()
            accepted, _ = server.accept()
            client.sendall(b"x")
            look()
            client.close()
            accepted.close()
            look()
            look()
        activity.close()
        return seen

    assert two_hosts.inside(two_hosts.a, inside) == [True, False, False, True, False, False, True, False]


def test_no_proc(tmp_path):
    with pytest.raises(OSError, match="net/snmp"):
        TcpActivity(str(tmp_path))
