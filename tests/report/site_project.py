"""Projects whose pages the tests render: the repository's, a hostile one; a reader of pages."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import msgspec
from support import ROOT

from kernelexp import project
from kernelexp.logs import records
from kernelexp.report.site import folder as report_folder
from kernelexp.report.site import site

SCRIPT = '<script>document.title="run"</script>'
HOSTILE = f'{SCRIPT}"><img src=x onerror=\'document.title="run"\'>{{{{ 7*7 }}}} \x1b[2J\u202e'
YAML = r"<script>document.title=1</script>\"><img src=x onerror=\"document.title=1\"> {{ 7*7 }}"


def copy(folder: Path, *experiments: str) -> Path:
    """The repository's definitions with the records of a few experiments; no sources."""
    root = folder / "project"
    shutil.copytree(ROOT / "experiments", root / "experiments")
    shutil.copy(ROOT / "experiments.yaml", root)
    for name in experiments:
        shutil.copytree(ROOT / records.FOLDER / name, root / records.FOLDER / name)
    return root


def hostile(folder: Path) -> Path:
    """A project in which all that people and machines wrote would run a script if it could."""
    root = copy(folder, "T1", "sweep-transpose")
    (root / "experiments" / "X1.yaml").write_text(
        f"""kernel: transpose
arch: sm_90a
title: "{YAML}"
baseline: {{}}
candidate: {{layout: swizzled}}
hypothesis: "{YAML}"
why: "{YAML}"
decision: "{YAML}"
changes: ["{YAML}"]
"""
    )
    for name in ("T1", "sweep-transpose"):
        path = records.find(root, name, measured=True)
        record = records.read_file(path)
        timed = record.measurement
        assert timed is not None
        timed = msgspec.structs.replace(
            timed, device=msgspec.structs.replace(timed.device, name=HOSTILE)
        )
        record = msgspec.structs.replace(
            record,
            measurement=timed,
            title=HOSTILE,
            hypothesis=HOSTILE,
            device=HOSTILE,
            compiler=HOSTILE,
            tool=HOSTILE,
        )
        path.write_text(records.encode(record))
    return root


def build(root: Path, folder: Path) -> Path:
    """The pages of a project in `folder`."""
    report_folder.write(site.ProjectSite(project.load(root, sources=False)), folder)
    return folder


class Reader(HTMLParser):
    """What a page holds that tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]
