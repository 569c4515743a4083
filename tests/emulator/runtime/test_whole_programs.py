"""Whole programs, compiled and run on the emulator's CUDA runtime."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kept
import numpy as np
import pytest
from support import ROOT

from kernelexp.evidence.programs import library
from kernelexp.report.programs import to_junit, to_sarif
from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest, Executed
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.machine.memory import textures

pytestmark = pytest.mark.xdist_group("programs")  # One process compiles the program.

SOURCE = Path(__file__).parent / "mistakes.cu"
PLANTED = {
    "out-of-bounds": ("out-of-bounds", "fill_too_much"),
    "uninitialised": ("uninitialised-read", "add"),
    "race": ("race", "neighbours"),
    "kernel-after-free": ("use-after-free", "fill"),
    "double-free": ("double-free", ""),
    "wrong-free": ("wrong-free", ""),
    "copy-beyond": ("copy-out-of-bounds", ""),
    "copy-unwritten": ("uninitialised-copy", ""),
    "wrong-kind": ("wrong-direction", ""),
    "copy-unmapped": ("copy-out-of-bounds", ""),
    "past-block": ("copy-out-of-bounds", ""),
    "past-inside": ("copy-out-of-bounds", ""),
    "past-large-block": ("copy-out-of-bounds", ""),
    "early-read": ("host-race", ""),
    "early-write": ("host-race", ""),
    "device-read": ("host-access", ""),
    "read-after-free": ("use-after-free", ""),
    "too-many-threads": ("unseen-error", ""),
}
"""Word of the program: name of the finding, and its kernel; empty: a call of the host's."""


Ended = tuple[Executed, str]
"""A program that was run, and what it printed."""
Exec = Callable[..., Ended]


@pytest.fixture(scope="module")
def mistakes(usual_tools: Toolchain) -> Path:
    return kept.program([SOURCE], usual_tools)


@pytest.fixture
def run(mistakes: Path, tools: Toolchain) -> Exec:
    def run_with(word: str, **request: Any) -> Ended:
        with tempfile.TemporaryFile() as output:
            wanted = ExecRequest(argv=(str(mistakes), word), **request)
            executed = execution.execute(wanted, tools, ROOT, output=output.fileno())
            output.seek(0)
            return executed, output.read().decode()

    return run_with


def line_of(word: str) -> int:
    """Where main() makes the mistake."""
    lines = SOURCE.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if f'is("{word}")' in line)


def test_a_program_without_a_mistake_has_no_finding_and_its_own_output(run: Exec) -> None:
    executed, output = run("none")
    assert (executed.mistakes, executed.returncode) == ((), 0)
    # 2 * 99 + 1; 7 and two CTAs of 32 threads; 1 and the same.
    assert output == "199 71 65\n"


def test_blocks_of_malloc_may_be_copied_up_to_their_last_byte(run: Exec) -> None:
    assert run("whole-blocks")[0].mistakes == ()


@pytest.mark.parametrize("word", PLANTED)
def test_a_planted_mistake_is_the_only_finding_with_its_line(word: str, run: Exec) -> None:
    executed, _ = run(word)
    (result,) = executed.findings
    name, kernel = PLANTED[word]
    assert (result.name, result.kernel) == (name, kernel)
    assert (result.call if kernel else result.where) == f"mistakes.cu:{line_of(word)}"


def test_a_copy_of_bytes_without_a_value_says_so_and_not_who_failed_to_write(run: Exec) -> None:
    (result,) = run("copy-unwritten")[0].findings
    assert result.sentence.endswith(", none of which has a defined value.")


def test_a_bad_access_ends_all_that_follows_or_only_its_launch(run: Exec) -> None:
    for destroys, output in (("context", "0 0 65\n"), ("kernel", "199 71 65\n")):
        executed, printed = run("out-of-bounds", destroys=destroys)
        assert printed == output
        assert [finding.name for finding in executed.findings] == ["out-of-bounds"]


def test_a_bad_access_that_a_card_does_not_see_ends_nothing(run: Exec) -> None:
    executed, printed = run("past-tile")
    assert printed == run("none")[1]
    assert [finding.name for finding in executed.findings] == ["out-of-bounds"]


def test_a_finding_in_a_kernel_names_the_line_of_the_kernel(run: Exec) -> None:
    (result,) = run("out-of-bounds")[0].findings
    text = SOURCE.read_text().splitlines()[result.line - 1]
    assert text == "  if (i <= n) out[i] = i;"
    assert "just past the end of more (mistakes.cu:" in result.sentence


def test_a_host_that_has_waited_may_touch_what_a_kernel_wrote(run: Exec) -> None:
    executed, _ = run("late-read")
    assert executed.findings == ()


def test_a_function_of_the_host_is_called_behind_the_work_of_its_stream(run: Exec) -> None:
    assert run("callback")[0].findings == ()


def test_a_host_that_looks_at_a_flag_has_waited_for_what_came_before_it(run: Exec) -> None:
    executed, output = run("poll")
    assert (executed.findings, output.splitlines()[0]) == ((), "3")


def test_a_touch_of_the_host_names_the_work_that_it_does_not_wait_for(run: Exec) -> None:
    (result,) = run("early-read")[0].findings
    at = f"mistakes.cu:{line_of('early-read')}"
    assert result.sentence.startswith("the host reads byte 20 of pinned (mistakes.cu:")
    assert f"which launch 2 of fill, at {at}, writes" in result.sentence


def test_memory_that_is_not_freed_is_a_note(run: Exec) -> None:
    executed, _ = run("leak")
    (note,) = executed.mistakes
    assert (note.level, note.name) == ("note", "leak")


def test_an_exit_code_is_the_programs_own(run: Exec) -> None:
    assert run("failure")[0].returncode == 3


def test_a_graph_launches_its_kernel_each_time(run: Exec) -> None:
    executed, output = run("graph")
    assert output == f"{199 * 2**3} 71 65\n"
    launches = {kernel.kernel: kernel.launches for kernel in executed.kernels}
    assert next(count for name, count in launches.items() if "add" in name) == 3


def test_an_executable_graph_launches_what_its_node_was_changed_to(run: Exec) -> None:
    executed, output = run("changed-node")
    assert (output, executed.refused) == (f"{199 * 2} 71 65\n", "")


def test_a_cluster_of_16_ctas_needs_leave(run: Exec) -> None:
    executed, output = run("cluster")
    assert output == "cudaErrorInvalidClusterSize cudaSuccess 199 71 65\n"
    assert executed.findings == ()


def test_an_allocation_that_a_stream_captures_is_refused_by_name(run: Exec) -> None:
    assert run("memory-node")[0].refused.startswith("memory nodes of graphs are not supported")


def test_a_card_has_no_more_memory_than_the_machine_can_give(run: Exec) -> None:
    executed, output = run("memory")
    total, error = output.splitlines()[0].split()
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert 0 < int(total) <= machine // 2
    assert error == "cudaErrorMemoryAllocation"
    assert executed.findings == ()


def test_printf_of_a_kernel_comes_before_what_the_host_prints_later(run: Exec) -> None:
    _, output = run("printf")
    assert output.splitlines() == ["thread 0 says so", "thread 1 says so", "199 71 65"]


def test_a_cooperative_grid_waits_for_all(run: Exec) -> None:
    assert run("cooperative")[1].splitlines()[0] == "128 threads"


def test_a_kernel_writes_registered_memory_of_the_program(run: Exec) -> None:
    executed, output = run("registered")
    assert output.splitlines()[0] == (
        "cudaErrorInvalidValue cudaErrorHostMemoryAlreadyRegistered "
        "0 99 9 -1 1 -1 cudaErrorHostMemoryNotRegistered"
    )
    assert executed.findings == ()


def test_an_access_past_registered_memory_is_found(run: Exec) -> None:
    executed, _ = run("past-registered")
    (result,) = executed.findings
    assert (result.name, result.kernel) == ("out-of-bounds", "fill_too_much")


def test_only_kernels_that_are_named_are_judged(run: Exec) -> None:
    executed, _ = run("race", kernels=("count",))
    assert executed.findings == ()
    assert {kernel.kernel: kernel.judged for kernel in executed.kernels} == {
        "_Z4fillPfi": 0,
        "_Z10neighboursPf": 0,
        "_Z5countv": 1,
    }


def test_only_launches_that_are_named_are_judged(run: Exec) -> None:
    assert run("race", launches=((1, 1), (3, 9)))[0].findings == ()
    assert len(run("race", launches=((2, 2),))[0].findings) == 1


def test_the_first_launches_of_each_kernel_are_judged(run: Exec) -> None:
    executed, _ = run("race", per_kernel=1)
    assert [kernel.judged for kernel in executed.kernels] == [1, 1, 1]
    assert len(executed.findings) == 1


def test_a_launch_that_is_not_judged_ends_with_its_error(run: Exec) -> None:
    executed, output = run("ended", launches=((9, 9),))
    assert executed.findings == ()
    assert output.splitlines()[0] == "an illegal memory access was encountered"


def test_reports_for_code_hosts_name_file_and_line(run: Exec) -> None:
    executed, _ = run("race")
    (result,) = to_sarif(executed)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("race", "error")
    assert place["artifactLocation"]["uri"].endswith("mistakes.cu")
    assert place["region"]["startLine"] == executed.findings[0].line
    assert re.search(r'<testsuite [^>]*failures="1"', to_junit(executed))


def run_program(name: str, tools: Toolchain, *flags: str, words: Sequence[str] = ()) -> Ended:
    """A program without kernels of its own is C++: as CUDA it takes nvcc three times as long."""
    program = kept.program([Path(__file__).with_name(name)], tools, *flags)
    with tempfile.TemporaryFile() as output:
        request = ExecRequest(argv=(str(program), *words))
        executed = execution.execute(request, tools, ROOT, output=output.fileno())
        output.seek(0)
        return executed, output.read().decode()


def test_calls_of_cublas_are_computed_and_their_operands_checked(tools: Toolchain) -> None:
    executed, output = run_program("products.cpp", tools, "-lcublas")
    assert output == "47 calls\n"
    assert [finding.name for finding in executed.findings] == [
        *("uninitialised-copy", "uninitialised-copy", "copy-out-of-bounds")
    ]
    assert "cublasStrsm" in executed.computed


def test_products_of_cublaslt_have_biases_and_scalars_of_their_type(tools: Toolchain) -> None:
    executed, output = run_program("products_lt.cpp", tools, "-lcublasLt")
    assert output == "0 right\n0 14 20 30 44\n"
    assert executed.computed == ("cublasLtMatmul",)
    assert not executed.findings


def test_the_libraries_are_compiled_with_their_own_headers_where_nvidias_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cublas_v2.h").write_text("#error NVIDIA's\n")
    flags = [f"-I{tmp_path}", *library.headers()]
    monkeypatch.setattr(library, "headers", lambda: flags)
    source = library.SOURCES.parent / "cublasLt" / "cublasLt.cpp"
    argv = ["g++", "-std=c++17", "-fsyntax-only", *library.own_headers(), str(source)]
    assert processes.run(argv, timeout_s=60).stderr == ""


def test_calls_of_cusparse_are_computed_and_their_operands_checked(tools: Toolchain) -> None:
    executed, output = run_program("sparse.cpp", tools, "-lcusparse")
    assert output == "16 calls\n"
    assert [finding.name for finding in executed.findings] == [
        *("copy-out-of-bounds", "unsorted-indices")
    ]
    assert "cusparseSpGEMM_compute" in executed.computed


def test_calls_of_cufft_curand_and_nvrtc_are_computed(tools: Toolchain) -> None:
    libraries = ("-lcufft", "-lcurand", "-lnvrtc", "-lcuda")
    executed, output = run_program("transforms.cpp", tools, *libraries)
    assert output == "25 calls\n"
    assert executed.findings == ()
    assert executed.launches == 1


def test_the_drivers_functions_load_a_module_and_encode_a_tensor_map(
    tools: Toolchain, tmp_path: Path
) -> None:
    source, ptx = Path(__file__).with_name("driver.cu").read_text(), tmp_path / "driver.ptx"
    argv = [tools.nvcc, "-arch=sm_90a", "-ptx", "driver.cu"]
    ptx.write_bytes(kept.run(argv, {"driver.cu": source}, "driver.ptx"))
    executed, output = run_program("driver.cu", tools, "-lcuda", words=[str(ptx)])
    assert output == "0 wrong\n"
    assert (executed.returncode, executed.launches, executed.findings) == (0, 2, ())


def test_textures_and_surfaces_are_what_the_host_computes_of_them(tools: Toolchain) -> None:
    executed, output = run_program("textures.cu", tools)
    assert output == "0 of 7232 wrong\n"
    assert executed.returncode == 0
    assert [(finding.name, finding.line) for finding in executed.findings] == [
        *(("out-of-bounds", 22), ("out-of-bounds", 24))
    ]


def test_four_texels_have_the_weights_that_an_h100_gave_them() -> None:
    ones = np.ones(1, np.float32)
    sides = [
        [
            (ones, ones, np.float32(1 - part / 256) * ones),
            (ones, ones, np.float32(part / 256) * ones),
        ]
        for part in (128, 225)
    ]
    weights = textures.corner_weights(sides)
    texels = (0.7962979674339294, 0.18970520794391632, 0.012254118919372559, 0.7797667980194092)
    value = sum(float(weight[0]) * texel for weight, texel in zip(weights, texels, strict=True))
    assert value == pytest.approx(0.4776766002178192, abs=1e-7)


def test_device_code_of_several_files_is_linked(tools: Toolchain) -> None:
    folder = Path(__file__).parent / "linked"
    sources = (folder / "kernel.cu", folder / "other.cu")
    with tempfile.TemporaryFile() as output:
        request = ExecRequest(sources=sources, flags=("-rdc=true",))
        executed = execution.execute(request, tools, ROOT, output=output.fileno())
        output.seek(0)
        assert sorted(output.read().splitlines()) == [b"0 wrong, 42 counted", b"here", b"there"]
    assert (executed.returncode, executed.findings) == (0, ())


def test_ptx_is_executed_where_the_machine_code_beside_it_is_of_an_old_card(
    tools: Toolchain, tmp_path: Path
) -> None:
    (tmp_path / "old.cu").write_text(
        "__global__ void one(int* x) { *x = 1; }\n"
        "int main() { int *x, y; cudaMalloc(&x, 4); one<<<1, 1>>>(x);\n"
        "cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return y - 1; }\n"
    )
    make = "nvcc -gencode arch=compute_75,code=[sm_75,compute_75] old.cu -o old"
    executed = execution.execute(
        ExecRequest(make=make, argv=("./old",), folder=tmp_path), tools, ROOT
    )
    assert (executed.returncode, executed.refused, executed.launches) == (0, "", 1)


def test_a_kernel_whose_address_a_variable_holds_is_refused_by_its_relocation(
    tools: Toolchain, tmp_path: Path
) -> None:
    source = tmp_path / "held.cu"
    source.write_text(
        "__global__ void other(float* x) { *x = 2; }\n"
        "__device__ void (*held)(float*) = other;\n"
        "__global__ void use(float* x) { *x = held != nullptr; }\n"
        "int main() { float* x; cudaMalloc(&x, 4); use<<<1, 1>>>(x);\n"
        "  return cudaDeviceSynchronize(); }\n"
    )
    request = ExecRequest(argv=(str(kept.program([source], tools)),))
    executed = execution.execute(request, tools, ROOT)
    assert ".nv.global.init has a relocation of kind" in executed.refused
