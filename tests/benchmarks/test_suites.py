"""Published suites: how their programs are found, made smaller, run, and what their words mean."""

import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import made_inputs
import suites

from kernelexp.services.execution import Executed
from kernelexp.system.toolchain import Toolchain
from warpsim.runtime.reports import KernelTotals

MAKEFILE = """\
CC = nvcc
ARCH = sm_60
program = main

$(program): main.cu
\t$(CC) $(EXTRA_CFLAGS) -cudart shared -arch=$(ARCH) main.cu -o $@

run: $(program)
\t$(LAUNCHER) ./$(program) 4096 \\
\t100
"""
SOURCE = """\
#include <cstdio>
#include <cstdlib>
#define WIDTH 4096
__global__ void add(int* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sums[i] += i;
}
int main(int, char** words) {
  int n = atoi(words[1]), last, *sums;
  cudaMalloc(&sums, n * sizeof(int));
  for (int i = 0; i < atoi(words[2]); ++i) add<<<(n + 63) / 64, 64>>>(sums, n);
  cudaMemcpy(&last, sums + n - 1, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%s\\n", last == (n - 1) * atoi(words[2]) ? "PASS" : "FAIL");
  cudaFree(sums);
}
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., suites.Program]:
    """The program of a checkout of HeCBench that has one, with lines of the file of sizes."""

    def make(*sizes: str) -> suites.Program:
        folder = tmp_path / "src" / "sums-cuda"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Makefile").write_text(MAKEFILE)
        (folder / "main.cu").write_text(SOURCE)
        (tmp_path / "sizes.txt").write_text("\n".join(["# sizes", *sizes, ""]))
        monkeypatch.setattr(suites, "SIZES", tmp_path / "sizes.txt")
        monkeypatch.setattr(made_inputs, "INPUTS", {"seen.txt": lambda numbers: b"seen"})
        (program,) = suites.hecbench(tmp_path)
        return program

    return make


def test_a_program_runs_as_its_makefile_runs_it_with_one_repetition_and_then_smaller(
    checkout: Callable[..., suites.Program],
) -> None:
    program = checkout()
    assert program.name == "sums"
    assert [attempt.argv for attempt in program.attempts] == [
        ("./main", "4096", "1"),
        ("./main", "256", "1"),
        ("./main", "16", "1"),
    ]
    assert (Path(program.attempts[0].folder).parent / "made" / "seen.txt").read_text() == "seen"


def test_listed_sizes_are_a_copy_of_the_program_with_other_text(
    checkout: Callable[..., suites.Program],
) -> None:
    program = checkout(
        "sums | main.cu | WIDTH 4096 | WIDTH 64", "sums | 64 2", "sums | unwritten 0"
    )
    last = suites.smallest(program).attempts[0]
    assert last.argv == ("./main", "64", "2")
    assert last.sizes == "WIDTH 64; fresh memory is 0"
    assert last.unwritten == 0
    assert "WIDTH 64\n" in (Path(last.folder) / "main.cu").read_text()
    assert "WIDTH 4096" in (Path(last.folder).parent / "sums-cuda" / "main.cu").read_text()


@hypothesis.given(st.lists(st.integers(0, 10**9), max_size=5))
def test_smaller_arguments_are_never_larger_and_keep_what_is_small(numbers: list[int]) -> None:
    given = ["./main", "-f", *map(str, numbers)]
    for argv in suites.smaller(given):
        assert list(argv[:2]) == given[:2]
        for was, number in zip(numbers, map(int, argv[2:]), strict=True):
            assert number <= was
            assert number >= min(was, 16) or (was == numbers[-1] and number == 1)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("PASS", "right"),
        ("max error = 0.000", "right"),
        ("0 errors", "right"),
        ("errors: 3", "wrong"),
        ("L2norm Error OK", "right"),
        ("result: FAIL", "wrong"),
        ("Mismatch at 4", "wrong"),
        ("PASS, error rate 3%", "right"),
        ("average time 3 ms", "silent"),
        ("running the kernel: no error", "silent"),
        ("TIME TO SET ERROR TOOK: 0.000000", "silent"),
    ],
)
def test_a_programs_own_words_are_its_verdict(text: str, outcome: str) -> None:
    totals = KernelTotals(kernel="k", launches=1, judged=1, thread_instructions=9, seconds=0.1)
    executed = Executed(program="x", returncode=0, seconds=1.0, device="H200", kernels=(totals,))
    attempt = suites.Attempt(folder="/nowhere", make="", argv=("./main",))
    assert suites._row("x", attempt, executed, text).outcome == outcome


def test_without_a_launch_it_is_right_only_if_it_has_no_kernels(tmp_path: Path) -> None:
    attempt = suites.Attempt(folder=str(tmp_path), make="", argv=("./main",))
    executed = Executed(program="x", returncode=0, seconds=1.0, device="H200")
    (tmp_path / "main").write_bytes(b"\x7fELF cudaMemcpy")
    assert suites._row("x", attempt, executed, "PASS").outcome == "right"
    (tmp_path / "main").write_bytes(b"\x7fELF cudaLaunchKernel")
    assert suites._row("x", attempt, executed, "PASS").outcome == "failed"


def test_wrong_words_that_are_the_cards_too_count_as_on_the_card() -> None:
    row = suites.Row(name="x", outcome="wrong", on_card="near")
    assert row.seen == "as-on-card"
    assert suites.Row(name="x", outcome="wrong", on_card="differs").seen == "wrong"
    assert suites.Row(name="x", outcome="long", on_card="same").seen == "long"


def test_a_program_is_built_run_and_kept_and_depends_on_what_nobody_wrote(
    checkout: Callable[..., suites.Program], tools: Toolchain, tmp_path: Path
) -> None:
    outcomes = {}
    for sizes in (("sums | 64 2",), ("sums | 64 2", "sums | unwritten 0")):
        program = suites.smallest(checkout(*sizes))
        row = suites.run(program, tools, tmp_path, 100.0, 100.0, (), outputs=tmp_path / "kept")
        outcomes[sizes] = row.outcome
        assert (row.launches, row.thread_instructions > 64) == (2, True)
        assert [finding.split()[0] for finding in row.findings] == ["uninitialised-read"]
    assert list(outcomes.values()) == ["wrong", "right"]
    (copy,) = suites.on_card.copies(tmp_path / "kept" / "sums" / "copies")
    assert (copy.kind, copy.kept) == ("c", (126).to_bytes(4, "little"))
