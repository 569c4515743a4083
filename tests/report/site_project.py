"""Projects whose pages the tests of the report render: the repository's, and a hostile one."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
from support import ROOT

from kernelexp import project, records
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
        record = msgspec.structs.replace(
            record,
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
    report_folder.write(site.Site(project.load(root, sources=False)), folder)
    return folder
