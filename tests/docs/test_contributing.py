"""CONTRIBUTING.md names the rooms that there are, and every place in it exists."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_the_order_of_the_rooms_is_the_one_that_is_enforced():
    shown = re.search(r"^    (cli > .*)$", TEXT, re.MULTILINE)
    contract = re.search(r"layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert shown
    assert contract
    layers = [name.replace(" : ", ", ") for name in re.findall(r'"([^"]+)"', contract[1])]
    assert shown[1].split(" > ") == layers
