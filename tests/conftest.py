"""What the tests share: a small project of its own, and the command line."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

# Before hypothesis: one of its plugins imports trio.
os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"

import kept
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from support import ROOT, Kx
from transcript import compile_first
from typer.testing import CliRunner, Result

from kernelexp import project
from kernelexp.cli import app
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build, native
from kernelexp.evidence.build import planning
from kernelexp.evidence.emulate import emulated
from kernelexp.project.problem import files
from kernelexp.services.check import gates
from kernelexp.system import disk, toolchain
from kernelexp.system.toolchain import Toolchain

# A busy machine is not a fault of a strategy. CI tries the same examples each time: its verdict is
# on the change. Elsewhere each run tries others.
settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("busy")

# The tests start hundreds of interpreters: each would compile the whole package for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A problem.py that a test loads in this process would be told of every file opened from then on.
setattr(files, "begin", lambda: None)  # noqa: B010

# A shell has what it starts in the background ignore Ctrl-C, and nohup a hangup; so would what
# the tests start.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What is collected stays: looking through it for garbage took 1.8 of the 8.8 CPU seconds that
# collecting takes, in each of the processes.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """In a fresh checkout one process alone compiles the modules of Python that it collects, half
    of the 19 CPU seconds that collecting takes there; meanwhile the others make the emulator's
    code, and collect with what the first one compiled.
    """
    if getattr(config, "workerinput", {}).get("workerid", "gw0") != "gw0":
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(disk.CACHE_VARIABLE, str(ROOT / build.CACHE))
            compile_first(ROOT)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: some tests wait for other processes to end.

    None beside this one where there is a GPU to measure with: it would be company on the GPU.
    """
    if os.environ.get("KX_GPU") == "1":
        return 0
    cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from scheduling import Together

    return Together(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture
def scale(tmp_path: Path, warm: Path) -> Path:
    """A fresh copy of the project `scale`: one kernel, two axes, two experiments, one step.

    All its variants are built already, what it names is emulated too; what a test changes is not.
    """
    return _copy(tmp_path, warm)


@pytest.fixture
def shared_builds(request: pytest.FixtureRequest) -> None:
    """A test's `scale` finds what earlier tests have built of the sources that it writes."""
    if "scale" in request.fixturenames:
        root = request.getfixturevalue("scale")
        shutil.rmtree(root / build.CACHE / "build")
        kept.share_builds(root)


@pytest.fixture
def same_path(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder with the same path each time that a test runs: see kept.same_folder()."""
    with kept.same_folder(hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]) as folder:
        yield folder


@pytest.fixture
def cold(tmp_path: Path, hashed: Path) -> Path:
    """The project `scale` with nothing built."""
    return _copy(tmp_path, hashed)


def _copy(folder: Path, cache: Path) -> Path:
    root = folder / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(cache, root / build.CACHE)
    return root


@pytest.fixture(scope="session")
def warm(hashed: Path, usual_tools: Toolchain, shared: Path) -> Path:
    """The cache of the project `scale`: all variants built, those that it names emulated too."""
    with FileLock(shared / "warm.lock"):
        if (done := shared / "warm").exists():
            return done
        root = _copy(shared, hashed)
        keep = kept.add_earlier_cache(root, emulated.version())
        loaded = project.load(root)
        named = list(gates.named_variants(loaded).values())
        points = [{"width": width, "order": "backward"} for width in (1, 2)]
        others = [loaded.variant("scale", None, point) for point in points]
        prepare.built(loaded, [*named, *others], Session(tools=usual_tools))
        arms = prepare.built(loaded, named, Session(tools=usual_tools))
        prepare.emulated(loaded, arms, Session(tools=usual_tools))
        keep()
        return (root / build.CACHE).rename(done)


@pytest.fixture(scope="session")
def hashed(usual_tools: Toolchain, shared: Path) -> Path:
    """A cache in which the compiler's 200 MB are hashed."""
    folder = shared / build.CACHE
    with FileLock(shared / "hashed.lock"):
        if not folder.exists():
            folder.mkdir()
            planning.identify_compiler(folder, folder, usual_tools, ())
    return folder


@pytest.fixture(scope="session", autouse=True)
def user_cache() -> Iterator[Path]:
    """What the tests, and the processes that they start, have as the user's cache.

    It is this checkout's, as compiling the emulator's loops takes 9 s.
    """
    kept.tidy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(disk.CACHE_VARIABLE, str(ROOT / build.CACHE))
        compile_first(ROOT)
        yield ROOT / build.CACHE


@pytest.fixture(scope="session")
def library(user_cache: Path) -> Path:
    """The emulator's compiled loops, which all tests have in common."""
    path = native.library(user_cache)
    assert path, "the tests need a host compiler, as nvcc does"
    return Path(path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that the processes of one test session share."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def usual_tools(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    """The compiler that commands use where nothing else is said."""
    return toolchain.find(None, tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def tools(usual_tools: Toolchain) -> Toolchain:
    """The compiler of a test; those of a folder may have another."""
    return usual_tools


@pytest.fixture
def kx(monkeypatch: pytest.MonkeyPatch) -> Kx:
    """Runs the command line in this process: kx("run", "S1", cwd=project)."""

    def run(*arguments: str, cwd: Path = ROOT) -> Result:
        monkeypatch.chdir(cwd)
        monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return run
