"""A kernel of which ptxas merges shared loads: SASS is counted, and counts of PTX say so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import kept
import pytest
from support import ROOT, Kx

from kernelexp.evidence import build

# Each thread reads the four words of its group one by one; their place is known to be aligned.
MERGED = """
#include "export.cuh"

constexpr int THREADS = 256;
KX_EXPORT(threads, THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);

extern "C" __global__ void __launch_bounds__(THREADS)
    scale(const float* x, float* y, float factor, int count) {
  __shared__ float tile[THREADS];
  const int i = blockIdx.x * THREADS + threadIdx.x;
  const float own = x[i];
  tile[threadIdx.x] = own;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += tile[threadIdx.x / 4 * 4 + k];
  y[i] = (own + 0.0f * sum) * factor;
}
"""
LOADS = 16
SENTENCE = "SASS loads 128 bits where PTX loads 4 x 32 (shared): expect 25% of these requests"
SUMMARY = (
    "counted on PTX, and ptxas merges shared loads on 1 line (scale.cu:16): requests, wavefronts "
    "and bank conflicts there will differ on a GPU."
)


@pytest.fixture(scope="module")
def merged(hashed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("merged") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(hashed, root / build.CACHE)
    kept.share_builds(root)
    (root / "variants/scale/scale.cu").write_text(MERGED)
    return root


def text(kx: Kx, *arguments: str, cwd: Path) -> str:
    result = kx(*arguments, cwd=cwd)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


@pytest.mark.slow
def test_emulate_says_which_lines_the_card_executes_otherwise(kx: Kx, merged: Path) -> None:
    page = text(kx, "emulate", "scale@sm_90a", "--isa", "ptx", "-v", cwd=merged)
    assert SUMMARY in page
    assert f"scale, scale.cu:{LOADS}: {SENTENCE}." in page
    assert "shared wavefronts (PTX)" in page
    assert "ptx__memory_l1_wavefronts_shared " in page
    assert " memory_l1_wavefronts_shared" not in page


def test_lines_says_so_at_the_line(kx: Kx, merged: Path) -> None:
    page = text(kx, "lines", "scale@sm_90a", "--isa", "ptx", cwd=merged)
    _, _, after = page.partition("scale.cu:16 for (int k")
    assert after.partition("scale.cu:")[0].count(SENTENCE) == 1
    markdown = text(kx, "lines", "scale@sm_90a", "--isa", "ptx", "--markdown", cwd=merged)
    assert "wavefronts (PTX)" in markdown
    assert SENTENCE in markdown


@pytest.mark.slow
def test_lines_as_json_has_the_widths(kx: Kx, merged: Path) -> None:
    (result,) = json.loads(kx("lines", "scale@sm_90a", "--json", cwd=merged).stdout)
    widths = {line["line"]: line["widths"] for line in result["lines"] if line["widths"]}
    assert widths == {
        LOADS: [
            {
                "file": "variants/scale/scale.cu",
                "line": LOADS,
                "what": "shared load",
                "ptx": {"32": 4},
                "sass": {"128": 1},
                "ratio": 0.25,
            }
        ]
    }


def test_lines_counts_what_ptxas_made_of_the_loads(kx: Kx, merged: Path) -> None:
    loads = "sass__inst_executed_shared_loads"
    counts = {}
    for isa, name in (("ptx", f"ptx__{loads}"), ("sass", loads)):
        shown = kx("lines", "scale@sm_90a", "--isa", isa, "--top", "0", "--json", cwd=merged)
        (result,) = json.loads(shown.stdout)
        assert result["isa"] == isa
        (line,) = [item for item in result["lines"] if item["line"] == LOADS]
        counts[isa] = line["emulated"][name]
    assert counts == {"ptx": 4 * 4096 // 32, "sass": 4096 // 32}


def test_opportunities_warns_of_no_widths_where_sass_was_counted(kx: Kx, merged: Path) -> None:
    assert "PTX" not in text(kx, "opportunities", "scale@sm_90a", cwd=merged)


def test_a_kernel_with_the_widths_of_its_ptx_gets_no_such_sentence(kx: Kx, scale: Path) -> None:
    page = text(kx, "emulate", "scale@sm_90a:width=4", cwd=scale)
    assert "global sectors" in page
    assert "ptxas" not in page
