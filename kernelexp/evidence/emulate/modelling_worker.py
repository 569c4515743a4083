"""One modelled time in a process of its own: job on standard input, the time on standard output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp.evidence.code import sass_lines
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate import critical_path, followed, timeline
from kernelexp.evidence.emulate.emulation_worker import PRELOAD, as_numpy
from kernelexp.evidence.emulate.followed import Followed, FollowedLoad
from kernelexp.evidence.emulate.job import SEED, ModellingAnswer, ModellingJob
from kernelexp.evidence.measure import tensors
from kernelexp.model.experiment import spell_point
from kernelexp.model.modelled import ModelledLine, ModelledRun, ModelledTime
from kernelexp.model.problem import Problem, Size
from kernelexp.project.problem import files
from kernelexp.project.problem.consult import require_size
from kernelexp.project.problem.loader import load
from kernelexp.system import disk
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import Watch
from warpsim.launch import Launch, of_entries

if TYPE_CHECKING:
    from warpsim.timing.chips import TimedChip
    from warpsim.timing.model import CtaPlacement, ModelledLaunch, Sample
    from warpsim.timing.recording import Recording
    from warpsim.timing.replay import Replayed

__all__ = ["PRELOAD", "main", "model"]


def answer(job: ModellingJob, watch: Watch) -> ModellingAnswer:
    """The modelled launch, and what that depends on."""
    run = model(job, watch)
    return ModellingAnswer(run=run, used=files.used(Path(job.root), job.kernel))


def model(job: ModellingJob, watch: Watch) -> ModelledRun:
    """Executes the CTAs of one SM, or of the SMs of one cluster, and models the launch."""
    import warpsim as emulator
    from warpsim.timing.errors import NotModelled

    try:
        if job.native:
            emulator.load_compiled(Path(job.native))
        return _model(job, watch)
    except (NotModelled, *emulator.REFUSALS) as fault:
        return ModelledRun(time=ModelledTime(chip=job.chip, size=job.size, refused=str(fault)))


class SampledLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch with what its followed CTAs did, ready to be replayed."""

    chosen: Followed
    samples: list[Any]
    """warpsim.timing.model.Sample: of the launch itself, or of two smaller ones."""
    launch: Any
    """warpsim.timing.model.WholeLaunch."""


def follow(job: ModellingJob, watch: Watch) -> SampledLaunch:
    """Executes the CTAs whose replay gives the time of the launch.

    NotModelled where there is more than one launch, or the CTAs come to no end.
    """
    from warpsim.timing import chips, model
    from warpsim.timing.errors import NotModelled

    chip = chips.find(job.chip)
    with watch.stage(job.problem_limit):
        problem = load(Path(job.root), job.kernel)
        size = require_size(job.kernel, problem.sizes, job.size)
        chosen = _choose(job, problem, size, chip)
    if len(problem.launches(job.axes, size, job.exports)) > 1:
        raise NotModelled(f"{job.kernel}: only a single launch has a modelled time.")
    whole = model.place(_launch(job, problem, size), job.resident, chip)
    samples, sizes = [], []
    for number, item in enumerate(chosen.sizes):
        with watch.stage(job.problem_limit):
            arrays = _arrays(job, problem, item)
        sizes.append({name: array.nbytes for name, array in arrays.items()})
        if chosen.loops or number == len(chosen.sizes) - 1:
            with watch.stage(job.emulation_limit):
                sample = _follow(job, _launch(job, problem, item), arrays, chip)
            tiles = chosen.loads[number].tiles_per_cta if chosen.loops else 1
            samples.append(msgspec.structs.replace(sample, tiles=tiles))
    launch = model.WholeLaunch(
        placement=whole,
        array_bytes=_array_bytes(chosen, sizes),
        tiles=chosen.whole.tiles_per_cta if chosen.loops else 1,
    )
    return SampledLaunch(chosen=chosen, samples=samples, launch=launch)


def _model(job: ModellingJob, watch: Watch) -> ModelledRun:
    from warpsim.timing import chips, model

    sampled = follow(job, watch)
    chosen, samples = sampled.chosen, sampled.samples
    modelled = model.model(samples, sampled.launch, chips.find(job.chip), timeline.INSTRUCTIONS)
    recording, replayed, code = samples[-1].recording, modelled.replayed, _code(job)
    sources = {x.offset: x.source.relative_to(job.root) if x.source else None for x in code}
    entry = Path(job.root), Path(job.cubin), job.entries[0]
    roles = critical_path.role_names(*entry, recording, sources)
    texts = {instruction.offset: instruction.text for instruction in code}
    if job.trace:
        label, clock = f"{job.kernel} {spell_point(job.axes)}", modelled.clock_hz
        text = timeline.trace(label, recording, replayed, clock, sources, texts, roles)
        disk.write(Path(job.trace), text.encode())
    return ModelledRun(
        time=_time(job, chosen, samples, modelled, sources, roles),
        timeline=timeline.blocks(recording, replayed, sources, texts, roles),
    )


def _choose(job: ModellingJob, problem: Problem, size: Size, chip: TimedChip) -> Followed:
    from warpsim.timing.model import WAVES

    def measure(some: Size) -> FollowedLoad:
        launch = _launch(job, problem, some)
        tiles = problem.tiles(job.axes, some, job.exports)
        return followed.load(launch, tiles, problem.blocks(job.axes, some, job.exports))

    enough = WAVES * job.resident * chip.sms
    return followed.choose(size, measure(size), enough, measure)


def _launch(job: ModellingJob, problem: Problem, size: Size) -> Launch:
    return of_entries(problem.launches(job.axes, size, job.exports)[0], job.entries)


def _arrays(job: ModellingJob, problem: Problem, size: Size) -> dict[str, Any]:
    _, others = tensors.draw_inputs(problem, size, SEED, "cpu")
    outputs = problem.outputs(size)
    workspaces = problem.workspaces(job.axes, size, job.exports)
    given = problem.arrange(others, job.axes)
    result = {**tensors.allocate(outputs, others), **tensors.allocate(workspaces)}
    return {name: as_numpy(tensor) for name, tensor in {**given, **result}.items()}


def _follow(
    job: ModellingJob, launch: Launch, arrays: Mapping[str, Any], chip: TimedChip
) -> Sample:
    from warpsim.timing import model

    placement: CtaPlacement = model.place(launch, job.resident, chip)
    listing = Path(job.listing).read_text("utf-8", "replace")
    recording: Recording = model.follow(
        Path(job.cubin).read_bytes(), listing, launch, arrays, placement
    )
    return model.Sample(recording=recording, placement=placement)


def _array_bytes(chosen: Followed, sizes: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Scales array sizes to the whole launch: they grow evenly with its tiles, or not at all."""
    if len(sizes) == 1:
        return dict(sizes[0])
    first, second = chosen.loads
    further = (chosen.whole.tiles - second.tiles) / (second.tiles - first.tiles)
    return {
        name: round(size + (size - sizes[0][name]) * further) for name, size in sizes[1].items()
    }


def _time(
    job: ModellingJob,
    chosen: Followed,
    samples: Sequence[Sample],
    launch: ModelledLaunch,
    sources: critical_path.Sources,
    roles: Sequence[str],
) -> ModelledTime:
    from warpsim.timing import chips
    from warpsim.timing.replay import REASONS, UNITS

    replayed = launch.replayed
    busy, total = replayed.busy.max(axis=0) / max(replayed.ends), replayed.reasons.sum()
    executed = chosen.sizes if chosen.loops else chosen.sizes[-1:]
    smaller = chosen.whole not in chosen.loads
    return ModelledTime(
        chip=job.chip,
        size=job.size,
        cycles=launch.cycles,
        clock_mhz=launch.clock_hz / 1e6,
        highest_mhz=chips.find(job.chip).clock_hz / 1e6,
        tensor_duty=launch.tensor_duty,
        microseconds=1e6 * launch.seconds,
        units={name: min(1.0, float(x)) for name, x in zip(UNITS, busy, strict=True)},
        reasons={
            name: float(x / total)
            for name, x in zip(REASONS, replayed.reasons.sum(axis=0), strict=True)
        },
        lines=tuple(_lines(samples[-1].recording, replayed, sources)),
        path=critical_path.steps(samples[-1].recording, replayed, sources, roles),
        roles=critical_path.by_role(replayed, roles),
        followed=tuple(map(spell_point, executed)) if smaller else (),
        warp_instructions=sum(sample.recording.warp_instructions for sample in samples),
    )


def _code(job: ModellingJob) -> tuple[SassInstruction, ...]:
    listing = Path(job.listing).read_text("utf-8", "replace")
    return sass_lines.read(Path(job.cubin), listing, job.entries[0])


def _lines(
    recording: Recording, replayed: Replayed, sources: critical_path.Sources
) -> Iterator[ModelledLine]:
    from warpsim.timing.replay import REASONS

    reasons = replayed.reasons
    of_path = critical_path.by_line(recording, replayed, sources)
    lines: dict[Any, Any] = defaultdict(lambda: [0] * len(REASONS))
    for number, instruction in enumerate(recording.code):
        key = sources.get(instruction.address)
        lines[key] = [a + b for a, b in zip(lines[key], reasons[number].tolist(), strict=True)]
    total = max(1, int(reasons.sum()))
    for source, cycles in sorted(lines.items(), key=lambda item: -sum(item[1])):
        stalled = cycles[1:]
        if sum(cycles):
            reason = REASONS[1 + stalled.index(max(stalled))] if any(stalled) else REASONS[0]
            yield ModelledLine(
                source=source,
                part=sum(cycles) / total,
                reason=reason,
                of_path=of_path.get(source, 0.0),
            )


def main() -> None:
    """One time: the job on standard input."""
    isolated.serve(ModellingJob, answer)
