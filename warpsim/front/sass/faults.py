"""SASS that the emulator refuses, each in one sentence."""

from __future__ import annotations

from warpsim.errors import UsageError
from warpsim.front.sass.syntax import MachineInstruction
from warpsim.machine.core.site import UnsupportedInstruction


class SassSyntaxError(UsageError):
    """A listing that is not what cuobjdump prints, or does not belong to its cubin."""


class CubinError(UsageError):
    """A file that is not a cubin, or one with something that is not modelled."""


class UnknownCard(CubinError):
    """A cubin for an architecture that is not covered."""


def refuse(
    ins: MachineInstruction, why: str = "is not covered by the emulator"
) -> UnsupportedInstruction:
    return UnsupportedInstruction(f"{ins.where()}, {ins.address:#06x}: `{ins.text}` {why}.")
