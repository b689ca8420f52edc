import pytest
from hypothesis import given
from hypothesis import strategies as st

from softswitch.errors import Code, TableError
from softswitch.externs import GREEN, RED, YELLOW, Counter, Meter, MeterCell, MeterConfig, Register


def test_an_index_out_of_range_is_refused():
    for operation in (
        Counter("c", 4).read,
        lambda i: Counter("c", 4).write(i, 1, 1),
        Register("r", 4, 8).read,
        lambda i: Register("r", 4, 8).write(i, 1),
        Meter("m", 4, "bytes").cell,
    ):
        for index in (-1, 4):
            with pytest.raises(TableError) as error:
                operation(index)
            assert error.value.code == Code.OUT_OF_RANGE


def test_a_register_keeps_its_width():
    register = Register("r", 2, 8)
    register.write(1, 0x1FF)
    assert register.read(1) == 0xFF


def test_a_meter_without_configuration_is_green():
    assert MeterCell().execute(10**9, 0) == GREEN


def test_colors_follow_the_two_buckets():
    cell = MeterCell()
    cell.configure(MeterConfig(cir=1_000, cburst=100, pir=2_000, pburst=150))
    assert [cell.execute(50, 0) for _ in range(4)] == [GREEN, GREEN, YELLOW, RED]
    assert cell.execute(50, 25_000) == YELLOW  # 50 more in the peak bucket, 25 in the committed one
    assert cell.execute(50, 50_000) == GREEN
    cell.configure(None)
    assert cell.execute(10**9, 50_000) == GREEN


def test_a_committed_rate_above_the_peak_is_refused():
    with pytest.raises(TableError) as error:
        MeterCell().configure(MeterConfig(cir=2, cburst=1, pir=1, pburst=1))
    assert error.value.code == Code.INVALID_ARGUMENT


@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 200)), min_size=1, max_size=60))
def test_no_more_than_rate_and_burst_is_let_through(arrivals):
    config = MeterConfig(cir=500, cburst=300, pir=1_000, pburst=600)
    cell = MeterCell()
    cell.configure(config)
    now = green = through = 0
    first = None
    for gap, size in arrivals:
        now += gap
        first = now if first is None else first
        color = cell.execute(size, now)
        green += size if color == GREEN else 0
        through += size if color != RED else 0
        elapsed = now - first
        assert green <= config.cburst + config.cir * elapsed / 1e6 + 1
        assert through <= config.pburst + config.pir * elapsed / 1e6 + 1
