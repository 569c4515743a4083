"""Variants emulated outside of an experiment, and the counters of the full problem from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from kernelexp import errors, prepare
from kernelexp.arm import Arm, EmulatedEvidence
from kernelexp.errors import KernelexpError, UsageError
from kernelexp.evidence import emulated
from kernelexp.evidence.emulated import How
from kernelexp.evidence.scaling import Extent, Scaled, can_scale, scale
from kernelexp.judge import verdict
from kernelexp.limits import Limits
from kernelexp.model import Variant
from kernelexp.problem import consult
from kernelexp.problem.consult import Consulted, Point
from kernelexp.progress import OnProgress
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one variant."""

    label: str
    arm: Arm
    scaled: tuple[Scaled, ...] = ()
    """Counters of the full problem, where they were asked for."""


class FullCount(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a launch of the full problem, with what they are scaled by."""

    extent: Extent
    counters: dict[str, int]
    how: str
    """As the end of a sentence."""


def emulate(
    project: Project,
    variants: Sequence[Variant],
    tools: Toolchain,
    how: How,
    full: bool,
    limits: Limits,
    on_progress: OnProgress | None = None,
) -> tuple[list[Emulation], list[KernelexpError]]:
    """Builds and executes each variant; with `full` at two sizes, so that a launch of the full
    problem can be counted. Also the faults of variants that could not be examined."""
    for kernel in dict.fromkeys(each.kernel for each in variants):
        answer = consult.consult(project.root, kernel, timeout_s=limits.problem_s)
        consult.require_size(kernel, answer.sizes, how.size)
    prepared = prepare.built(project, variants, tools, limits, on_progress)
    prepared = prepare.emulated(project, prepared, limits, on_progress, how)
    emulations = []
    for variant, arm in prepared.named(variants):
        right = arm.emulated if arm.emulated and not arm.refused else None
        scaled = _scale(project, arm, right, how, limits) if full and right else ()
        emulations.append(Emulation(label=project.label(variant), arm=arm, scaled=scaled))
    return emulations, list({str(fault): fault for fault in prepared.faults.values()}.values())


def _scale(
    project: Project, arm: Arm, first: EmulatedEvidence, how: How, limits: Limits
) -> tuple[Scaled, ...]:
    """From the evidence at the size at hand and an emulation at another small size."""
    size = how.size
    name = f"variants/{arm.kernel}/problem.py"
    sizes = consult.consult(project.root, arm.kernel, timeout_s=limits.problem_s).sizes
    answer = launches(project, arm, list(sizes), limits)
    extents = {each: extent for each in sizes if (extent := _extent(answer, each))}
    if size not in extents or "full" not in extents:
        raise UsageError(
            f"--full needs {name} to define tiles(), the number of output tiles per launch."
        )
    one, full = extents.pop(size), extents.pop("full")
    other = next((each for each in extents if can_scale(one, extents[each], full)), None)
    if other is None:
        raise UsageError(
            f"--full needs another small size besides {size!r} in SIZES of {name}, with more CTAs "
            "and, where a CTA has several tiles, another number of tiles per CTA."
        )
    (second,) = emulated.take(project.root, [arm], other, limits, isa=how.isa)
    if isinstance(second, KernelexpError):
        raise second
    if refused := verdict.emulated(second):
        raise UsageError(f"--full: at size {other!r} this variant is {refused.status}.")
    return tuple(scale(first, one, second, extents[other], full))


def count_full(
    project: Project, arm: Arm, said: Consulted, limits: Limits, size: str = emulated.SIZE
) -> FullCount | None:
    """All counters of an emulated arm for the full problem, solved from two sizes where the problem
    has a second one; the rest, and all where it has none, in proportion to the tiles.

    `said` has the launches of the arm, at all sizes. None where nothing was counted, or where the
    problem does not state its tiles.
    """
    extents = {each: extent for each in said.sizes if (extent := _extent(said, each))}
    first = arm.emulated
    if (
        first is None
        or not (first.arrays and first.finished)
        or size not in extents
        or "full" not in extents
    ):
        return None
    one, full = extents.pop(size), extents.pop("full")
    counters = {name: count * full.tiles // one.tiles for name, count in first.counters.items()}
    how = f"x {full.tiles:,} / {one.tiles:,} tiles of size {size!r}"
    other = next((each for each in extents if can_scale(one, extents[each], full)), None)
    if other is None:
        return FullCount(extent=full, counters=counters, how=how)
    (second,) = emulated.take(project.root, [arm], other, limits)
    if isinstance(second, KernelexpError) or verdict.emulated(second):
        return FullCount(extent=full, counters=counters, how=how)
    exact = {each.counter: each.full for each in scale(first, one, second, extents[other], full)}
    how = f"solved from sizes {size!r} and {other!r}"
    if rest := len(counters) - len(exact):
        how += f"; {rest} that polling changes, in proportion to the tiles"
    return FullCount(extent=full, counters={**counters, **exact}, how=how)


def launches(project: Project, arm: Arm, sizes: Sequence[str], limits: Limits) -> Consulted:
    """What problem.py says of a built arm at these sizes: its launches, tiles and work."""
    exports = arm.build.exports if arm.build else {}
    point = Point(axes=arm.axes, arch=arm.arch, exports=exports)
    return consult.consult(project.root, arm.kernel, [point], sizes, timeout_s=limits.problem_s)


def _extent(answer: Consulted, size: str) -> Extent | None:
    """Tiles and CTAs of a launch of this size; None where the problem does not state its tiles."""
    (facts,) = answer.points
    if size not in facts.tiles:
        return None
    return Extent(tiles=facts.tiles[size], ctas=math.prod(facts.launches[size].grid))


def exit_code(arms: Sequence[Arm], faults: Sequence[KernelexpError]) -> int:
    """An instruction that is not covered is missing on this machine."""
    if faults:
        return faults[0].exit_code
    code = verdict.exit_code({arm.refused.status for arm in arms if arm.refused})
    uncovered = any(arm.emulated and arm.emulated.unsupported for arm in arms)
    return code or (errors.ENVIRONMENT if uncovered else errors.OK)
