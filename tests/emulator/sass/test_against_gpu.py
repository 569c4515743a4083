"""The SASS of the conformance programs: what an H200 wrote, and what ncu counted there."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conformance import golden, wavefronts
from conformance.case import Case
from conformance.record import MODULES, TARGET, compile_ptx
from conformance.test_arithmetic import differing
from harness import assemble

from kernelexp.emulator import Module, Schedule, UnsupportedInstruction, load_cubin, run
from kernelexp.toolchain import Toolchain

_LATE = Schedule(seed=0, asynchrony="late")
_QUICK = "fp8_conversion"
# Cases with an instruction that is refused, of all cases.
_REFUSED = {
    "integer_conversion": (1, 194),
    "sync": (3, 5),
    "copy": (11, 13),
    "rare": (1, 113),
    "correct_memory": (7, 30),
    "correct_hopper": (19, 21),
}
"""mbarriers, bulk copies, clusters, setmaxnreg, printf, atomics of vectors, F2IP, VABSDIFF4."""
_AREAS = (
    "integer", "logic", "single", "double", "half", "predicate", "rare", "approximate",
    "float_conversion", "fp8_conversion", "integer_conversion", "atomics", "warp", "control",
    "memory", "sync", "copy", "tma", "tma_store", "cluster", "matrix", "mma", "wgmma",
    "correct_arithmetic", "correct_divergence", "correct_memory", "correct_synchronisation",
    "correct_hopper",
)  # fmt: skip
_COUNTED = ("memory", "sync", "copy", "tma", "cluster", "matrix", "mma", "wgmma", "warp")
_OLDER = {
    "integer": 101, "logic": 68, "single": 80, "double": 39, "half": 54, "predicate": 123,
    "approximate": 19, "float_conversion": 40, "integer_conversion": 184,
    "atomics": 79,
}  # fmt: skip
"""Programs that ptxas takes for sm_80 and that are not refused."""
_NOT_AS_COUNTED = {
    # ncu leaves one of the kernel's two LDGSTS of 16 bytes out of the counters of its source page;
    # l1tex__t_sectors_pipe_lsu_mem_global_op_ld, which the hardware counts, has both.
    ("copy", "cp_async"): {
        "memory_l1_wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal",
        "memory_l2_theoretical_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal",
    }
}


@pytest.fixture(scope="module")
def source(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """The PTX of an area's programs."""
    folder: Path = tmp_path_factory.mktemp("sass")

    @functools.cache
    def one(name: str) -> str:
        area, target = MODULES[name], folder / f"{name}.ptx"
        if area.source is None:
            return area.origin()
        compile_ptx(tools.nvcc, area.source, target)
        return target.read_text()

    return one


@pytest.fixture(scope="module")
def module(source):  # type: ignore[no-untyped-def]
    """The SASS of an area's programs."""
    return functools.cache(lambda name: load_cubin(*assemble(source(name), TARGET)))


def executed(found: Module, case: Case):  # type: ignore[no-untyped-def]
    """(arrays, result) of a case; None where an instruction is refused."""
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    try:
        return arrays, run(found, case.launch, arrays, schedule=_LATE)
    except UnsupportedInstruction:
        return None


@pytest.mark.parametrize(
    "area",
    [pytest.param(a, marks=() if a == _QUICK else pytest.mark.slow) for a in _AREAS],
)
def test_the_sass_writes_what_the_gpu_wrote(area: str, module) -> None:  # type: ignore[no-untyped-def]
    outputs, cases = golden.load(area).outputs, golden.cases(area)
    problems, refused = [], 0
    for case in cases:
        done = executed(module(area), case)
        if done is None:
            refused += 1
            continue
        arrays, result = done
        problems += [f"{case.name}: {finding.sentence}" for finding in result.findings]
        for name in case.outputs:
            wrong = differing(arrays[name], outputs[case.name, name], case.bound)
            if wrong.any():
                problems.append(f"{case.name}: {name}: {np.count_nonzero(wrong)} differ")
    assert problems == []
    assert (refused, len(cases)) == _REFUSED.get(area, (0, len(cases)))


def taken(text: str, target: str) -> str:
    """PTX without the entries that ptxas does not take for a target."""
    head, *entries = re.split(r"(?=^\.visible \.entry)", text, flags=re.M)
    head = re.sub(r"\.target sm_\w+", f".target {target}", head)
    while True:
        try:
            assemble(head + "".join(entries), target)
        except AssertionError as said:
            message = str(said)
        else:
            return head + "".join(entries)
        wrong = {int(line) for line in re.findall(r"line (\d+);", message)}
        assert wrong, message
        last, kept = head.count("\n"), []
        for entry in entries:
            first, last = last, last + entry.count("\n")
            kept += [] if wrong & set(range(first + 1, last + 2)) else [entry]
        entries = kept


@pytest.mark.slow
@pytest.mark.parametrize("area", [a for a in _AREAS if a in _OLDER])
def test_the_sass_of_an_older_architecture_writes_the_same(area: str) -> None:
    found = load_cubin(*assemble(taken(MODULES[area].origin(), "sm_80"), "sm_80"))
    outputs, problems, compared = golden.load(area).outputs, [], 0
    for case in golden.cases(area):
        if case.launch.entry not in found.entries:
            continue
        done = executed(found, case)
        compared += done is not None
        arrays, findings = (done[0], done[1].findings) if done else ({}, ())
        problems += [f"{case.name}: {finding.sentence}" for finding in findings]
        for name in arrays and case.outputs:
            if differing(arrays[name], outputs[case.name, name], case.bound).any():
                problems.append(f"{case.name}: {name}")
    assert problems == []
    assert compared == _OLDER[area]


@pytest.mark.slow
@pytest.mark.parametrize("area", _COUNTED)
def test_the_sass_counts_what_ncu_counted(area: str, module) -> None:  # type: ignore[no-untyped-def]
    counted, apart, compared = golden.counters(), {}, 0
    for case in golden.cases(area):
        done = executed(module(area), case)
        if done is None:
            continue
        compared += 1
        kernel = done[1].counters.kernel
        wrong = {name for name, n in counted[area, case.name].items() if kernel[name] != n}
        if wrong:
            apart[area, case.name] = wrong
    assert apart == {key: names for key, names in _NOT_AS_COUNTED.items() if key[0] == area}
    assert compared == len(golden.cases(area)) - _REFUSED.get(area, (0, 0))[0]


@pytest.mark.slow
def test_the_sass_counts_the_wavefronts_that_ncu_counted(module) -> None:  # type: ignore[no-untyped-def]
    counted, wrong = golden.wavefronts(), Counter[str]()
    for pattern, case in zip(wavefronts.patterns(), wavefronts.cases(), strict=True):
        result = run(module("wavefronts"), case.launch, case.arrays)
        for name in ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"):
            if result.counters.kernel[name] != counted[pattern.entry, pattern.name][name]:
                wrong[name] += 1
    assert not wrong
