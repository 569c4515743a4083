"""problem.py: what it may leave out, what is checked, and that its faults end nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import Kx

from kernelexp import errors, isolated
from kernelexp.errors import ConfigurationError, EnvironmentFault, UsageError
from kernelexp.problem import Problem, consult, loader
from kernelexp.problem.consult import Consulted, Point

NAME = "variants/scale/problem.py"
AXES = {"width": 1, "order": "forward"}
EXPORTS = {"threads": 256}
Edit = Callable[..., Problem]


def change(root: Path, *edits: tuple[str, str]) -> None:
    path = root / NAME
    for text, instead in edits:
        assert text in path.read_text()
        path.write_text(path.read_text().replace(text, instead))


def cut(root: Path, function: str) -> None:
    """Removes a function."""
    path = root / NAME
    before, mark, rest = path.read_text().partition(f"def {function}(")
    assert mark
    path.write_text(before + rest.partition("\n\n\n")[2])


@pytest.fixture
def edited(scale: Path) -> Edit:
    """The problem `scale`, loaded in this process after edits."""

    def load(*edits: tuple[str, str]) -> Problem:
        change(scale, *edits)
        return loader.load(scale, "scale")

    return load


def ask(root: Path, **options: object) -> Consulted:
    return consult.consult(root, "scale", [Point(axes=AXES, arch="sm_90a")], **options)


# ---- defaults ------------------------------------------------------------------------------------


def test_what_is_optional_may_be_left_out(scale: Path) -> None:
    cut(scale, "constraints")
    cut(scale, "budget")
    said = ask(scale)
    assert said.points[0].reasons == ()
    assert said.points[0].budget is None
    assert (said.peers, said.work) == ((), {})
    assert loader.load(scale, "scale").tiles(AXES, {"count": 4}, {}) is None


def test_a_kernel_without_a_budget_builds(scale: Path, kx: Kx) -> None:
    cut(scale, "budget")
    assert kx("build", "scale:width=2", cwd=scale).exit_code == errors.OK


def test_arranged_arrays_are_added_to_those_that_stay(edited: Edit) -> None:
    found = edited(
        (
            "def outputs(size):",
            "def arrange(inputs, axes):\n    return {'z': inputs['x'] + 1}\n\n\ndef outputs(size):",
        )
    )
    x = torch.zeros(4)
    assert set(found.arrange({"x": x}, AXES)) == {"x", "z"}


@pytest.mark.parametrize("parameters", ["size, arch", "size, arch, axes"])
def test_a_tolerance_may_depend_on_the_axes(edited: Edit, parameters: str) -> None:
    found = edited(("def tolerance(size, arch)", f"def tolerance({parameters})"))
    assert found.tolerance({"count": 4}, "sm_90a", AXES).rtol == 2**-24


def test_what_is_required_is_named_where_it_is_missing(scale: Path) -> None:
    cut(scale, "tolerance")
    with pytest.raises(ConfigurationError, match=rf"{NAME} lacks tolerance"):
        loader.load(scale, "scale")


def test_problem_py_may_import_a_module_next_to_it(scale: Path) -> None:
    (scale / "variants/scale/factors.py").write_text("FACTOR = 3.0\n")
    change(scale, ("FACTOR = 3.0", "from factors import FACTOR"))
    assert ask(scale).sizes["emulated"] == {"count": 4096}


def test_launches_and_tiles_are_asked_for_by_size(scale: Path) -> None:
    change(
        scale,
        ("def outputs", "def tiles(axes, size):\n    return size['count'] // 4\n\n\ndef outputs"),
    )
    points = [Point(axes=AXES, arch="sm_90a", exports=EXPORTS)]
    said = consult.consult(scale, "scale", points, ["full", "emulated"])
    (facts,) = said.points
    assert facts.launches["emulated"].grid == (16, 1, 1)
    assert facts.tiles == {"full": 1 << 18, "emulated": 1024}


# ---- what its functions return -------------------------------------------------------------------

SIZE = {"count": 8}


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('dtype="f32"', 'dtype="float32"', "unknown dtype 'float32'; known: u8, e4m3, e5m2, f16"),
        ('shape=(size["count"],)', "shape=(0,)", r"'y' has the shape \[0\], with no element"),
        ('return {"y": Array(shape=(size["count"],), dtype="f32")}', "return {}", "no array"),
        ('return {"y": Array', 'return {"y": str or Array', "is no kernelexp.problem.Array"),
    ],
)
def test_outputs_that_can_not_be_are_a_sentence(
    edited: Edit, text: str, instead: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{NAME}:11: outputs\(\): .*{words}"):
        edited((text, instead)).outputs(SIZE)


@pytest.mark.parametrize("bound", ["-1.0", "float('inf')", "float('nan')", "'small'"])
def test_a_tolerance_is_finite_and_not_negative(edited: Edit, bound: str) -> None:
    found = edited(("rtol=2**-24", f"rtol={bound}"))
    with pytest.raises(ConfigurationError, match=r"problem.py:26: tolerance\(\): "):
        found.tolerance(SIZE, "sm_90a", AXES)


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('type="s32"', 'type="e4m3"', "unknown type 'e4m3'; known: u8, s8"),
        ("value=count", "value=-(1 << 40)", "is no s32"),
        ("value=count", "value=count + 0.5", r"4096\.5 is no s32"),
        ("value=count", "value='many'", r"Expected `int \| float`, got `str`"),
        ("(-(-count // THREADS), 1, 1)", "(0, 1, 1)", "each dimension is at least 1"),
        ("return Launch(", "return str or Launch(", "it returns a type"),
    ],
)
def test_a_launch_that_can_not_be_is_a_sentence(
    edited: Edit, text: str, instead: str, words: str
) -> None:
    found = edited((text, instead))
    with pytest.raises(ConfigurationError, match=rf"launch\(\): .*{words}"):
        found.launch(AXES, {"count": 4096}, EXPORTS)


def reference(edited: Edit, body: str) -> list[object]:
    whole = 'yield Chunk(array="y", first=0, values=inputs["x"].double() * FACTOR)'
    found = edited((whole, body))
    return list(found.reference({"x": torch.ones(8)}, SIZE))


def chunk(rows: str, first: str = "0", array: str = "y") -> str:
    values = f'inputs["x"][{rows}].double() * FACTOR'
    return f'yield Chunk(array="{array}", first={first}, values={values})'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"{chunk(':4')}; {chunk(':4')}", "it gives rows 0 to 3 of y more than once"),
        (chunk(":7"), "it leaves out row 7 of y: every element is checked"),
        (f"{chunk(':2')}; {chunk('4:', '4')}", "it leaves out rows 2 to 3 of y"),
        (f"{chunk(':6')}; {chunk('5:', '5')}", "it gives row 5 of y more than once"),
        ("return iter(())", "it leaves out rows 0 to 7 of y"),
        ("return None", "it returns nothing instead of chunks"),
        (chunk(":4", "6"), "a chunk gives rows 6 to 9 of y, which has 8"),
        (chunk(":", array="z"), "a chunk of 'z'; outputs.. has y"),
        (chunk("None, :"), r"a chunk of y should have the shape \[rows\], not \[1, 8\]"),
        ("yield 3", "it yields a int instead of a Chunk"),
    ],
)
def test_a_reference_covers_each_element_once(edited: Edit, body: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{NAME}:\d+: reference\(\): .*{words}"):
        reference(edited, body)


def test_a_chunk_of_another_shape_is_found_at_the_line_that_yields_it(edited: Edit) -> None:
    with pytest.raises(ConfigurationError, match=r"problem\.py:25: reference"):
        reference(edited, f"one = 1\n    two = 2\n    {chunk('None, :')}")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_coverage_is_each_row_once_in_any_order(lengths: list[int], data: st.DataObject) -> None:
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    given_ = [(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    order = data.draw(st.permutations(given_))
    assert loader.coverage_fault("y", order, ends[-1]) == ""
    assert "leaves out" in loader.coverage_fault("y", order[1:], ends[-1])
    assert "more than once" in loader.coverage_fault("y", [*order, order[0]], ends[-1])
    assert "leaves out" in loader.coverage_fault("y", order, ends[-1] + 1)


def test_inputs_that_are_not_contiguous_are_refused(edited: Edit) -> None:
    found = edited(
        ('torch.randn(size["count"],', "torch.randn((2, 4),"),
        ("device=device)}", "device=device).t()}"),
    )
    with pytest.raises(ConfigurationError, match=r"inputs\(\): 'x' is not contiguous"):
        found.inputs(SIZE, 1, "cpu")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("__import__('numpy').ones(16)", "are a ndarray instead of a tensor"),
        ("inputs['x'].to('meta')", "are a meta tensor instead of one with all its values"),
        ("inputs['x'].to_sparse()", "are a sparse_coo tensor instead of one"),
        ("inputs['x'] * 1j", "are complex"),
    ],
)
def test_a_reference_is_real_numbers_in_memory(edited: Edit, values: str, words: str) -> None:
    found = edited(('inputs["x"].double() * FACTOR', values))
    with pytest.raises(ConfigurationError, match=words):
        list(found.reference(found.inputs(SIZE, 1, "cpu"), SIZE))


def test_a_tensor_that_wants_a_gradient_is_taken_without(edited: Edit) -> None:
    found = edited(("device=device)}", "device=device, requires_grad=True)}"))
    inputs = found.inputs(SIZE, 1, "cpu")
    (chunk,) = found.reference({"x": inputs["x"].requires_grad_()}, SIZE)
    assert not chunk.values.requires_grad


def test_inputs_have_their_values_in_memory(edited: Edit) -> None:
    found = edited(("device=device)}", "device=device).to('meta')}"))
    with pytest.raises(ConfigurationError, match=r"inputs\(\): 'x' is a meta tensor"):
        found.inputs(SIZE, 1, "cpu")


# ---- a process of its own ------------------------------------------------------------------------

BUDGET = "return Budget(threads=THREADS, dynamic_smem_bytes=0)"


def run(kx: Kx, root: Path) -> str:
    """Standard error of a run that a fault of problem.py ends."""
    result = kx("run", "S1", "--no-emulate", "--no-record", cwd=root)
    assert result.exit_code == errors.USAGE
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        ("import sys; sys.exit(0)", f"{NAME}:36: it calls sys.exit(0)"),
        ("import os; os._exit(0)", f"{NAME}: it ended its process with exit code 0"),
        ("import os; os._exit(9)", f"{NAME}: it ended its process with exit code 9"),
        ("import os; os.abort()", f"{NAME}:36: budget() crashed with SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", f"{NAME}:36: budget() crashed with SIGSEGV"),
        ("return Budget(threads='many', dynamic_smem_bytes=0)", "budget(): it returns a Budget"),
        ("return [][1]", f"{NAME}:36: IndexError: list index out of range"),
    ],
)
def test_whatever_problem_py_does_is_its_fault_with_its_line(
    scale: Path, kx: Kx, instead: str, words: str
) -> None:
    change(scale, (BUDGET, instead))
    assert words in run(kx, scale)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ((BUDGET, "while True: pass"), f"{NAME}:36: budget() had not returned after 1s; allow"),
        ((BUDGET, "import time; time.sleep(99)"), f"{NAME}:36: budget() had not returned"),
        (("THREADS = 256", "THREADS = 256\nwhile 1: pass"), f"{NAME}:9: importing it had not"),
    ],
)
def test_what_does_not_return_is_named_with_its_limit(
    scale: Path, edit: tuple[str, str], words: str
) -> None:
    change(scale, edit)
    with pytest.raises(ConfigurationError) as caught:
        ask(scale, timeout_s=1.0)
    assert words in str(caught.value)
    assert "with --limit problem=2s" in str(caught.value)


def test_what_it_prints_is_labelled_and_no_part_of_the_answer(
    scale: Path, kx: Kx, capfd: pytest.CaptureFixture[str]
) -> None:
    change(scale, (BUDGET, f"print('hello'); import os; os.write(1, b'raw\\n'); {BUDGET}"))
    result = kx("run", "S1", "--no-emulate", "--no-record", "--json", cwd=scale)
    assert result.exit_code == errors.OK
    assert json.loads(result.stdout)
    lines = (result.stderr + capfd.readouterr().err).splitlines()
    assert f"{NAME}: hello" in lines
    assert f"{NAME}: raw" in lines


def test_a_process_killed_from_outside_is_the_machines_fault(scale: Path) -> None:
    change(scale, (BUDGET, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(EnvironmentFault, match=r"ended from outside \(SIGKILL\)"):
        ask(scale)


@pytest.mark.parametrize(
    ("module", "words"), [("runpy", "did not start"), ("torch", "failed: Mod")]
)
def test_what_can_not_be_loaded_is_the_machines_fault(
    cold: Path, tmp_path: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch, module: str, words: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules['{module}'] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    result = kx("emulate", "scale@sm_90a", cwd=cold)
    assert result.exit_code == errors.ENVIRONMENT
    assert f"error: {NAME}: the process that was to run it {words}" in result.stderr
    assert "Traceback" not in result.stderr


def test_memory_that_runs_out_is_the_machines_fault(scale: Path) -> None:
    change(scale, (BUDGET, "raise MemoryError('8 EiB')"))
    with pytest.raises(EnvironmentFault, match=rf"{NAME}:36: this machine has not enough memory"):
        ask(scale)


def test_an_unknown_size_is_refused_without_a_gpu(cold: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--size", "nosuch", "--no-record", cwd=cold)
    assert result.exit_code == errors.USAGE
    assert f"{NAME} has no size 'nosuch'; known: full, emulated." in result.stderr
    assert not (cold / ".kernelexp/build").exists()


def test_asking_loads_no_torch(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_FRESH", "1")  # a server that has not emulated anything yet
    change(scale, (BUDGET, f"import sys; assert 'torch' not in sys.modules; {BUDGET}"))
    assert ask(scale).points[0].budget


def test_a_size_that_is_asked_for_must_be_there(scale: Path) -> None:
    with pytest.raises(UsageError, match="known: full, emulated"):
        consult.require_size("scale", ask(scale).sizes, "tiny")


@pytest.mark.parametrize(("seconds", "text"), [(60, "1m"), (90, "90s"), (120, "2m"), (0.5, "0.5s")])
def test_limits_are_spelled_as_the_option_takes_them(seconds: float, text: str) -> None:
    assert isolated.spell_seconds(seconds) == text
