"""Reading training logs: what each framework writes, and how far a job has come.

To add a format, write a module that defines a `hostagent.logs.format.LogFormat` and list it in FORMATS.
"""

from __future__ import annotations

from hostagent.logs import (
    colossalai,
    composer,
    deepspeed,
    huggingface,
    lightning,
    megatron,
    megatron_deepspeed,
    nanogpt,
    nemo,
    torchtitan,
)
from hostagent.logs.format import LogFormat

FORMATS: tuple[LogFormat, ...] = (
    megatron_deepspeed.FORMAT,
    megatron.FORMAT,
    deepspeed.PIPELINE,
    deepspeed.FORMAT,
    deepspeed.THROUGHPUT,
    nemo.FORMAT,
    lightning.FORMAT,
    lightning.RICH,
    colossalai.FORMAT,
    composer.FORMAT,
    composer.TIME,
    torchtitan.FORMAT,
    nanogpt.FORMAT,
    huggingface.FORMAT,
)
"""Every known format, in the order in which a new log is tried against them."""
