"""kernelexp compare --audit: its sections, and what it says where there is no evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from support import ROOT, Kx

from kernelexp.model import errors


def test_a_published_step_gives_the_tables_of_its_own_audit(kx: Kx) -> None:
    text = kx("audit", "c32ab7a", "--against", "cefc59d", "--markdown").stdout
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert {
        "| This variant: phase2_unroll=4 | 0.633 | 1729 | published |",
        "| Compared with: store=direct_v8 | 0.700 | 1564 | published |",
        "| cefc59d | 6 to 4 pipeline stages | 0.700 | 1564 | 216 | |",
        "| stages | 131,072 |",
        "| barriers | 128 |",
        "| buffers | 84,480 |",
        "| cuBLAS FP8, GEMM only | 0.365 | 3001 | published; per tensor, best of 8 algorithms |",
        "| Registers/thread | 216 | 222 |",
        "| Spills, B | 0 | 0 |",
        "| global stores: requests | 768 | 1,920 |",
        "| sectors per request | 32 | 12.8 |",
        "| fill of the lines, % | 25 | 100 |",
        "| stalls (published) | before | after | | change | |",
        "| mio throttle | 0 | 0.03 | % | new | |",
        "| selected (issuing) | 14.1 | 19.1 | % | +35.5% | better |",
        "| barrier | 0.8 | 0.8 | % | same | |",
        "| excessive L2 sectors, of all | 50 | 33 | % | -34.0% | better |",
        "| L2 throughput | 60 | 54 | % | -10.0% | |",
        "| global store instructions | 1,392,384 | 3,480,960 | | +150.0% | |",
        "| L1 hit rate | 61.7 | 33.6 | % | -45.5% | |",
    } <= rows
    assert "**9.6% faster** than store=direct_v8 (as published)." in rows
    assert "**24.2% faster** than cuBLAS, positional embedding apart." in rows
    assert text.count("TO WRITE") == 3


@pytest.mark.slow
def test_a_measured_variant_is_compared_with_its_own_baseline(
    scale: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGpu(tmp_path / "locks", monkeypatch).takes("{1: 1.0, 2: 1.0, 4: 0.9}[width]")
    kx("run", "S1", "--no-emulate", cwd=scale)
    text = " ".join(kx("audit", "S1", cwd=scale).stdout.split())  # with its baseline
    assert re.search(r" (9\.9|10\.[01])% faster than defaults \(interleaved in one run\)\.", text)
    assert "Verdict: IMPROVED." in text
    assert "Hypothesis (S1): Wider accesses need fewer instructions." in text
    assert "`kernelexp profile S1`, on a machine with one H200, supplies it." in text


def test_what_was_not_timed_names_the_command_that_times_it(scale: Path, kx: Kx) -> None:
    result = kx("audit", "S1", "--against", "scale@sm_90a:width=2", cwd=scale)
    text = " ".join(result.stdout.split())
    assert "No evidence: nothing was timed. An experiment with both variants" in text
    profile = "`kernelexp profile scale@sm_90a:width=2 scale@sm_90a:width=4`, on a machine"
    assert profile in text
    assert max(map(len, result.stdout.splitlines())) <= 80
    values = json.loads(kx("audit", "S1", "--against", "aaaaaaa", "--json", cwd=scale).stdout)
    assert (values["experiment"], values["time_ratio"]) == ("S1", None)
    assert values["smem_budget"]["limit of a CTA"] == 232448


def test_published_counters_are_not_compared_with_those_of_other_profiles(
    scale: Path, kx: Kx
) -> None:
    folder = scale / "logs/profiles"
    folder.mkdir(parents=True)
    for width, provenance in ((2, "published"), (4, "imported")):
        figures = {"lts__throughput.avg.pct_of_peak_sustained_elapsed": 10.0 * width}
        arm = {"kernel": "scale", "arch": "sm_90a", "axes": {"width": width, "order": "forward"}}
        profile = {"version": 1, "run": f"p-{width}", "provenance": provenance, "created": ""}
        profile["arm"] = {**arm, "profiled": {"entry": "scale", "figures": figures, "units": {}}}
        (folder / f"p-{width}.json").write_text(json.dumps(profile))
    result = kx("audit", "S1", "--against", "aaaaaaa", cwd=scale)
    assert "one profile is published, the other is not: counters are left out" in result.stdout
    assert "L2 throughput" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("S1:baseline",),
            "S1:baseline is not a candidate of an experiment, which would have a base",
        ),
        (("S1", "--against", "S1"), "S1 and S1 are the same variant: name another one."),
        (("S2", "--against", "S1"), "S2 has 2 candidates: write S2:1 or another."),
        (("S2:3", "--against", "S1"), "after the colon comes baseline or the number of a"),
        (("nothing", "--against", "S1"), "there is no kernel 'nothing'"),
        (("S1", "--against", "S2:1", "--json", "--markdown"), "--json and --markdown do not go"),
    ],
)
def test_a_mistake_is_a_sentence(
    arguments: tuple[str, ...], sentence: str, cold: Path, kx: Kx
) -> None:
    result = kx("audit", *arguments, cwd=cold)
    assert result.exit_code == errors.USAGE
    assert sentence in result.stderr


def test_variants_of_two_kernels_are_refused(kx: Kx) -> None:
    result = kx("audit", "transpose@sm_90a", "--against", "F3", cwd=ROOT)
    assert result.exit_code == errors.USAGE
    assert "are of different kernels or architectures" in result.stderr
