"""What adopt prints of a source."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import kept
import pytest
from support import Kx

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.project import editing
from kernelexp.services.adopt import adopted

ADOPTED = functools.partial(
    adopted.Compiled,
    **{"kernel": "ring", "title": "", "source": "", "origin": "", "arch": "sm_90a", "entries": ()},
)
KERNEL = "__global__ void {}(float* y) {{ y[threadIdx.x] = {}; }}\n"


@pytest.fixture
def own(same_path: Path, hashed: Path, kx: Kx) -> Path:
    kx("init", str(same_path / "own"), "--empty", cwd=same_path)
    shutil.copytree(hashed, same_path / "own" / build.CACHE)
    kept.share_builds(same_path / "own")
    return same_path / "own"


def test_neighbouring_lines_that_were_left_out_are_one_range(own: Path, kx: Kx) -> None:
    others = [KERNEL.format(name, 1) + "\n" for name in "abc"]
    shared = "__device__ int kept() { return 1; }\n"
    text = "".join([*others, shared, KERNEL.format("d", 2), KERNEL.format("wanted", "kept()")])
    (own.parent / "many.cu").write_text(text)
    result = kx("adopt", "../many.cu", "--arch", "sm_90a", "--entry", "wanted", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    assert "left out of the copy of many.cu, lines: 1-5, 8\n" in result.stdout


def test_what_adopt_prints_of_long_types_and_many_files_fits_a_screen(own: Path, kx: Kx) -> None:
    for n in range(9):
        (own.parent / f"h{n}.cuh").write_text(KERNEL.format(f"k{n}", n))
    includes = "".join(f'#include "h{n}.cuh"\n' for n in range(9))
    parameters = ", ".join(f"const unsigned long long* array_{n}" for n in range(4))
    main = f"__global__ void long_one({parameters}, float* y) {{ *y = *array_0 + *array_3; }}\n"
    (own.parent / "many.cu").write_text(includes + main)
    result = kx("adopt", "../many.cu", "--arch", "sm_90a", "--entry", "long_one", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    assert "left out of the copies of 6 more files" in result.stdout
    lines = result.stdout.splitlines()
    assert len(lines) < 40
    own = [line for line in lines if not line.startswith("blank: ")]
    assert [line for line in own if len(line) > 80] == []


RING = """#define STAGES 2
#define UNUSED 7
constexpr int ROWS = 64;
struct Storage { float rows[STAGES][ROWS]; };
namespace own { constexpr int COLUMNS = 4; __global__ void ring(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x] = blockIdx.x * COLUMNS;
  y[blockIdx.x * ROWS + threadIdx.x] = s[threadIdx.x];
} }
"""
FILL = ("--block", "ROWS", "--grid", "COLUMNS", "--shape", "y=COLUMNS*ROWS", "--reference")
REFERENCE = "y=(torch.arange(4.0).repeat_interleave(64) * 4)"


@pytest.fixture
def ring(own: Path) -> Path:
    (own.parent / "ring.cu").write_text(RING)
    return own


def test_names_of_the_source_are_numbers_in_a_launch(ring: Path, kx: Kx) -> None:
    launch = (*FILL, REFERENCE, "--smem", "sizeof(Storage)")
    result = kx("adopt", "../ring.cu", "--arch", "sm_90a", *launch, cwd=ring)
    assert result.exit_code == errors.OK, result.output
    assert "sizeof(Storage) is 512, as the source has it\n" in result.stdout
    problem = (ring / "variants/ring/problem.py").read_text()
    assert "grid=(4, 1, 1),\n        block=(64, 1, 1),\n        dynamic_smem_bytes=512," in problem
    assert not (ring / "variants/ring/kx_values.cu").exists()


def test_a_name_that_is_nothing_in_the_source_is_a_sentence(ring: Path, kx: Kx) -> None:
    launch = ("--grid", "COLUMNS,ROSW", "--block", "64")
    result = kx("adopt", "../ring.cu", "--arch", "sm_90a", *launch, cwd=ring)
    assert result.exit_code == errors.USAGE
    assert "the grid 'ROSW': 'ROSW' is not an integer parameter" in result.stderr


def test_a_kernel_that_was_adopted_wrongly_is_replaced(ring: Path, kx: Kx) -> None:
    command = ("adopt", "../ring.cu", "--arch", "sm_90a", *FILL)
    wrong = kx(*command, "y=torch.zeros(256)", "--smem", "512", "--axis", "UNUSED=8", cwd=ring)
    assert wrong.exit_code == errors.WRONG_RESULT, wrong.output
    assert "nothing in the kernel's sources uses UNUSED" in wrong.stderr
    again = kx(*command, REFERENCE, cwd=ring)
    assert "or replace it: --kernel ring --replace." in again.stderr
    right = kx(*command, REFERENCE, "--smem", "512", "--kernel", "ring", "--replace", cwd=ring)
    assert right.exit_code == errors.OK, right.output
    assert "replaced: the old ring is in .kernelexp/replaced/ring\n" in right.stdout
    loaded = project.load(ring)
    assert (list(loaded.kernels), list(loaded.experiments)) == (["ring"], [])


def files(folder: Path) -> dict[str, bytes]:
    paths = [folder / "experiments.yaml", *(folder / "variants").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((REFERENCE, "--flag=-Dring=5"), errors.BUILD),
        ((REFERENCE, "--output", "z"), errors.USAGE),
        (("y=torch.zeros(nothing)",), errors.USAGE),
    ],
)
def test_a_kernel_that_nothing_replaces_stays(
    ring: Path, kx: Kx, words: tuple[str, ...], code: int
) -> None:
    command = ("adopt", "../ring.cu", "--arch", "sm_90a", *FILL)
    kx(*command, REFERENCE, "--smem", "512", "--axis", "STAGES=4", cwd=ring)
    before = files(ring)
    failed = kx(*command, *words, "--smem", "512", "--kernel", "ring", "--replace", cwd=ring)
    assert failed.exit_code == code, failed.output
    assert "note: nothing replaced the old ring: it is back\n" in failed.stderr
    assert files(ring) == before


@pytest.fixture
def two(ring: Path, kx: Kx) -> Path:
    """A project with two kernels, an experiment each."""
    command = ("adopt", "../ring.cu", "--arch", "sm_90a", *FILL, REFERENCE, "--smem", "512")
    for name in ("first", "ring"):
        kx(*command, "--axis", "STAGES=4", "--kernel", name, cwd=ring)
    return ring


ANOTHER = ("new", "Another", "--kernel", "first", "--set", "stages=4", "--hypothesis", "None.")


def test_what_another_process_adds_while_an_adoption_fails_stays(two: Path, kx: Kx) -> None:
    folder = two / "variants/ring"
    text = (two / "experiments.yaml").read_text()
    text = editing.remove(editing.remove(text, "experiments", ["E2"]), "kernels", ["ring"])
    before = {two / "experiments.yaml": text.encode()}
    kx(*ANOTHER, cwd=two)
    adopted.discard(ADOPTED(folder=folder), before)
    loaded = project.load(two)
    assert (list(loaded.kernels), list(loaded.experiments)) == (["first"], ["E1", "E3"])
    assert not folder.exists()


def test_what_another_process_adds_while_a_replacement_fails_stays(two: Path, kx: Kx) -> None:
    former = two / ".kernelexp/replaced/ring/problem.py"
    former.parent.mkdir(parents=True)
    former.write_text("of one before\n")
    with adopted.replacing(project.load(two), "ring", "--kernel"):  # and nothing is adopted
        kx(*ANOTHER, cwd=two)
    loaded = project.load(two)
    assert [*loaded.kernels] == ["first", "ring"]
    assert len(loaded.experiments) == 3
    assert {one.title for one in loaded.experiments.values()} >= {"Another"}
    assert former.read_text() == "of one before\n"


def test_a_kernel_with_records_is_not_replaced(ring: Path, kx: Kx) -> None:
    command = ("adopt", "../ring.cu", "--arch", "sm_90a", *FILL, REFERENCE, "--smem", "512")
    two = kx(*command, "--axis", "STAGES=4", "--axis", "block=128", cwd=ring)
    assert "kernelexp new 'Both' --kernel ring --set stages=4 --set block=128\n" in two.stdout
    kx("run", "E1", cwd=ring)
    refused = kx(*command, "--kernel", "ring", "--replace", cwd=ring)
    assert refused.exit_code == errors.USAGE
    assert "--replace: E1 of ring has records" in refused.stderr


ADD = """template <int A, int B>
__global__ void add(const float* x, float* y, const float* bias) {
  y[threadIdx.x] = x[threadIdx.x] + B;
  if constexpr (A) y[threadIdx.x] += bias[threadIdx.x];
}
template <class K, class... P> void launch(K* kernel, P... p) { kernel<<<1, 32>>>(p...); }
void host(const float* x, float* y) { launch(add<0, 2>, x, y, x); }
"""


def test_a_template_s_argument_is_named_where_the_entry_is(own: Path, kx: Kx) -> None:
    (own.parent / "add.cu").write_text(ADD)
    known = ("--block", "32", "--grid", "1", "--shape", "x=32", "--shape", "y=32")
    words = ("--arch", "sm_90a", *known, "--reference", "y=x + 2")
    unknown = kx("adopt", "../add.cu", "--entry", "add<0, IMPL>", *words, cwd=own)
    assert "--entry names IMPL, which the source does not have" in unknown.stderr
    axis = ("--entry", "add<0, IMPL>", "--axis", "IMPL=2,3")
    result = kx("adopt", "../add.cu", *axis, *words, cwd=own)
    assert result.exit_code == errors.OK, result.output
    assert "bias: float*, 8 bytes, not used: 0 is passed\n" in result.stdout
    assert "axis impl: 2, 3 (default: 2)" in result.stdout


def test_an_axis_may_have_the_name_that_a_template_gives_its_own_parameter(
    own: Path, kx: Kx
) -> None:
    source = ADD.replace("<int A, int B>", "<int A = 0, int B = 2>").replace("float* y) {", HOST)
    (own.parent / "add.cu").write_text(source)
    known = ("--block", "32", "--grid", "1", "--shape", "x=32", "--shape", "y=32")
    words = ("--arch", "sm_90a", *known, "--reference", "y=x + 2")
    result = kx("adopt", "../add.cu", "--entry", "add<0, B>", "--axis", "B=2,3", *words, cwd=own)
    assert result.exit_code == errors.OK, result.output
    assert "axis b: 2, 3 (default: 2)" in result.stdout


HOST = "float* y) { constexpr int B = 2;"


CONSTANT = """__constant__ float scale; __constant__ int table[4];
__constant__ float own[2] = {1, 2}; __constant__ float unused[3];
__global__ void wanted(float* y) {
  y[threadIdx.x] = scale * table[threadIdx.x & 3] + own[threadIdx.x & 1];
}
"""


def test_constant_memory_that_nobody_sets_is_named(own: Path, kx: Kx) -> None:
    (own.parent / "constant.cu").write_text(CONSTANT)
    result = kx("adopt", "../constant.cu", "--arch", "sm_90a", cwd=own)
    assert "note: __constant__ memory that only host code sets is zero" in result.stderr
    assert "in an experiment: scale, table; give it values" in " ".join(result.stderr.split())
