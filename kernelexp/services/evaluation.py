"""A source that replaces a variant's: built, emulated, and timed next to the project's own."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.dossier.session import Local, Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate.job import Emulated, EmulationJob
from kernelexp.model import arm
from kernelexp.model.arm import Arm, ArmOrFault, Status, Verdict, sound
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.model.experiment import EVALUATED, Experiment, Variant
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.services.run import conclusion, runner
from kernelexp.services.run.conclusion import Concluded, RunContext, RunSettings
from kernelexp.system import confined

LONGEST_BYTES = 4 << 20
"""Of a source text."""
FOLDER = "evaluation-"
STALE_S = 24 * 3600.0
"""No evaluation takes a day: an older folder is of one that was killed."""
NAME = EVALUATED
"""Stands in a record for the experiment's id."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The evaluation of a source text as a variant of a kernel."""

    label: str
    """The variant whose source it stands in for."""
    sha256: str
    """Of the text."""
    hostile: bool
    """Whether it was built and emulated confined."""
    verdict: Verdict
    """The candidate's, against the project's own variant."""
    record: Record
    """Baseline: the project's own variant; candidate: the text. Nothing of it is in the log."""

    @property
    def arm(self) -> Arm:
        """The text's, with its evidence."""
        return self.record.candidates[0].arm


def evaluate(
    project: Project,
    variant: Variant,
    source: bytes,
    session: Session,
    settings: RunSettings,
    *,
    against: Variant | None = None,
    hostile: bool = False,
) -> Evaluation:
    """Builds `source` with the variant's axes, checks it against the kernel's problem.py, and times
    it next to the project's own, or to the variant `against`, where there is a GPU to do so.

    `hostile`: compilers may read nothing but the project and themselves, and have limits of memory,
    time and files, as has the emulation. UsageError for a text that is too long; EnvironmentFault
    for a machine that can't build, emulate or confine.
    """
    _require_evaluable(variant, source, hostile)
    settings = msgspec.structs.replace(settings, keep=False)
    own = runner.share(project, project.root, session, settings=settings)
    against = against or variant
    baseline = sound(runner.examine(own, [against])[0])
    with _in_place(project, variant, source) as changed:
        there = msgspec.structs.replace(own, project=changed)
        if hostile:
            there = _confine(there, project.root)
        candidate = _judged(runner.examine(there, [variant])[0], variant)
    arms = [baseline, candidate]
    experiment = _experiment(project, against, variant)
    outcome = conclusion.conclude(own, NAME, experiment, arms, conclusion.take(own, arms))
    return Evaluation(
        label=project.label(variant),
        sha256=hashlib.sha256(source).hexdigest(),
        hostile=hostile,
        verdict=outcome.record.candidates[0].verdict,
        record=outcome.record,
    )


def _judged(examined: ArmOrFault, variant: Variant) -> Arm:
    """The text's arm. What keeps it from being examined is the text's doing, where the project's
    own source was examined with the same problem.py: a verdict, and no fault of that."""
    if isinstance(examined, Arm):
        return examined
    words = str(examined)
    if isinstance(examined, ConfigurationError):
        status, reason = Status.INCORRECT, "does_not_fit_problem"
    elif "had not ended after" in words:
        status, reason = Status.TIMED_OUT, "emulation_limit"
    elif "MemoryError" in words:
        status, reason = Status.IMPOSSIBLE, "memory"
    else:
        raise examined
    refused = Verdict(status=status, reason=reason, sentence=words)
    return msgspec.structs.replace(arm.begin(variant), refused=refused)


def _require_evaluable(variant: Variant, source: bytes, hostile: bool) -> None:
    if len(source) > LONGEST_BYTES:
        raise UsageError(
            f"the source has {len(source):,} bytes; at most {LONGEST_BYTES:,} are evaluated."
        )
    if hostile and variant.program:
        raise UsageError(
            f"{variant.kernel} is a program: what its source says would run on this machine, so "
            "that it can't be evaluated as a hostile one."
        )


def exit_code(evaluation: Evaluation) -> int:
    """Returns the exit code that a run of one experiment has."""
    return runner.exit_code([Concluded(record=evaluation.record)])


def _confine(shared: RunContext, readable: Path) -> RunContext:
    session = msgspec.structs.replace(
        shared.session,
        executor=_Confined(),
        tools=confined.tools(shared.session.tools, readable),
    )
    return msgspec.structs.replace(shared, session=session)


class _Confined(Local):
    """This machine, with a limit of memory for each emulation, and inputs that nobody has seen.

    Without the emulator's C++: in Python no mistake of the emulator's becomes an access to the
    worker's own memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seed = secrets.randbelow(1 << 31)  # one for PTX and SASS, whose outputs are compared

    def emulate(self, job: EmulationJob) -> Emulated:
        limited = msgspec.structs.replace(
            job, memory_bytes=confined.MEMORY_BYTES, native="", seed=self._seed
        )
        return super().emulate(limited)


def _experiment(project: Project, baseline: Variant, variant: Variant) -> Experiment:
    return Experiment(
        kernel=variant.kernel,
        arch=variant.arch,
        title=project.label(variant),
        baseline=baseline.axes,
        candidate=variant.axes,
        hypothesis="",
    )


@contextlib.contextmanager
def _in_place(project: Project, variant: Variant, source: bytes) -> Iterator[Project]:
    """The project with another text for the variant's source, in a folder of its own.

    Builds go to the project's cache, where their names are hashes of what they are made from.
    """
    cache = project.root / build.CACHE
    cache.mkdir(exist_ok=True)
    _sweep(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=FOLDER) as name:
        root = Path(name)
        for file in sorted(project.root.iterdir()):
            if file.name not in ("variants", "logs") and not file.name.startswith("."):
                (root / file.name).symlink_to(file)
        (root / build.CACHE).symlink_to(cache)
        hidden = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(project.root / "variants", root / "variants", ignore=hidden)
        path = root / variant.source
        if not path.resolve().is_relative_to((root / "variants").resolve()):
            raise ConfigurationError(f"{variant.source} is outside of variants: it can't be one.")
        path.unlink(missing_ok=True)
        path.write_bytes(source)
        yield msgspec.structs.replace(project, root=root)


def _sweep(cache: Path) -> None:
    for folder in cache.glob(f"{FOLDER}*"):
        with contextlib.suppress(OSError):  # another evaluation removed it
            if time.time() - folder.stat().st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
