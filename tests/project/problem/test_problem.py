"""problem.py: what it may leave out, what is checked, and that its faults end nothing else."""

from __future__ import annotations

import os
import py_compile
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from asking import AXES, NAME, ask, change
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, Kx

from kernelexp.model import errors
from kernelexp.model.arm import Arm
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.model.problem import Problem
from kernelexp.project.problem import consult, faults, loader
from warpsim.launch import Launch, main_launch, to_bytes

EXPORTS = {"threads": 256}
Edit = Callable[..., Problem]


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


# ---- defaults ------------------------------------------------------------------------------------


def test_what_is_optional_may_be_left_out(scale: Path) -> None:
    cut(scale, "constraints")
    cut(scale, "budget")
    result = ask(scale)
    assert result.points[0].reasons == ()
    assert result.points[0].budget is None
    assert (result.peers, result.work) == ((), {})
    assert loader.load(scale, "scale").tiles(AXES, {"count": 4}, {}) is None


def test_a_kernel_without_a_budget_builds(scale: Path, kx: Kx) -> None:
    cut(scale, "budget")
    assert kx("build", "scale:width=2", cwd=scale).exit_code == errors.OK


def test_arranged_arrays_are_added_to_those_that_stay(edited: Edit) -> None:
    result = edited(
        (
            "def outputs(size):",
            "def arrange(inputs, axes):\n    return {'z': inputs['x'] + 1}\n\n\ndef outputs(size):",
        )
    )
    x = torch.zeros(4)
    assert set(result.arrange({"x": x}, AXES)) == {"x", "z"}


@pytest.mark.parametrize("parameters", ["size, arch", "size, arch, axes"])
def test_a_tolerance_may_depend_on_the_axes(edited: Edit, parameters: str) -> None:
    result = edited(("def tolerance(size, arch)", f"def tolerance({parameters})"))
    assert result.tolerance({"count": 4}, "sm_90a", AXES).rtol == 2**-24


def test_what_is_required_is_named_where_it_is_missing(scale: Path) -> None:
    cut(scale, "tolerance")
    with pytest.raises(ConfigurationError, match=rf"{NAME} lacks tolerance"):
        loader.load(scale, "scale")


def test_problem_py_may_import_a_module_next_to_it(scale: Path) -> None:
    (scale / "variants/scale/factors.py").write_text("FACTOR = 3.0\n")
    change(scale, ("FACTOR = 3.0", "from factors import FACTOR"))
    assert ask(scale).sizes["emulated"] == {"count": 4096}


@pytest.mark.parametrize("name", ["problem.py", "parts/count.py"])
def test_a_source_of_the_same_time_and_size_is_read_again(tmp_path: Path, name: str) -> None:
    """Python's own compiled file would be taken for it."""
    shutil.copytree(ROOT / "tests/projects/scale", tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "variants/scale"
    (folder / "parts").mkdir()
    (folder / "parts/count.py").write_text("COUNT = 1000\n")
    change(
        tmp_path,
        ("from kernelexp.launch", "from parts.count import COUNT\nfrom kernelexp.launch"),
        ('{"count": 4096}', '{"count": COUNT, "spare": 1000}'),
    )
    source = folder / name
    py_compile.compile(str(source))
    before = source.stat()
    source.write_text(source.read_text().replace("1000", "2000"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert 2000 in ask(tmp_path).sizes["emulated"].values()


def test_launches_and_tiles_are_asked_for_by_size(scale: Path) -> None:
    change(
        scale,
        ("def outputs", "def tiles(axes, size):\n    return size['count'] // 4\n\n\ndef outputs"),
    )
    arms = [Arm(axes=AXES, arch="sm_90a")]
    result = consult.consult(scale, "scale", arms, ["full", "emulated"], exports=[EXPORTS])
    (facts,) = result.points
    assert [item.grid for item in facts.launches["emulated"]] == [(16, 1, 1)]
    assert facts.tiles == {"full": 1 << 18, "emulated": 1024}


def test_a_variant_whose_launch_raises_spoils_no_other(scale: Path) -> None:
    change(scale, ("    count = size", "    assert axes['width'] != 2, 'two'\n    count = size"))
    arms = [Arm(axes={**AXES, "width": width}, arch="sm_90a") for width in (2, 4)]
    asked = (scale, "scale", arms, ["emulated"])
    result = consult.consult(*asked, exports=[EXPORTS] * 2, separately=True)
    assert "AssertionError: two" in result.points[0].faults["emulated"]
    assert (result.points[1].faults, len(result.points[1].launches["emulated"])) == ({}, 1)
    with pytest.raises(ConfigurationError, match="AssertionError: two"):
        consult.consult(*asked, exports=[EXPORTS] * 2)


def test_a_size_that_is_beyond_a_variant_is_left_out_of_its_launches(scale: Path) -> None:
    change(scale, ("    count = size", "    assert size['count'] < 9999, 'much'\n    count = size"))
    asked = (scale, "scale", [Arm(axes=AXES, arch="sm_90a")], ["full", "emulated"])
    result = consult.consult(*asked, exports=[EXPORTS], separately=True)
    assert result.points[0].launches.keys() == {"emulated"}
    with pytest.raises(ConfigurationError, match="AssertionError: much"):
        result.points[0].launch_of("full")


def test_a_job_is_its_launches_in_their_order(edited: Edit) -> None:
    result = edited(
        (
            "def launch(axes, size, exports):",
            "def launch(axes, size):\n    exports = {'threads': 9}",
        ),
        ("    return Launch(", "    for main in (False, True): yield Launch(main=main,"),
    )
    first, second = result.launches(AXES, {"count": 4096}, EXPORTS)
    assert (first.block, main_launch([first, second])) == ((9, 1, 1), second)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("return [] and Launch(", "it returns no launch"),
        (
            "return 2 * [Launch(main=True, entry='k', grid=(1, 1, 1), block=(1, 1, 1))] or Launch(",
            "one launch of a job at most has main=True",
        ),
        ("return 'ab' or Launch(", "it returns a str"),
    ],
)
def test_what_is_no_job_is_a_sentence(edited: Edit, returned: str, words: str) -> None:
    result = edited(("return Launch(", returned))
    with pytest.raises(ConfigurationError, match=rf"launch\(\): {words}"):
        result.launches(AXES, {"count": 4096}, EXPORTS)


# ---- what its functions return -------------------------------------------------------------------

SIZE = {"count": 8}


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('dtype="f32"', 'dtype="float31"', "unknown dtype 'float31'; known: bool, u8, s8, u16"),
        ('shape=(size["count"],)', "shape=(0,)", r"'y' has the shape \[0\], with no element"),
        ('return {"y": Array(shape=(size["count"],), dtype="f32")}', "return {}", "no array"),
        ('return {"y": Array', 'return {"y": str or Array', "is no kernelexp.Array"),
    ],
)
def test_outputs_that_can_not_be_are_a_sentence(
    edited: Edit, text: str, instead: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{NAME}:11: outputs\(\): .*{words}"):
        edited((text, instead)).outputs(SIZE)


@pytest.mark.parametrize("bound", ["-1.0", "float('inf')", "float('nan')", "'small'"])
def test_a_tolerance_is_finite_and_not_negative(edited: Edit, bound: str) -> None:
    result = edited(("rtol=2**-24", f"rtol={bound}"))
    with pytest.raises(ConfigurationError, match=r"problem.py:26: tolerance\(\): "):
        result.tolerance(SIZE, "sm_90a", AXES)


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('type="s32"', 'type="e4m3"', "unknown type 'e4m3'; known: bool, u8, s8"),
        ('type="s32"', 'type="u8"', "the scalar 4096 is no u8"),
        ('type="s32"', 'type="bool"', "the scalar 4096 is no bool"),
        ("value=FACTOR", "value=1e39", r"the scalar 1e\+39 is no f32"),
        ('type="f32", value=FACTOR', 'type="f16", value=65520', "the scalar 65520 is no f16"),
        ("value=count", "value=-(1 << 40)", "is no s32"),
        ("value=count", "value=count + 0.5", r"4096\.5 is no s32"),
        ("value=count", "value='many'", "Expected `bool | int | float`, got `str`"),
        ("(-(-count // THREADS), 1, 1)", "(0, 1, 1)", "each dimension is at least 1"),
        ("return Launch(", "return str or Launch(", "it returns a type"),
    ],
)
def test_a_launch_that_can_not_be_is_a_sentence(
    edited: Edit, text: str, instead: str, words: str
) -> None:
    result = edited((text, instead))
    with pytest.raises(ConfigurationError, match=rf"launch\(\): .*{words}"):
        result.launches(AXES, {"count": 4096}, EXPORTS)


STRUCTURE = "type('P', (ctypes.Structure,), {'_fields_': [('a', ctypes.c_short)]})"
RECORD = "__import__('numpy').zeros((), 'u2, u8')[()]"


@pytest.mark.parametrize(
    ("argument", "data"),
    [
        ("Scalar(type='torch.bfloat16', value=3.0)", b"\x40\x40"),
        ("Scalar(type=torch.bool, value=True)", b"\1"),
        ("Scalar(type='int8', value=-2)", b"\xfe"),
        ("StructValue(data=ctypes.c_buffer(b'ab').raw)", b"ab\0"),
        ("StructValue(data=ctypes.c_buffer(b'ab').raw, size=5)", b"ab\0\0\0"),
        (f"StructValue(data={STRUCTURE}(7))", b"\7\0"),
        (f"StructValue(data={RECORD})", bytes(10)),
        (
            f"StructValue(data={RECORD}, fields=[Field(offset=2, value=Pointer(array='x'))])",
            b"\0\0" + (77).to_bytes(8, "little"),
        ),
        (
            "StructValue(size=3, fields=[Field(offset=1, value=Scalar(type='int8', value=-2))])",
            b"\0\xfe\0",
        ),
    ],
)
def test_scalars_of_any_width_and_structures_are_arguments(
    edited: Edit, argument: str, data: bytes
) -> None:
    imports = "import ctypes, torch\nfrom kernelexp.launch import Field, StructValue, "
    result = edited(
        ("from kernelexp.launch import ", imports), ('Scalar(type="f32", value=FACTOR)', argument)
    )
    (launch,) = result.launches(AXES, {"count": 4096}, EXPORTS)
    kept = msgspec.json.decode(msgspec.json.encode(launch), type=Launch)
    assert to_bytes(kept.arguments[2], lambda array: 77, lambda map_: b"") == data


def test_the_address_of_an_array_lies_in_its_structure(edited: Edit) -> None:
    result = edited(
        ("from kernelexp.launch import ", "from kernelexp.launch import Field, StructValue, "),
        (
            'Scalar(type="f32", value=FACTOR)',
            "StructValue(size=12, fields=[Field(offset=8, value=Pointer(array='x'))])",
        ),
    )
    with pytest.raises(ConfigurationError, match="a field of 8 bytes at byte 8 leaves its struct"):
        result.launches(AXES, {"count": 4096}, EXPORTS)


@pytest.mark.parametrize("dtype", ["'float32'", "'torch.float32'", "__import__('torch').float32"])
def test_types_may_have_the_names_of_torch_and_numpy(edited: Edit, dtype: str) -> None:
    assert edited(('dtype="f32"', f"dtype={dtype}")).outputs(SIZE)["y"].dtype == "f32"


def reference(edited: Edit, body: str) -> list[object]:
    whole = 'yield Chunk(array="y", first=0, values=inputs["x"].double() * FACTOR)'
    result = edited((whole, body))
    return list(result.reference({"x": torch.ones(8)}, SIZE))


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
    assert faults.coverage_fault("y", order, ends[-1]) == ""
    assert "leaves out" in faults.coverage_fault("y", order[1:], ends[-1])
    assert "more than once" in faults.coverage_fault("y", [*order, order[0]], ends[-1])
    assert "leaves out" in faults.coverage_fault("y", order, ends[-1] + 1)


def test_inputs_that_are_not_contiguous_are_refused(edited: Edit) -> None:
    result = edited(
        ('torch.randn(size["count"],', "torch.randn((2, 4),"),
        ("device=device)}", "device=device).t()}"),
    )
    with pytest.raises(ConfigurationError, match=r"inputs\(\): 'x' is not contiguous"):
        result.inputs(SIZE, 1, "cpu")


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
    result = edited(('inputs["x"].double() * FACTOR', values))
    with pytest.raises(ConfigurationError, match=words):
        list(result.reference(result.inputs(SIZE, 1, "cpu"), SIZE))


def test_a_tensor_that_wants_a_gradient_is_taken_without(edited: Edit) -> None:
    result = edited(("device=device)}", "device=device, requires_grad=True)}"))
    inputs = result.inputs(SIZE, 1, "cpu")
    (chunk,) = result.reference({"x": inputs["x"].requires_grad_()}, SIZE)
    assert not chunk.values.requires_grad


def test_inputs_have_their_values_in_memory(edited: Edit) -> None:
    result = edited(("device=device)}", "device=device).to('meta')}"))
    with pytest.raises(ConfigurationError, match=r"inputs\(\): 'x' is a meta tensor"):
        result.inputs(SIZE, 1, "cpu")


def test_an_unknown_size_is_refused_without_a_gpu(cold: Path, kx: Kx) -> None:
    result = kx("run", "S1", "--size", "nosuch", "--no-record", cwd=cold)
    assert result.exit_code == errors.USAGE
    assert f"{NAME} has no size 'nosuch'; known: full, emulated;" in result.stderr
    assert not (cold / ".kernelexp/build").exists()


def test_it_is_asked_once_while_all_that_it_depends_on_is_the_same(scale: Path) -> None:
    loads = scale / "loads"
    change(scale, ("FACTOR = 3.0", f"open({str(loads)!r}, 'a').write('.'); FACTOR = 3.0"))
    arms = [Arm(axes={**AXES, "width": width}, arch="sm_90a") for width in (1, 2)]
    both = consult.consult(scale, "scale", arms)
    assert consult.consult(scale, "scale", arms[1:]).points == both.points[1:]
    assert consult.consult(scale, "scale").sizes == both.sizes
    assert loads.read_text() == "."
    small = consult.consult(scale, "scale", arms[:1], ["count=64"], exports=[EXPORTS])
    assert small.points[0].launches.keys() == {"count=64"}
    assert small.sizes.keys() == {*both.sizes, "count=64"}
    assert "count=64" not in consult.consult(scale, "scale").sizes
    assert loads.read_text() == ".."
    change(scale, ('"count": 4096', '"count": 8192'))
    assert consult.consult(scale, "scale").sizes["emulated"] == {"count": 8192}


def test_a_size_that_is_asked_for_must_be_there(scale: Path) -> None:
    with pytest.raises(UsageError, match="known: full, emulated"):
        consult.require_size("scale", ask(scale).sizes, "tiny")
