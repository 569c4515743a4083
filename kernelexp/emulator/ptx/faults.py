"""PTX that the emulator refuses, each in one sentence."""

from __future__ import annotations

from kernelexp.errors import UsageError


class PtxSyntaxError(UsageError):
    """Text that is not PTX as nvcc writes it."""


class UnsupportedInstruction(UsageError):
    """An instruction, or a form of one, that the emulator does not execute."""
