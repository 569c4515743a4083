"""A finished build to evidence of kind `build`."""

from __future__ import annotations

from kernelexp.arch import find
from kernelexp.arm import BuildEvidence
from kernelexp.build import Artefacts
from kernelexp.evidence import instructions, occupancy, resources
from kernelexp.model import Variant


def collect(variant: Variant, made: Artefacts) -> BuildEvidence:
    """What a built variant's cubin says; ConfigurationError where it lacks a symbol."""
    entry, used, exports = resources.read(made.cubin, made.sass, made.ptxas_report)
    opcodes = instructions.count_opcodes(made.sass, entry)
    return BuildEvidence(
        entry=entry,
        resources=used,
        occupancy=occupancy.compute(find(variant.arch), used),
        pipes=instructions.group_by_pipe(opcodes),
        opcodes=opcodes,
        exports=exports,
        warnings=resources.warnings(made.ptxas_report),
    )
