"""The variants that are mutated, each at the smallest size that exercises all of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.measure import results, tensors
from kernelexp.model.experiment import Point, Variant
from kernelexp.project.problem import loader
from kernelexp.system import toolchain
from mutations.case import Arrays, Case, Source
from warpsim.front.ptx.parser import parse

if TYPE_CHECKING:
    import torch


@functools.cache
def _project() -> project.Project:
    return project.load(ROOT)


class Large(NamedTuple):
    """A variant, and a size of its problem."""

    name: str
    kernel: str
    arch: str
    point: Point
    size: dict[str, int]
    per_kind: int = 1

    @property
    def variant(self) -> Variant:
        return _project().variant(self.kernel, self.arch, self.point)

    def path(self) -> Path:
        return ROOT / self.variant.source

    def folders(self) -> tuple[Path, ...]:
        """Of headers."""
        return (self.path().parent, ROOT / "variants" / "include")

    def defines(self) -> tuple[str, ...]:
        return tuple(f"-D{define}" for define in self.variant.defines)

    def part(self, text: str) -> slice:
        """All of it: what the kernel does not use changes no PTX."""
        return slice(0, len(text))

    def source(self) -> Source:
        loaded, variant = _project(), self.variant
        tools = toolchain.find(None, ROOT / build.CACHE)
        arm = prepare.arm_of(loaded, variant, Session(tools=tools))
        assert arm.build is not None, arm.build_log
        ptx = build.artefacts(ROOT, arm.identity).ptx.read_text()
        entry = next(f.name for f in parse(ptx).functions.values() if f.entry)
        return Source(ptx, entry, arm.build.exports)

    def case(self, exports: Mapping[str, int]) -> Case:
        import torch

        problem, size = loader.load(ROOT, self.kernel), self.size
        axes = self.variant.axes
        inputs = problem.inputs(size, 1, "cpu")
        given = problem.arrange(dict(inputs), axes)
        outputs = tensors.allocate(problem.outputs(size))
        chunks = list(problem.reference(inputs, size))
        tolerance = problem.tolerance(size, self.arch, axes)
        widths = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}

        def numpy(tensor: torch.Tensor) -> np.ndarray:
            return tensor.view(widths[tensor.element_size()]).numpy().copy()

        def arrays() -> dict[str, np.ndarray]:
            return {name: numpy(tensor) for name, tensor in (given | outputs).items()}

        def right(got: Arrays) -> bool:
            written = {
                name: torch.from_numpy(got[name]).view(tensor.dtype)
                for name, tensor in outputs.items()
            }
            result = results.compare(written, iter(chunks), tolerance)
            return not any(array.wrong for array in result)

        return Case(problem.launches(axes, size, exports)[0], arrays, tuple(outputs), right)


PATCHES = {"n": 768, "k": 768, "period": 196, "ctas": 2, "ctas_sm_90a": 4}
HEAD = {"b": 1, "h": 1, "d": 64}
LARGE = (
    Large("patch_embed_gemm@sm_100a", "patch_embed_gemm", "sm_100a", {}, PATCHES | {"m": 256}),
    # Twelve uses of each stage, four turns of each warpgroup: an arrival too few shows after four.
    Large(
        "patch_embed_gemm@sm_90a",
        "patch_embed_gemm",
        "sm_90a",
        {"stages": 4},
        PATCHES | {"m": 512},
    ),
    Large(
        "flash_attention_hopper",
        "flash_attention_hopper",
        "sm_90a",
        {"block_n": 64, "ctas": "persistent"},
        HEAD | {"s": 312, "sms": 1},
    ),
    Large("flash_attention", "flash_attention", "sm_90a", {}, HEAD | {"s": 128}),
    Large("fa_4x4", "fa_4x4", "sm_90a", {}, {"s": 64}),
)
