"""The architecture table of CONTRIBUTING.md and the package name the same modules."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kernelexp"


def rows() -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return [line for line in text.splitlines() if re.match(r"\| `[\w/]+(\.py|/)`", line)]


def test_every_module_of_the_package_has_its_place_in_the_table():
    named = set(re.findall(r"`([\w.]+/?)`", "".join(rows())))
    files = {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    folders = {f"{path.name}/" for path in PACKAGE.glob("[a-z]*") if path.is_dir()}
    assert files | folders <= named


def test_every_place_in_the_table_is_there():
    places = re.findall(r"`([\w/]+(?:\.py|/))`", "".join(row.split("|")[1] for row in rows()))
    assert len(places) > 50
    assert [place for place in places if not any(map(Path.exists, homes(place)))] == []


def homes(place: str) -> list[Path]:
    """From the root, the package, or the folder that the table names before it in the row."""
    return [ROOT / place, PACKAGE / place, *PACKAGE.glob(f"*/{place}")]
