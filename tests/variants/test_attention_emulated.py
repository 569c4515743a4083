"""The attention kernels, executed: results, barriers, bank conflicts by source line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import ROOT

from kernelexp import project
from kernelexp.dossier import emulations
from kernelexp.dossier.emulations import Emulation
from kernelexp.dossier.session import Session
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.model.arm import EmulatedEvidence, Status
from kernelexp.system.toolchain import Toolchain

PROJECT = project.load(ROOT)
WAVEFRONTS = "ptx__memory_l1_wavefronts_shared"
PHASE_3 = "phase=3,block_m=32"

Run = Callable[..., EmulatedEvidence]


def emulate(tools: Toolchain, name: str, axes: str, size: str) -> Emulation:
    kernel, _, arch = name.partition("@")
    values = dict(part.split("=") for part in axes.split(",") if part)
    point = {axis: int(value) if value.isdigit() else value for axis, value in values.items()}
    variant = PROJECT.variant(kernel, arch or "sm_90a", point)
    (result,), faults = emulations.emulate(
        PROJECT,
        [variant],
        Session(tools=tools),
        how=EmulationOptions(size=size),
        full=False,
    )
    assert not faults
    return result


@pytest.fixture(scope="session")
def run(tools: Toolchain) -> Run:
    """What a variant of kernel@arch shows that is right: no wrong element, no finding."""

    def right(name: str, axes: str = "", size: str = "emulated") -> EmulatedEvidence:
        result = emulate(tools, name, axes, size)
        assert result.arm.refused is None, result.arm.refused
        assert result.arm.emulated is not None
        assert not result.arm.emulated.findings
        return result.arm.emulated

    return right


def line_with_most(evidence: EmulatedEvidence, counter: str) -> tuple[str, int]:
    """The text of the source line and its count."""
    most = max(evidence.lines, key=lambda line: line.counters.get(counter, 0))
    text = (ROOT / most.file).read_text().splitlines()[most.line - 1]
    return text.strip(), most.counters[counter]


HOPPER = [
    ("block_m=192,schedule=free", "emulated"),
    ("block_m=64,stages=3", "emulated"),
    ("block_n=176,overlap=none", "emulated"),
    ("block_n=96,schedule=free", "emulated"),
    ("block_n=192", "emulated"),
    ("block_n=64,overlap=issued,stages=4", "emulated_more"),
    ("head_dim=128", "emulated"),
    ("polynomials=2", "emulated"),
    ("ctas=persistent", "emulated"),
    ("ctas=persistent,block_m=64,block_n=64,stages=3", "emulated"),
    ("ctas=persistent,block_m=192,schedule=free,overlap=issued", "emulated_more"),
    ("head_dim=128", "emulated128"),
    ("head_dim=128,block_n=176,overlap=issued", "emulated128"),
    ("head_dim=128,block_m=64,stages=3", "emulated128"),
]


@pytest.mark.slow
def test_the_hopper_kernel_is_right_with_tiles_that_are_not_whole(run: Run) -> None:
    counters = run("flash_attention_hopper").counters
    assert counters[WAVEFRONTS] == counters[f"{WAVEFRONTS}_ideal"]


@pytest.mark.slow
@pytest.mark.parametrize(("axes", "size"), HOPPER)
def test_a_variant_of_the_hopper_kernel_is_right(run: Run, axes: str, size: str) -> None:
    run("flash_attention_hopper", axes, size)


def test_swizzled_tiles_have_no_conflicts(run: Run) -> None:
    counters = run("flash_attention", "phase=6").counters
    assert counters[WAVEFRONTS] == counters[f"{WAVEFRONTS}_ideal"]


@pytest.mark.slow
def test_rows_of_128_bytes_take_8_wavefronts_per_matrix(run: Run) -> None:
    plain, swizzled = (
        line_with_most(run("flash_attention", f"phase={phase}"), WAVEFRONTS) for phase in (5, 6)
    )
    assert "ldmatrix_x4" in plain[0]
    assert plain[1] == 8 * swizzled[1]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_copies_run_ahead_with_one_barrier_per_tile(run: Run, arch: str) -> None:
    ctas, warps, tiles = 2, 4, 2
    counters = run(f"flash_attention@{arch}").counters
    assert counters["ptx__inst_executed_barrier"] == ctas * warps * (1 + tiles)


@pytest.mark.slow
@pytest.mark.parametrize("axes", ["phase=minimal", "phase=1,block_m=32", "phase=1,block_m=64"])
def test_a_scalar_phase_is_right_or_impossible(tools: Toolchain, axes: str) -> None:
    arm = emulate(tools, "flash_attention@sm_89", axes, "emulated").arm
    if arm.refused is not None:
        assert (axes, arm.refused.status) == ("phase=1,block_m=64", Status.IMPOSSIBLE)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "barriers"), [(2, 2), (5, 5), (10, 10)])
def test_a_policy_is_its_number_of_barriers_per_tile(run: Run, policy: int, barriers: int) -> None:
    ctas, warps, tiles = 4, 4, 2
    counters = run("flash_attention", f"{PHASE_3},sync_policy={policy}").counters
    assert counters["ptx__inst_executed_barrier"] == ctas * warps * (1 + barriers * tiles)


@pytest.mark.slow
def test_without_barriers_tiles_are_read_before_they_are_there(tools: Toolchain) -> None:
    arm = emulate(tools, "flash_attention@sm_90a", f"{PHASE_3},sync_policy=none", "emulated").arm
    assert arm.refused is not None
    assert arm.refused.status is Status.INCORRECT
    assert arm.emulated is not None
    assert {"race", "uninitialised-read"} <= {finding.name for finding in arm.emulated.findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    "axes", ["vec_width=2", "vec_width=4,reduce=serial", "num_warps=8,layout=padded"]
)
def test_an_axis_of_phase_3_is_right(run: Run, axes: str) -> None:
    run("flash_attention", f"{PHASE_3},{axes}")


@pytest.mark.slow
def test_most_wavefronts_of_phase_3_are_conflicts_where_k_is_read(run: Run) -> None:
    plain = run("flash_attention", PHASE_3)
    text, count = line_with_most(plain, WAVEFRONTS)
    assert "(k + d)" in text
    assert count > 0.8 * plain.counters[WAVEFRONTS]
    padded = run("flash_attention", f"{PHASE_3},layout=padded")
    assert padded.counters[WAVEFRONTS] < 0.2 * plain.counters[WAVEFRONTS]


@pytest.mark.slow
def test_the_store_of_k_transposed_is_where_the_4x4_kernel_conflicts(run: Run) -> None:
    tiles_of_keys = 2 * 4
    text, count = line_with_most(run("fa_4x4"), WAVEFRONTS)
    assert text == "kv[place(column, key)] = k[key * D + column];"
    assert count == tiles_of_keys * 64 * 32


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["padded", "swizzled"])
def test_padding_and_swizzle_store_k_without_conflicts(run: Run, layout: str) -> None:
    plain, fixed = (run("fa_4x4", f"k_layout={item}").counters for item in ("plain", layout))
    assert plain[WAVEFRONTS] - fixed[WAVEFRONTS] == 2 * 4 * 64 * 31


@pytest.mark.slow
def test_half_of_the_threads_do_without_waiting_warps(run: Run) -> None:
    run("fa_4x4@sm_89", "threads=256")
