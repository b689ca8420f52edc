"""``leveller qos``: what the switch's own scheduler has to be told, since P4Runtime cannot tell it.

``plan`` says what each queue of a configuration must be; ``stratum``, ``bfrt`` and ``sonic`` write that
down in one switch system's words; ``headroom`` says how much buffer a lossless level needs.
"""
