"""Builds: by the real compiler, once for each identity."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from compilers import build_each

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.experiment import Variant
from kernelexp.system import toolchain
from kernelexp.system.live import Step
from kernelexp.system.toolchain import Toolchain


def variants(root: Path, *widths: int) -> list[Variant]:
    loaded = project.load(root)
    return [loaded.variant("scale", "sm_90a", {"width": width}) for width in widths]


def test_a_variant_becomes_ptx_cubin_and_sass(scale: Path, tools: Toolchain) -> None:
    (built,) = build_each(scale, variants(scale, 4), tools)
    assert built.ok
    artefacts = build.artefacts(scale, built.identity)
    assert "ld.global.v4.b32" in artefacts.ptx.read_text() or "v4.f32" in artefacts.ptx.read_text()
    assert "LDG.E.128" in artefacts.sass
    assert "Used 14 registers" in artefacts.ptxas_report


def test_the_same_variant_twice_is_built_once_and_a_second_build_starts_no_compiler(
    scale: Path, counted: tuple[Toolchain, Path]
) -> None:
    tools, calls = counted
    build_each(scale, variants(scale, 1, 1), tools)
    assert len(calls.read_text().splitlines()) == 1
    (again,) = build_each(scale, variants(scale, 1), tools)
    assert again.cached
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
    build_each(scale, both, tools)
    header = scale / "variants/include/vector.cuh"
    header.write_text(header.read_text() + "// changed\n")
    rebuilt = build_each(scale, both, tools)
    assert [item.cached for item in rebuilt] == [False, True]
    assert len(calls.read_text().splitlines()) == 3


def test_flags_and_defines_make_the_identity(scale: Path, tools: Toolchain) -> None:
    (one, two) = variants(scale, 1, 2)
    flagged = msgspec.structs.replace(one, flags=("--use_fast_math",))
    identities = {item.identity for item in build_each(scale, [one, two, flagged], tools)}
    assert len(identities) == 3


def test_a_variant_that_fails_keeps_the_compiler_s_words_and_stops_no_other(
    scale: Path, tools: Toolchain
) -> None:
    (one, two) = variants(scale, 1, 2)
    broken = msgspec.structs.replace(one, flags=("-DTHREADS=oops=1",))
    failed, fine = build_each(scale, [broken, two], tools)
    assert (failed.ok, fine.ok) == (False, True)
    assert "error: expected" in failed.log
    assert failed.log.startswith("nvcc:\nvariants/scale/scale.cu(")
    assert failed.log.count("error: expected") == 1


def test_a_failed_build_is_tried_again(scale: Path, tools: Toolchain) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text()
    source.write_text(text + "oops\n")
    assert not build_each(scale, variants(scale, 1), tools)[0].ok
    assert not build_each(scale, variants(scale, 1), tools)[0].ok
    source.write_text(text)
    assert build_each(scale, variants(scale, 1), tools)[0].ok


def test_a_folder_with_spaces_and_dollars_builds(
    tmp_path: Path, scale: Path, tools: Toolchain
) -> None:
    odd = scale.rename(tmp_path / "a $b c:d")
    assert build_each(odd, variants(odd, 1), tools)[0].ok


def test_a_missing_include_of_ours_is_the_compiler_s_to_report(
    scale: Path, tools: Toolchain
) -> None:
    (scale / "variants/include/vector.cuh").unlink()
    (built,) = build_each(scale, variants(scale, 1), tools)
    assert "vector.cuh" in built.log


def test_a_missing_source_is_a_sentence(scale: Path, tools: Toolchain) -> None:
    (one,) = variants(scale, 1)
    (scale / one.source).unlink()
    with pytest.raises(ConfigurationError, match=r"variants/scale/scale\.cu can't be read"):
        build_each(scale, [one], tools)


def test_every_fault_is_named_with_its_axis_or_flag_and_nothing_is_run(
    scale: Path, counted: tuple[Toolchain, Path]
) -> None:
    tools, calls = counted
    (one,) = variants(scale, 1)
    faulty = [
        msgspec.structs.replace(one, axes={"width": "$(touch PWNED)"}),
        msgspec.structs.replace(one, flags=("-Xcompiler=-O2;touch PWNED",)),
        msgspec.structs.replace(one, flags=("-I", "a`b`")),
    ]
    with pytest.raises(ConfigurationError) as caught:
        build_each(scale, faulty, tools)
    assert [("axis width" in x, "-O2;touch" in x, "a`b`" in x) for x in caught.value.faults] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert not calls.read_text()
    assert not (scale / "PWNED").exists()


def test_a_define_may_hold_a_template_and_parentheses(scale: Path, tools: Toolchain) -> None:
    (one,) = variants(scale, 1)
    typed = msgspec.structs.replace(one, flags=("-DTYPE=Vector<(1+1)>", "-D", "OTHER=a&b"))
    assert build_each(scale, [typed], tools)[0].ok


def test_progress_begins_before_any_work_and_names_the_variant(
    scale: Path, tools: Toolchain
) -> None:
    result: list[Step] = []
    build_each(scale, variants(scale, 1, 2), tools, on_progress=result.append)
    assert (result[0].done, result[0].total, result[0].now) == (0, 2, "")
    assert (result[-1].done, result[-1].total) == (2, 2)
    assert {step.now for step in result[1:-1]} == {
        f"scale@sm_90a: width={width}, order=forward" for width in (1, 2)
    }


def test_a_project_that_was_copied_keeps_its_identities_and_its_builds(
    tmp_path: Path, scale: Path, tools: Toolchain
) -> None:
    (first,) = build_each(scale, variants(scale, 1), tools)
    copy = Path(shutil.copytree(scale, tmp_path / "elsewhere"))
    (result,) = build_each(copy, variants(copy, 1), tools)
    assert (result.identity, result.cached) == (first.identity, True)
    shutil.rmtree(copy / ".kernelexp")
    (anew,) = build_each(copy, variants(copy, 1), tools)
    assert (anew.identity, anew.cached) == (first.identity, False)
    ptx = [build.artefacts(item, first.identity).ptx.read_text() for item in (scale, copy)]
    assert ptx[0] == ptx[1]


def test_a_compiler_that_was_moved_makes_the_same_identity(
    scale: Path, tools: Toolchain, copied: Path, tmp_path: Path
) -> None:
    (here,) = build_each(scale, variants(scale, 1), tools)
    moved = toolchain.find(str(copied / "bin/nvcc"), tmp_path)
    (there,) = build_each(scale, variants(scale, 1), moved)
    assert there.identity == here.identity
