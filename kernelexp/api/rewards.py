"""A number for programs that learn: what an assessment is worth."""

from __future__ import annotations

import math

from kernelexp.model.arm import Status
from kernelexp.services.tasks.assessment import Assessment

BUILDS, RIGHT = 0.1, 0.3


def reward(assessed: Assessment) -> float:
    """0.1 for a solution that builds, 0.3 more for a right one with a kernel of its own, and for
    one that was timed the binary logarithm of how much faster it is at least.

    At least: by the end of the interval that is nearer to the reference, so that noise is no
    reward. A cheat gets nothing.
    """
    built = any(stage.name == "build" and stage.outcome == "passed" for stage in assessed.stages)
    if not built or assessed.status is Status.INVALID:
        return 0.0
    right = assessed.score if assessed.kernels else 0.0
    slowest = assessed.effect.high if assessed.effect else 1.0
    return BUILDS + right * (RIGHT + max(0.0, -math.log2(slowest)))
