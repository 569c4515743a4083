"""The Python API: functions that do what the commands do, and return as values what they print.

Each takes the project that load() returns, names things as the command line does, and returns the
structs that `--json` encodes (docs/api.md). A mistake of the caller's, of the project's or of the
machine is a KernelexpError; a kernel's own failure is a verdict.

`service/` offers evaluations over HTTP, mcp_server.py offers tools to agents. Imports report and
what lies below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelexp import project
from kernelexp.dossier import emulations, standing
from kernelexp.dossier.emulations import Emulation
from kernelexp.dossier.session import Local, Session
from kernelexp.dossier.tree import Tree
from kernelexp.evidence import build
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.logs import records
from kernelexp.model.errors import UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Measuring
from kernelexp.model.record import Record
from kernelexp.model.text import quote
from kernelexp.project import Project, parse_variant
from kernelexp.report import outputs
from kernelexp.services import evaluation, explaining, listing, modelling
from kernelexp.services.evaluation import Evaluation
from kernelexp.services.explaining import Explained
from kernelexp.services.listing import Listed, Shown
from kernelexp.services.run import conclusion, runner
from kernelexp.services.run.conclusion import Ran
from kernelexp.services.tasks import cascade
from kernelexp.services.tasks.assessment import Assessment, reward
from kernelexp.system import device, toolchain

__all__ = [
    "assess",
    "emulate",
    "encode",
    "evaluate",
    "explain",
    "list_project",
    "load",
    "model",
    "record",
    "reward",
    "run",
    "show",
]

encode = outputs.encode


def load(path: Path | str = ".") -> Project:
    """The project at or above `path`; ConfigurationError with every fault of its files."""
    return project.load(Path(path))


def assess(
    problem: Path | str,
    solution: Path | str,
    *,
    largest: int = cascade.LARGEST,
    schedules: int = 2,
    limit_s: float = cascade.LIMIT_S,
    gpu: bool = True,
    modelled: bool = False,
    prune_us: float = 0.0,
    folder: Path | str = ".",
) -> Assessment:
    """Judges a solution of somebody's problem, as `evaluate` does; `folder` has the cache.

    gpu: time it too if this machine has a GPU. modelled: look at it by the model of time before;
    prune_us: do not time what is surely slower by the model than this modelled time.
    """
    root = Path(folder).resolve()
    tools = toolchain.find(None, root / build.CACHE)
    card = device.find_if_any() if gpu else None
    wanted = cascade.Assignment(
        largest=largest,
        schedules=schedules,
        limit_s=limit_s,
        gpu=card,
        modelled=modelled,
        prune_us=prune_us,
    )
    return cascade.assess(Path(problem), Path(solution), tools, root, wanted)


def list_project(project: Project) -> Listed:
    """Kernels with their axes, and experiments with where they stand."""
    tree = Tree(project.root)
    standings = {name: standing.of_experiment(project, name, tree) for name in project.experiments}
    decided, _ = tree.decided
    return listing.contents(project, standings, decided)


def show(project: Project, experiment: str) -> Shown:
    """An experiment with its records and profiles."""
    tree = Tree(project.root)
    standings = standing.of_experiment(project, experiment, tree)
    result, _ = records.read(project.root, experiment)
    standing_profiles = standing.of_profiles(project, experiment, tree)
    return listing.experiment(experiment, standings, result, standing_profiles)


def record(project: Project, run: str) -> Record:
    """The record of one run of the project, by its name or the beginning of it; paths are for the
    command line."""
    if "/" in run or "\0" in run or run.endswith(".json"):
        raise UsageError(f"{quote(run)} is a path: name a run, or the beginning of its name.")
    return records.read_file(records.find(project.root, run))


def run(
    project: Project,
    experiments: Sequence[str],
    *,
    emulate: bool = True,
    gpu: bool = True,
    device: str | None = None,
    keep: bool = True,
    limits: Limits | None = None,
) -> list[Ran]:
    """Builds, emulates, times and judges experiments; with `keep`, records each.

    One that fails has its `error`, and leaves the others to be done.
    """
    session = _session(project, limits, emulate=emulate, device=device)
    outcomes = runner.run(project, experiments, session, _settings(gpu, keep))
    return [outcome.ran for outcome in outcomes]


def emulate(
    project: Project,
    variants: Sequence[str],
    *,
    size: str = "emulated",
    full: bool = False,
    limits: Limits | None = None,
) -> list[Emulation]:
    """Builds and executes variants on the CPU; `full` extrapolates their counters.

    Raises the first fault of those that could not be examined.
    """
    wanted = [parse_variant(project, text) for text in variants]
    how = EmulationOptions(size=size)
    result, faults = emulations.emulate(project, wanted, _session(project, limits), how, full=full)
    if faults:
        raise faults[0]
    return result


def model(
    project: Project,
    variants: Sequence[str],
    *,
    size: str = "full",
    limits: Limits | None = None,
) -> list[modelling.ModelledVariant]:
    """Modelled times of variants, compared with the first's; nothing is measured.

    Raises the first fault of those that could not be examined.
    """
    wanted = [parse_variant(project, text) for text in variants]
    result, faults = modelling.look(project, wanted, _session(project, limits), size)
    if faults:
        raise faults[0]
    return result


def evaluate(
    project: Project,
    variant: str,
    source: str | bytes | None = None,
    *,
    hostile: bool = False,
    emulate: bool = True,
    gpu: bool = True,
    device: str | None = None,
    limits: Limits | None = None,
) -> Evaluation:
    """Evaluates a source instead of the variant's and compares it with the project's; nothing is
    recorded.

    Without `source`, the variant itself, compared with the kernel's defaults. `hostile`: nobody
    vouches for the text (docs/api.md says what that keeps it from).
    """
    wanted = parse_variant(project, variant)
    against = wanted
    if source is None:
        source = (project.root / wanted.source).read_bytes()
        against = project.variant(wanted.kernel, wanted.arch)
    text = source.encode() if isinstance(source, str) else source
    session = _session(project, limits, emulate=emulate, device=device)
    settings = _settings(gpu, keep=False)
    return evaluation.evaluate(
        project, wanted, text, session, settings, against=against, hostile=hostile
    )


def explain(
    project: Project,
    experiment: str,
    candidate: int = 1,
    *,
    emulate: bool = True,
    limits: Limits | None = None,
) -> Explained:
    """Differences, expectations and limits of one candidate, counted from 1."""
    written = project.experiment(experiment)
    if not 1 <= candidate <= len(written.candidates):
        raise UsageError(f"{experiment} has no candidate {candidate}.")
    session = _session(project, limits, emulate=emulate)
    return explaining.candidate(project, experiment, candidate, session).explained


def _session(
    project: Project,
    limits: Limits | None,
    *,
    emulate: bool = False,
    device: str | None = None,
) -> Session:
    return Session(
        tools=toolchain.find(None, project.root / build.CACHE),
        limits=limits or Limits(),
        executor=Local(device),
        emulate=emulate,
    )


def _settings(gpu: bool, keep: bool) -> conclusion.RunSettings:
    return conclusion.RunSettings(measuring=Measuring(size="") if gpu else None, keep=keep)
