"""Builds what is not built yet, in parallel, and finds what is."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence.build import diagnosis, planning, steps, store, turns
from kernelexp.evidence.build.planning import Plan
from kernelexp.evidence.build.steps import DoesNotBuild
from kernelexp.evidence.build.store import CachedCompilation, Files
from kernelexp.judge import verdict
from kernelexp.model import arm
from kernelexp.model.arm import Arm, ArmOrFault
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.experiment import Variant
from kernelexp.system import disk, toolchain
from kernelexp.system.disk import decode
from kernelexp.system.live import OnProgress, Step
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

LIMIT_S = 600.0
"""How long one step of a build may take."""
SILENT_S = 1.0
"""How long to wait for another run's builds without a word."""
_PACKAGE = "/".join(("", *toolchain.HEADERS.parts[-3:], ""))
"""Of the paths of kernelexp's own headers, wherever it is installed."""


Builder: TypeAlias = Callable[[Plan], ArmOrFault]
"""Builds one variant, from any thread. A machine that fails at it is a fault in the arm's place."""


def build(
    root: Path,
    variants: Sequence[Variant],
    tools: Toolchain,
    *,
    timeout_s: float = LIMIT_S,
    on_progress: OnProgress | None = None,
    builder: Builder | None = None,
    slots: int | None = None,
) -> list[ArmOrFault]:
    """Builds what is not built yet, in parallel; one that the compiler refuses is refused with its
    words, and the rest go on.

    `timeout_s` is for each step of each build; `builder` builds one, `slots` at once: here, in as
    many processes as there are cores, where nothing else is said. Raises ConfigurationError for a
    source that can't be read and arguments that nvcc can't be given, EnvironmentFault if there is
    no compiler.
    """
    try:
        plans = make_plans(root, variants, tools, timeout_s=timeout_s)
        by_key = {plan.key: plan for plan in plans}
        builds = _find_all(list(by_key.values()))
        missing = [plan for key, plan in by_key.items() if key not in builds]
        if missing:
            builds |= _build_all(missing, builder or _build, slots, on_progress)
    except OSError as error:
        raise _as_fault(error) from None
    return [
        _of_variant(builds[plan.key], variant)
        for plan, variant in zip(plans, variants, strict=True)
    ]


def make_plans(
    root: Path, variants: Sequence[Variant], tools: Toolchain, *, timeout_s: float = LIMIT_S
) -> list[Plan]:
    """Plans the build of each variant; raises as `build`."""
    root = Path(os.path.realpath(root))
    planning.refuse(root, variants)
    _prepare(root)
    return planning.make(root, variants, tools, timeout_s)


def _of_variant(built: ArmOrFault, variant: Variant) -> ArmOrFault:
    """One build may be that of several variants."""
    return arm.begin(variant, built) if isinstance(built, Arm) else built


def build_one(plan: Plan) -> ArmOrFault:
    """Builds one variant here, or finds its build; waits for no other build."""
    return _find_all([plan]).get(plan.key) or _build(plan)


def identify(plan: Plan, entry: CachedCompilation) -> str:
    """The identity of a compilation."""
    return planning.identify(plan, entry.read, entry.preprocessed)


def _prepare(root: Path) -> None:
    (store.builds(root) / "manifests").mkdir(parents=True, exist_ok=True)
    ignore = root / store.CACHE / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def _find_all(plans: Sequence[Plan]) -> dict[str, ArmOrFault]:
    """Those that are known to be built without asking the compiler anything, by their keys."""
    if not plans:
        return {}
    files = Files(plans[0].root)
    result = {plan.key: (plan, _earlier(plan, files)) for plan in plans}
    return {key: _built(plan, entry) for key, (plan, entry) in result.items() if entry}


def _build_all(
    plans: Sequence[Plan], builder: Builder, slots: int | None, on_progress: OnProgress | None
) -> dict[str, ArmOrFault]:
    def on_change(done: int, now: Sequence[Plan]) -> None:
        if on_progress:
            label = now[-1].label if now else ""
            on_progress(Step(phase="building", done=done, total=len(missing), now=label))

    root = plans[0].root
    with _alone(root, {plan.variant.kernel for plan in plans}):
        store.remove_stale(store.builds(root))
        builds = _find_all(plans)  # by the run that was waited for
        missing = [plan for plan in plans if plan.key not in builds]
        if missing:
            workers = slots or turns.THREADS
            before = _of_children()
            results = processes.parallel(builder, missing, on_change=on_change, workers=workers)
            _Spent.compilers_s += _of_children() - before
            builds |= {plan.key: built for plan, built in zip(missing, results, strict=True)}
    return builds


class _Spent:
    compilers_s = 0.0


def compilers_s() -> float:
    """The processor time that compilers have taken in this process's builds, in seconds."""
    return _Spent.compilers_s


def _of_children() -> float:
    """Processor time of all processes that this one has started and waited for, in seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@contextlib.contextmanager
def _alone(root: Path, kernels: Iterable[str]) -> Iterator[None]:
    """One run builds a kernel at a time: a second one waits here and then finds the files."""
    import filelock  # takes longer to load than all else of a run that builds nothing

    with contextlib.ExitStack() as held:
        for kernel in sorted(kernels):  # in one order, so that no two runs wait for each other
            lock = filelock.FileLock(store.builds(root) / f"lock-{kernel}")
            try:
                lock.acquire(timeout=SILENT_S)
            except filelock.Timeout:
                words = f"waiting for another run that builds {kernel} in {root / store.CACHE} ..."
                print(words, file=sys.stderr, flush=True)
                lock.acquire()
            held.callback(lock.release)
        yield


def _build(plan: Plan) -> ArmOrFault:
    try:
        return _build_unchanged(plan)
    except EnvironmentFault as fault:
        return fault
    except DoesNotBuild as refused:  # by the preprocessor, after it was compiled
        return EnvironmentFault(f"{plan.label}: {diagnosis.quote(str(refused))}")
    except OSError as error:
        return _as_fault(error)


def _build_unchanged(plan: Plan) -> Arm:
    """Builds until no file changed meanwhile, at most twice."""
    before: dict[str, int] = {}
    for _ in range(2):
        with _temporary(plan) as folder:
            if entry := _find_preprocessed(plan, folder):
                return _built(plan, entry)
            built, suspects = _build_in(plan, folder, before)
        if built:
            return built
        before = suspects
    raise EnvironmentFault(
        f"{plan.label}: {min(before)} kept changing during the build: run the command again once "
        "nothing edits it."
    )


def _find_preprocessed(plan: Plan, folder: Path) -> CachedCompilation | None:
    """A build of sources that ask for more than files, if they would be given the same answers."""
    if not any(entry.preprocessed for entry in entries(plan)):
        return None
    try:
        return _earlier(plan, Files(plan.root), steps.preprocess(plan, folder))
    except DoesNotBuild:
        return None


@contextlib.contextmanager
def _temporary(plan: Plan) -> Iterator[Path]:
    folder = store.temporary_in(store.builds(plan.root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build_in(
    plan: Plan, folder: Path, before: dict[str, int]
) -> tuple[Arm | None, dict[str, int]]:
    """The build, or else the files that may have changed since it began, with when they did.

    A file that changed when it did in the try before has not changed in this one, whatever the
    clock says.
    """
    start_ns = folder.stat().st_ctime_ns  # of the clock that the files' times are of
    log, ok = "", True
    try:
        log, report, sass = _run_steps(plan, folder)
    except DoesNotBuild as refused:
        log, ok = str(refused), False
    entry, files = _look_at_inputs(plan, folder, ok)
    paths = (*entry.read, *entry.passed_over)
    suspects = files.changed_since(paths, start_ns, plan.toolkit)
    if suspects and suspects != before:
        return None, suspects
    if unreadable := [path for path, sha256 in entry.read.items() if not sha256]:
        raise EnvironmentFault(
            f"{plan.label}: the compiler says that it read {unreadable[0]}, which can't be read."
        )
    if not ok:
        failed = verdict.build_failed()
        return msgspec.structs.replace(_built(plan, entry), build_log=log, refused=failed), {}
    for name, text in ((store.NVCC_LOG, log), (store.PTXAS_LOG, report), (store.SASS, sass)):
        (folder / name).write_text(text, "utf-8")
    target = store.builds(plan.root) / entry.identity
    files_left = left_by(plan.variant)
    if store.commit(folder, target, files_left):
        place = target.relative_to(plan.root)
        print(f"note: {place} was damaged; {plan.label} was built again.", file=sys.stderr)
    remember(plan, entry)
    return _built(plan, entry), {}


def left_by(variant: Variant) -> tuple[str, ...]:
    """The files that the build of a variant leaves."""
    if variant.program:
        return store.PROGRAM_FILES
    return store.CUBIN_FILES if variant.form == "cubin" else store.FILES


def _run_steps(plan: Plan, folder: Path) -> tuple[str, str, str]:
    """The compiler's warnings, ptxas's report, SASS; leaves the rest of the build in `folder`."""
    form = plan.variant.form
    with turns.busy():
        with turns.core():
            if plan.variant.program:
                log, report = steps.link_program(plan, folder)
                return log, report, steps.disassemble_program(plan, folder)
            log = steps.compile_to_ptx(plan, folder) if form == "source" else ""
            if form != "source":
                steps.take(plan, folder)
            report = steps.assemble(plan, folder) if form != "cubin" else ""
        return log, report, turns.disassemble(plan, folder)


def _look_at_inputs(plan: Plan, folder: Path, ok: bool) -> tuple[CachedCompilation, Files]:
    """Returns what was compiled; the source alone, where the compiler did not list its files."""
    root, toolkit = str(plan.root), plan.toolkit
    files = Files(plan.root)
    listed = folder / steps.DEPENDENCIES
    text = listed.read_text("utf-8", "replace") if listed.is_file() else ""
    paths = store.parse(text) or [plan.variant.source]
    read = {path: files.sha256(path) for path in (store.tidy(root, p) for p in paths)}
    own = [path for path in read if store.is_own(path, toolkit)]
    may_ask = ok and plan.variant.form == "source"
    arguments = " ".join(plan.arguments).encode()
    asks = may_ask and (files.ask(own) or store.ASKS.search(arguments))
    preprocessed = steps.preprocess(plan, folder) if asks else ""
    over = store.passed_over(files, read, _searched(plan, read), toolkit)
    entry = CachedCompilation(
        identity=planning.identify(plan, read, preprocessed),
        read=read,
        passed_over=over,
        preprocessed=preprocessed,
    )
    return entry, files


def _built(plan: Plan, entry: CachedCompilation) -> Arm:
    """The arm of what was compiled, with the files of the project and kernelexp's own headers."""
    toolkit = plan.toolkit
    ours: dict[str, str] = {}
    headers: dict[str, str] = {}
    for path, sha in entry.read.items():
        if store.is_own(path, toolkit) and (name := disk.own_name(plan.root, path)):
            ours[name] = sha
        elif name := path.partition(_PACKAGE)[2]:
            headers[name] = sha
    return msgspec.structs.replace(
        arm.begin(plan.variant),
        identity=entry.identity,
        files=dict(sorted(ours.items())),
        headers=dict(sorted(headers.items())),
        flags=plan.flags,
    )


# ---- which builds are there: for each plan, the files that earlier compilations read ------------

_KEPT = 8
"""Compilations of a plan that are remembered, the last first."""


def _earlier(plan: Plan, files: Files, preprocessed: str = "") -> CachedCompilation | None:
    """The compilation that would only be repeated, if its build is there and whole.

    `preprocessed` is the hash of the preprocessed text, for sources that ask for more than files.
    """
    for entry in entries(plan):
        folders = _searched(plan, entry.read)
        if (
            entry.preprocessed == preprocessed
            and store.is_unchanged(files, entry, folders, plan.toolkit)
            and store.is_whole(store.builds(plan.root) / entry.identity)
        ):
            return entry
    return None


def _searched(plan: Plan, read: Iterable[str]) -> tuple[str, ...]:
    flags = (*plan.flags, "-I", toolchain.INCLUDE)
    toolkit = plan.toolkit
    return store.searched(str(plan.root), read, toolkit, flags, plan.environment)


def _manifest(plan: Plan) -> tuple[Path, str]:
    return store.builds(plan.root) / "manifests", f"{plan.key[:32]}.json"


def entries(plan: Plan) -> list[CachedCompilation]:
    content = store.kept(*_manifest(plan))
    try:
        return decode(content, list[CachedCompilation]) if content else []
    except msgspec.DecodeError:
        return []


def remember(plan: Plan, entry: CachedCompilation) -> None:
    others = [other for other in entries(plan) if other != entry]
    store.keep(*_manifest(plan), msgspec.json.encode([entry, *others][:_KEPT]))


def unlisted(plan: Plan, identity: str) -> Iterator[str]:
    """Yields what the code of a build depends on beside the files that its arm lists: variables of
    the environment, other headers of this machine, what its sources ask the preprocessor for."""
    yield from plan.environment
    entry = next(entry for entry in entries(plan) if entry.identity == identity)
    if entry.preprocessed:
        yield "what its sources ask the preprocessor for"
    for path in entry.read:
        is_listed = disk.own_name(plan.root, path) or _PACKAGE in path
        if store.is_own(path, plan.toolkit) and not is_listed:
            yield path


def _as_fault(error: OSError) -> EnvironmentFault:
    where = f"{error.filename} can't be used" if error.filename else "a file can't be used"
    return EnvironmentFault(f"{where}: {error.strerror}.")
