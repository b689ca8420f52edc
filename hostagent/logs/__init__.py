"""Reading training logs: what each framework writes, and how far a job has come.

To add a format, write a module that defines a `hostagent.logs.format.LogFormat` and list it in FORMATS.
"""

from __future__ import annotations

from hostagent.logs import megatron, nanogpt
from hostagent.logs.format import LogFormat

FORMATS: tuple[LogFormat, ...] = (megatron.FORMAT, nanogpt.FORMAT)
"""Every known format, in the order in which a new log is tried against them."""
