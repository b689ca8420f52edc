"""The ``leveller`` command, and the little that every part shares: errors, TOML configuration, logging."""

__version__ = "0.1.0"
