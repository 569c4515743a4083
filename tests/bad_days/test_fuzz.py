"""Whatever a file holds, and whatever a variant is called: one sentence, never a traceback.

Each reader is given files of its kind that were changed at random: bytes where the file is text,
values where it is JSON.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from support import ROOT
from typer.testing import CliRunner

import warpsim as emulator
from kernelexp import project
from kernelexp.cli import app
from kernelexp.evidence import build
from kernelexp.evidence.profile import imports
from kernelexp.model import errors
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.text import CONTROL
from kernelexp.project import PROJECT_FILE
from kernelexp.services.check import gates
from kernelexp.services.handlog import reading, sections

CASES = 2_000
FEW = 24
NCU = ROOT / "tests/data/ncu"

# ---- changes -------------------------------------------------------------------------------------

FRAGMENTS = [
    *[b"\0", b"\xff", b"\r", b"\t", b"\n", b'"', b"'", b",", b"[", b"]", b"{", b"}", b"\\", b"/"],
    *[b"9" * 5000, b"-1", b"1e999", b"nan", b"0x", b"\x1b[31m", b"\xe2\x80\xae", b"\xef\xbb\xbf"],
    *[b"%", b"$", b";", b":", b"<", b">", b"|", b"#", b"null", b"true", b"//", b"/*", b"../"],
]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([0, 0, 1, 3, 40, 1000]),
        st.sampled_from(FRAGMENTS) | st.binary(max_size=4),
    ),
    min_size=1,
    max_size=5,
)


def changed(raw: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    for place, removed, inserted in changes:
        start = int(place * len(raw))
        raw = raw[:start] + inserted + raw[start + removed :]
    return raw


HOSTILE: SearchStrategy[Any] = st.sampled_from(
    [
        *[None, True, False, 0, -1, 1, 2**53, 2**63 - 1, -(2**63), 0.0, -0.0, 1e308, -1e308],
        *[1e-320, "", "x", "../../x", "/etc/passwd", "a|b", "<script>", "\x1b[31m", "\u202e"],
        *["\n# heading", "x" * 5_000, "IMPROVED", "2099-01-01T00:00:00+00:00", "9999-99-99"],
        *["S1", "scale", "sm_90a", "width", "baseline", "candidate", "\ud7ff", "1", "nan"],
        *[[], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, [0] * 100, ["x"] * 3],
    ]
)
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "replace", "remove", "double"]),
        HOSTILE,
    ),
    min_size=1,
    max_size=4,
)


def edited(value: Any, edits: list[tuple[float, str, Any]]) -> Any:
    """A JSON value with some of the values in it replaced, removed or there twice."""
    value = json.loads(json.dumps(value))
    for place, kind, instead in edits:
        places = list(_places(value))
        if not places:
            break
        inside, key = places[int(place * len(places))]
        if kind == "remove":
            del inside[key]
        elif kind == "double" and isinstance(inside, list):
            inside.insert(key, inside[key])
        else:
            inside[key] = copy.deepcopy(instead)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Lists with their indices and mappings with their keys, of all levels; few of long lists."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))[:8]
    else:
        return
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


JSON_CHANGES = st.one_of(CHANGES, EDITS, EDITS, EDITS)


def written(value: Any, changes: Any) -> bytes:
    if changes and isinstance(changes[0][1], int):
        return changed(json.dumps(value).encode(), changes)
    return json.dumps(edited(value, changes)).encode()


# ---- what is read --------------------------------------------------------------------------------


def is_sentence(error: KernelexpError) -> None:
    assert str(error)
    assert len(str(error)) < 20_000
    assert not CONTROL.search(str(error)), repr(str(error))


def command(root: Path, *words: str) -> None:
    """A command line ends in output or in sentences; a traceback is an exception here."""
    result = CliRunner().invoke(app, [*words, "-C", str(root)], catch_exceptions=False)
    assert result.exit_code in errors.EXIT_CODES
    assert "Traceback" not in result.stderr
    for text in (result.stdout, result.stderr):
        assert "\x1b" not in text
    assert not CONTROL.search(result.stderr), repr(result.stderr)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, recorded: Path) -> Path:
    """A project with a measured record, a decision and a baseline."""
    return Path(shutil.copytree(recorded, tmp_path_factory.mktemp("fuzzed") / "scale"))


DECISION_READERS = [("list",), ("log",), ("show", "S1"), ("report",)]
RECORD_READERS = [
    *[("log",), ("log", "--csv"), ("log", "--json"), ("show", "S1"), ("show", "S1", "--verbose")],
    *[("list",), ("verdict", "S1"), ("diff", "S1", "S1"), ("plot", "run", "S1"), ("show", "2")],
    *[("plot", "history"), ("show", "S1", "--json"), ("compare", "S1:baseline", "S1")],
    *[("report",), ("report",), ("plot", "roofline")],
]


def read_record(root: Path, changes: Any, words: tuple[str, ...]) -> None:
    (path,) = (root / "logs/runs/S1").glob("*.json")
    raw = path.read_bytes()
    try:
        path.write_bytes(written(json.loads(raw), changes))
        command(root, *words)
    finally:
        path.write_bytes(raw)


def read_decision(root: Path, changes: Any, words: tuple[str, ...]) -> None:
    (path,) = (root / "logs/decisions").glob("*.json")
    raw = path.read_bytes()
    try:
        path.write_bytes(written(json.loads(raw), changes))
        command(root, *words)
    finally:
        path.write_bytes(raw)


def read_yaml(root: Path, changes: Any) -> None:
    path = root / PROJECT_FILE
    raw = path.read_bytes()
    try:
        as_bytes = isinstance(changes[0][1], int)
        value = None if as_bytes else yaml.safe_load(raw)
        path.write_bytes(changed(raw, changes) if as_bytes else written(value, changes))
        loaded = project.load(root)
        for experiment in loaded.experiments.values():
            loaded.variants(experiment)
    except KernelexpError as error:
        is_sentence(error)
    finally:
        path.write_bytes(raw)


def read_baseline(root: Path, changes: Any) -> None:
    path = root / gates.FILE
    raw = path.read_bytes()
    try:
        path.write_bytes(written(json.loads(raw), changes))
        baseline = gates.read_baseline(root)
        arms = {label: Arm() for label in baseline.variants}
        assert gates.compare(baseline, "13.0", arms, {}, emulated=False)
    except KernelexpError as error:
        is_sentence(error)
    finally:
        path.write_bytes(raw)


def read_ptx(root: Path, changes: Any) -> None:
    ptx = sorted((root / build.CACHE / "build").glob("*/kernel.ptx"))[0].read_bytes()
    try:
        emulator.load(changed(ptx, changes).decode("utf-8", "replace"))
    except UsageError as error:
        is_sentence(error)


def read_page(root: Path, changes: Any, name: str) -> None:
    path = root / name
    path.write_bytes(changed((NCU / name).read_bytes(), changes))
    try:
        imports.read([path], launch=1)
    except KernelexpError as error:
        is_sentence(error)


def read_log(changes: Any) -> None:
    text = changed((ROOT / "logs/EXPERIMENTS.md").read_bytes()[:6000], changes)
    reading.read(sections.read(text.decode("utf-8", "replace")))


WORDS = st.lists(
    st.sampled_from(
        [
            *["scale", "@", "sm_90a", ":", "width", "=", "1", "4", ",", "order", "backward", "S1"],
            *["baseline", "2", " ", "-", "\t", "\n", "\x1b[31m", "x" * 3000, "²", "\ud800", "٣"],
        ]
    )
    | st.text(max_size=3),
    max_size=12,
).map("".join)


def read_variant(root: Path, text: str) -> None:
    loaded = _loaded(root)
    for parse in (project.parse_variant, project.parse_arm):
        try:
            parse(loaded, text)
        except UsageError as error:
            is_sentence(error)


def _loaded(root: Path) -> project.Project:
    if root not in _projects:
        _projects[root] = project.load(root)
    return _projects[root]


_projects: dict[Path, project.Project] = {}

KINDS: dict[str, tuple[SearchStrategy[Any], Callable[[Path, Any], None]]] = {
    "record": (
        st.tuples(JSON_CHANGES, st.sampled_from(RECORD_READERS)),
        lambda root, case: read_record(root, *case),
    ),
    "decision": (
        st.tuples(JSON_CHANGES, st.sampled_from(DECISION_READERS)),
        lambda root, case: read_decision(root, *case),
    ),
    "YAML": (JSON_CHANGES, read_yaml),
    "baseline": (JSON_CHANGES, read_baseline),
    "PTX": (CHANGES, read_ptx),
    "ncu page": (
        st.tuples(
            CHANGES,
            st.sampled_from(["raw.csv", "details.csv", "source-sass.csv", "session.csv"]),
        ),
        lambda root, case: read_page(root, *case),
    ),
    "hand-kept log": (CHANGES, lambda root, case: read_log(case)),
    "variant": (WORDS, read_variant),
}


def fuzz(kind: str, root: Path, count: int) -> int:
    """Runs so many cases of a kind, and returns how many these were."""
    strategy, read = KINDS[kind]
    done = 0

    @settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # to make a case smaller takes minutes where it is a command
        report_multiple_bugs=False,
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        nonlocal done
        done += 1
        read(root, case)

    run()
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_read_or_is_a_sentence(kind: str, measured: Path) -> None:
    fuzz(kind, measured, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_changed_files_are_read_or_are_sentences(kind: str, measured: Path) -> None:
    count = int(os.environ.get("KERNELEXP_FUZZ", CASES))
    print(f"fuzz: {kind}: {fuzz(kind, measured, count)} cases, 0 tracebacks")
