"""A finished build to evidence of kind `build`."""

from __future__ import annotations

from kernelexp.arch import find
from kernelexp.build import Built
from kernelexp.evidence import instructions, occupancy, resources
from kernelexp.model import BuildEvidence


def collect(built: Built) -> BuildEvidence:
    """What a built variant's cubin says; ConfigurationError where it lacks a symbol."""
    dump = built.dump
    entry, used, exports = resources.read(built.cubin, dump, built.ptxas_report)
    opcodes = instructions.count_opcodes(dump, entry)
    return BuildEvidence(
        entry=entry,
        resources=used,
        occupancy=occupancy.compute(find(built.variant.arch), used),
        pipes=instructions.group_by_pipe(opcodes),
        opcodes=opcodes,
        exports=exports,
        warnings=resources.warnings(built.ptxas_report),
    )
