"""Config headers, read by the host compiler before anything is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Kx, edit

from kernelexp import project
from kernelexp.model import errors
from kernelexp.model.errors import ConfigurationError
from kernelexp.project.problem.consult import FOLDER, Configured, configure, fill

HEADER = """#pragma once
#include "export.cuh"
#include "limits.cuh"
struct Config {
  static constexpr unsigned WIDTH = KX_WIDTH;
  static constexpr unsigned STAGES = KX_WIDTH * FACTOR;
  static constexpr unsigned SMEM_BYTES = STAGES * 65536;
  static_assert(WIDTH != 1, "a width of 1 is "
                            "none, says the header: really");
  static_assert(SMEM_BYTES <= 227 * 1024, "a CTA has at most 232,448 bytes of shared memory");
};
KX_EXPORT(threads, 256);
KX_EXPORT(dynamic_smem_bytes, Config::SMEM_BYTES);
KX_EXPORT(nothing, 0);
"""
TERMS = {"dynamic_smem_bytes": "{Config::STAGES} stages x 65,536 B + {Config::WIDTH - 2} B"}


@pytest.fixture
def with_config(scale: Path) -> Path:
    """The project `scale` with a config header, of which its source knows nothing."""
    folder = scale / "variants/scale"
    (folder / "config.cuh").write_text(HEADER)
    (folder / "limits.cuh").write_text("constexpr unsigned FACTOR = 1;\n")
    edit(scale, "source: scale.cu", "source: scale.cu\n        config: config.cuh")
    problem = folder / "problem.py"
    before, _, rest = problem.read_text().partition("def budget(")
    problem.write_text(f"TERMS = {TERMS}\n{before}{rest.partition(chr(10) * 3)[2]}")
    return scale


def read(root: Path, width: int, terms: dict[str, str] | None = None) -> Configured:
    variant = project.load(root).variant("scale", "sm_90a", {"width": width})
    (result,) = configure(root, [variant], [terms or {}])
    return result


def test_exports_are_read_a_0_too(with_config: Path) -> None:
    result = read(with_config, 2, TERMS)
    assert result.exports == {"dynamic_smem_bytes": 131_072, "nothing": 0, "threads": 256}
    assert result.terms == {"dynamic_smem_bytes": "2 stages x 65,536 B"}
    assert (result.refusals, result.failure) == ((), "")


def test_an_assertion_is_a_refusal_beside_the_exports(with_config: Path) -> None:
    result = read(with_config, 1)
    assert result.refusals == ("a width of 1 is none, says the header: really",)
    assert result.exports["dynamic_smem_bytes"] == 65_536


def test_a_header_that_changed_is_read_again_and_others_are_not(
    with_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(with_config, 2)
    (with_config / "variants/scale/limits.cuh").write_text("constexpr unsigned FACTOR = 0;\n")
    second = read(with_config, 2)
    assert second.exports["dynamic_smem_bytes"] == 0 != first.exports["dynamic_smem_bytes"]
    compiler = with_config / "nothing"
    monkeypatch.setattr(
        "kernelexp.project.problem.consult._compile", lambda *_: pytest.fail(str(compiler))
    )
    assert read(with_config, 2) == second


def test_an_entry_of_the_cache_that_is_cut_off_is_made_anew(with_config: Path) -> None:
    first = read(with_config, 2)
    (entry,) = (with_config / FOLDER).iterdir()
    entry.write_bytes(entry.read_bytes()[:40])
    assert read(with_config, 2) == first


def test_a_header_that_is_not_plain_c_says_what_the_compiler_said(with_config: Path) -> None:
    (with_config / "variants/scale/limits.cuh").write_text("constexpr uint4 FACTOR;\n")
    result = read(with_config, 2)
    assert "limits.cuh:1:11: error: 'uint4'" in result.failure
    assert result.exports == {}


def test_a_term_that_does_not_compile_is_named(with_config: Path) -> None:
    assert read(with_config, 2, {"threads": "{Config::NONE}"}).failure.startswith(
        "in TERMS of problem.py, <stdin>:2:"
    )


def test_a_config_that_is_not_there_is_a_fault_of_the_project(with_config: Path) -> None:
    (with_config / "variants/scale/config.cuh").unlink()
    with pytest.raises(ConfigurationError, match=r"there is no variants/scale/config\.cuh"):
        project.load(with_config)


def test_a_refused_variant_is_impossible_and_not_built(with_config: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--no-emulate", "--no-record", "--json", cwd=with_config)
    (ran,) = json.loads(result.stdout)
    assert not (with_config / ".kernelexp/build/build.ninja").exists()
    (candidate,) = ran["record"]["candidates"]
    assert candidate["verdict"] == {
        "status": "IMPOSSIBLE",
        "reason": "hardware_limit",
        "sentence": "Shared memory: 262,144 bytes needed (4 stages x 65,536 B + 2 B), 232,448 is "
        "the most that sm_90a has for a CTA.",
    }


def test_a_header_that_the_source_contradicts_refuses_the_variant(
    with_config: Path, kx: Kx
) -> None:
    result = kx("build", "scale:width=2", "--json", cwd=with_config)
    assert result.exit_code == errors.BUILD
    (judged,) = json.loads(result.stdout).values()
    assert judged["refused"]["reason"] == "contradiction"
    assert "says 131,072 dynamic_smem_bytes" in judged["refused"]["sentence"]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_summands_with_a_0_are_left_out(values: list[int]) -> None:
    names = [f"x{number}" for number in range(len(values))]
    term = " + ".join(f"{{{name}}} B" for name in names)
    shown = fill(term, dict(zip(names, values, strict=True)))
    assert shown == " + ".join(f"{value} B" for value in values if value)
