"""MeterConfig (spec, MeterEntry & DirectMeterEntry): what each kind of meter accepts, both ways."""

from __future__ import annotations

from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch.externs import MeterConfig
from softswitch.p4runtime.errors import P4Error, invalid


def decode_config(config: p4r.MeterConfig, spec: p4i.MeterSpec, where: str) -> MeterConfig | None:
    """Read a config for a meter of kind ``spec``; None for the default one (every packet green).

    Raises INVALID_ARGUMENT for rates or bursts that are negative or that this kind of meter does not have.
    """
    if config == p4r.MeterConfig():
        return None
    if min(config.cir, config.cburst, config.pir, config.pburst, config.eburst) < 0:
        raise invalid(f"{where}: a meter's rates and bursts are not negative")
    if config.eburst:
        if spec.type == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR:
            raise P4Error(StatusCode.UNIMPLEMENTED, f"{where}: an excess burst (srTCM)")
        raise invalid(f"{where}: only single-rate three-colour meters have an eburst")
    single = spec.type in (p4i.MeterSpec.SINGLE_RATE_THREE_COLOR, p4i.MeterSpec.SINGLE_RATE_TWO_COLOR)
    if single and (config.cir, config.cburst) != (config.pir, config.pburst):
        raise invalid(f"{where}: a single-rate meter wants pir = cir and pburst = cburst")
    return MeterConfig(config.cir, config.cburst, config.pir, config.pburst)


def encode_config(config: MeterConfig) -> p4r.MeterConfig:
    """Write a config that is not the default one."""
    return p4r.MeterConfig(cir=config.cir, cburst=config.cburst, pir=config.pir, pburst=config.pburst)
