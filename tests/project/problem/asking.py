"""The problem of the project `scale`: its edits, and what it answers."""

from __future__ import annotations

from pathlib import Path

from kernelexp.model.arm import Arm
from kernelexp.project.problem import consult
from kernelexp.project.problem.consult import Consulted

NAME = "variants/scale/problem.py"
AXES = {"width": 1, "order": "forward"}


def change(root: Path, *edits: tuple[str, str]) -> None:
    path = root / NAME
    for text, instead in edits:
        assert text in path.read_text()
        path.write_text(path.read_text().replace(text, instead))


def ask(root: Path, **options: object) -> Consulted:
    return consult.consult(root, "scale", [Arm(axes=AXES, arch="sm_90a")], **options)
