"""PTX that the emulator refuses, each in one sentence."""

from __future__ import annotations

from warpsim.errors import UsageError
from warpsim.front.ptx.syntax import Instruction
from warpsim.machine.core.site import UnsupportedInstruction

MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError),
)
"""What text that is not PTX makes of code that takes it for PTX, beyond what is looked for."""


class PtxSyntaxError(UsageError):
    """Text that is not PTX as nvcc writes it."""


def refuse(ins: Instruction, why: str = "is not covered by the emulator") -> UnsupportedInstruction:
    return UnsupportedInstruction(f"{ins.where()}: `{ins.text}` {why}.")
