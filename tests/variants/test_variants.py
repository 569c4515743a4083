"""Every variant of every experiment, built for its architecture by the real compiler."""

from __future__ import annotations

import pytest
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.arm import Arm, Status, sound
from kernelexp.services.check import gates
from kernelexp.system.toolchain import Toolchain

# One worker builds them all; `kernelexp check` does it before.
pytestmark = [pytest.mark.xdist_group("all variants"), pytest.mark.slow]

PROJECT = project.load(ROOT)
VARIANTS = gates.named_variants(PROJECT)


@pytest.fixture(scope="session")
def arms(tools: Toolchain) -> dict[str, Arm]:
    arms = prepare.built(PROJECT, list(VARIANTS.values()), Session(tools=tools))
    return dict(zip(VARIANTS, map(sound, arms), strict=True))


@pytest.mark.parametrize("label", VARIANTS)
def test_a_variant_builds_without_spills_or_is_refused_with_a_reason(
    arms: dict[str, Arm], label: str
) -> None:
    result = arms[label]
    if result.refused is not None:
        assert result.refused.status is Status.IMPOSSIBLE, result.build_log
        assert result.refused.sentence
        return
    assert result.build is not None
    used = result.build.resources
    if result.arch == "sm_100a":  # H6's candidate on sm_90a spills 20 bytes, and shows it
        assert used.spill_store_bytes == used.spill_load_bytes == 0
    assert 0 < used.registers <= 255
    limit = ARCHITECTURES[result.arch].smem_per_cta_bytes
    assert used.static_smem_bytes + used.dynamic_smem_bytes <= limit


def test_what_does_not_fit_is_all_that_is_impossible(arms: dict[str, Arm]) -> None:
    refused = {label for label, item in arms.items() if item.refused}
    assert refused == {
        "patch_embed_gemm@sm_100a: cta_group=4",
        "flash_attention@sm_90a: phase=3",  # 64 rows of queries in static shared memory
    }


def test_four_ctas_in_a_group_are_refused_for_their_tensor_memory(
    arms: dict[str, Arm],
) -> None:
    refused = arms["patch_embed_gemm@sm_100a: cta_group=4"].refused
    assert refused is not None
    assert "1,024 columns needed" in refused.sentence
    assert "512 is the most that sm_100a has" in refused.sentence


def test_no_instruction_of_ours_is_of_an_unknown_pipe(arms: dict[str, Arm]) -> None:
    builds = [arm.build for arm in arms.values() if arm.build]
    assert {build.pipes.get("other", 0) for build in builds} == {0}


@pytest.mark.parametrize(
    ("label", "smem_bytes"),
    [
        ("defaults", 215_680),  # 4 stages x 32,768 + 128 + 5 warps x 16,896
        ("store=direct_v8", 131_200),
        ("stages=5, store=direct_v8", 163_968),
        ("stages=6, store=direct_v8", 196_864),
    ],
)
def test_shared_memory_is_stages_barriers_and_staging(
    arms: dict[str, Arm], label: str, smem_bytes: int
) -> None:
    build = next(
        item.build for name, item in arms.items() if name == f"patch_embed_gemm@sm_100a: {label}"
    )
    assert build is not None
    assert build.resources.dynamic_smem_bytes == smem_bytes
