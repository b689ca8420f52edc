import signal

import pytest

from leveller.signals import stop_signals


@pytest.mark.parametrize(("action", "stops"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_hang_up_ends_a_command_unless_it_is_ignored(action, stops):
    before = signal.signal(signal.SIGHUP, action)
    try:
        assert (signal.SIGHUP in stop_signals()) is stops
        assert {signal.SIGINT, signal.SIGTERM} <= set(stop_signals())
    finally:
        signal.signal(signal.SIGHUP, before)
