"""Executes kernels as PTX and as the SASS that ptxas makes of it, and prints what differs.

python benchmarks/both_instruction_sets.py FOLDER [NAME ...]

FOLDER is one of public_kernels.py. Each case is executed once as PTX, and under two schedules as
SASS. Compared are every bit of every array, the phases of each mbarrier when its CTA ended, and
traffic: the bytes that threads load and store by each way, and what the asynchronous engines move.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from public_kernels import SCHEDULES, Case, read

import warpsim as emulator
from kernelexp.system import toolchain
from kernelexp.system.process import processes
from warpsim.machine.counts.counters import Counters
from warpsim.machine.memory.layout import SHARED_RESERVED
from warpsim.machine.wave.mbarrier import Mbarriers

_BY_THREADS = {
    "global load": "global loads",
    "global store": "global stores",
    "shared load": "shared loads",
    "shared store": "shared stores",
    "matrix load": "shared loads",
    "matrix store": "shared stores",
    "cp.async": "cp.async",
    "atomic": "atomics",
}
_ENGINES = {
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld": "TMA loads",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st": "TMA stores",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red": "TMA reductions",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma": "wgmma operands",
    "l1tex__data_pipe_tc_wavefronts_mem_shared": "tcgen05 operands",
}
_SCHEDULES = (SCHEDULES[1], SCHEDULES[0])
"""Of the SASS; the PTX is executed under the last."""


class Done(NamedTuple):
    """What one execution left."""

    arrays: dict[str, NDArray[np.generic]]
    phases: dict[tuple[int, int], int]
    """Of each mbarrier of the kernel when its CTA ended, by CTA and address."""
    traffic: dict[str, int]
    findings: tuple[str, ...]


class Outcome(NamedTuple):
    """How the SASS of a case compares with its PTX."""

    bits: str
    """"same", "refused", or what differs."""
    phases: str
    traffic: str
    note: str = ""


_NEWER = re.compile(r"Unsupported \.version .*current version is '(\d+\.\d+)'")


def assemble(ptx: Path, case: Case) -> emulator.Module:
    """The SASS that ptxas makes of a case's entry."""
    text = ptx.read_text()
    with tempfile.TemporaryDirectory() as folder:
        tools, cubin = toolchain.find(None, Path(folder)), Path(folder) / "k.cubin"
        target = re.search(r"^\.target (\w+)", text, re.M)
        arch = target[1] if target else case.arch
        options = [f"-arch={arch}", f"--entry={case.launch.entry}", "-o", str(cubin)]
        done = processes.run([tools.ptxas, *options, str(ptx)])
        newer = _NEWER.search(done.stdout + done.stderr)
        if newer:  # Triton's own ptxas is ahead of the toolkit's
            older = Path(folder) / "k.ptx"
            older.write_text(re.sub(r"^\.version .*", f".version {newer[1]}", text, flags=re.M))
            done = processes.run([tools.ptxas, *options, str(older)])
        if done.returncode:
            raise SystemExit(f"{ptx}: {done.stdout}{done.stderr}")
        listed = processes.run([tools.cuobjdump, "-sass", str(cubin)])
        return emulator.load_cubin(cubin.read_bytes(), listed.stdout)


@contextmanager
def _phases() -> Iterator[dict[tuple[int, int], int]]:
    """The phases of the mbarriers of CTAs that end meanwhile."""
    phases: dict[tuple[int, int], int] = {}
    end = Mbarriers.end

    def noting(self: Mbarriers, cta: int) -> None:
        number = self.residents.ctas[cta].number
        for item in self.at.values():
            if item.cta == number and item.address >= SHARED_RESERVED:
                phases[item.cta, item.address] = item.phase
        end(self, cta)

    Mbarriers.end = noting  # type: ignore[method-assign]
    try:
        yield phases
    finally:
        Mbarriers.end = end  # type: ignore[method-assign]


def traffic(counters: Counters) -> dict[str, int]:
    """Bytes by threads, and sectors or wavefronts by engines."""
    result: Counter[str] = Counter()
    for count in counters.instructions:
        way = _BY_THREADS.get(count.instruction.kind)
        if way:
            result[way] += count.threads * width(count.instruction.opcode, count.instruction.text)
    for name, value in counters.kernel.items():
        way = _ENGINES.get(name.removeprefix("ptx__"))
        if way:
            result[way] += value
    return {way: amount for way, amount in result.items() if amount}


def width(opcode: str, text: str) -> int:
    """Bytes of a thread's access, in either instruction set."""
    if opcode.startswith(("cp.async.", "wmma")):
        sizes = re.findall(r",\s*(0x[0-9a-f]+|\d+)\s*[,;]?", text)
        return int(sizes[0], 0) if sizes else 0
    matrices = re.match(r"(?:ld|st)matrix.*?(?:\.x([24]))|(?:LDSM|STSM).*?(?:\.([24]))?$", opcode)
    if opcode.startswith(("ldmatrix", "stmatrix", "LDSM", "STSM")):
        count = next((item for item in (matrices.groups() if matrices else ()) if item), "1")
        return 4 * int(count)
    if opcode[0].islower():
        elements = re.search(r"\.v(\d)", opcode)
        bits = re.findall(r"\.[busf](?:f16x2|16x2|\d+(?:x2)?)\b", opcode)
        size = {"f16x2": 4, "16x2": 4, "32x2": 8}.get(bits[-1][2:]) if bits else 4
        return (size or int(bits[-1][2:]) // 8) * int(elements[1] if elements else 1)
    narrow = re.search(r"\.[US](8|16)\b", opcode)
    wide = re.search(r"\.[USF]?(64|128|256)\b", opcode)
    return int(narrow[1]) // 8 if narrow else int(wide[1]) // 8 if wide else 4


def execute(folder: Path, name: str) -> tuple[Case, Outcome]:
    """A case in both instruction sets."""
    case, given, _ = read(folder, name)
    try:
        ptx = emulator.load((folder / f"{name}.ptx").read_text())
        wanted = _executed(ptx, case, given, _SCHEDULES[-1])
    except emulator.UnsupportedInstruction as refusal:
        return case, Outcome("PTX refused", "", "", str(refusal))
    try:
        sass = assemble(folder / f"{name}.ptx", case)
        done = [_executed(sass, case, given, schedule) for schedule in _SCHEDULES]
    except emulator.REFUSALS as refusal:
        return case, Outcome("refused", "", "", str(refusal))
    return case, _compared(wanted, done)


def _executed(
    module: emulator.Module,
    case: Case,
    given: Mapping[str, NDArray[np.generic]],
    schedule: emulator.Schedule,
) -> Done:
    arrays = {key: value.copy() for key, value in given.items()}
    with _phases() as phases:
        result = emulator.run(
            module, case.launch, arrays, schedule=schedule, unwritten=case.unwritten
        )
    findings = tuple(dict.fromkeys(finding.sentence for finding in result.findings))
    return Done(arrays, phases, traffic(result.counters), findings)


def _compared(wanted: Done, done: list[Done]) -> Outcome:
    bits = []
    for name, array in wanted.arrays.items():
        counts = [np.count_nonzero(_bits(item.arrays[name]) != _bits(array)) for item in done]
        if any(counts):
            bits.append(f"{name}: {'/'.join(map(str, counts))} of {array.size}")
    phases = "same" if wanted.phases else "none"
    if any(item.phases != wanted.phases for item in done):
        phases = "differ"
    names = sorted({*wanted.traffic, *done[-1].traffic})
    apart = [
        f"{name} {wanted.traffic.get(name, 0):,} -> {done[-1].traffic.get(name, 0):,}"
        for name in names
        if wanted.traffic.get(name) != done[-1].traffic.get(name)
    ]
    note = " | ".join(dict.fromkeys(sentence for item in done for sentence in item.findings))
    return Outcome("; ".join(bits) or "same", phases, "; ".join(apart) or "same", note)


def _bits(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def main(folder: Path, names: list[str]) -> None:
    """Prints a line as each case ends."""
    print("| repository | kernel | target | bits | mbarriers | traffic |")
    print("|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.npz")):
        if names and path.stem not in names:
            continue
        started = time.perf_counter()
        case, done = execute(folder, path.stem)
        what = f"| {case.repository} | `{case.kernel}` | {case.arch} "
        print(what + f"| {done.bits} | {done.phases} | {done.traffic} |", flush=True)
        print(f"{path.stem} {time.perf_counter() - started:.0f} s: {done.note}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
