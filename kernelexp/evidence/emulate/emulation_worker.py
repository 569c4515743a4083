"""One emulation in a process of its own: job on standard input, evidence on standard output.

A process each, because two then use two cores, and because torch, which makes the inputs and the
reference, need not be loaded by the command line.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp.evidence.code import sass_lines
from kernelexp.evidence.emulate import emulated_costs as costs
from kernelexp.evidence.emulate.job import (
    Emulated,
    EmulationJob,
)
from kernelexp.evidence.measure import doubts, results, tensors
from kernelexp.facts import chips
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.arm import (
    EmulatedEvidence,
    EmulatedFinding,
    EmulatedLaunch,
    EmulatedPrint,
    Isa,
)
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.model.measurement import ArrayResult
from kernelexp.model.problem import Problem, Size, Tensors, Tolerance
from kernelexp.project.problem import files
from kernelexp.project.problem.consult import require_size
from kernelexp.project.problem.loader import load
from kernelexp.system.process import confine, isolated
from kernelexp.system.process.isolated import Watch
from warpsim.launch import Launch, Residency, of_entries
from warpsim.lineinfo import Source, SourceLine

if TYPE_CHECKING:
    import torch

    from warpsim import Comparison, Finding, Module, Result

PRELOAD = ("torch", "numpy.random", "numpy.ma", "kernelexp.problem", "warpsim.execute")
"""Seconds on a slow core: loaded once, before the process of an emulation is forked."""
DIGITS = 16
"""Of the SHA-256 of an output: enough to tell two results apart."""
PRINTS_KEPT = 100
LARGE = 256 << 20
"""Bytes of arrays from which on schedules run one after the other: each takes 8 times as many."""


def emulate(job: EmulationJob, watch: Watch) -> Emulated:
    """Runs the variant under several schedules and compares what it wrote with the reference.

    The kernel gets copies; the reference is computed from inputs that it never saw.
    """
    import warpsim as emulator

    if job.memory_bytes:
        confine.limit_growth(job.memory_bytes)
    if job.native:
        with contextlib.suppress(OSError):  # a folder that forbids execution: NumPy will do
            emulator.load_compiled(Path(job.native))
    try:
        emulated = _emulate(load_code(job), job, watch)
        return msgspec.structs.replace(emulated, used=files.used(Path(job.root), job.kernel))
    except emulator.REFUSALS as fault:
        isa: Isa = "sass" if job.cubin else "ptx"
        return Emulated(evidence=EmulatedEvidence(size=job.size, isa=isa, unsupported=str(fault)))


def _emulate(module: Module, job: EmulationJob, watch: Watch) -> Emulated:
    import torch  # where it was not preloaded, its seconds are not problem.py's

    # Emulations run side by side, one on each core; and a sum's rounding depends on its threads.
    torch.set_num_threads(1)
    with watch.stage(job.problem_limit):
        problem = load(Path(job.root), job.kernel)
        case = prepare_case(problem, job)
    arrays = {name: as_numpy(tensor.clone()) for name, tensor in case.given.items()}
    written = {**case.outputs, **case.workspaces}
    arrays |= {name: as_numpy(tensor) for name, tensor in written.items()}
    with watch.stage(job.emulation_limit), _nothing_old_collected():
        compared = _compare(module, problem, case, arrays, job)
    changed = [
        name for name, tensor in case.given.items() if (arrays[name] != as_numpy(tensor)).any()
    ]
    with watch.stage(job.problem_limit):
        checked = _checked(problem, case, compared)
    root = Path(job.root)
    evidence = _evidence(root, case, compared, checked, tuple(changed))
    evidence = msgspec.structs.replace(evidence, seed=job.seed)
    return Emulated(
        evidence=_of_sass(evidence, compared) if job.cubin else evidence,
        lines=costs.every_line(root, case.launches, compared.launches),
        instructions=costs.every_instruction(Path(job.listing), case.launches, compared.launches)
        if job.cubin
        else (),
    )


def _checked(
    problem: Problem, case: EmulationCase, compared: Comparison
) -> list[tuple[ArrayResult, ...]]:
    """Compares each schedule's outputs with the reference, unless they equal those of the first."""

    def check(outputs: Tensors) -> tuple[ArrayResult, ...]:
        return results.compare(outputs, problem.reference(case.inputs, case.size), case.tolerance)

    checked = [check(case.outputs)]
    for other in compared.others[1:]:
        outputs = dict(case.outputs)
        for name in other.keys() & outputs.keys():
            outputs[name] = case.outputs[name].clone()
            as_numpy(outputs[name])[...] = other[name]
        is_first = all(tensor is case.outputs[name] for name, tensor in outputs.items())
        checked.append(checked[0] if is_first else check(outputs))
    return checked


@contextlib.contextmanager
def _nothing_old_collected() -> Iterator[None]:
    """Keeps garbage collection from going through what is already imported and decoded."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _compare(
    module: Module,
    problem: Problem,
    case: EmulationCase,
    arrays: dict[str, Any],
    job: EmulationJob,
) -> Comparison:
    """Compares under every schedule; ConfigurationError for a launch the code does not allow."""
    import warpsim as emulator

    size = sum(array.nbytes for array in arrays.values())
    try:
        return emulator.compare(
            module,
            case.launches,
            arrays,
            schedules=job.schedules,
            unwritten=case.unwritten,
            scratch=tuple(case.workspaces),
            card=_card(job.arch),
            processes=job.processes if size < LARGE else 1,
            benign=case.benign,
        )
    except emulator.REFUSALS:
        raise
    except UsageError as fault:
        raise ConfigurationError(f"{problem.name}: launch(): {fault}") from None


def _of_sass(evidence: EmulatedEvidence, compared: Comparison) -> EmulatedEvidence:
    counters = compared.results[0].counters
    whole: Counter[str] = Counter()
    for count in counters.instructions:
        whole[count.instruction.opcode] += count.executed
    return msgspec.structs.replace(
        evidence,
        isa="sass",
        opcodes=counters.by_opcode(),
        opcodes_with_modifiers=dict(whole.most_common()),
    )


def load_code(job: EmulationJob) -> Module:
    """The code of a variant: its PTX, or the SASS that ptxas made of it."""
    import warpsim as emulator

    if not job.cubin:
        return emulator.load(Path(job.ptx).read_text())
    path = Path(job.cubin)
    listing = Path(job.listing).read_text("utf-8", "replace")

    def sources(entry: str) -> dict[int, Source]:
        code = sass_lines.read(path, listing, entry)
        return {cost.offset: cost.source for cost in code if cost.source}

    return emulator.load_cubin(path.read_bytes(), listing, sources)


class EmulationCase(msgspec.Struct, frozen=True, kw_only=True):
    """The data that problem.py makes for one emulation."""

    size_name: str
    size: Size
    inputs: Tensors
    """For the reference alone."""
    given: Tensors
    """What the kernel only reads."""
    outputs: Tensors
    workspaces: Tensors
    unwritten: tuple[str, ...]
    """Outputs and workspaces that hold nothing before the launch."""
    launches: tuple[Launch, ...]
    tolerance: Tolerance
    doubts: tuple[str, ...]
    benign: Mapping[SourceLine, str]
    """Lines that may race with each other, and why that does no harm."""


def prepare_case(problem: Problem, job: EmulationJob) -> EmulationCase:
    size = require_size(job.kernel, problem.sizes, job.size)
    inputs, others = tensors.draw_inputs(problem, size, job.seed, "cpu")
    given = problem.arrange(others, job.axes)
    outputs = problem.outputs(size)
    workspaces = problem.workspaces(job.axes, size, job.exports)
    tensors.check_names(problem, others, given, outputs, workspaces)
    written = {**outputs, **workspaces}
    tolerance = problem.tolerance(size, job.arch, job.axes)
    launches = problem.launches(job.axes, size, job.exports)
    code = Path(job.ptx or job.listing).read_text("utf-8", "replace")
    benign, unknown = benign_lines(Path(job.root), code, problem.benign_races)
    return EmulationCase(
        size_name=job.size,
        size=size,
        inputs=inputs,
        given={name: tensor for name, tensor in given.items() if name not in outputs},
        outputs=tensors.allocate(outputs, others),
        workspaces=tensors.allocate(workspaces),
        unwritten=tuple(x for x, a in written.items() if x not in others and not a.zero),
        launches=tuple(of_entries(launch, job.entries) for launch in launches),
        tolerance=tolerance,
        doubts=(
            *doubts.find(problem, size, job.seed, inputs, outputs, tolerance, code),
            *(f"no line of its source has {text!r}, as BENIGN_RACES says" for text in unknown),
        ),
        benign=benign,
    )


_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.M)


def benign_lines(
    root: Path, ptx: str, races: Mapping[str, str]
) -> tuple[dict[SourceLine, str], list[str]]:
    """The source lines of which BENIGN_RACES has a piece, with its reason; and the pieces that no
    line has. Sources are those of the line table."""
    names = [name for name in _FILE.findall(ptx) if not Source(name, 0).is_toolkits] * bool(races)
    texts = {x: (root / x).read_text("utf-8", "replace") for x in names if (root / x).is_file()}
    lines = {
        (name, number): piece
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        for piece in races
        if piece in line
    }
    unknown = [piece for piece in races if piece not in lines.values()]
    return {line: races[piece] for line, piece in lines.items()}, unknown


def _card(arch: str) -> Residency | None:
    """The card that bounds which CTAs are resident; None where its chip is not described."""
    own = ARCHITECTURES[arch]
    chip = chips.find(own.card)
    if chip is None:
        return None
    return Residency(
        sms=int(chip.sms.value),
        warps_per_sm=own.warps_per_sm,
        ctas_per_sm=own.ctas_per_sm,
        smem_per_sm_bytes=own.smem_per_sm_bytes,
    )


def as_numpy(tensor: torch.Tensor) -> Any:
    """The tensor's own memory as a NumPy array of unsigned integers of the same width."""
    import torch

    widths = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
    tensor = tensors.as_numbers(tensor)
    return tensor.view(widths[tensor.element_size()]).numpy()


def _digests(outputs: Tensors) -> dict[str, str]:
    return {
        name: hashlib.sha256(as_numpy(output).tobytes()).hexdigest()[:DIGITS]
        for name, output in outputs.items()
    }


def _evidence(
    root: Path,
    case: EmulationCase,
    compared: Comparison,
    checked: Sequence[tuple[ArrayResult, ...]],
    changed: tuple[str, ...],
) -> EmulatedEvidence:
    import warpsim as emulator

    runs = compared.results
    hang = next((result.hang for result in runs if result.hang), ())
    return EmulatedEvidence(
        size=case.size_name,
        outputs=_digests(case.outputs),
        schedules=tuple(str(result.schedule) for result in runs),
        arrays=next(filter(_has_wrong, checked), checked[0]),
        tolerance={name: getattr(case.tolerance, name) for name in ("rtol", "atol", "of_rms")},
        doubts=(*case.doubts, *untested(runs[0])),
        changed=changed,
        differing=compared.differing,
        varying=compared.varying,
        findings=_findings(compared.findings),
        warnings=_findings(compared.warnings, case.benign),
        failing=_failing(compared, checked),
        printed=tuple(
            EmulatedPrint(cta=x.cta, thread=x.thread, text=x.text)
            for x in runs[0].printed[:PRINTS_KEPT]
        ),
        prints=len(runs[0].printed),
        hang=emulator.describe_hang(hang),
        counters=costs.nonzero(runs[0].counters.kernel),
        launches=_launches(case.launches, compared.launches),
        lines=costs.dearest(root, runs[0].counters),
        thread_instructions=runs[0].thread_instructions,
        seconds=round(sum(result.seconds for result in runs), 3),
    )


LINES = 3
"""Of guards that are named."""


def untested(result: Result) -> Iterator[str]:
    """Yields what the size is too small to test."""
    if result.filled_once and result.finished:
        yield (
            f"the stages that the copy at {result.filled_once} fills are filled once at this size, "
            "so that no wait for a free one is tested: let the loop go round more often"
        )
    one_way = [line for line, way in result.ways.items() if way != 3]
    if one_way and result.finished:
        several = len(one_way) > 1
        more = f" and {len(one_way) - LINES} more" if len(one_way) > LINES else ""
        yield (
            f"the guard{'s' * several} at {', '.join(one_way[:LINES])}{more} "
            f"decide{'s' * (not several)} the same for every thread at this size: also emulate one "
            "that is no multiple of a tile"
        )


def _launches(launches: Sequence[Launch], results: Sequence[Result]) -> tuple[EmulatedLaunch, ...]:
    """Returns the launches that were executed, where there are several."""
    return tuple(
        EmulatedLaunch(
            entry=launch.entry,
            ctas=math.prod(launch.grid),
            thread_instructions=result.thread_instructions,
            counters=costs.nonzero(result.counters.kernel),
        )
        for launch, result in zip(launches, results, strict=False)
        if len(launches) > 1
    )


def _failing(compared: Comparison, checked: Sequence[tuple[ArrayResult, ...]]) -> tuple[str, ...]:
    """The schedules that failed."""
    return tuple(
        str(result.schedule)
        for result, arrays in zip(compared.results, checked, strict=True)
        if result.schedule in compared.failing or _has_wrong(arrays)
    )


def _has_wrong(arrays: Sequence[ArrayResult]) -> bool:
    return any(array.wrong for array in arrays)


def _findings(
    findings: Sequence[Finding], benign: Mapping[SourceLine, str] | None = None
) -> tuple[EmulatedFinding, ...]:
    return tuple(
        EmulatedFinding(
            name=x.name, sentence=x.sentence + _why(x, benign or {}), where=x.where(), count=x.count
        )
        for x in findings
    )


def _why(finding: Finding, benign: Mapping[SourceLine, str]) -> str:
    """Returns the reason that problem.py gives for calling a race benign."""
    if finding.name != "benign-race" or finding.source is None:
        return ""
    frames = [(frame.file, frame.line) for frame in finding.source.frames()]
    return f" Benign by problem.py: {next(benign[line] for line in frames if line in benign)}."


def main() -> None:
    """One emulation: the job on standard input, what it showed on standard output."""
    gc.set_threshold(100_000)  # with 700 it took 6% of a GEMM's time, and found next to nothing
    isolated.serve(EmulationJob, emulate)
