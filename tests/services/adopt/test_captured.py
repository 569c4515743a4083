"""A launch that was captured on a GPU becomes a kernel."""

from __future__ import annotations

import struct
from pathlib import Path

import captured
import kept
import pytest
from support import Kx

from kernelexp.model import errors
from kernelexp.system.toolchain import Toolchain

TYPED = captured.SAXPY.replace('extern "C" ', "")
SYMBOL = "_Z5saxpyf4ViewPf"
UNTYPED = """
extern "C" __global__ void copy(unsigned long long from, unsigned long long to, int n) {
  if (threadIdx.x < n) ((int*)to)[threadIdx.x] = ((const int*)from)[threadIdx.x];
}
"""


@pytest.fixture
def project(kx: Kx, same_path: Path) -> Path:
    assert kx("init", "p", "--empty", cwd=same_path).exit_code == errors.OK
    kept.share_builds(same_path / "p")
    return same_path / "p"


def test_its_memory_and_its_arguments_are_kept_and_it_is_emulated(
    kx: Kx, project: Path, tools: Toolchain
) -> None:
    cubin = captured.compile_cubin(tools, TYPED)
    captured.write_saxpy(project.parent / "c", cubin, SYMBOL)
    result = kx("adopt", "--from-program", "../c", "--as", "sax", cwd=project)
    assert result.exit_code == errors.OK
    assert "p2 correct, all 100 elements" in result.output
    problem = (project / "variants/sax/problem.py").read_text()
    assert "blank(" not in problem
    assert 'Scalar(type="f32", value=1.5)' in problem
    assert 'Field(offset=0, value=Pointer(array="p1_0"))' in problem
    assert "captured on NVIDIA H200" in (project / "experiments.yaml").read_text()


def test_an_address_without_a_type_is_an_array_of_bytes(
    kx: Kx, project: Path, tools: Toolchain
) -> None:
    cubin = captured.compile_cubin(tools, UNTYPED)
    parameters = [
        *(struct.pack("<Q", address) for address in (captured.X, captured.Y)),
        struct.pack("<i", 16),
    ]
    one, other = bytes(range(64)), bytes(64)
    regions = [(captured.X, one, one), (captured.Y, other, one)]
    captured.write(project.parent / "c", cubin, "copy", parameters, regions)
    result = kx("adopt", "--from-program", "../c", cwd=project)
    assert result.exit_code == errors.OK
    assert "p1 correct, all 64 elements" in result.output
    text = (project / "variants/copy/problem.py").read_text()
    assert '"p1": Array(shape=(64,), dtype="u8")' in text
    assert "rtol=0" in text


def test_a_signature_says_the_types_that_a_name_lacks(
    kx: Kx, project: Path, tools: Toolchain
) -> None:
    cubin = captured.compile_cubin(tools, captured.SAXPY)
    captured.write_saxpy(project.parent / "c", cubin)
    words = ("--signature", "float a, View x, float* y")
    result = kx("adopt", "--from-program", "../c", *words, cwd=project)
    assert result.exit_code == errors.OK
    assert "y correct, all 100 elements" in result.output


def test_a_variable_that_the_program_has_set_is_named(
    kx: Kx, project: Path, tools: Toolchain
) -> None:
    cubin = captured.compile_cubin(tools, TYPED)
    captured.write_saxpy(project.parent / "c", cubin, SYMBOL, twice=3.0)
    result = kx("adopt", "--from-program", "../c", cwd=project)
    assert result.exit_code == errors.USAGE
    assert "the program has set twice, a variable" in " ".join(result.output.split())


def test_a_launch_that_left_other_bytes_is_told(kx: Kx, project: Path, tools: Toolchain) -> None:
    cubin = captured.compile_cubin(tools, TYPED)
    captured.write_saxpy(project.parent / "c", cubin, SYMBOL)
    after = bytearray((project.parent / "c/2.after").read_bytes())
    after[512 + 4 * 70 + 3] ^= 0x40
    (project.parent / "c/2.after").write_bytes(after)
    result = kx("adopt", "--from-program", "../c", cwd=project)
    assert result.exit_code == errors.WRONG_RESULT


def test_a_launch_that_changed_nothing_is_refused(kx: Kx, project: Path, tools: Toolchain) -> None:
    cubin = captured.compile_cubin(tools, TYPED)
    same = bytes(512)
    captured.write(
        project.parent / "c",
        cubin,
        SYMBOL,
        [bytes(4), bytes(16), bytes(8)],
        [(captured.X, same, same)],
    )
    result = kx("adopt", "--from-program", "../c", cwd=project)
    assert result.exit_code == errors.USAGE
    assert "capture the first one of its kernel" in " ".join(result.output.split())
    assert not (project / "variants/saxpy").exists()


def test_what_an_option_can_not_change_is_refused(kx: Kx, project: Path, tools: Toolchain) -> None:
    cubin = captured.compile_cubin(tools, TYPED)
    captured.write_saxpy(project.parent / "c", cubin, SYMBOL)
    result = kx("adopt", "--from-program", "../c", "--axis", "N=1,2", cwd=project)
    assert result.exit_code == errors.USAGE
    assert "leave out --axis" in " ".join(result.output.split())
