"""Emulated counts instruction by instruction, compared with ncu's source page of the same cubin."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warpsim.machine.counts.tally import InstructionCount

from . import golden, launches
from .comparison import execute, load
from .program import ENVIRONMENT, checkout
from .public import PUBLIC
from .sgemm import SGEMM

_PAGES = Path(__file__).with_name("pages.npz")
_ADDRESS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/")
_PROGRAMS = {program.name: program for program in (SGEMM, *PUBLIC)}
_GLOBAL = ("global load", "global store", "atomic", "cp.async")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgemm", "reduction", "layernorm", "softmax", "mma_stages"])
def test_every_instruction_is_counted_as_on_ncu_s_source_page(name: str) -> None:
    program = _PROGRAMS[name]
    if checkout(program) is None:
        pytest.skip(f"{ENVIRONMENT} has no checkout of {program.repository}")
    group = golden.recorded().launches["sgemm" if program is SGEMM else "public"]
    compared = 0
    with np.load(_PAGES) as pages:
        for item in launches.of_program(program):
            if item.case.name not in pages:
                continue
            counted = group[item.case.name]
            assert item.code.digest(counted.entry) == counted.code
            page = pages[item.case.name]
            text = item.code.listing.splitlines()
            result = np.zeros_like(page)
            for instruction in execute(load(item.code), item).counters.instructions:
                address = _ADDRESS.match(text[instruction.instruction.line - 1])
                assert address
                result[int(address[1], 16) // 16] = _columns(instruction)
            np.testing.assert_array_equal(result, page)
            compared += 1
    assert compared


def _columns(each: InstructionCount) -> list[int]:
    """As pages.npz has them: instructions, threads, threads for which the guard holds, wavefronts
    and their ideal, sectors and their ideal, tags."""
    tally, is_global = each.tally, each.instruction.kind in _GLOBAL
    beyond = (tally.sectors, tally.ideal_sectors, tally.tags) if is_global else (0, 0, 0)
    shared = (tally.wavefronts, tally.ideal_wavefronts)
    return [each.executed, each.lanes, each.threads, *shared, *beyond]
