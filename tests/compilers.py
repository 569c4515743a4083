"""What the tests of builds share: types of fixtures, the variant that they build, and builds with
what they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.system.toolchain import Toolchain

Wrap = Callable[[str], Toolchain]
Plant = Callable[[str, str], Toolchain]

SOURCE = "variants/scale/scale.cu"


class Built(NamedTuple):
    """The outcome of building one variant."""

    arm: Arm
    fault: KernelexpError | None
    cached: bool
    """Whether nothing was compiled: what is compiled is noted in the manifest of its plan."""

    @property
    def ok(self) -> bool:
        return self.fault is None and self.arm.refused is None

    @property
    def identity(self) -> str:
        return self.arm.identity

    @property
    def log(self) -> str:
        return self.arm.build_log


BuildOne = Callable[..., Built]


def build_each(
    root: Path, variants: Sequence[Variant], tools: Toolchain, **options: Any
) -> list[Built]:
    """build.build(), and of each variant whether something was compiled for it."""
    plans = build.make_plans(root, variants, tools)
    manifests = [root / build.CACHE / f"build/manifests/{plan.key[:32]}.json" for plan in plans]
    before = [_written(path) for path in manifests]
    arms = build.build(root, variants, tools, **options)
    return [
        Built(Arm(), arm, cached=False)
        if isinstance(arm, KernelexpError)
        else Built(arm, None, cached=not arm.refused and _written(path) == was)
        for arm, path, was in zip(arms, manifests, before, strict=True)
    ]


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


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
