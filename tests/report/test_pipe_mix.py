"""Instructions by pipe, as `emulate` and `inspect` show them."""

from __future__ import annotations

import pytest

from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLaunch
from kernelexp.model.measurement import ArrayResult
from kernelexp.report.variants import pipe_mix

RIGHT = ArrayResult(name="y", elements=1, wrong=0, worst=0.0)
COUNTERS = {"smsp__inst_executed": 2, "sm__inst_executed_pipe_fma": 1}


@pytest.mark.parametrize(
    ("launches", "words"), [(0, "of one emulated launch ("), (3, "of the 3 emulated launches (")]
)
def test_counts_are_said_to_be_of_as_many_launches_as_were_made(launches: int, words: str) -> None:
    result = EmulatedLaunch(entry="k", ctas=1, thread_instructions=1, counters=COUNTERS)
    evidence = EmulatedEvidence(
        size="emulated",
        isa="sass",
        arrays=(RIGHT,),
        counters=COUNTERS,
        launches=(result,) * launches,
    )
    arm = Arm(emulated=evidence, emulated_sass=evidence)
    assert words in str(list(pipe_mix.render(arm, None)))
