"""What several commands do: words to what they name, options to a session, pages of runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.cli import options
from kernelexp.cli.console import output, print_message, progress_bars
from kernelexp.model.errors import KernelexpError, UsageError, explain

if TYPE_CHECKING:
    from kernelexp.dossier.session import Executor, Session
    from kernelexp.logs.records import Unreadable
    from kernelexp.model.arm import Arm, Isa
    from kernelexp.model.experiment import Point, Variant
    from kernelexp.model.limits import Limits
    from kernelexp.model.measurement import Measuring
    from kernelexp.project import Project
    from kernelexp.report.document.document import Block
    from kernelexp.services.run.conclusion import Outcome
    from kernelexp.system.toolchain import Toolchain


def chosen(project: Project, names: list[str], every: bool) -> list[str]:
    """The experiments that are named, or all; the only one needs no name."""
    if not names and len(project.experiments) == 1:
        return list(project.experiments)
    if every == bool(names):
        raise UsageError("name the experiments to run, or use --all (kernelexp show lists them).")
    return list(project.experiments) if every else [project.id_of(name) for name in names]


def parse_seconds(text: str, option: str) -> float:
    """500ms, 30s, 2m, 1h or a number of seconds; `option` is what a mistake is said of."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
    if match is None:
        raise UsageError(f"{option} {text!r} should be a time, as in 30s, 2m or 1h.")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if not 0 < seconds < 1e7:
        raise UsageError(f"{option} {text!r} should be greater than zero, and less than 100 days.")
    return seconds


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def refuse_two_forms(json: bool, markdown: bool) -> None:
    """UsageError where both are asked for, before any work is done."""
    if json and markdown:
        raise UsageError("--json and --markdown do not go together: give one of them.")


def parse_limits(texts: list[str] | None) -> Limits:
    """Parses --limit; limits that it does not name keep their values."""
    from kernelexp.model.limits import Limits  # loads msgspec: not for --help

    changed = {}
    names = [name.removesuffix("_s") for name in Limits.__struct_fields__]
    for text in texts or []:
        name, _, time = text.partition("=")
        if name not in names:
            known = ", ".join(f"{item}=TIME" for item in names)
            raise UsageError(f"--limit {text!r} should be one of {known}, as in build=20m.")
        changed[f"{name}_s"] = parse_seconds(time, f"--limit {name}")
    return Limits(**changed)


def parse_isas(text: str) -> tuple[Isa, ...]:
    """The instruction sets that --isa names; UsageError where it names none."""
    from kernelexp.evidence.emulate.emulated import BOTH

    known: dict[str, tuple[Isa, ...]] = {isa: (isa,) for isa in BOTH} | {"both": BOTH}
    if text not in known:
        raise UsageError(f"--isa is one of {', '.join(known)}, not {text!r}.")
    return known[text]


def parse_sets(project: Project, name: str, sets: list[str]) -> Point:
    """Parses --set for an experiment's candidates."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    experiment = project.experiment(name)
    target = project.kernel(experiment.kernel).targets[experiment.arch]
    return parse_point(target, sets, "--set")


def parse_variants(project: Project, texts: list[str], sets: list[str] | None) -> list[Variant]:
    """Variants as they are named on the command line, each changed by --set."""
    variants = [variant for text in texts for variant in _parse_variant(project, text)]
    return [_changed(project, variant, sets) for variant in variants] if sets else variants


def _parse_variant(project: Project, text: str) -> list[Variant]:
    """KERNEL, KERNEL@ARCH:axis=value,... or all variants of an experiment."""
    from kernelexp.project import parse_variant  # loads YAML: not for --help

    text = project.id_of(text)
    if text in project.experiments:
        baseline, candidates = project.variants(project.experiments[text])
        return [baseline, *candidates]
    return [parse_variant(project, text)]


def _changed(project: Project, variant: Variant, sets: list[str]) -> Variant:
    """A variant changed by --set."""
    from kernelexp.project import parse_point  # loads YAML: not for --help

    target = project.kernels[variant.kernel].targets[variant.arch]
    point = parse_point(target, sets, "--set")
    return project.variant(variant.kernel, variant.arch, variant.axes, point)


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Names, as Python spells them, and what stands after the equals sign."""
    from kernelexp.services.adopt.entry import python_name

    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {text!r} should be NAME=..., with a parameter's name.")
        pairs.append((python_name(name.strip()), value.strip()))
    return pairs


def parse_numbers(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Pairs of a name and a number, several of which may stand in one text: M=512,N=256."""
    return parse_pairs([part for text in texts or () for part in text.split(",")], option)


def parse_number(text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise UsageError(f"{text!r} should be a number, as the value of a parameter.")


def parse_whole(text: str) -> int:
    value = parse_number(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} should be a whole number.")
    return value


def parse_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """1-3,7,9- as pairs."""
    result = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise UsageError(f"--launches {text!r} should be like 3, 1-3 or 5-.")
        if last and int(last) < int(first):
            raise UsageError(f"--launches {text!r}: {part} ends before it begins.")
        result.append((int(first), int(last) if last else (1 << 62) if dash else int(first)))
    return tuple(result)


def load(start: Path, *, sources: bool = True) -> Project:
    """The project at or above `start`; without `sources` its kernels' files may be missing."""
    from kernelexp.project import load

    return load(start, sources=sources)


def tools(project: Project, nvcc: str | None) -> Toolchain:
    """The compiler that --nvcc or the environment names, else the installed one."""
    from kernelexp.evidence import build
    from kernelexp.system import toolchain

    return toolchain.find(nvcc, project.root / build.CACHE)


@contextlib.contextmanager
def executor(device: str | None, devices: str | None, scheduler: str | None) -> Iterator[Executor]:
    """Yields the executor that --device, --devices or --scheduler name; UsageError for two."""
    given = {"--device": device, "--devices": devices, "--scheduler": scheduler}
    names = [name for name, text in given.items() if text is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} do not go together: choose one.")
    if scheduler is None:
        from kernelexp.dossier.session import Local

        yield Local(device if devices is None else devices)
        return
    from kernelexp.evidence import cluster

    with cluster.connect(scheduler) as workers:
        yield workers


@contextlib.contextmanager
def session(
    project: Project,
    nvcc: str | None,
    limit: list[str] | None = None,
    *,
    emulate: bool = False,
    device: str | None = None,
    devices: str | None = None,
    scheduler: str | None = None,
) -> Iterator[Session]:
    """Yields the session for a command's options; shows the progress meanwhile."""
    from kernelexp.dossier.session import Session

    compiler, limits = tools(project, nvcc), parse_limits(limit)
    with (
        executor(device, devices, scheduler) as where,
        progress_bars(project.root) as bars,
    ):
        yield Session(
            tools=compiler, limits=limits, executor=where, emulate=emulate, on_progress=bars
        )


def record_file(start: Path, text: str) -> Path:
    """The file of a measured record that RUN names; a path needs no project."""
    from kernelexp.logs import records

    path = Path(text)
    if path.is_file():
        return path
    loaded = load(start, sources=False)
    return records.find(loaded.root, loaded.id_of(text), measured=True)


def warn(root: Path, unreadable: Iterable[Unreadable]) -> None:
    """A line on standard error for each file among the records that was skipped, once."""
    from kernelexp.model.text import printable

    for path, why in dict.fromkeys((one.path, one.why) for one in unreadable):
        name = path.relative_to(root) if path.is_relative_to(root) else path
        print_message(f"warning: skipped {printable(str(name))}: it {printable(why)}.")


def unprofiled(label: str, arm: Arm, project: Project | None) -> str:
    """Says that an arm has no profile of its own, and names the latest of its variant, if any."""
    from kernelexp.logs import profiles

    root = project.root if project else None
    latest = profiles.latest(root, arm.kernel, arm.arch, arm.axes) if root else None
    if latest is None:
        return f"{label} has no profile: kernelexp profile takes one, or imports one."
    return (
        f"{label} has no profile of its own: the latest of these axes, maybe of other sources, is "
        f"{latest.run}; name that."
    )


def write_log(project: Project, force: bool = False) -> bool:
    """Renders logs/EXPERIMENTS.md, and returns whether it changed; UsageError if the file there
    was written by somebody else."""
    from kernelexp.report.log import logbook
    from kernelexp.services import kernel_logs

    logs = kernel_logs.assemble(project)
    warn(project.root, (unreadable for one in logs for unreadable in one.unreadable))
    return logbook.write(project.root, logbook.file(logs), force)


def refresh_log(project: Project) -> None:
    """Renders the log after a run that is recorded: a log that can't be written is a warning."""
    try:
        write_log(project)
    except KernelexpError as error:
        print_message(f"warning: {error}")
    except OSError as error:
        print_message(f"warning: {explain(error)}.")


def write_report(path: Path, data: bytes) -> None:
    """Writes a file that an option names. What /dev/stdout is may have no path: not resolved."""
    from kernelexp.system import disk

    disk.write(path if disk.is_stream(path) else path.resolve(), data, durable=False)


def require_folder(path: Path) -> None:
    """UsageError where a file that an option names can't be written, before any work is done."""
    if path.is_dir():
        raise UsageError(f"{path} can't be written: it is a folder.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} can't be written: there is no folder {path.parent}.")


def parse_measuring(
    gpu: bool,
    limit: list[str] | None,
    *,
    margin: float,
    size: str,
    budget: str | None,
    default_budget_s: float | None = None,
    processes: int = 4,
    l2: options.L2State = options.L2State.cold,
    peers: bool,
    shared_gpu: bool,
    sanitize: bool = False,
) -> Measuring | None:
    """Parses --margin, --size, --budget and the like; None with --no-gpu."""
    from kernelexp.model.measurement import Measuring, Options

    limits = parse_limits(limit)
    options = Options(
        processes=processes,
        l2=l2.value,
        peers=peers,
        shared_gpu=shared_gpu,
        sanitize=sanitize,
        problem_timeout_s=limits.problem_s,
    )
    budget_s = parse_seconds(budget, "--budget") if budget else default_budget_s
    if not gpu:
        return None
    return Measuring(options=options, margin=margin / 100, size=size, budget_s=budget_s)


def show(project: Project, outcomes: list[Outcome], verbose: bool, json: bool) -> None:
    """The page of each run, and a summary where there are several."""
    from kernelexp.report.document.document import paragraph
    from kernelexp.report.runs import page
    from kernelexp.services.run.conclusion import Concluded, FailedRun

    for outcome in outcomes:
        if isinstance(outcome, FailedRun):
            print_message(f"error: {outcome.experiment}: {outcome.error}")
        elif outcome.unkept:
            name = outcome.experiment
            print_message(f"error: {name} has no record of this run: {outcome.unkept}.")
    concluded = [outcome for outcome in outcomes if isinstance(outcome, Concluded)]
    warn(project.root, (skipped for one in concluded for skipped in one.unreadable))
    pages: list[Block] = []
    summed_up = {size.run for one in concluded for size in one.record.sizes[:-1]}
    for outcome in concluded:
        if outcome.record.run in summed_up and not verbose:
            continue  # the page of the last size shows all
        if pages:
            pages.append(paragraph(""))
        path = outcome.path.relative_to(project.root).as_posix() if outcome.path else ""
        pages += page.render(outcome.record, outcome.earlier, path, verbose)
    if len(outcomes) - len(summed_up) > 1:
        failures = {
            one.experiment: str(one.error) for one in outcomes if isinstance(one, FailedRun)
        }
        pages += page.summary(
            [one.record for one in concluded if one.record.run not in summed_up], failures
        )
    output("run", [outcome.ran for outcome in outcomes], pages, json)
