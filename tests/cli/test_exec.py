"""The command `exec`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import kept
import pytest
from schemas import validate
from support import ROOT, Kx, wait_until

from kernelexp.evidence.programs import library
from kernelexp.model import errors
from kernelexp.system.toolchain import Toolchain

PROGRAM = """
#include <cstdio>
#include <cstdlib>
__global__ void fill(int* out, int n) {
  if (threadIdx.x <= n) out[threadIdx.x] = threadIdx.x;
}
int main(int, char** words) {
  int n = atoi(words[1]), last, *out;
  cudaMalloc(&out, 32 * sizeof(int));
  fill<<<1, 64>>>(out, n - 1);
  cudaMemcpy(&last, out + n - 1, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\\n", last);
  cudaFree(out);
}
"""

pytestmark = pytest.mark.xdist_group("exec")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exec") / "fill.cu"
    path.write_text(PROGRAM)
    return path


def compiled(text: str, folder: Path, tools: Toolchain) -> str:
    """A program linked with the emulator's runtime, where compiling it is not what is tested."""
    source = folder / "program.cu"
    source.write_text(text)
    return str(kept.program([source], tools))


def kernelexp(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "kernelexp", "exec", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_source_is_compiled_and_run_with_its_arguments(source: Path) -> None:
    done = kernelexp(str(source), "--", "32")
    assert (done.returncode, done.stdout) == (errors.OK, "31\n")
    assert "0 findings; 1 launch," in " ".join(done.stderr.split())


TEMPLATES = """
template <int N> __global__ void over(int* out) { out[threadIdx.x] = N; }
int main() {
  int* out;
  cudaMalloc(&out, 32 * sizeof(int));
  for (int i = 0; i < 2; ++i) over<1><<<1, 32>>>(out);
  over<2><<<1, 33>>>(out);
  cudaDeviceSynchronize(), cudaFree(out);
}
"""


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--kernel", "over<2>"), errors.WRONG_RESULT, "finding: out-of-bounds in over<2>"),
        (("--kernel", "over< 1 >"), errors.OK, "3 launches, 2 of them checked"),
        (
            ("--kernel", "over<1>", "--kernel", "ovre"),
            errors.USAGE,
            "templates launches no 'ovre', but over<1> (2), over<2> (1).",
        ),
        (
            ("--kernel", "over<1>", "--launches", "3-"),
            errors.USAGE,
            "nothing was checked: --launches leaves out every launch of over<1>.",
        ),
        (("--launches", "5-3"), errors.USAGE, "--launches '5-3': 5-3 ends before it begins."),
    ],
)
def test_a_selection_of_no_launch_is_no_success(
    tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    (tmp_path / "templates.cu").write_text(TEMPLATES)
    done = kernelexp("templates.cu", *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert sentence in " ".join(done.stderr.split())


def test_findings_are_printed_where_their_file_cannot_be_written(source: Path) -> None:
    done = kernelexp(str(source), "--sarif", "/proc/kx.sarif", "--", "40")
    assert done.returncode == errors.ENVIRONMENT
    assert "finding: out-of-bounds in fill" in done.stderr
    assert "error: /proc/kx.sarif can't be" in done.stderr


def test_a_report_goes_where_standard_output_goes(source: Path) -> None:
    done = kernelexp(str(source), "--sarif", "/dev/stdout", "--", "32")
    assert done.returncode == errors.OK, done.stderr
    printed, _, sarif = done.stdout.partition("\n")
    assert (printed, json.loads(sarif)["version"]) == ("31", "2.1.0")


def test_a_build_of_its_own_is_linked_with_the_emulators_runtime(
    source: Path, tmp_path: Path
) -> None:
    sarif = tmp_path / "found.sarif"
    make = f"nvcc -arch=sm_90a {source} -o fill"
    words = ("--json", "--sarif", str(sarif), "--make", make, "--", "./fill", "33")
    done = kernelexp(*words, cwd=tmp_path)
    assert done.returncode == errors.WRONG_RESULT
    validate("exec", done.stdout)
    (result, *_) = json.loads(done.stdout)["mistakes"]
    assert (result["name"], result["line"]) == ("out-of-bounds", 5)
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "out-of-bounds"


LOST_UPDATE = """
__global__ void count(volatile unsigned* counter, unsigned* all) {
  if (threadIdx.x) return;
  if (blockIdx.x == 1) counter[0] = counter[0] + 1;
  else atomicAdd((unsigned*)counter, 1);
}
int main() {
  unsigned *counter, total;
  cudaMalloc(&counter, 8);
  cudaMemset(counter, 0, 8);
  count<<<6, 32>>>(counter, counter + 1);
  cudaMemcpy(&total, counter, 4, cudaMemcpyDeviceToHost);
  return total != 6;
}
"""


WGMMA = """
__global__ void k(int* x) {
  asm volatile("wgmma.fence.sync.aligned;");
  if (threadIdx.x == 0) *x = 0;
}
int main() {
  int* x;
  cudaMalloc(&x, sizeof(int));
  k<<<1, 128>>>(x);
  return cudaDeviceSynchronize();
}
"""
MACHINE_CODE = "-gencode arch=compute_90a,code=sm_90a"


@pytest.mark.parametrize(
    "words",
    [
        ("w.cu",),
        pytest.param(("w.cu", f"--flags={MACHINE_CODE}"), marks=pytest.mark.slow),
        ("--make", f"nvcc {MACHINE_CODE} w.cu -o w", "--", "./w"),
    ],
)
def test_instructions_of_one_card_alone_are_compiled(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Also where the program's own flags ask for machine code and no PTX."""
    (tmp_path / "w.cu").write_text(WGMMA)
    done = kernelexp(*words, cwd=tmp_path)
    assert done.returncode == errors.OK, done.stderr
    assert "0 findings" in done.stderr


def test_machine_code_alone_is_refused_with_what_to_compile_for(
    tmp_path: Path, tools: Toolchain
) -> None:
    (tmp_path / "w.cu").write_text(WGMMA)
    argv = [tools.nvcc, *MACHINE_CODE.split(), "-cudart=shared", f"-L{library.folder(ROOT)}"]
    subprocess.run([*argv, "w.cu", "-o", "w"], cwd=tmp_path, check=True, capture_output=True)
    done = kernelexp("--", "./w", cwd=tmp_path)
    assert done.returncode == errors.ENVIRONMENT
    words = " ".join(done.stderr.split())
    assert "not executed: it has machine code only" in words
    assert "-gencode arch=compute_90a,code=compute_90a" in words


UNWRITTEN = """
#include <cstdio>
__global__ void add(int* sums) { sums[threadIdx.x] += 1; }
int main() {
  int first, *sums;
  cudaMalloc(&sums, 32 * sizeof(int));
  add<<<1, 32>>>(sums);
  cudaMemcpy(&first, sums, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\\n", first);
  cudaFree(sums);
}
"""


def test_what_nobody_wrote_reads_as_the_byte_that_was_named_and_is_found_all_the_same(
    tmp_path: Path, tools: Toolchain
) -> None:
    program = compiled(UNWRITTEN, tmp_path, tools)
    for words, printed in (
        ((), "0"),
        (("--unwritten", "0"), "1"),
        (("--unwritten", "1"), "16843010"),
    ):
        done = kernelexp(*words, "--", program, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (errors.WRONG_RESULT, f"{printed}\n")
        assert "uninitialised-read in add" in done.stderr


def test_more_schedules_show_what_the_first_does_not(tmp_path: Path, tools: Toolchain) -> None:
    program = compiled(LOST_UPDATE, tmp_path, tools)
    assert kernelexp("--", program, cwd=tmp_path).returncode == errors.OK
    done = kernelexp("--schedules", "5", "--json", "--", program, cwd=tmp_path)
    assert done.returncode == errors.WRONG_RESULT
    mistakes = json.loads(done.stdout)["mistakes"]
    assert [mistake["name"] for mistake in mistakes if mistake["level"] == "finding"] == [
        "exit-code"
    ]


ENDLESS = """
#include <cstdio>
__global__ void spin(int* x) {
  for (long i = 0; i < 1L << 40; ++i) *x = *x * 1664525 + i;
}
int main() {
  int* x;
  cudaMalloc(&x, sizeof(int)), cudaMemset(x, 0, sizeof(int));
  puts("launching"), fflush(stdout);
  spin<<<1, 1>>>(x);
  return cudaDeviceSynchronize();
}
"""


def test_killed_in_the_middle_of_a_launch_it_leaves_no_process(
    tmp_path: Path, tools: Toolchain
) -> None:
    program = compiled(ENDLESS, tmp_path, tools)
    token = uuid.uuid4().hex
    with subprocess.Popen(
        [sys.executable, "-m", "kernelexp", "exec", f"--limit={10**15}", "--", program],
        env={**os.environ, "TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"launching\n"
        assert len(with_environment(token)) >= 3  # exec, the program, what executes its launches
        process.kill()
    wait_until(lambda: not with_environment(token))


def with_environment(token: str) -> list[int]:
    """Processes that have a text in their environment."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if token.encode() in path.read_bytes():
                pids.append(int(path.parent.name))
    return pids


def test_nothing_to_run_is_one_sentence(kx: Kx) -> None:
    result = kx("exec")
    assert result.exit_code == errors.USAGE
    assert "name sources to compile, or put -- before a program to run" in result.stderr


def test_a_source_that_is_not_there_is_one_sentence(kx: Kx) -> None:
    result = kx("exec", "gone.cu")
    assert result.exit_code == errors.USAGE
    assert "there is no file gone.cu" in result.stderr


def test_a_source_that_does_not_compile_is_told_in_the_compilers_words(
    tmp_path: Path, kx: Kx
) -> None:
    (tmp_path / "wrong.cu").write_text("int main() { return gone; }\n")
    result = kx("exec", str(tmp_path / "wrong.cu"))
    assert result.exit_code == errors.BUILD
    assert '"gone" is undefined' in result.stderr
