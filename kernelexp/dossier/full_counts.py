"""The counters of a launch of the full problem, from launches of small sizes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kernelexp.dossier.extents import (
    Extents,
    extents_of,
    has_tiles,
    is_alike,
    is_as_full,
    is_even,
    launches,
    others,
    second_size,
    solving,
    without,
)
from kernelexp.dossier.session import Session
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.evidence.emulate.scaling import (
    Extent,
    Scaled,
    is_polled,
    least,
    not_by_tiles,
    parts,
    scale,
    solve_blocks,
    solves_blocks,
    unsound,
)
from kernelexp.judge import verdict
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLaunch, Isa
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.project.problem.consult import Consulted


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


def scale_launches(
    project: Project, arm: Arm, first: EmulatedEvidence, how: EmulationOptions, session: Session
) -> tuple[Full, ...]:
    """Scales launches from the evidence at this size and an emulation at another small size."""
    size = how.size
    name = f"variants/{arm.kernel}/problem.py"
    sizes = consult.consult(project.root, arm.kernel, timeout_s=session.limits.problem_s).sizes
    answer = launches(project, arm, list(sizes), session.limits)
    if "full" not in sizes or size == "full":
        raise UsageError(f"--full needs a size 'full' in SIZES of {name}, and a small one.")
    one, full = extents_of(answer, size), extents_of(answer, "full")
    if any(extent.blocks for extent in one):
        raise UsageError(
            "--full is of two sizes; the CTAs of this variant have several blocks in turn, whose "
            "counts take three: kernelexp explain has them."
        )
    extents = others(answer, size)
    pair = solving(size, one, extents, full)
    if pair is None:
        raise UsageError(
            f"--full needs another small size besides {size!r} in SIZES of {name}, with more CTAs "
            "and, where a CTA has several tiles, another number of tiles per CTA"
            f"{'' if has_tiles(answer) else ', as tiles() says it'}."
        )
    taken = []
    for own in pair:
        evidence = first if own == size else _take(project, arm, own, session, first.isa)
        if isinstance(evidence, KernelexpError):
            raise evidence
        if not evidence.finished and (refused := verdict.emulated(evidence)):
            raise UsageError(f"--full: at size {own!r} this variant is {refused.status}.")
        taken.append(evidence)
    extent_of = {size: one, **extents}
    third = None if size in pair else (first, one)
    return tuple(_solve(taken, (extent_of[pair[0]], extent_of[pair[1]]), full, third))


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


def sound(scaled: Sequence[Full], taken: Sequence[EmulatedEvidence]) -> Iterator[Full]:
    """Yields the counts without totals whose parts have no solution, of either instruction set."""
    counted = {name for item in taken for part in _parts(item) for name in part.counters}
    solved = {counter.counter for full in scaled for counter in full.counters}
    dropped = unsound(counted - solved)
    for full in scaled:
        kept = tuple(counter for counter in full.counters if counter.counter not in dropped)
        yield msgspec.structs.replace(full, counters=kept)


def _parts(evidence: EmulatedEvidence) -> Sequence[EmulatedEvidence | EmulatedLaunch]:
    """Returns the counts launch by launch; a job of one launch is that launch."""
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
    one, full = extents_of(consulted, size), extents_of(consulted, wanted)
    extents = others(consulted, size, wanted)
    if not len(_parts(first)) == len(one) == len(full):
        return None
    extent = Extent(tiles=sum(x.tiles for x in full), ctas=sum(x.ctas for x in full))
    if not (is_alike(consulted, size, size, wanted) and is_even(consulted, size, wanted)):
        # Another loop, or other tiles: two other sizes have them, or nothing is known of them.
        pair = next(
            (
                (name, more)
                for name, own in extents.items()
                if (more := second_size(own, without(extents, name), full))
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
        if not has_tiles(consulted):
            return None
        counters = _by_tiles(first, one, full)
        tiles = sum(x.tiles for x in one)
        how = f"x {extent.tiles:,} / {tiles:,} tiles of size {size!r}"
        return FullCount(extent=extent, counters=counters, how=how)
    extent_of = {size: one, **extents}
    own = extent_of[pair[0]], extent_of[pair[1]]
    # What a CTA does once is a smaller part of the larger.
    larger = max((0, 1), key=lambda place: sum(x.tiles for x in own[place]))
    exact = _exact(taken, own, full, doubted, None if size in pair else (first, one))
    if not is_as_full(consulted, pair, wanted):
        exact = {}
    how = f"solved from sizes {pair[0]!r} and {pair[1]!r}"
    if not has_tiles(consulted):
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
    """Solves counts from three sizes; None where one can't be had or does not solve its counts."""
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
    one, full = extents_of(consulted, taken.size), extents_of(consulted, wanted)
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
    """Returns the least counts over all launches. For a kernel that does not load for every tile,
    loads are left out, and the instructions around them are counted for every tile, a few percent
    too many."""
    parts = list(zip(*(_parts(item) for item in taken), *own, full, strict=True))
    if any(extent.loads for extent in full):
        counters = not_by_tiles(counters, full)
    return {
        name: sum(least(name, (a, x), (b, y), z) for a, b, x, y, z in parts) for name in counters
    }


def _in_proportion(
    launch: EmulatedEvidence | EmulatedLaunch, one: Extent, full: Extent
) -> dict[str, int]:
    """Scales counts in proportion to the tiles; global loads to the tiles that load."""
    result: Counter[str] = Counter()
    for name in launch.counters:
        for count, is_load in parts(name, launch, full):
            x, z = (one.of_loads(), full.of_loads()) if is_load else (one, full)
            result[name] += count * z.tiles // x.tiles
    return dict(result)


def _by_tiles(taken: EmulatedEvidence, own: Extents, full: Extents) -> dict[str, int]:
    """Scales counts in proportion to the tiles of each launch."""
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

    (evidence,) = emulated.take(project.root, [(arm, isa)], size, limits, tell, label)
    return evidence


def _exact(
    taken: Sequence[EmulatedEvidence],
    own: tuple[Extents, Extents],
    full: Extents,
    doubted: Sequence[str],
    third: tuple[EmulatedEvidence, Extents] | None,
) -> dict[str, int]:
    """Returns the counts that two sizes solve for every launch."""
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
