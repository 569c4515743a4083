"""Ways to get a build that is not of what is there now, each of which must not work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compilers import SOURCE, BuildOne, Plant, Wrap, edit_file, read_ptx

from kernelexp.system.toolchain import Toolchain

slow = pytest.mark.slow
NEXT_TO = '#include "export.cuh"'


@pytest.mark.parametrize(
    "include",
    [
        pytest.param("<figure.cuh>", id="brackets", marks=slow),
        pytest.param("FIGURE", id="macro"),
        pytest.param("/**/ <figure.cuh>", id="comment", marks=slow),
    ],
)
def test_a_header_is_seen_however_it_is_included(
    scale: Path, build_one: BuildOne, include: str
) -> None:
    header = scale / "variants/include/figure.cuh"
    header.write_text("constexpr float figure = 2.0f;\n")
    hidden = f'#define FIGURE "figure.cuh"\n#/**/include {include}\n'
    edit_file(scale, SOURCE, NEXT_TO, hidden + NEXT_TO)
    edit_file(scale, SOURCE, "each *= factor", "each *= figure")
    first = build_one()
    header.write_text("constexpr float figure = 3.0f;\n")
    second = build_one()
    assert not second.cached
    assert "0f40400000" in read_ptx(scale, second)  # 3.0
    assert first.identity != second.identity
    assert "variants/include/figure.cuh" in second.arm.files


@slow
def test_a_header_outside_of_the_project_is_seen(
    scale: Path, tmp_path: Path, build_one: BuildOne
) -> None:
    header = tmp_path / "outside.cuh"
    header.write_text("constexpr float figure = 2.0f;\n")
    edit_file(scale, SOURCE, NEXT_TO, f'#include "../../../outside.cuh"\n{NEXT_TO}')
    first = build_one()
    header.write_text("constexpr float figure = 3.0f;\n")
    assert build_one().identity != first.identity


@slow
def test_a_linked_folder_of_headers_is_seen(
    scale: Path, tmp_path: Path, build_one: BuildOne
) -> None:
    include, other = scale / "variants/include", tmp_path / "other"
    (tmp_path / "one").mkdir()
    include.rename(tmp_path / "one/include")
    include.symlink_to(tmp_path / "one/include")
    first = build_one()
    other.mkdir()
    for header in include.iterdir():
        (other / header.name).write_text(header.read_text() + "// other\n")
    include.unlink()
    include.symlink_to(other)
    second = build_one()
    assert second.identity != first.identity
    include.unlink()
    include.symlink_to(tmp_path / "one/include")
    third = build_one()
    assert (third.identity, third.cached) == (first.identity, True)


@slow
def test_a_header_of_a_flag_is_seen(scale: Path, build_one: BuildOne) -> None:
    forced = scale / "variants/forced.h"
    forced.write_text("#define FORCED 1\n")
    first = build_one("-include", "variants/forced.h")
    forced.write_text("#define FORCED 2\n")
    second = build_one("-include", "variants/forced.h")
    assert (second.cached, second.identity == first.identity) == (False, False)


@slow
def test_an_options_file_of_a_flag_is_seen(scale: Path, build_one: BuildOne) -> None:
    options = scale / "options"
    options.write_text("-DTHREADS_ARE=1")
    first = build_one("--options-file", "options")
    options.write_text("-DTHREADS_ARE=2")
    assert build_one("--options-file", "options").identity != first.identity


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVCC_APPEND_FLAGS", "-DX=1"),
        pytest.param("NVCC_PREPEND_FLAGS", "--use_fast_math", marks=slow),
        pytest.param("CUDAFE_FLAGS", "--diag_suppress=1", marks=slow),
        pytest.param("INCLUDES", "-DX=1", marks=slow),
    ],
)
def test_what_nvcc_reads_from_the_environment_is_seen(
    build_one: BuildOne, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    first = build_one()
    monkeypatch.setenv(name, value)
    second = build_one()
    assert (second.cached, second.identity == first.identity) == (False, False)


@pytest.mark.parametrize("name", ["CPATH", pytest.param("CPLUS_INCLUDE_PATH", marks=slow)])
def test_headers_that_the_environment_puts_first_are_seen(
    scale: Path, tmp_path: Path, build_one: BuildOne, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/figure.cuh").write_text("constexpr float figure = 2.0f;\n")
    edit_file(scale, SOURCE, NEXT_TO, f"#include <figure.cuh>\n{NEXT_TO}")
    monkeypatch.setenv(name, str(tmp_path / "there"))
    first = build_one()
    assert first.ok, first.log
    (tmp_path / "there/figure.cuh").write_text("constexpr float figure = 3.0f;\n")
    assert build_one().identity != first.identity


def test_a_wrapper_of_the_same_version_is_another_compiler(build_one: BuildOne, wrap: Wrap) -> None:
    first = build_one(using=wrap('exec {nvcc} "$@"'))
    second = build_one(using=wrap('exec {nvcc} --use_fast_math "$@"'))
    assert (second.cached, second.identity == first.identity) == (False, False)


@slow
def test_another_pass_of_the_same_compiler_is_another_compiler(
    scale: Path, build_one: BuildOne, planted: Plant, tools: Toolchain
) -> None:
    first = build_one()
    cicc = f"{Path(tools.nvcc).parents[1]}/nvvm/bin/cicc"
    second = build_one(using=planted("nvvm/bin/cicc", f'exec {cicc} "$@"'))
    assert second.ok, second.log
    assert (second.cached, second.identity == first.identity) == (False, False)


def test_a_header_that_comes_to_stand_before_another_is_seen(
    scale: Path, build_one: BuildOne
) -> None:
    first = build_one()
    vector = (scale / "variants/include/vector.cuh").read_text()
    (scale / "variants/scale/vector.cuh").write_text(vector + "// the nearer one\n")
    second = build_one()
    assert (second.cached, second.identity == first.identity) == (False, False)
    assert "variants/scale/vector.cuh" in second.arm.files


def test_a_header_that_is_passed_over_costs_one_build_and_no_more(
    scale: Path, build_one: BuildOne
) -> None:
    flags = ("-I", "variants/include", "-I", "variants/later")
    first = build_one(*flags)
    (scale / "variants/later").mkdir()
    (scale / "variants/later/vector.cuh").write_text("#error not this one\n")
    second = build_one(*flags)
    assert (second.ok, second.identity) == (True, first.identity)
    assert build_one(*flags).cached


@slow
def test_a_header_that_is_only_asked_for_is_seen(scale: Path, build_one: BuildOne) -> None:
    asking = '#if __has_include("optional.cuh")\n    factor = 2.0f;\n#endif\n    for (float&'
    edit_file(scale, SOURCE, "for (float&", asking)
    first = build_one()
    assert build_one().cached
    (scale / "variants/include/optional.cuh").write_text("")
    second = build_one()
    assert (second.cached, second.identity == first.identity) == (False, False)
    (scale / "variants/include/optional.cuh").unlink()
    assert build_one().identity == first.identity


@slow
def test_a_source_that_asks_and_then_does_not_build_says_why(
    scale: Path, build_one: BuildOne
) -> None:
    edit_file(scale, SOURCE, "for (float&", "#if __has_include(<none>)\n#endif\n    for (float&")
    assert build_one().ok
    edit_file(scale, SOURCE, "#if __has", "#error not now\n#if __has")
    built = build_one()
    assert (built.ok, built.fault) == (False, None)
    assert "#error not now" in built.log


@slow
def test_the_time_in_a_source_is_never_an_old_one(
    scale: Path, build_one: BuildOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = "KX_EXPORT(dynamic"
    edit_file(scale, SOURCE, export, f"KX_EXPORT(second, __TIME__[7]);\n{export}")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    first = build_one()
    assert build_one().cached
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "2")
    assert build_one().identity != first.identity


def test_a_source_that_goes_back_to_what_it_was_is_not_compiled_again(
    scale: Path, build_one: BuildOne
) -> None:
    text = (scale / SOURCE).read_text()
    first = build_one()
    (scale / SOURCE).write_text(text + "// longer\n")
    assert not build_one().cached
    (scale / SOURCE).write_text(text)
    third = build_one()
    assert (third.cached, third.identity) == (True, first.identity)


def test_a_source_that_is_edited_and_reverted_while_it_is_compiled_is_compiled_again(
    scale: Path, tmp_path: Path, build_one: BuildOne, wrap: Wrap
) -> None:
    source, old = scale / SOURCE, tmp_path / "old.cu"
    edited_once = wrap(
        f'[ -e {old} ] && exec {{nvcc}} "$@"\n'
        f"cp -p {source} {old}; sed -i s/factor/1.5f/ {source}\n"
        f'{{nvcc}} "$@"; code=$?\n'
        f"cat {old} > {source}; touch -r {old} {source}; exit $code"
    )
    assert "factor" in source.read_text()
    assert "0f3FC00000" not in read_ptx(scale, build_one(using=edited_once))  # 1.5
    assert build_one(using=edited_once).cached


@slow
def test_a_source_that_keeps_changing_is_a_sentence_and_leaves_nothing(
    scale: Path, build_one: BuildOne, wrap: Wrap
) -> None:
    built = build_one(using=wrap(f'{{nvcc}} "$@"; echo >> {scale}/{SOURCE}'))
    assert built.fault
    assert f"{SOURCE} kept changing during the build" in str(built.fault)
    folder = scale / ".kernelexp/build"
    assert {path.name for path in folder.iterdir()} <= {"lock-scale", "manifests"}
    assert not os.listdir(folder / "manifests")
