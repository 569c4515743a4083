"""A variant as a revision of the project has it: built, and executed if asked, as an arm."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.model.arm import Arm, sound
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import AxisValue, Variant
from kernelexp.project import Project, revisions
from kernelexp.project.problem import consult
from warpsim.launch import Launch


class AtRevision(msgspec.Struct, frozen=True, kw_only=True):
    """A variant at one revision."""

    commit: str
    subject: str
    arm: Arm | None = None
    """None where the revision does not have the variant, or it could not be examined."""
    why: str = ""
    """Why there is no arm, as a sentence."""
    launches: tuple[Launch, ...] = ()
    """Of a build, by the revision's own problem.py at the size that was asked for."""
    code: str = ""
    """A digest of SASS and launches: what has the same takes as long. Empty without a build."""

    @property
    def fault(self) -> str:
        """A sentence on why it can't be timed: it is not there, does not build or is wrong."""
        if self.arm is None or self.arm.refused is None:
            return self.why
        if error := build.first_error(self.arm.build_log):
            place = f"{error.file}({error.line}): " if error.file else ""
            return f"{self.arm.refused.status}: {place}{error.message}"
        return f"{self.arm.refused.status}: {self.arm.refused.sentence}"


def examine(
    here: Project, commit: str, variant: Variant, session: Session, size: str = "full"
) -> AtRevision:
    """The variant, by the axes that it names, as `commit` has its sources and problem.py.

    An axis that the revision does not have yet is left out where the variant has its default. The
    builds are kept in this project's cache.
    """
    prepare.refuse_programs([variant], "a comparison of revisions")
    subject = revisions.subject(here.root, commit)
    with revisions.checked_out(here.root, commit, build.CACHE) as root:
        try:
            there = project.load(root)
            arm, launches = _examine(there, _find(here, there, variant), session, size)
        except KernelexpError as error:
            why = f"{commit[:10]} does not have it as it is asked for: {error}"
            return AtRevision(commit=commit, subject=subject, why=why)
    code = digest(here, arm, launches) if arm.build else ""
    return AtRevision(commit=commit, subject=subject, arm=arm, launches=launches, code=code)


def _examine(
    there: Project, variant: Variant, session: Session, size: str
) -> tuple[Arm, tuple[Launch, ...]]:
    """Raises what keeps the variant from being examined."""
    arms = prepare.built(there, [variant], session)
    if session.emulate:
        arms = prepare.emulated(there, arms, session)
    arm = sound(arms[0])
    if arm.build is None:
        return arm, ()
    answer = consult.consult(
        *(there.root, variant.kernel, [arm], [size], session.limits.problem_s),
        exports=[arm.exports],
    )
    return arm, answer.points[0].launches[size]


def digest(here: Project, arm: Arm, launches: Sequence[Launch]) -> str:
    """Returns a digest that tells two builds apart by what a GPU executes."""
    sass = build.artefacts(here.root, arm.identity).sass.encode()
    return hashlib.sha256(sass + b"\0" + msgspec.json.encode(launches)).hexdigest()


def _find(here: Project, there: Project, variant: Variant) -> Variant:
    """The variant in a project of another time; UsageError where it has none."""
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


def _same(value: AxisValue, defaults: Mapping[str, AxisValue], name: str) -> bool:
    return name in defaults and (type(value), value) == (type(defaults[name]), defaults[name])
