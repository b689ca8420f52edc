"""``python -m leveller`` is the ``leveller`` command."""

from leveller.cli import main

main()
