"""Builds: by the real compiler, once for each identity."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from kernelexp import build, project
from kernelexp.errors import ConfigurationError
from kernelexp.model import Variant
from kernelexp.toolchain import Toolchain


@pytest.fixture
def counted(tools: Toolchain, tmp_path: Path) -> tuple[Toolchain, Path]:
    """A toolchain whose nvcc notes each start in a file before it compiles."""
    calls, wrapper = tmp_path / "calls", tmp_path / "nvcc"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {tools.nvcc} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    calls.touch()
    return msgspec.structs.replace(tools, nvcc=str(wrapper)), calls


def variants(root: Path, *widths: int) -> list[Variant]:
    loaded = project.load(root)
    return [loaded.variant("scale", "sm_90a", {"width": width}) for width in widths]


def test_a_variant_becomes_ptx_cubin_and_sass(scale: Path, tools: Toolchain) -> None:
    (built,) = build.build(scale, variants(scale, 4), tools)
    assert built.ok
    assert "ld.global.v4.b32" in built.ptx.read_text() or "v4.f32" in built.ptx.read_text()
    assert "LDG.E.128" in built.dump


def test_a_second_build_starts_no_compiler(scale: Path, counted: tuple[Toolchain, Path]) -> None:
    tools, calls = counted
    build.build(scale, variants(scale, 1, 2), tools)
    (again, _) = build.build(scale, variants(scale, 1, 2), tools)
    assert again.cached
    assert len(calls.read_text().splitlines()) == 2


def test_the_same_variant_twice_is_built_once(scale: Path, counted: tuple[Toolchain, Path]) -> None:
    tools, calls = counted
    build.build(scale, variants(scale, 1, 1), tools)
    assert len(calls.read_text().splitlines()) == 1


def test_a_changed_header_rebuilds_just_what_includes_it(
    scale: Path, counted: tuple[Toolchain, Path]
) -> None:
    tools, calls = counted
    other = scale / "variants/scale/other.cu"
    other.write_text((scale / "variants/scale/scale.cu").read_text())
    text = other.read_text().replace('#include "vector.cuh"\n', "")
    other.write_text(
        text.replace(
            "enum class", "template <int W> struct Vector { float at[W]; };\nenum class", 1
        )
    )
    (one,) = variants(scale, 1)
    both = [one, msgspec.structs.replace(one, source="variants/scale/other.cu")]
    build.build(scale, both, tools)
    header = scale / "variants/include/vector.cuh"
    header.write_text(header.read_text() + "// changed\n")
    rebuilt = build.build(scale, both, tools)
    assert [each.cached for each in rebuilt] == [False, True]
    assert len(calls.read_text().splitlines()) == 3


def test_flags_and_defines_and_compiler_version_make_the_identity(
    scale: Path, tools: Toolchain
) -> None:
    (one, two) = variants(scale, 1, 2)
    flagged = msgspec.structs.replace(one, flags=("--use_fast_math",))
    newer = msgspec.structs.replace(tools, version="99.0.0")
    identities = {each.identity for each in build.build(scale, [one, two, flagged], tools)}
    identities |= {each.identity for each in build.build(scale, [one], newer)}
    assert len(identities) == 4


def test_a_variant_that_fails_keeps_the_compiler_s_words_and_stops_no_other(
    scale: Path, tools: Toolchain
) -> None:
    (one, two) = variants(scale, 1, 2)
    broken = msgspec.structs.replace(one, flags=("-DTHREADS=oops=1",))
    failed, fine = build.build(scale, [broken, two], tools)
    assert (failed.ok, fine.ok) == (False, True)
    assert "error: expected" in failed.failure
    assert "variants/scale/scale.cu(" in failed.failure


def test_a_failed_build_is_tried_again(scale: Path, tools: Toolchain) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text()
    source.write_text(text + "oops\n")
    assert not build.build(scale, variants(scale, 1), tools)[0].ok
    assert not build.build(scale, variants(scale, 1), tools)[0].ok
    source.write_text(text)
    assert build.build(scale, variants(scale, 1), tools)[0].ok


def test_a_build_folder_cut_short_is_completed(scale: Path, tools: Toolchain) -> None:
    (first,) = build.build(scale, variants(scale, 1), tools)
    (first.folder / "complete").unlink()
    first.cubin.write_bytes(b"")
    (again,) = build.build(scale, variants(scale, 1), tools)
    assert again.ok
    assert again.cubin.stat().st_size > 0


def test_a_folder_with_spaces_and_dollars_builds(
    tmp_path: Path, scale: Path, tools: Toolchain
) -> None:
    odd = scale.rename(tmp_path / "a $b c:d")
    assert build.build(odd, variants(odd, 1), tools)[0].ok


def test_a_missing_include_of_ours_is_the_compiler_s_to_report(
    scale: Path, tools: Toolchain
) -> None:
    (scale / "variants/include/vector.cuh").unlink()
    (built,) = build.build(scale, variants(scale, 1), tools)
    assert "vector.cuh" in built.failure


def test_a_missing_source_is_a_sentence(scale: Path, tools: Toolchain) -> None:
    (one,) = variants(scale, 1)
    (scale / one.source).unlink()
    with pytest.raises(ConfigurationError, match=r"variants/scale/scale\.cu can't be read"):
        build.build(scale, [one], tools)
