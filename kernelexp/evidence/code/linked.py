"""A program's executable to evidence: its kernels, from their SASS and from ptxas's report."""

from __future__ import annotations

import re
from collections import Counter

from kernelexp.evidence.build import ProgramArtefacts
from kernelexp.evidence.code import instructions, resources
from kernelexp.model.arm import ProgramEvidence, ProgramKernel
from kernelexp.model.experiment import Program

INSTRUCTION_BYTES = 16
_USAGE = re.compile(r"^ Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", re.M)
_SPILLS = re.compile(
    r"Function properties for (\S+)\s+\d+ bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads"
)


def collect(program: Program, arch: str, program_artefacts: ProgramArtefacts) -> ProgramEvidence:
    """Reads the evidence of a program's executable; spills are as ptxas reported of its source."""
    spills = {
        name: (int(stores), int(loads))
        for name, stores, loads in _SPILLS.findall(program_artefacts.ptxas_report)
    }
    reserved = resources.reserved_bytes(arch)
    kernels = []
    opcodes: Counter[str] = Counter()
    for name, registers, stack, shared in _USAGE.findall(program_artefacts.sass):
        stores, loads = spills.get(name, (0, 0))
        opcodes.update(instructions.count_opcodes(program_artefacts.sass, name))
        kernels.append(
            ProgramKernel(
                name=name,
                registers=int(registers),
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                stack_bytes=int(stack),
                static_smem_bytes=max(0, int(shared) - reserved),
                sass_bytes=INSTRUCTION_BYTES * instructions.count_all(program_artefacts.sass, name),
            )
        )
    ordered = dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0])))
    return ProgramEvidence(
        spec=program,
        kernels=tuple(kernels),
        pipes=instructions.count_pipes(program_artefacts.sass, [kernel.name for kernel in kernels]),
        opcodes=ordered,
        warnings=resources.warnings(program_artefacts.ptxas_report),
    )
