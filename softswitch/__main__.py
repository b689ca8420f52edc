"""``python -m softswitch``: the same as the ``softswitch`` command."""

from softswitch.cli import main

main()
