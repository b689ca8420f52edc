"""MeterConfig: what each type of meter accepts."""

import pytest
from finsy.proto import p4i, p4r

from softswitch.externs import MeterConfig
from softswitch.p4runtime.meter_config import decode_config, encode_config
from tests.softswitch.p4runtime.helpers import refusal

TWO_RATES = p4i.MeterSpec(type=p4i.MeterSpec.TWO_RATE_THREE_COLOR)
ONE_RATE = p4i.MeterSpec(type=p4i.MeterSpec.SINGLE_RATE_THREE_COLOR)
TWO_COLOURS = p4i.MeterSpec(type=p4i.MeterSpec.SINGLE_RATE_TWO_COLOR)


def decode(spec, **fields):
    return decode_config(p4r.MeterConfig(**fields), spec, "meter m")


@pytest.mark.parametrize("spec", [TWO_RATES, ONE_RATE, TWO_COLOURS])
def test_the_empty_config_is_the_default(spec):
    assert decode(spec) is None


def test_two_rates_both_ways():
    fields = {"cir": 1000, "cburst": 2000, "pir": 3000, "pburst": 4000}
    config = decode(TWO_RATES, **fields)
    assert config == MeterConfig(1000, 2000, 3000, 4000)
    assert encode_config(config) == p4r.MeterConfig(**fields)


def test_rates_of_zero_are_a_config():
    assert decode(TWO_RATES, pburst=1) == MeterConfig(0, 0, 0, 1)


@pytest.mark.parametrize("spec", [ONE_RATE, TWO_COLOURS])
def test_a_single_rate_is_given_twice(spec):
    assert decode(spec, cir=10, cburst=20, pir=10, pburst=20) == MeterConfig(10, 20, 10, 20)
    error = ("INVALID_ARGUMENT", "meter m: a single-rate meter wants pir = cir and pburst = cburst")
    assert refusal(decode, spec, cir=10, cburst=20, pir=11, pburst=20) == error
    assert refusal(decode, spec, cir=10, cburst=20, pir=10, pburst=21) == error


@pytest.mark.parametrize("field", ["cir", "cburst", "pir", "pburst", "eburst"])
def test_nothing_is_negative(field):
    assert refusal(decode, TWO_RATES, **{field: -1}) == (
        "INVALID_ARGUMENT",
        "meter m: a meter's rates and bursts are not negative",
    )


def test_an_excess_burst_is_for_one_type_and_not_implemented_there():
    fields = {"cir": 10, "cburst": 20, "pir": 10, "pburst": 20, "eburst": 5}
    for spec in (TWO_RATES, TWO_COLOURS):
        assert refusal(decode, spec, **fields) == (
            "INVALID_ARGUMENT",
            "meter m: only single-rate three-colour meters have an eburst",
        )
    error = ("UNIMPLEMENTED", "meter m: an excess burst (srTCM)")
    assert refusal(decode, ONE_RATE, **fields) == error
