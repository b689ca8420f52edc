"""The embedded switch: runs a v1model program that p4c compiled, and serves P4Runtime."""
