"""Words of others with markup, control characters and path parts do no harm where they are shown.

The words are in every text of the project's file, of a record, of a decision and of a profile, and
in the names of files among the records.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from support import ROOT, Kx, edit

from kernelexp.logs import decisions, profiles, records
from kernelexp.model import errors
from kernelexp.model.text import CONTROL

MARKUP = (
    '<script>alert(1)</script><img src=x onerror=a()> "> | `$(touch PWNED)` ../../x # [a](b) **c**'
)
WORDS = f"\x1b[31m\x07\x9b1m\u202e\r{MARKUP}\n# heading\n- item"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
COMMANDS = [
    *[("list",), ("show", "S1"), ("show", "S1", "--verbose"), ("show", "RUN"), ("log",)],
    *[("log", "--csv"), ("verdict", "S1"), ("diff", "S1", "S1"), ("plot", "run", "S1")],
    *[
        ("plot", "history"),
        ("compare", "S1:baseline", "S1"),
        ("sections", "PROFILE"),
        ("accept", "S1"),
    ],
    *[("audit", "S1", "--against", "S1:baseline"), ("explain", "S1")],
    *[("log", "--json"), ("show", "S1", "--json"), ("list", "--json")],
]


# What joins the parts of a file: with another text there it is no longer about the variant.
KEYS = {"run", "experiment", "kernel", "arch", "name", "arm", "created", "identity", "figure"}


def spoil(path: Path, is_read: Callable[[], bool]) -> int:
    """Puts the words into every text of a JSON file that can have them; how many these are."""
    value = json.loads(path.read_text())
    count = 0
    for inside, key in list(_texts(value)):
        before = inside[key]
        inside[key] = WORDS + before
        path.write_text(json.dumps(value))
        if is_read():
            count += 1
        else:
            inside[key] = before
    path.write_text(json.dumps(value))
    return count


def _texts(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        if isinstance(inner, str) and key not in KEYS:
            yield value, key
        elif isinstance(inner, dict | list):
            yield from _texts(inner)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, recorded: Path) -> Path:
    root = Path(shutil.copytree(recorded, tmp_path_factory.mktemp("hostile") / "scale"))
    for text in ("Four floats per thread", "Wider accesses need fewer instructions.", "first"):
        edit(root, text, f"'{MARKUP}'")
    edit(root, "about: floats per thread", f"about: '{MARKUP}'")
    (path,) = (root / "logs/runs/S1").glob("*.json")
    assert spoil(path, lambda: not records.read(root, "S1")[1]) > 20
    (path,) = (root / "logs/runs/aaaaaaa").glob("*.json")  # of the step as it is now
    step = json.loads(path.read_text())
    step["device"] = step["measurement"]["device"]["name"] = WORDS
    path.write_text(json.dumps(step))
    (path,) = (root / "logs/decisions").glob("*.json")
    assert spoil(path, lambda: not decisions.read_all(root)[1]) > 3
    (path,) = (root / "logs/profiles").glob("*.json")
    profile = json.loads(path.read_text())
    del profile["digest"]  # an edited one is not read
    path.write_text(json.dumps(profile))
    assert spoil(path, lambda: not profiles.read_all(root)[1]) > 3
    for name in ("\x1b[31m\n<script>.json", "..json", "-rf.json"):
        (root / "logs/runs/S1" / name).write_text("{}")
        (root / "logs/decisions" / name).write_text("{}")
    return root


ORDINARY = [("show", "S1", "--verbose"), ("log", "--csv"), ("show", "S1", "--json"), ("list",)]
SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [command if command in ORDINARY else pytest.param(command, marks=SLOW) for command in COMMANDS],
    ids=" ".join,
)
def test_a_command_prints_words_that_act_on_nothing(
    hostile: Path, words: tuple[str, ...], kx: Kx
) -> None:
    places = {"RUN": "logs/runs/S1", "PROFILE": "logs/profiles"}
    names = {word: next((hostile / place).glob("2*.json")) for word, place in places.items()}
    result = kx(*[names[w].name.split(".")[0] if w in names else w for w in words], cwd=hostile)
    assert result.exit_code in (errors.OK, errors.INCONCLUSIVE), result.stderr
    assert not CONTROL.search(result.stdout)
    assert not CONTROL.search(result.stderr)
    if "--json" in words:
        json.loads(result.stdout)
    elif "--csv" in words:
        rows = list(csv.reader(io.StringIO(result.stdout)))
        assert len({len(row) for row in rows}) == 1
    assert not list(hostile.rglob("PWNED"))


def test_the_markdown_has_no_structure_of_theirs(hostile: Path, kx: Kx) -> None:
    texts = [
        kx("log", cwd=hostile).stdout,
        kx("audit", "S1", "--against", "S1:baseline", "--markdown", cwd=hostile).stdout,
    ]
    for text in texts:
        assert text
        tokens = MARKDOWN.parse(text)
        inner = [item for token in tokens for item in (token, *(token.children or ()))]
        assert not [item for item in inner if item.type in ("html_block", "html_inline", "image")]
        headings = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]
        assert "heading" not in headings


@pytest.mark.slow
def test_the_pages_have_no_elements_of_theirs(hostile: Path, kx: Kx, tmp_path: Path) -> None:
    result = kx("report", "--out", str(tmp_path / "pages"), cwd=hostile)
    assert result.exit_code == errors.OK
    assert not CONTROL.search(result.stderr)
    pages = list((tmp_path / "pages").rglob("*.html"))
    assert len(pages) > 3
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in pages)
    for page in pages:
        text = page.read_text()
        assert "<script>alert" not in text, page
        assert "<img src=x" not in text, page
        assert not CONTROL.search(text), page


@pytest.mark.slow
def test_a_drawn_chart_has_no_elements_of_theirs(hostile: Path, kx: Kx, tmp_path: Path) -> None:
    out = tmp_path / "run.svg"
    assert kx("plot", "run", "S1", "--out", str(out), cwd=hostile).exit_code == errors.OK
    tags = {item.tag.rpartition("}")[2] for item in ElementTree.parse(out).iter()}
    assert not tags & {"script", "img"}


@pytest.mark.slow
def test_completion_offers_no_words_that_act_on_a_shell(hostile: Path) -> None:
    for shell, variables in {
        "bash": {"COMP_WORDS": "kernelexp run S", "COMP_CWORD": "2"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "kernelexp run S"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": "kernelexp run S",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }.items():
        result = subprocess.run(
            [sys.executable, "-m", "kernelexp"],
            cwd=hostile,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "_KERNELEXP_COMPLETE": f"complete_{shell}",
                **variables,
            },
            capture_output=True,
            text=True,
        )
        assert result.stderr == ""
        assert "S1" in result.stdout
        assert "$(" not in result.stdout
        assert "`" not in result.stdout
        assert not CONTROL.search(result.stdout)
