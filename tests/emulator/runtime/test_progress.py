"""What a long launch says of itself."""

from __future__ import annotations

import time

import numpy as np
import pytest
from harness import ptx

from warpsim import modules
from warpsim.launch import Launch, Pointer
from warpsim.machine.memory.execution import Execution
from warpsim.runtime import progress
from warpsim.runtime.progress import Progress, describe
from warpsim.schedule import Schedule


@pytest.fixture
def execution() -> Execution:
    module = modules.load(ptx("mov.u32 %r0, 1; st.global.b32 [%out], %r0;", ["out"]))
    argument = Pointer(array="out")
    launch = Launch(entry="k", grid=(100_000, 1, 1), block=(1024, 1, 1), arguments=(argument,))
    image = module.entries["k"].image
    return Execution(image, launch, {"out": np.zeros(1, np.uint32)}, frozenset(), Schedule())


def test_what_is_left_goes_on_as_it_began(execution: Execution) -> None:
    execution.steps, execution.ctas_begun = 3_000_000, 50_000 + execution.resident // 2
    text = describe(execution, 20.0)
    assert text.startswith("3.0 million warp instructions, 0.15 million per second, ")
    assert text.endswith("of 100,000 CTAs begun, about 20 s left")


def test_nothing_is_foretold_of_the_first_and_of_the_last_ctas(execution: Execution) -> None:
    execution.ctas_begun = execution.resident // 2
    assert "left" not in describe(execution, 20.0)
    execution.ctas_begun = execution.grid_ctas
    assert "left" not in describe(execution, 20.0)


def test_a_launch_that_takes_long_says_so(
    execution: Execution, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.01)
    shown = Progress("_Z4gatePd", 3)
    shown.watch(execution)
    with shown:
        time.sleep(0.05)
    assert "exec: launch 3, gate, 0 s: 0.0 million warp instructions" in capfd.readouterr().err
