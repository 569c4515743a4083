"""Variants as a revision of the project has them: built, and executed if asked, as arms."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from kernelexp import build, prepare, project, revisions
from kernelexp.arm import Arm
from kernelexp.errors import KernelexpError
from kernelexp.limits import Limits
from kernelexp.model import AxisValue, Variant
from kernelexp.progress import OnProgress
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain


class AtRevision(msgspec.Struct, frozen=True, kw_only=True):
    """Some variants at one revision, in the order in which they were asked for."""

    commit: str
    subject: str
    arms: tuple[Arm | None, ...]
    """None where the revision does not have the variant, or it could not be examined."""
    why: tuple[str, ...] = ()
    """Of each that is None, a sentence; else empty."""


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How variants are examined."""

    tools: Toolchain
    limits: Limits = Limits()
    emulate: bool = False
    on_progress: OnProgress | None = None


def examine(here: Project, commit: str, variants: Sequence[Variant], how: How) -> AtRevision:
    """The variants, by the axes that they name, as `commit` has their sources and problem.py.

    An axis that the revision does not have yet is left out where the variant has its default. The
    builds are kept in this project's cache.
    """
    subject = revisions.subject(here.root, commit)
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(revisions.checked_out(here.root, commit, build.CACHE))
        try:
            there = project.load(root)
        except KernelexpError as error:
            why = f"{commit[:10]} can't be read: {error}"
            none = tuple(None for _ in variants)
            return AtRevision(
                commit=commit, subject=subject, arms=none, why=tuple(why for _ in variants)
            )
        found = [_find(here, there, each) for each in variants]
        wanted = [each for each in found if isinstance(each, Variant)]
        prepared = prepare.built(there, wanted, how.tools, how.limits, how.on_progress)
        if how.emulate:
            prepared = prepare.emulated(there, prepared, how.limits, how.on_progress)
    arms: list[Arm | None] = []
    reasons: list[str] = []
    for each in found:
        fault = prepared.fault(each) if isinstance(each, Variant) else each
        arms.append(prepared.arm(each) if isinstance(each, Variant) and not fault else None)
        reasons.append(str(fault) if fault else "")
    return AtRevision(commit=commit, subject=subject, arms=tuple(arms), why=tuple(reasons))


def _find(here: Project, there: Project, variant: Variant) -> Variant | KernelexpError:
    """The variant in a project of another time."""
    try:
        kernel = there.kernel(variant.kernel)
        known = kernel.targets[variant.arch].axes if variant.arch in kernel.targets else {}
        defaults = {
            name: axis.default
            for name, axis in here.kernels[variant.kernel].targets[variant.arch].axes.items()
        }
        point = {
            name: value
            for name, value in variant.axes.items()
            if name in known or not _same(value, defaults, name)
        }
        return there.variant(variant.kernel, variant.arch, point)
    except KernelexpError as error:
        return error


def _same(value: AxisValue, defaults: Mapping[str, AxisValue], name: str) -> bool:
    return name in defaults and (type(value), value) == (type(defaults[name]), defaults[name])
