"""A machine's fault is never said of a variant, and a variant's never of the machine."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from compilers import SOURCE, BuildOne, Plant, Wrap, build_each, default, edit_file

from kernelexp.evidence.build import Diagnostic, first_error
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system.toolchain import Toolchain

BODY = "    y[i] = v;"


def is_nothing_kept(scale: Path) -> bool:
    return not os.listdir(scale / ".kernelexp/build/manifests")


@pytest.mark.parametrize(
    ("program", "script"),
    [
        ("nvvm/bin/cicc", "kill -9 $$"),
        pytest.param("nvvm/bin/cicc", "kill -15 $$", marks=pytest.mark.slow),
        pytest.param("nvvm/bin/cicc", "exit 1", marks=pytest.mark.slow),
        pytest.param("nvvm/bin/cicc", "exit 0", marks=pytest.mark.slow),
        ("bin/ptxas", "kill -9 $$"),
        pytest.param("bin/ptxas", "exit 0", marks=pytest.mark.slow),
        ("bin/cuobjdump", "kill -9 $$"),
        pytest.param("bin/cuobjdump", "kill -11 $$", marks=pytest.mark.slow),
        pytest.param("bin/nvdisasm", "kill -9 $$", marks=pytest.mark.slow),
    ],
)
def test_a_tool_that_is_killed_or_silent_is_the_machine_s_fault(
    scale: Path, build_one: BuildOne, planted: Plant, program: str, script: str
) -> None:
    built = build_one(using=planted(program, script))
    assert isinstance(built.fault, EnvironmentFault), built.log
    assert "scale@sm_90a: width=1, order=forward" in str(built.fault)
    assert is_nothing_kept(scale)


@pytest.mark.parametrize(("number", "words"), [(9, "Killed signal"), (11, "crashed twice")])
def test_a_preprocessor_that_is_killed_and_one_that_crashes(
    tmp_path: Path,
    scale: Path,
    build_one: BuildOne,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    words: str,
) -> None:
    mark, passes = tmp_path / "from-now-on", tmp_path / "passes"
    passes.mkdir()
    real = subprocess.run(["gcc", "-print-prog-name=cc1plus"], capture_output=True, text=True)
    script = f'#!/bin/sh\n[ -e {mark} ] && kill -{number} $$\nexec {real.stdout.strip()} "$@"\n'
    (passes / "cc1plus").write_text(script)
    (passes / "cc1plus").chmod(0o755)
    monkeypatch.setenv("COMPILER_PATH", str(passes))
    assert build_one().ok
    mark.touch()
    edit_file(scale, SOURCE, BODY, f"{BODY} // again")
    built = build_one()
    assert (built.ok, built.fault is None) == (False, number == 11)
    assert words in str(built.fault or built.log)


def test_a_crash_is_given_one_more_try(
    tmp_path: Path, scale: Path, build_one: BuildOne, planted: Plant, tools: Toolchain
) -> None:
    cicc = f"{Path(tools.nvcc).parents[1]}/nvvm/bin/cicc"
    once = f'[ -e {tmp_path}/crashed ] && exec {cicc} "$@"\ntouch {tmp_path}/crashed; kill -11 $$'
    assert build_one(using=planted("nvvm/bin/cicc", once)).ok


def test_a_compiler_that_crashes_twice_does_not_build_the_variant(
    build_one: BuildOne, planted: Plant
) -> None:
    built = build_one(using=planted("nvvm/bin/cicc", "kill -11 $$"))
    assert (built.ok, built.fault) == (False, None)
    assert "nvcc: the compiler crashed twice; it was ended by SIGSEGV." in built.log


@pytest.mark.parametrize("megabytes", [70, 115])
def test_a_compiler_without_memory_is_the_machine_s_fault(
    scale: Path, build_one: BuildOne, planted: Plant, tools: Toolchain, megabytes: int
) -> None:
    """cicc without memory crashes, or says so as of a line of the source."""
    cicc = f"{Path(tools.nvcc).parents[1]}/nvvm/bin/cicc"
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, limits[1]))
    try:
        limited = f'ulimit -v {megabytes}000; exec {cicc} "$@"'
        built = build_one(using=planted("nvvm/bin/cicc", limited))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert built.fault, built.log
    assert is_nothing_kept(scale)


def test_a_host_compiler_that_is_missing_is_a_sentence(
    build_one: BuildOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    with pytest.raises(EnvironmentFault, match="nvcc needs a host compiler"):
        build_one()


def test_a_folder_for_temporary_files_that_is_missing_does_no_harm(
    build_one: BuildOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert build_one().ok


def test_one_variant_that_the_machine_fails_stops_no_other(scale: Path, wrap: Wrap) -> None:
    tools = wrap('case "$*" in *-DBAD*) kill -9 $$;; esac\nexec {nvcc} "$@"')
    bad, good = build_each(scale, [default(scale, "-DBAD"), default(scale)], tools)
    assert "nvcc was ended by SIGKILL" in str(bad.fault)
    assert good.ok


def test_a_compiler_past_its_limit_is_a_sentence_with_variant_and_option(
    scale: Path, wrap: Wrap
) -> None:
    (built,) = build_each(scale, [default(scale)], wrap("exec sleep 1000"), timeout_s=0.5)
    assert isinstance(built.fault, TimeoutError)
    assert str(built.fault) == (
        "scale@sm_90a: width=1, order=forward: nvcc ran past the limit of 0.5 s for a step of a "
        "build: give it more with --limit build=20m."
    )


WRONG = {
    "undefined": (BODY, "    y[i] = w;", Diagnostic(
        file=SOURCE, line=21, message='identifier "w" is undefined')),
    "static_assert": (BODY, '    static_assert(WIDTH == 3, "three");', Diagnostic(
        file=SOURCE, line=21, message='static assertion failed with "three"')),
    "include": ('"vector.cuh"', '"nowhere.cuh"', Diagnostic(
        file=SOURCE, line=3, message="nowhere.cuh: No such file or directory")),
    "#error": (BODY, "#error no space left on device", Diagnostic(
        file=SOURCE, line=21, message="#error no space left on device")),
    "PTX": (BODY, '    asm volatile("foo.bar;");', Diagnostic(
        file="", line=0, message="Unknown modifier '.bar'")),
    "shared memory": (BODY, "    __shared__ float s[100000]; s[i] = factor; __syncthreads();"
                      " v.at[0] = s[i + 1]; y[i] = v;", Diagnostic(
        file="", line=0,
        message="Entry function 'scale' uses too much shared data (0x61a80 bytes, 0x38c00 max)")),
    "extern": (BODY, "    extern __device__ float g(float); v.at[0] = g(factor); y[i] = v;",
               Diagnostic(file="", line=0, message="Unresolved extern function 'g'")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_the_compiler_diagnoses_does_not_build_with_its_first_error(
    scale: Path, build_one: BuildOne, name: str
) -> None:
    text, instead, diagnostic = WRONG[name]
    edit_file(scale, SOURCE, text, instead)
    built = build_one()
    assert (built.ok, built.fault) == (False, None)
    assert first_error(built.log) == diagnostic
    assert ".kernelexp" not in built.log


def test_flags_that_nvcc_refuses_do_not_build(build_one: BuildOne) -> None:
    built = build_one("--nonsense")
    assert (built.ok, built.fault) == (False, None)
    assert first_error(built.log) == Diagnostic(
        file="", line=0, message="Unknown option '--nonsense'"
    )


@pytest.mark.parametrize(
    "words",
    [
        "../include/driver_types.h(3420): catastrophic error: out of memory\n  x\n  ^\n",
        "ptxas fatal   : Memory allocation failure",
        "ptxas fatal   : Output file '/nowhere/x' could not be opened",
        "<built-in>: fatal error: when writing output to /x.ii: No space left on device",
        "nvcc fatal   : Could not open output file '/nowhere/tmpxft_00001532_0000000a'",
        "nvcc fatal   : Failed to preprocess host compiler properties.",
        "include/crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc 99",
        "x.cu:1:10: fatal error: y.cuh: Permission denied",
        "",
    ],
)
def test_words_of_the_machine_are_no_error_of_the_source(words: str) -> None:
    assert first_error(words) is None


def test_the_types_of_arguments_that_fit_no_function_belong_to_the_error() -> None:
    words = (
        'k.cu(3): error: no instance of overloaded function "store" matches the argument list\n'
        "            argument types are: (float *, int)\n  store(y, 1);\n"
    )
    assert first_error(words) == Diagnostic(
        file="k.cu", line=3,
        message='no instance of overloaded function "store" matches the argument list '
        "(argument types are: (float *, int))",
    )  # fmt: skip
