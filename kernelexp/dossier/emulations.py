"""Variants emulated outside of an experiment, and the counters of the full problem from them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.evidence.emulate.scaling import (
    Extent,
    Scaled,
    can_scale,
    is_polled,
    least,
    not_by_tiles,
    parts,
    scale,
    solve_blocks,
    solves_blocks,
    unsound,
)
from kernelexp.judge import agreement, verdict
from kernelexp.model import errors
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLaunch, Isa, Status
from kernelexp.model.decoding import decode
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.variant import Variant
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.project.problem.consult import Consulted, Point
from warpsim.launch import main_launch

Extents: TypeAlias = tuple[Extent, ...]
"""Of a job, by launch."""


class Full(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the full problem."""

    isa: Isa = "ptx"
    """What was counted."""
    entry: str = ""
    """Of several launches."""
    tiles: int
    """Of its output, or of what its CTAs have in turn; without tiles() in problem.py, its CTAs."""
    ctas: int
    loads: int = 0
    """Tiles that load what those after them keep, where the problem says so."""
    counters: tuple[Scaled, ...]


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one variant."""

    label: str
    arm: Arm
    scaled: tuple[Full, ...] = ()
    """Counters of the full problem by launch, where they were asked for."""
    not_scaled: str = ""
    """Why there are none, where they were asked for."""


class FullCount(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a launch of the full problem, with what they are scaled by."""

    extent: Extent
    counters: dict[str, int]
    how: str
    """As the end of a sentence."""
    larger: EmulatedEvidence | None = None
    """The larger of two sizes that they were solved from."""
    unsolved: frozenset[str] = frozenset()
    """Those of `counters` that are in proportion although others were solved."""
    least: dict[str, int] = {}
    """What a launch counts of these at least; of those around loads of what is kept, about."""
    solved: frozenset[str] = frozenset()
    """The counters that two sizes agree on; the others are in proportion to the tiles."""


def emulate(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    how: EmulationOptions,
    full: bool,
) -> tuple[list[Emulation], list[KernelexpError]]:
    """Builds and executes each variant; with `full` at two sizes, so that a launch of the full
    problem can be counted. Also the faults of variants that could not be examined."""
    prepare.refuse_programs(variants, "an emulation")
    for kernel in dict.fromkeys(item.kernel for item in variants):
        answer = consult.consult(project.root, kernel, timeout_s=session.limits.problem_s)
        consult.require_size(kernel, answer.sizes, how.size)
    prepared = prepare.built(project, variants, session)
    prepared = prepare.emulated(project, prepared, session, how=how)
    emulations = []
    for variant, arm in prepared.named(variants):
        label = project.label(variant)
        if how.schedules is None:
            _note(project.root, arm, how.size)
        if not full:
            emulations.append(Emulation(label=label, arm=arm))
            continue
        judged = arm.emulated if arm.emulated is not arm.counted else None
        # A wrong result does not change what a launch that came to its end executed.
        taken = [
            emulated_evidence
            for emulated_evidence in (judged, arm.counted)
            if emulated_evidence and emulated_evidence.arrays and emulated_evidence.finished
        ]
        scaled = tuple(
            part
            for emulated_evidence in taken
            for part in _scale(project, arm, emulated_evidence, how, session)
        )
        scaled = tuple(_sound(scaled, taken))
        why = "" if scaled else "the launch did not run to its end, so that its counts are a part"
        emulations.append(Emulation(label=label, arm=arm, scaled=scaled, not_scaled=why))
    return emulations, list({str(fault): fault for fault in prepared.faults.values()}.values())


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """What was emulated last of a kernel on one architecture."""

    arm: Arm
    size: str


def _note(root: Path, arm: Arm, size: str) -> None:
    if arm.build and arm.emulated is not None:
        bare = msgspec.structs.replace(arm, emulated=None, emulated_sass=None)
        folder = root / _LATEST
        folder.mkdir(exist_ok=True)
        content = msgspec.json.encode(Latest(arm=bare, size=size))
        build.keep(folder, f"{arm.kernel}@{arm.arch}.json", content)


def latest(root: Path, kernel: str, arch: str) -> Latest | None:
    """With the evidence that is kept of it; without, where its problem.py or the emulator has
    changed since."""
    kept = build.kept(root / _LATEST, f"{kernel}@{arch}.json")
    if kept is None:
        return None
    known = decode(kept, Latest)
    evidence = emulated.find(root, known.arm, known.size)
    return msgspec.structs.replace(known, arm=msgspec.structs.replace(known.arm, emulated=evidence))


_LATEST = ".kernelexp/emulated"


def _scale(
    project: Project, arm: Arm, first: EmulatedEvidence, how: EmulationOptions, session: Session
) -> tuple[Full, ...]:
    """From the evidence at the size at hand and an emulation at another small size."""
    size = how.size
    name = f"variants/{arm.kernel}/problem.py"
    sizes = consult.consult(project.root, arm.kernel, timeout_s=session.limits.problem_s).sizes
    answer = launches(project, arm, list(sizes), session.limits)
    if "full" not in sizes or size == "full":
        raise UsageError(f"--full needs a size 'full' in SIZES of {name}, and a small one.")
    one, full = _extents(answer, size), _extents(answer, "full")
    if any(extent.blocks for extent in full):
        raise UsageError(
            "--full is of two sizes; the CTAs of this variant have several blocks in turn, whose "
            "counts take three: kernelexp explain has them."
        )
    extents = _others(answer, size)
    pair = solving(size, one, extents, full)
    if pair is None:
        raise UsageError(
            f"--full needs another small size besides {size!r} in SIZES of {name}, with more CTAs "
            "and, where a CTA has several tiles, another number of tiles per CTA"
            f"{'' if _has_tiles(answer) else ', as tiles() says it'}."
        )
    taken = []
    for own in pair:
        evidence = first if own == size else _take(project, arm, own, session, first.isa)
        if isinstance(evidence, KernelexpError):
            raise evidence
        if not evidence.finished and (refused := verdict.emulated(evidence)):
            raise UsageError(f"--full: at size {own!r} this variant is {refused.status}.")
        taken.append(evidence)
    of = {size: one, **extents}
    third = None if size in pair else (first, one)
    return tuple(_solve(taken, (of[pair[0]], of[pair[1]]), full, third))


def _has_tiles(answer: Consulted) -> bool:
    return any(facts.tiles for facts in answer.points)


def second_size(one: Extents, others: Mapping[str, Extents], full: Extents) -> str | None:
    """The smallest that counters can be solved from, by tiles; a size above the full one, which a
    problem may have to be timed at, would take hours."""

    def tiles(extents: Extents) -> int:
        return sum(extent.tiles for extent in extents)

    able = (x for x, item in others.items() if _can_scale(one, item, full))
    return min(
        (x for x in able if tiles(others[x]) < tiles(full)),
        key=lambda x: tiles(others[x]),
        default=None,
    )


def solving(
    size: str, one: Extents, others: Mapping[str, Extents], full: Extents
) -> tuple[str, str] | None:
    """The two sizes that counters are solved from: two besides `size` where the problem has them,
    as it checks results at edges that the full problem may not have; else `size` and another."""
    other = second_size(one, others, full)
    if other is None:
        return None
    more = second_size(others[other], _without(others, other), full)
    return (size, other) if more is None else (other, more)


def _without(extents: Mapping[str, Extents], name: str) -> dict[str, Extents]:
    return {key: value for key, value in extents.items() if key != name}


def _can_scale(one: Extents, other: Extents, full: Extents) -> bool:
    """Whether this is so of each launch, and the job has the same launches at each size."""
    alike = len(one) == len(other) == len(full)
    return alike and all(map(can_scale, one, other, full))


def _solve(
    taken: Sequence[EmulatedEvidence],
    own: tuple[Extents, Extents],
    full: Extents,
    third: tuple[EmulatedEvidence, Extents] | None = None,
) -> list[Full]:
    """The counters of each launch of the full problem."""
    (first, second), (one, other) = taken, own
    thirds = list(zip(_parts(third[0]), third[1], strict=True)) if third else [None] * len(full)
    return [
        Full(
            isa=first.isa,
            entry=getattr(a, "entry", ""),
            tiles=z.tiles,
            ctas=z.ctas,
            loads=z.loads,
            counters=tuple(scale(a, x, b, y, z, more)),
        )
        for a, x, b, y, z, more in zip(
            _parts(first), one, _parts(second), other, full, thirds, strict=True
        )
    ]


def _sound(scaled: Sequence[Full], taken: Sequence[EmulatedEvidence]) -> Iterator[Full]:
    """Without totals whose parts have no solution, of either instruction set."""
    counted = {name for item in taken for part in _parts(item) for name in part.counters}
    solved = {counter.counter for full in scaled for counter in full.counters}
    dropped = unsound(counted - solved)
    for full in scaled:
        kept = tuple(counter for counter in full.counters if counter.counter not in dropped)
        yield msgspec.structs.replace(full, counters=kept)


def _parts(evidence: EmulatedEvidence) -> Sequence[EmulatedEvidence | EmulatedLaunch]:
    """What it counted, launch by launch; a job of one launch is that launch."""
    return evidence.launches or (evidence,)


def count_full(
    project: Project, arm: Arm, consulted: Consulted, session: Session, wanted: str = "full"
) -> FullCount | None:
    """All counters of an emulated arm for the size `wanted`, by default the full problem: solved
    from two sizes where the problem has a second one; the rest, and all where it has none, in
    proportion to the tiles.

    Those of PTX, and those of SASS where that was executed. `said` has the launches of the arm, at
    all sizes. None where nothing was counted, or where problem.py neither states its tiles nor has
    a second size.
    """
    known: list[FullCount] = []
    for emulated_evidence in (arm.counted, arm.emulated):
        doubted = unsound(name for count in known for name in count.unsolved)
        count = _count_full(project, arm, emulated_evidence, consulted, session, doubted, wanted)
        known += [count] if count else []
    if not known:
        return None
    unsolved = frozenset(name for count in known for name in count.unsolved)
    how = known[-1].how
    if unsolved:
        verb = "does" if len(unsolved) == 1 else "do"
        how += f"; {len(unsolved)} that {verb} not grow evenly, by what each tile adds"
    return FullCount(
        extent=known[-1].extent,
        counters={name: n for count in known for name, n in count.counters.items()},
        how=how,
        larger=known[0].larger,
        unsolved=unsolved,
        least={name: n for count in known for name, n in count.least.items()},
        solved=frozenset(name for count in known for name in count.solved),
    )


def _count_full(
    project: Project,
    arm: Arm,
    first: EmulatedEvidence | None,
    consulted: Consulted,
    session: Session,
    doubted: Sequence[str],
    wanted: str,
) -> FullCount | None:
    """`doubted` are counters whose solution another instruction set's counts contradict."""
    size = emulated.SIZE
    if first is None or not (first.arrays and first.finished):
        return None
    if not {size, wanted} <= consulted.sizes.keys():
        return None
    one, full = _extents(consulted, size), _extents(consulted, wanted)
    extents = _others(consulted, size, wanted)
    if not len(_parts(first)) == len(one) == len(full):
        return None
    extent = Extent(tiles=sum(x.tiles for x in full), ctas=sum(x.ctas for x in full))
    if not (_is_alike(consulted, size, size, wanted) and _is_even(consulted, size, wanted)):
        # Another loop, or other tiles: two other sizes have them, or nothing is known of them.
        pair = next(
            (
                (name, more)
                for name, own in extents.items()
                if (more := second_size(own, _without(extents, name), full))
            ),
            None,
        )
        if pair is None:
            return None
    else:
        pair = solving(size, one, extents, full)
    if len(full) == 1 and full[0].blocks and (three := _three(extents, full[0])):
        return _of_blocks(project, arm, first, three, extents, full[0], doubted, session)
    taken = _taken(project, arm, first, pair, session) if pair else None
    if pair is None or taken is None:
        if not _has_tiles(consulted):
            return None
        counters = _by_tiles(first, one, full)
        tiles = sum(x.tiles for x in one)
        how = f"x {extent.tiles:,} / {tiles:,} tiles of size {size!r}"
        return FullCount(extent=extent, counters=counters, how=how)
    of = {size: one, **extents}
    own = of[pair[0]], of[pair[1]]
    # What a CTA does once is a smaller part of the larger.
    larger = max((0, 1), key=lambda place: sum(x.tiles for x in own[place]))
    exact = _exact(taken, own, full, doubted, None if size in pair else (first, one))
    if not is_as_full(consulted, pair, wanted):
        exact = {}
    how = f"solved from sizes {pair[0]!r} and {pair[1]!r}"
    if not _has_tiles(consulted):
        how += ", a CTA taken as a tile"
        if not exact:
            return None
        return FullCount(
            extent=extent, counters=exact, how=how, larger=taken[larger], solved=frozenset(exact)
        )
    rough = _by_tiles(taken[larger], own[larger], full)
    unsolved = frozenset(rough.keys() - exact.keys())
    return FullCount(
        extent=extent,
        counters={**rough, **exact},
        how=how,
        larger=taken[larger],
        unsolved=unsolved,
        least=_least(unsolved, taken, own, full),
        solved=frozenset(exact),
    )


def _three(extents: Mapping[str, Extents], full: Extent) -> tuple[str, ...] | None:
    """The smallest three sizes that counts of CTAs with several blocks are solved from."""
    small = sorted(
        (name for name, (own, *_) in extents.items() if own.tiles < full.tiles),
        key=lambda name: extents[name][0].tiles,
    )
    able = (
        names
        for names in itertools.combinations(small, 3)
        if solves_blocks([extents[name][0] for name in names])
    )
    return next(able, None)


def _of_blocks(
    project: Project,
    arm: Arm,
    first: EmulatedEvidence,
    names: Sequence[str],
    extents: Mapping[str, Extents],
    full: Extent,
    doubted: Sequence[str],
    session: Session,
) -> FullCount | None:
    """From three sizes; None where one can't be had or does not solve its counts."""
    taken = _taken(project, arm, first, names, session)
    if taken is None:
        return None
    solved = dict(solve_blocks(taken, [extents[name][0] for name in names], full))
    unsolved = {*doubted, *(name for item in taken for name in item.counters if name not in solved)}
    unsolved.update(unsound(unsolved))
    exact = {name: count for name, count in solved.items() if name not in unsolved}
    return FullCount(
        extent=full,
        counters=exact,
        how=f"solved from sizes {', '.join(map(repr, names[:-1]))} and {names[-1]!r}",
        larger=taken[-1],
        unsolved=frozenset(unsolved),
        solved=frozenset(exact),
    )


def least_factor(consulted: Consulted, taken: EmulatedEvidence, wanted: str) -> float:
    """Times the counts of one small size that a launch of size `wanted` has at least, if tiles and
    CTAs each add what they add there, or all tiles but a CTA's first do; 0 where it is smaller in
    some way, or of several launches."""
    small, large = consulted.sizes.get(taken.size), consulted.sizes.get(wanted)
    if small is None or large is None or any(large.get(key, 0) < small[key] for key in small):
        return 0.0
    one, full = _extents(consulted, taken.size), _extents(consulted, wanted)
    if not len(_parts(taken)) == len(one) == len(full) == 1:
        return 0.0
    (x,), (z,) = one, full
    factors = [z.tiles / x.tiles, z.ctas / x.ctas]
    if x.tiles > x.ctas:
        factors.append((z.tiles - z.ctas) / (x.tiles - x.ctas))
    return min(factors)


def _least(
    counters: Iterable[str],
    taken: Sequence[EmulatedEvidence],
    own: tuple[Extents, Extents],
    full: Extents,
) -> dict[str, int]:
    """Of all launches; of a kernel that does not load for every tile nothing is told of loads, and
    the instructions around them are counted for every tile, a few percent too many."""
    parts = list(zip(*(_parts(item) for item in taken), *own, full, strict=True))
    if any(extent.loads for extent in full):
        counters = not_by_tiles(counters, full)
    return {
        name: sum(least(name, (a, x), (b, y), z) for a, b, x, y, z in parts) for name in counters
    }


def _in_proportion(
    launch: EmulatedEvidence | EmulatedLaunch, one: Extent, full: Extent
) -> dict[str, int]:
    """To the tiles; global loads to the tiles that load."""
    result: Counter[str] = Counter()
    for name in launch.counters:
        for count, is_load in parts(name, launch, full):
            x, z = (one.of_loads(), full.of_loads()) if is_load else (one, full)
            result[name] += count * z.tiles // x.tiles
    return dict(result)


def _by_tiles(taken: EmulatedEvidence, own: Extents, full: Extents) -> dict[str, int]:
    """To the tiles of each launch."""
    counts: Counter[str] = Counter()
    for part, x, z in zip(_parts(taken), own, full, strict=True):
        counts.update(_in_proportion(part, x, z))
    return dict(counts)


def _taken(
    project: Project,
    arm: Arm,
    first: EmulatedEvidence,
    names: Sequence[str],
    session: Session,
) -> tuple[EmulatedEvidence, ...] | None:
    """The evidence of these sizes; None where one can't be had."""
    result = []
    for name in names:
        if name == first.size:
            result.append(first)
            continue
        evidence = _take(project, arm, name, session, first.isa)
        if isinstance(evidence, KernelexpError) or verdict.emulated(evidence):
            return None
        result.append(evidence)
    return tuple(result)


def _take(
    project: Project, arm: Arm, size: str, session: Session, isa: Isa
) -> EmulatedEvidence | KernelexpError:
    """The evidence of another small size, with what is executed as progress."""
    tell, limits = session.on_progress, session.limits

    def label(_: Arm) -> str:
        return f"{arm.kernel} at size {size!r}"

    (evidence,) = emulated.take(project.root, [arm], size, limits, tell, label, isa=isa)
    return evidence


def _exact(
    taken: Sequence[EmulatedEvidence],
    own: tuple[Extents, Extents],
    full: Extents,
    doubted: Sequence[str],
    third: tuple[EmulatedEvidence, Extents] | None,
) -> dict[str, int]:
    """What two sizes solve for every launch."""
    first, second = taken
    solved = [
        {counter.counter: counter.full for counter in part.counters}
        for part in _solve(taken, own, full, third)
    ]
    exact: Counter[str] = Counter()
    unsolved = {*doubted}
    for part, a, b in zip(solved, _parts(first), _parts(second), strict=True):
        exact.update(part)
        unsolved |= (a.counters.keys() | b.counters.keys()) - part.keys()
    if totals := unsound(unsolved):
        # Fractions are then not of polls alone: tiles of several kinds.
        unsolved.update(totals, filter(is_polled, exact))
    unsolved.update(not_by_tiles(exact, full))
    return {name: count for name, count in exact.items() if name not in unsolved}


def launches(project: Project, arm: Arm, sizes: Sequence[str], limits: Limits) -> Consulted:
    """What problem.py says of a built arm at those of these sizes that it has launches of."""
    exports = arm.build.exports if arm.build else {}
    point = Point(axes=arm.axes, arch=arm.arch, exports=exports)
    return consult.consult(
        project.root, arm.kernel, [point], sizes, timeout_s=limits.problem_s, separately=True
    )


def _extents(answer: Consulted, size: str) -> Extents:
    """Tiles and CTAs of each launch of this size; a CTA is a tile unless the problem says else."""
    (facts,) = answer.points
    job = facts.launch_of(size)
    counts = [math.prod(launch.grid) for launch in job]
    return tuple(
        Extent(
            tiles=facts.tiles.get(size, ctas),
            ctas=ctas,
            loads=facts.loads.get(size, 0),
            blocks=facts.blocks.get(size, 0),
        )
        if launch is main_launch(job)
        else Extent(tiles=ctas, ctas=ctas)
        for launch, ctas in zip(job, counts, strict=True)
    )


def _others(answer: Consulted, size: str, wanted: str = "full") -> dict[str, Extents]:
    """Of the sizes that the variant has launches of, besides this one, that and the full one.

    What this size has as the full one, such as the columns of a head, they have as the size that is
    wanted: counts of another loop say nothing of it.
    """
    (facts,) = answer.points
    return {
        name: _extents(answer, name)
        for name in facts.launches
        if name not in (size, wanted, "full")
        and _is_alike(answer, name, size, wanted)
        and _is_even(answer, name, wanted)
    }


_UNEVEN = 2.0
"""Of the FLOPs of a tile: what a tile beyond an edge lacks is less."""


def _is_even(answer: Consulted, name: str, wanted: str) -> bool:
    """Whether a tile has about as much work at both sizes, where work() and tiles() say so: CTAs
    that have nothing to do at the small one are tiles there too."""
    small, large = (_work_of_tile(answer, size)[0] for size in (name, wanted))
    return not (small and large) or 1 / _UNEVEN < small / large < _UNEVEN


def _work_of_tile(answer: Consulted, size: str) -> tuple[float, float]:
    """FLOPs and bytes by work() and tiles(); 0 where they don't say."""
    work, tiles = answer.work.get(size), sum(point.tiles.get(size, 0) for point in answer.points)
    return (work.flops / tiles, work.bytes / tiles) if work and tiles else (0.0, 0.0)


_AS_FULL = 0.01
"""Of the bytes of a tile. A stencil's tiles of 30 columns, 2.8 to a row of 84, had 784 elements for
894 at the full size; its instructions came out as 14.5% fewer, and are 13.6%."""


def is_as_full(answer: Consulted, names: Sequence[str], wanted: str) -> bool:
    """Whether a tile has as many bytes at these sizes, by work() and tiles(): those at an edge do
    less. Of kernels with FLOPs it is not asked: their MMAs are of whole tiles."""
    (flops, full), *small = (_work_of_tile(answer, size) for size in (wanted, *names))
    return bool(flops) or all(abs(own - full) <= _AS_FULL * full for _, own in small if own)


def unlike(answer: Consulted, name: str, wanted: str) -> str:
    """Why counts of one size say nothing of another; empty where they may."""
    if _is_even(answer, name, wanted):
        return ""
    small, large = (_work_of_tile(answer, size)[0] for size in (name, wanted))
    return (
        f"a tile of size '{name}' has {small:,.0f} FLOPs, one of '{wanted}' {large:,.0f}, by "
        "work() and tiles() in problem.py"
    )


def _is_alike(answer: Consulted, name: str, size: str, wanted: str) -> bool:
    own, full, target = (answer.sizes[item] for item in (size, "full", wanted))
    same = [key for key, value in own.items() if full.get(key) == value]
    return all(answer.sizes[name].get(key) == target.get(key) for key in same)


def exit_code(arms: Sequence[Arm], faults: Sequence[KernelexpError]) -> int:
    """An instruction that is not covered is missing on this machine, unless PTX was judged and
    only its SASS has it."""
    if faults:
        return faults[0].exit_code
    refused = {arm.refused.status for arm in arms if arm.refused}
    code = verdict.exit_code(refused)
    if Status.IMPOSSIBLE in refused:
        code = code or errors.BUILD
    if any((disagreement := agreement.disagreement(arm)) and disagreement.is_wrong for arm in arms):
        code = code or errors.WRONG_RESULT
    judging = [arm.emulated or arm.emulated_sass for arm in arms]
    uncovered = any(
        emulated_evidence and emulated_evidence.unsupported for emulated_evidence in judging
    )
    return code or (errors.ENVIRONMENT if uncovered else errors.OK)
