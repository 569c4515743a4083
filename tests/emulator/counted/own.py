"""This repository's variants for sm_90a, as `kernelexp emulate` executes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from conformance.case import Array, Case

from kernelexp import project
from kernelexp.cli.common import parse_variants
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.build import Artefacts
from kernelexp.evidence.measure import tensors
from kernelexp.model.arm import Arm, sound
from kernelexp.project.problem.loader import load
from kernelexp.system import toolchain
from warpsim.launch import of_entries

ROOT = Path(__file__).parents[3]
SIZE = "emulated"
SEED = 1
SIMPLE = (
    "transpose@sm_90a",
    "transpose@sm_90a:layout=plain",
    "transpose@sm_90a:rows=4",
    *(f"fa_4x4@sm_90a:k_layout={layout}" for layout in ("plain", "padded", "swizzled")),
    *(f"flash_attention@sm_90a:phase={phase}" for phase in ("minimal", 5, 6, 7)),
    "flash_attention@sm_90a:phase=1,block_m=32",
    "flash_attention@sm_90a:phase=1,block_m=32,layout=padded",
    "flash_attention@sm_90a:phase=3,block_m=32",
    "flash_attention@sm_90a:phase=3,block_m=32,vec_width=2",
)
HOPPER = (
    "patch_embed_gemm@sm_90a",
    "patch_embed_gemm@sm_90a:cluster=1",
    "patch_embed_gemm@sm_90a:store=staged",
    "patch_embed_gemm@sm_90a:schedule=cooperative,tile_m=128,stages=3",
    "flash_attention_hopper@sm_90a",
)
"""Of wgmma, bulk copies and mbarriers."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that is built, with the launch that is executed of it."""

    name: str
    case: Case
    files: Artefacts


def variants(names: Sequence[str]) -> Iterator[Variant]:
    """Builds variants; SystemExit with what is wrong with one."""
    loaded = project.load(ROOT)
    parsed = parse_variants(loaded, list(names), None)
    tools = toolchain.find(None, ROOT / build.CACHE)
    arms = prepare.built(loaded, parsed, Session(tools=tools))
    for name, examined in zip(names, arms, strict=True):
        arm = sound(examined)
        if arm.build is None:
            raise SystemExit(f"{name}: {arm.refused.sentence if arm.refused else arm.build_log}")
        yield Variant(name=name, case=_case(name, arm), files=build.artefacts(ROOT, arm.identity))


def _case(name: str, arm: Arm) -> Case:
    assert arm.build is not None
    problem = load(ROOT, arm.kernel)
    size, exports = problem.sizes[SIZE], arm.build.exports
    _, others = tensors.draw_inputs(problem, size, SEED, "cpu")
    written = {**problem.outputs(size), **problem.workspaces(arm.axes, size, exports)}
    given = {**problem.arrange(others, arm.axes), **tensors.allocate(written, others)}
    (launch,) = problem.launches(arm.axes, size, exports)
    symbols = (arm.build.entry, *arm.build.others)
    return Case(
        name=name,
        launch=of_entries(launch, symbols),
        arrays={key: _bits(tensor) for key, tensor in given.items()},
        outputs=(),
    )


def _bits(tensor) -> Array:  # type: ignore[no-untyped-def]
    """A tensor's memory as unsigned integers of the width of its elements."""
    width = np.dtype(f"u{tensor.element_size()}")
    return tensors.as_bytes(tensor.contiguous()).numpy().view(width)
