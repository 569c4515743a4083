"""Variants executed on the CPU outside of an experiment: the command `emulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import RenderableType
from rich.text import Text

from kernelexp import errors, examine, problem
from kernelexp.build import Progress
from kernelexp.errors import UsageError
from kernelexp.evidence import emulated
from kernelexp.evidence.emulated import Emulable
from kernelexp.evidence.scaling import Scaled, scale
from kernelexp.examine import Judged
from kernelexp.judge import verdict
from kernelexp.model import EmulatedEvidence, Variant, Verdict
from kernelexp.problem import Problem
from kernelexp.project import Project
from kernelexp.report import emulated as report
from kernelexp.runner import status_exit_code
from kernelexp.toolchain import Toolchain


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one variant."""

    label: str
    verdict: Verdict | None
    """What was found against it; None where nothing was."""
    evidence: EmulatedEvidence | None = None
    scaled: tuple[Scaled, ...] = ()


def emulate(
    project: Project,
    variants: Sequence[Variant],
    tools: Toolchain,
    size: str,
    full: bool,
    on_build: Progress | None = None,
    on_emulate: Progress | None = None,
) -> list[Emulation]:
    """Builds and executes each variant; with `full` at two sizes, so that a launch of the full
    problem can be counted."""
    judged = examine.judge(project, variants, tools, on_build)
    problems = {name: problem.load(project.root, name) for name in {v.kernel for v in variants}}
    for name, module in problems.items():
        if size not in module.SIZES:
            known = ", ".join(module.SIZES)
            raise UsageError(f"variants/{name}/problem.py has no size {size!r}; known: {known}.")
    sides = {name: side for name, each in judged.items() if (side := _side(each))}
    found = emulated.take(project.root, list(sides.values()), size, on_emulate)
    evidence = dict(zip(sides, found, strict=True))
    return [
        Emulation(
            label=project.label(each.variant),
            verdict=each.refused or verdict.emulated(evidence[name]),
            evidence=evidence.get(name),
            scaled=_scale(project, problems[each.variant.kernel], sides[name], size, evidence[name])
            if full and name in sides
            else (),
        )
        for name, each in judged.items()
    ]


def _side(judged: Judged) -> Emulable | None:
    if judged.refused or not judged.ptx or not judged.arm.build:
        return None
    exports = judged.arm.build.exports
    return Emulable(variant=judged.variant, ptx=judged.ptx, exports=exports)


def _scale(
    project: Project, module: Problem, side: Emulable, size: str, one: EmulatedEvidence
) -> tuple[Scaled, ...]:
    others = [name for name in module.SIZES if name not in (size, "full")]
    name = f"variants/{side.variant.kernel}/problem.py"
    extents = [emulated.extent(module, side, each) for each in (size, *others[:1], "full")]
    if len(extents) < 3 or not all(extents):
        raise UsageError(
            f"--full needs tiles() and a second small size, with more CTAs, in {name}."
        )
    (other,) = emulated.take(project.root, [side], others[0])
    first, second, full = (each for each in extents if each)
    try:
        return tuple(scale(one, first, other, second, full))
    except ValueError as fault:
        raise UsageError(f"{name}: {fault}: {size} and {others[0]}.") from None


def exit_code(found: Sequence[Emulation]) -> int:
    """What the command ends with: an instruction that is not covered is missing on this machine."""
    code = status_exit_code({each.verdict.status for each in found if each.verdict})
    uncovered = any(each.evidence and each.evidence.unsupported for each in found)
    return code or (errors.ENVIRONMENT if uncovered else errors.OK)


def render(found: Sequence[Emulation]) -> Iterator[RenderableType]:
    """The variants side by side, then each one's full problem, then what was found against them."""
    names = [f"variant {number}" for number in range(1, len(found) + 1)]
    for name, each in zip(names, found, strict=True):
        yield Text(f"{name}: {each.label}", style="bold")
    yield from report.render(names, [each.evidence for each in found])
    for name, each in zip(names, found, strict=True):
        if each.scaled:
            yield from report.render_scaled(name, each.scaled)
    for name, each in zip(names, found, strict=True):
        if each.verdict:
            yield Text(
                f"{name}: {each.verdict.status} ({each.verdict.reason}). {each.verdict.sentence}"
            )
