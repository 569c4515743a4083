"""What the tests of builds share: types of fixtures, and the variant that they build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.evidence.build import Built
from kernelexp.model.variant import Variant
from kernelexp.system.toolchain import Toolchain

Wrap = Callable[[str], Toolchain]
Plant = Callable[[str, str], Toolchain]
BuildOne = Callable[..., Built]

SOURCE = "variants/scale/scale.cu"


def default(root: Path, *flags: str) -> Variant:
    """The default variant of the project `scale`, with these flags."""
    return msgspec.structs.replace(project.load(root).variant("scale", "sm_90a"), flags=flags)


def edit_file(root: Path, path: str, text: str, instead: str) -> None:
    before = (root / path).read_text()
    assert text in before
    (root / path).write_text(before.replace(text, instead))


def read_ptx(root: Path, built: Built) -> str:
    assert built.ok, built.log or built.fault
    return build.artefacts(root, built.identity).ptx.read_text()
