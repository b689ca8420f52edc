"""Compile a bmv2 JSON program (from p4c, v1model) into a ``Pipeline`` that runs it as generated Python."""

from __future__ import annotations

from softswitch.compiler.build import compile_program
from softswitch.compiler.model import ProgramDef, Unsupported
from softswitch.compiler.reader import read_program

__all__ = ["ProgramDef", "Unsupported", "compile_program", "read_program"]
