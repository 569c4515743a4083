"""What comes after a load that has seen a store comes after that store: PTX's causality order."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from correct.page import SOURCES as DRIVER
from harness import compile_cu
from reported.faults import SOURCES as MACROS

import warpsim
from warpsim.launch import Launch, Pointer
from warpsim.schedule import USUAL, first_schedules

SOURCE = Path(__file__).parent / "kernels" / "observed.cu"
CTAS = {
    "by_a_volatile_load": 2,
    "a_counter_that_is_full": 4,
    "handed_on_by_a_named_barrier": 2,
    "handed_on_by_an_mbarrier": 2,
    "a_flag_in_shared_memory": 1,
    "a_flag_of_64_bits_for_the_system": 2,
    "a_counter_in_a_peer": 2,
}


@functools.cache
def module() -> warpsim.Module:
    return warpsim.load(compile_cu(SOURCE, target="sm_90a", include=[MACROS, DRIVER]))


@pytest.mark.parametrize("entry", CTAS)
def test_a_word_may_be_used_plainly_after_its_store_was_seen(entry: str) -> None:
    arrays = {name: np.zeros(64, np.uint32) for name in ("out", "in", "scratch")}
    arrays["in"][0] = 7
    launch = Launch(
        entry=entry,
        grid=(CTAS[entry], 1, 1),
        block=(64, 1, 1),
        cluster=(2 if entry == "a_counter_in_a_peer" else 1, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    for schedule in first_schedules(USUAL):
        result = warpsim.run(module(), launch, arrays, schedule=schedule)
        assert (result.findings, result.warnings, int(arrays["out"][0])) == ((), (), 7)
        arrays["scratch"][:] = 0
