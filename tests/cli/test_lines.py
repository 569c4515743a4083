"""inspect --lines: cost by source line and by role."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, Kx

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.evidence.profile import pages
from kernelexp.logs import profiles
from kernelexp.model import errors
from kernelexp.model.arm import begin
from kernelexp.model.experiment import Point
from kernelexp.model.record import Profile
from kernelexp.report.variants.lines import bar

# One worker emulates the transpose for all of them.
pytestmark = pytest.mark.xdist_group("transpose")

DATA = ROOT / "tests/data/ncu"
# Warp 0 fills a tile, warps 6 and 7 multiply it, the others do nothing.
SPECIALISED = """
#include "export.cuh"

constexpr int THREADS = 256;
KX_EXPORT(threads, THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);

__device__ __forceinline__ bool inside(int i, int count) { return i < count; }

__device__ __forceinline__ void load_role(const float* x, float* tile, int first, int count) {
#pragma unroll 1
  for (int i = threadIdx.x; i < THREADS; i += 32) {
    if (inside(first + i, count)) tile[i] = x[first + i];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scale(const float* x, float* y, float factor, int count) {
  __shared__ float tile[THREADS];
  const int first = blockIdx.x * THREADS;
  if (threadIdx.x < 32) load_role(x, tile, first, count);
  __syncthreads();
  if (threadIdx.x >= 192) {
    // role: multiply
#pragma unroll 1
    for (int i = threadIdx.x - 192; i < THREADS; i += 64) {
      if (inside(first + i, count)) y[first + i] = tile[i] * factor;
    }
  }
}
"""


@pytest.fixture(scope="module")
def specialised(hashed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project `scale` with a kernel whose warps have roles."""
    root = tmp_path_factory.mktemp("specialised") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(hashed, root / build.CACHE)
    (root / "variants/scale/scale.cu").write_text(SPECIALISED)
    return root


def lines(kx: Kx, *arguments: str, cwd: Path = ROOT) -> list[dict[str, Any]]:
    result = kx("lines", *arguments, "--json", cwd=cwd)
    assert result.exit_code == 0, result.stderr
    data: list[dict[str, Any]] = json.loads(result.stdout)
    return data


def profile(root: Path, kernel: str, page: str, **axes: str) -> None:
    """Puts a source page of an H200 into a project, as a profile of a variant on sm_90a."""
    loaded = project.load(root)
    point: Point = {**axes}
    (evidence,) = pages.read((DATA / page).read_text(), page)
    arm = begin(loaded.variant(kernel, "sm_90a", point))
    arm = msgspec.structs.replace(arm, profiled=evidence)
    run = Profile(version=1, run="20261122T000000Z", provenance="imported", created="", arm=arm)
    profiles.write(root, run)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """This repository's kernels and builds, where a test may add profiles."""
    (ROOT / build.CACHE).mkdir(exist_ok=True)
    for name in ("variants", "experiments.yaml", build.CACHE):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_the_line_with_the_bank_conflicts_comes_first(kx: Kx) -> None:
    result = kx("lines", "transpose@sm_90a", "--set", "layout=plain", "--by", "conflicts")
    assert result.exit_code == 0
    assert "1 of 1 line, by conflicts (emulated on SASS); 5,952 in all." in result.stdout
    (answer,) = re.findall(r"\n(.*)\n *transpose.cu:\d+  (.*)", result.stdout)
    assert "5,952  ████████████ 100%" in answer[0]
    assert answer[1].startswith("y[size_t{first_column + column} * rows + first_row")


@pytest.mark.slow
def test_without_conflicts_no_line_has_any(kx: Kx) -> None:
    (result,) = lines(kx, "transpose@sm_90a", "--by", "conflicts")
    assert result["lines"] == []
    shown = kx("lines", "transpose@sm_90a", "--by", "conflicts").stdout
    assert "No line has conflicts (emulated on SASS)." in shown


def test_nothing_is_wider_than_80_columns_and_all_is_words_without_colour(kx: Kx) -> None:
    result = kx("lines", "transpose@sm_90a", "--set", "layout=plain", "--source", "--top", "0")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\x1b" not in result.stdout


def test_sass_is_shown_under_its_line_with_its_pipe(kx: Kx) -> None:
    result = kx(
        "lines", "transpose@sm_90a", "--set", "layout=plain", "--source", "--by", "conflicts"
    )
    below = result.stdout.partition("transpose.cu:59")[2]
    assert re.search(r"\n +00370  lsu      LDS R7, \[R16\] ", below)
    assert re.search(r"\n +offset pipe +SASS +executed +stalls", below)


def test_json_has_every_figure_of_every_line_that_is_shown(kx: Kx) -> None:
    (result,) = lines(
        kx,
        "transpose@sm_90a",
        "--set",
        "layout=plain",
        "--source",
        "--top",
        "1",
        "--by",
        "wavefronts",
    )
    (line,) = result["lines"]
    assert (line["file"], line["line"]) == ("variants/transpose/transpose.cu", 59)
    assert line["figures"]["wavefronts"] == 6144
    assert line["emulated"]["sass__inst_executed_global_stores"] == 192
    assert len(line["instructions"]) == line["figures"]["sass"]
    assert {instruction["pipe"] for instruction in line["instructions"]} == {
        "lsu",
        "alu",
        "fma",
        "none",
    }


def test_markdown_is_a_table_with_the_source(kx: Kx) -> None:
    result = kx("lines", "transpose@sm_90a", "--set", "layout=plain", "--markdown")
    assert "| line " in result.stdout
    assert re.search(r"\| transpose.cu:59 +\| y\[size_t\{first_column .*6,144", result.stdout)


def test_any_counter_ranks_by_its_own_name_and_another_word_is_refused(kx: Kx) -> None:
    counter = "memory_l1_tag_requests_global"
    (answer,) = lines(kx, "transpose@sm_90a", "--by", counter)
    assert {line["emulated"][counter] for line in answer["lines"]} == {192}
    result = kx("lines", "transpose@sm_90a", "--by", "conflict")
    assert result.exit_code == errors.USAGE
    assert "did you mean 'conflicts'" in result.stderr


def test_stalls_are_of_the_latest_profile_and_each_instruction_has_its_own(
    kx: Kx, copy: Path
) -> None:
    page = "source-transpose-plain.csv"
    profile(copy, "transpose", page, layout="plain")
    arguments = ("transpose@sm_90a", "--set", "layout=plain")
    (result,) = lines(kx, *arguments, "--source", cwd=copy)
    assert (result["by"], result["profile_is_of_this_build"]) == ("stalls", True)
    by_line = {line["line"]: line["figures"]["stalls"] for line in result["lines"]}
    # ncu sums them so by line, but for line 59, where it adds those of line 41, inlined there.
    assert by_line == {59: 30312, 53: 28618, 47: 16070, 61: 6851, 48: 784, 41: 196, 45: 80, 55: 72}
    load = next(
        instruction
        for instruction in result["lines"][0]["instructions"]
        if "LDS R7" in instruction["text"]
    )
    assert load["profiled"]["stall_barrier"] > 10000
    shown = kx("lines", *arguments, cwd=copy).stdout
    assert "barrier 47%, mio 23%" in shown


def test_the_roles_of_a_specialised_kernel_have_their_own_code_and_names(
    kx: Kx, specialised: Path
) -> None:
    (result,) = lines(kx, "scale@sm_90a", cwd=specialised)
    roles = {role["role"]: role for role in result["roles"]}
    assert {name: item["warps"] for name, item in roles.items() if item["warps"]} == {
        "load": [0],
        "warps 1-5": [1, 2, 3, 4, 5],
        "multiply": [6, 7],
    }
    loaded, stored = roles["load"]["emulated"], roles["multiply"]["emulated"]
    assert loaded["sass__inst_executed_global_loads"] == 128
    assert stored["sass__inst_executed_global_stores"] == 128
    assert "sass__inst_executed_global_stores" not in loaded
    assert roles["shared"]["figures"]["barriers"] == 16 * 8


@pytest.mark.slow
def test_a_role_is_shown_alone_by_name_or_by_warps(kx: Kx, specialised: Path) -> None:
    # ptxas computes part of the line for all warps.
    result = ("scale@sm_90a", "--isa", "ptx", "--by", "sectors")
    by_name, by_warps = (
        lines(kx, *result, "--role", role, cwd=specialised) for role in ("load", "warp 0")
    )
    assert by_name == by_warps
    (line,) = by_name[0]["lines"]
    assert line["text"] == "if (inside(first + i, count)) tile[i] = x[first + i];"
    assert line["roles"] == ["load"]


def test_a_role_that_there_is_not_is_refused_with_those_there_are(
    kx: Kx, specialised: Path
) -> None:
    result = kx("lines", "scale@sm_90a", "--role", "mutiply", cwd=specialised)
    assert result.exit_code == errors.USAGE
    assert "did you mean 'multiply'? Known: load, warps 1-5, multiply." in result.stderr


def test_without_an_emulation_roles_are_left_out_and_the_rest_is_shown(kx: Kx, scale: Path) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text()
    source.write_text(text.replace("y[i] = v;", 'asm volatile("pmevent 1;"); y[i] = v;'))
    result = kx("lines", "scale@sm_90a", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "Not emulated." in result.stdout
    assert "lines, by sass (built)" in result.stdout
    assert "No roles: they come from an emulation" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "wanted"),
    [
        ("sm_100a", {"load": [0], "mma": [1], "epilogue": [2, 3, 4, 5, 6]}),
        pytest.param(
            "sm_90a",
            {"multiply": [0, 1, 2, 3, 4, 5, 6, 7], "load": [8], "warps 9-11": [9, 10, 11]},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_roles_of_the_gemm_are_those_of_its_barrier_picture(
    kx: Kx, copy: Path, arch: str, wanted: dict[str, list[int]]
) -> None:
    if arch == "sm_90a":
        profile(copy, "patch_embed_gemm", "source-patch-embed-gemm.csv")
    (result,) = lines(kx, f"patch_embed_gemm@{arch}", "--top", "0", cwd=copy)
    assert {role["role"]: role["warps"] for role in result["roles"] if role["warps"]} == wanted
    figures = {role["role"]: role["figures"] for role in result["roles"]}
    assert figures["load"]["tma_sectors"] == 73728 if arch == "sm_100a" else 67584
    assert figures["load"]["wavefronts"] == 0
    if arch == "sm_90a":
        assert result["profile_is_of_this_build"]
        assert figures["multiply"]["stalls"] > 5 * figures["load"]["stalls"] > 0
        assert figures["warps 9-11"]["stalls"] == 0


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_is_as_long_as_its_share(share: float, width: int) -> None:
    drawn = bar(share, width)
    assert len(drawn) == width
    length = drawn.count("█") + sum(" ▏▎▍▌▋▊▉".index(c) / 8 for c in drawn if c not in "█ ")
    assert abs(length - share * width) <= 1 / 16
