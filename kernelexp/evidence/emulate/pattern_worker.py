"""One execution whose accesses are noted: job on standard input, patterns on standard output."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernelexp.evidence.emulate.emulation_worker import as_numpy, load_code, prepare_case
from kernelexp.evidence.emulate.job import EmulationJob
from kernelexp.project.problem.loader import load
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import Watch
from warpsim import AccessPattern


class Patterned(msgspec.Struct, frozen=True, kw_only=True):
    """The dearest access of each memory instruction of the first launch of every entry."""

    patterns: tuple[AccessPattern, ...] = ()
    unsupported: str = ""
    """Why the code could not be executed; else empty."""


def note(job: EmulationJob, watch: Watch) -> Patterned:
    """Executes the variant under the first schedule; sources are named from the root."""
    import warpsim as emulator

    try:
        module = load_code(job)
        with watch.stage(job.problem_limit):
            case = prepare_case(load(Path(job.root), job.kernel), job)
        arrays = {
            name: as_numpy(tensor)
            for name, tensor in {**case.given, **case.outputs, **case.workspaces}.items()
        }
        notes = [emulator.Patterns() for _ in case.launches]
        with watch.stage(job.emulation_limit):
            emulator.run_each(
                module, case.launches, arrays, unwritten=case.unwritten, patterns=notes
            )
    except emulator.REFUSALS as fault:
        return Patterned(unsupported=str(fault))
    of_entry = {launch.entry: own for launch, own in zip(case.launches, notes, strict=True)}
    patterns = (pattern for own in of_entry.values() for pattern in own.found.values())
    return Patterned(patterns=tuple(_placed(pattern, job.root) for pattern in patterns))


def _placed(pattern: AccessPattern, root: str) -> AccessPattern:
    source = pattern.source.relative_to(root) if pattern.source else None
    return msgspec.structs.replace(pattern, source=source)


def main() -> None:
    """One execution: the job on standard input, what it noted on standard output."""
    isolated.serve(EmulationJob, note)
