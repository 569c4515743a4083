"""Whether the SASS of an arm did what its PTX promises, where both were executed."""

from __future__ import annotations

import msgspec

from kernelexp.judge import verdict
from kernelexp.model.arm import Arm


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A deviation of the SASS: a fault of ptxas or of the emulator, unless it is a rounding."""

    is_wrong: bool
    """More than other bits within the tolerance: a wrong result, a hang, a faulty access."""
    sentence: str


def disagreement(arm: Arm) -> Disagreement | None:
    """Returns the disagreement of PTX and SASS; None where both did the same, where either was not
    executed, or where the PTX is wrong itself."""
    ptx, sass = arm.emulated, arm.emulated_sass
    if not (ptx and sass and ptx.is_right and sass.arrays):
        return None
    if refused := verdict.emulated(sass):
        sentence = (
            f"its SASS is {refused.status}, although its PTX is right: {refused.sentence} Either "
            "ptxas or the emulator is at fault; nothing is counted on SASS"
        )
        return Disagreement(is_wrong=True, sentence=sentence)
    # What the order of atomics decides may be decided otherwise.
    others = [
        name
        for name, digest in ptx.outputs.items()
        if name not in ptx.varying and sass.outputs.get(name) != digest
    ]
    if not others or ptx.seed != sass.seed:
        return None
    sentence = (
        f"its SASS writes other bits to {', '.join(others)} than its PTX, within the tolerance, as "
        "where ptxas fuses operations, or where atomics meet in another order"
    )
    return Disagreement(is_wrong=False, sentence=sentence)
