"""CONTRIBUTING.md names the rooms that there are, and every place in it exists; so do the modules
that docstrings of packages name, and the names of classes are unique."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def rooms() -> set[str]:
    packages = (ROOT / "kernelexp").glob("*/__init__.py")
    return {path.parent.name for path in packages}


def test_every_room_of_the_package_has_its_row():
    own = TEXT.partition("The emulator is a package")[0]
    assert rooms() == set(re.findall(r"^\| `(\w+)/` \|", own, re.MULTILINE))


def test_the_package_has_twelve_rooms_and_nothing_else_at_its_top():
    files = {path.name for path in (ROOT / "kernelexp").glob("*.py")}
    assert (len(rooms()), files) == (12, {"__init__.py", "__main__.py"})


def test_every_path_that_is_named_is_there():
    paths = re.findall(r"`((?:kernelexp|warpsim|tests|docs|benchmarks)/[\w/.]+)`", TEXT)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_name_beside_a_path_is_in_that_file():
    pairs = re.findall(r"`(\w+)(?:\(\))?` (?:in|of) `((?:kernelexp|warpsim)/[\w/]+\.py)`", TEXT)
    assert len(pairs) > 4
    assert [pair for pair in pairs if pair[0] not in (ROOT / pair[1]).read_text()] == []


def test_every_folder_of_a_room_is_there():
    rows = re.findall(r"^\| `(\w+)/` \| (.*) \|$", TEXT, re.MULTILINE)
    named = [(room, folder) for room, words in rows for folder in re.findall(r"`(\w+)/`", words)]
    assert len(named) > 20
    folders = {(path.parent.name, path.name) for path in ROOT.glob("kernelexp/*/*/")}
    assert [pair for pair in named if pair not in folders] == []


@pytest.mark.parametrize("package", ["kernelexp", "warpsim"])
def test_every_module_that_the_docstring_of_a_package_names_is_there(package):
    missing = []
    for file in (ROOT / package).rglob("__init__.py"):
        words = ast.get_docstring(ast.parse(file.read_text())) or ""
        names = set(re.findall(r"(?<![\w/])(\w+\.py)\b", words)) - {"problem.py"}
        missing += [(file, name) for name in names if not (file.parent / name).exists()]
    assert missing == []


@pytest.mark.parametrize("package", ["kernelexp", "warpsim"])
def test_no_two_classes_of_a_package_share_a_name(package):
    files = (ROOT / package).rglob("*.py")
    names = Counter(
        name
        for file in files
        for name in re.findall(r"^ *class (\w+)[(:]", file.read_text(), re.MULTILINE)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_the_order_of_the_rooms_is_the_one_that_is_enforced():
    shown = re.search(r"^    (cli > .*)$", TEXT, re.MULTILINE)
    contract = re.search(r"layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert shown
    assert contract
    layers = [name.replace(" : ", ", ") for name in re.findall(r'"([^"]+)"', contract[1])]
    assert shown[1].split(" > ") == layers
