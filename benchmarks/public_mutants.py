"""Mutants of public kernels: the share that the emulator notices.

    python benchmarks/public_mutants.py FOLDER [--kernel NAME ...] [--per-kind N] [-n PROCESSES]
        [--missed]

FOLDER has checkouts, OWNER/NAME each, of the repositories that tests/emulator/counted/public.py
names; nothing is fetched. The rules are those of tests/mutations. A mutant is noticed by a finding,
a warning or a refusal, or if it writes other bytes than the kernel does. What is left is
equivalent, for a reason given here, or missed: --missed lists both.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/emulator"))

import msgspec
import numpy as np
from conformance.case import Case
from counted import program, public
from mutations import rules_of_operands, rules_of_order  # noqa: F401 - they fill the table
from mutations.case import Loaded, Source
from mutations.reviewed import equivalent
from mutations.rules import Mutant, mutants

import warpsim
from kernelexp.evidence import native
from warpsim import Schedule, compiled
from warpsim.schedule import USUAL, first_schedules

KERNELS = {
    "reduce3": "reduction",
    "scanExclusiveShared": "scan",
    "histogram64Kernel": "histogram64",
    "transposeCoalesced": "transposes",
    "bitonicSortShared": "bitonic_sort",
    "layernorm_forward_kernel5": "layernorm",
    "softmax_forward_online_kernel8": "softmax",
    "matmul_forward_kernel4": "linear",
    "attention_forward_kernel2": "attention_llmc",
    "matmul_v6_kernel": "matmul_sm80_pipelined",
}
"""Of different kinds, and the programs that have them."""
NOT_NOTICED, EQUIVALENT = "not noticed", "equivalent"
REVIEWED = (
    equivalent(
        r"scanExclusiveShared \| (ld|st)\.volatile \d \| plain",
        "barriers stand between all accesses of two threads to a word",
    ),
    equivalent(
        r"scanExclusiveShared \| barrier\.sync 2 \| moved before the access",
        "the access is a load of a word that only the thread itself writes",
    ),
    equivalent(
        r"softmax_forward_online_kernel8 \| bar\.warp\.sync 1 \| dropped",
        "no memory is handed over, and the shuffle that follows waits for the same lanes",
    ),
    equivalent(
        r"attention_forward_kernel2 \| bar\.sync \d \| of the warp only",
        "the blocks are of one warp",
    ),
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, and by what it was noticed."""

    kernel: str
    mutant: str
    seen: str
    """name, result, hang, warning, refused, equivalent or `not noticed`."""
    why: str = ""
    """It is equivalent."""


def judged(kernel: str, folder: str, library: str, per_kind: int) -> list[Outcome]:
    """All mutants of one kernel."""
    os.environ[program.ENVIRONMENT] = folder
    if library and not compiled.is_loaded():
        compiled.load(Path(library))
    loaded, case = _loaded(kernel)
    right, result = _run(loaded, None, case, Schedule(), 10_000_000)
    if result.findings or result.warnings:
        names = {finding.name for finding in (*result.findings, *result.warnings)}
        raise RuntimeError(f"{kernel} itself is not clean: {', '.join(sorted(names))}")
    executed = {
        (count.instruction.line, count.instruction.opcode)
        for count in result.counters.instructions
        if count.executed
    }
    limit = 5 * result.warp_instructions + 200_000
    return [
        _reviewed(kernel, mutant.key, _seen(loaded, mutant, case, right, limit))
        for mutant in mutants(kernel, loaded.function, per_kind, executed)
    ]


def _reviewed(kernel: str, mutant: str, seen: str) -> Outcome:
    for item in REVIEWED if seen == NOT_NOTICED else ():
        if re.fullmatch(item.pattern, mutant):
            why = item.harmless.reason
            return Outcome(kernel=kernel, mutant=mutant, seen=EQUIVALENT, why=why)
    return Outcome(kernel=kernel, mutant=mutant, seen=seen)


def _loaded(kernel: str) -> tuple[Loaded, Case]:
    (source,) = (item for item in public.PUBLIC if item.name == KERNELS[kernel])
    root = program.checkout(source)
    if root is None:
        raise RuntimeError(f"no checkout of {source.repository} with {source.file}")
    with tempfile.TemporaryDirectory() as scratch:
        ptx = program.compile_program(source, root, Path(scratch))
    case = next(case for case in source.runs() if kernel in case.launch.entry)
    module = warpsim.load(ptx)
    (entry,) = [name for name in module.entries if _is(name, case.launch.entry)]
    launch = msgspec.structs.replace(case.launch, entry=entry)
    return Loaded(Source(ptx, entry)), msgspec.structs.replace(case, launch=launch)


def _is(symbol: str, name: str) -> bool:
    from warpsim.launch import full_name, plain_name

    return name in (symbol, plain_name(symbol), full_name(symbol))


def _run(
    loaded: Loaded, mutant: Mutant | None, case: Case, schedule: Schedule, limit: int
) -> tuple[dict[str, np.ndarray], warpsim.Result]:
    function = loaded.function
    module = mutant.program(loaded) if mutant else loaded.program(function)
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    result = warpsim.run(module, case.launch, arrays, schedule=schedule, limit=limit)
    return arrays, result


def _seen(
    loaded: Loaded, mutant: Mutant, case: Case, right: dict[str, np.ndarray], limit: int
) -> str:
    """By what a mutant is noticed first, under the usual schedules."""
    best = NOT_NOTICED
    for schedule in first_schedules(USUAL):
        try:
            arrays, result = _run(loaded, mutant, case, schedule, limit)
        except warpsim.UnsupportedInstruction:
            return "refused"
        names = {finding.name for finding in result.findings}
        if names - {"hang", "step-limit"}:
            return "name"
        if names:
            best = "hang"
        elif best == NOT_NOTICED and any((arrays[x] != right[x]).any() for x in right):
            best = "result"
        elif best == NOT_NOTICED and result.warnings:
            best = "warning"
    return best


def show(outcomes: Sequence[Outcome], missed: bool) -> None:
    kinds = ("name", "result", "hang", "warning", "refused", EQUIVALENT, NOT_NOTICED)
    print("| kernel | mutants | " + " | ".join(kinds) + " | noticed |")
    print("|---" * (len(kinds) + 3) + "|")
    for kernel in (*dict.fromkeys(item.kernel for item in outcomes), "all"):
        own = [item for item in outcomes if kernel in (item.kernel, "all")]
        counts = Counter(item.seen for item in own)
        rate = f"{1 - counts[NOT_NOTICED] / (len(own) - counts[EQUIVALENT]):.1%}"
        cells = [str(counts[kind] or "") for kind in kinds]
        print(f"| {kernel} | {len(own)} | {' | '.join(cells)} | {rate} |")
    for item in outcomes if missed else ():
        if item.seen in (NOT_NOTICED, EQUIVALENT):
            print(f"{item.mutant}: {item.why or NOT_NOTICED}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), default=[])
    parser.add_argument("--per-kind", type=int, default=3, metavar="N")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("-n", type=int, default=2, metavar="PROCESSES")
    options = parser.parse_args()
    started, library = time.perf_counter(), native.library(Path.cwd())
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(options.n) as pool:
        folder, kernels = str(options.folder.resolve()), options.kernel or list(KERNELS)
        futures = {
            kernel: pool.submit(judged, kernel, folder, library, options.per_kind)
            for kernel in kernels
        }
        for kernel, future in futures.items():
            if error := future.exception():
                print(f"{kernel}: {error}", file=sys.stderr)
                continue
            outcomes += future.result()
    show(outcomes, options.missed)
    print(f"\n{time.perf_counter() - started:.0f} s, {options.n} processes")


if __name__ == "__main__":
    main()
