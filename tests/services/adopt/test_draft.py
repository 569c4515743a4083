"""problem.py as it is drafted from what an entry's PTX and signature say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt import adopted, draft
from kernelexp.services.adopt.answers import Answers, DraftAxis, LaunchShape, read_and_written
from kernelexp.services.adopt.draft import launch
from kernelexp.services.adopt.entry import (
    KernelEntry,
    KernelParameter,
    Member,
    read,
    types_and_names,
)
from kernelexp.services.adopt.expressions import parse_reference
from kernelexp.services.adopt.uses import F16_SUMS, TF32


def pointer(name: str, kind: str, **use: bool) -> KernelParameter:
    return KernelParameter(name=name, type=kind, size=8, align=8, is_pointer=True, **use)


def value(name: str, kind: str, size: int) -> KernelParameter:
    return KernelParameter(name=name, type=kind, size=size, align=size, is_pointer=False)


def drafted(
    *parameters: KernelParameter,
    dynamic_smem: bool = False,
    arithmetic: str = "",
    **answers: object,
) -> str:
    entry = KernelEntry(
        symbol="k",
        signature="k",
        parameters=parameters,
        threads=32,
        dynamic_smem=dynamic_smem,
        arithmetic=frozenset({arithmetic} - {""}),
    )
    shape = {key: answers.pop(key) for key in ("block", "grid", "smem") if key in answers}
    known = Answers(launches=(LaunchShape(**shape),), **answers)
    return draft.problem([entry], "k.cu", known)


def test_an_array_that_is_read_and_written_is_an_input_and_an_output() -> None:
    text = drafted(
        pointer("x", "float", read=True),
        pointer("c", "double", read=True, written=True),
        pointer("d", "short", written=True),
        value("n", "int", 4),
        shapes={"c": ("n",)},
        references={"c": "x + c"},
    )
    assert '"c": Array(shape=(size["n"],), dtype="f64")' in text
    assert '"c": torch.randn((size["n"],), generator=generator, device=device).to(' in text
    assert '    c = inputs["c"].double()\n    yield Chunk(array="c"' in text
    assert text.count('"x":') == 1
    assert text.count('"d":') == 1


def test_a_workspace_starts_as_zero_and_is_no_result() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        pointer("tickets", "unsigned int", read=True, written=True),
        shapes={"tickets": ("1",)},
        workspaces=("tickets",),
    )
    assert '"tickets": Array(shape=(1,), dtype="u32", zero=True)' in text
    assert text.count('"tickets":') == 1
    assert 'Chunk(array="tickets"' not in text


def test_an_output_that_starts_as_zero_is_no_input() -> None:
    bins = pointer("bins", "unsigned int", read=True, written=True)
    text = drafted(bins, shapes={"bins": ("256",)}, zeros=("bins",))
    assert '"bins": Array(shape=(256,), dtype="u32", zero=True)' in text
    assert 'Chunk(array="bins"' in text
    assert text.count('"bins":') == 1


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        (Answers(), ["bins"]),
        (Answers(references={"bins": "x.bincount()"}), ["bins"]),
        (Answers(references={"bins": "bins + x"}), []),
        (Answers(zeros=("bins",)), []),
        (Answers(workspaces=("bins",)), []),
    ],
)
def test_what_an_array_starts_as_is_asked_until_it_is_said(
    answers: Answers, names: list[str]
) -> None:
    arrays = pointer("x", "int", read=True), pointer("bins", "int", read=True, written=True)
    assert list(read_and_written(arrays, answers)) == names


def test_a_reference_has_no_other_names_than_parameters_and_torch() -> None:
    arrays = pointer("x", "float", read=True), pointer("y", "float", written=True)
    drafted(*arrays, references={"y": "torch.stack([row + len(x) for row in x])"})
    with pytest.raises(UsageError, match=r"'stack' is not a parameter .* as in torch\.stack\."):
        drafted(*arrays, references={"y": "stack([row for row in x])"})


def test_scalars_of_one_and_two_bytes_are_drafted() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value("up", "bool", 1), value("half", "__half", 2), value("rows", "short", 2)),
        values={"up": 1, "half": 0.5},
    )
    assert 'Scalar(type="bool", value=True)' in text
    assert 'Scalar(type="f16", value=0.5)' in text
    assert 'Scalar(type="s16", value=size["rows"])' in text


def test_dynamic_shared_memory_of_unknown_size_is_blank() -> None:
    y = pointer("y", "float", written=True)
    assert "dynamic_smem_bytes" not in drafted(y)
    assert "dynamic_smem_bytes=64," in drafted(y, dynamic_smem=True, smem="64")
    blanks = [words for _, words in draft.blanks(drafted(y, dynamic_smem=True))]
    assert "the bytes of dynamic shared memory" in blanks


def test_a_structure_and_a_tensor_map_are_blank() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value("p", "Params", 24), value("map", "CUtensorMap_st", 128)),
    )
    what = [words for _, words in draft.blanks(text)]
    assert "Params p: 24 bytes, a ctypes.Structure or a NumPy record" in what
    assert "elements that one copy takes, likewise" in what
    assert "Launch, Pointer, StructValue, TensorMap" in text


def test_the_members_of_a_structure_are_its_fields_and_are_named_like_parameters() -> None:
    whole = KernelParameter(
        name="p",
        type="Params",
        size=24,
        align=8,
        is_pointer=False,
        members=(
            msgspec.structs.replace(pointer("x", "float", read=True), offset=0),
            msgspec.structs.replace(pointer("y", "float", written=True), offset=8),
            msgspec.structs.replace(value("n", "int", 4), offset=20),
        ),
    )
    text = drafted(whole, values={"n": 10}, shapes={"x": ("n",), "y": ("n",)})
    assert 'Field(offset=8, value=Pointer(array="y")),' in text
    assert 'Field(offset=20, value=Scalar(type="s32", value=size["n"])),' in text
    assert '"y": Array(shape=(size["n"],), dtype="f32")' in text
    assert "size=24," in text


MAPS = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 k_param_0[320])
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [k_param_0+256];
    ld.param.u32 %r1, [k_param_0];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_tensor_maps_in_a_structure_are_arrays_though_nothing_loads_them() -> None:
    members = (
        Member(path=("n",), type="int", offset=0, size=4, is_pointer=False),
        Member(path=("map",), type="CUtensorMap_st", offset=128, size=128, is_pointer=False),
        Member(path=("y",), type="int *", offset=256, size=8, is_pointer=True),
        Member(path=("unused",), type="int", offset=264, size=4, is_pointer=False),
    )
    entry = read(MAPS, ["Params p"], "k", {0: members})
    assert [value.name for value in entry.values] == ["n", "map", "y"]
    answers = Answers(shapes={"y": ("n",)}, values={"n": 1})
    text = draft.problem([entry], "k.cu", answers)
    assert "                Field(offset=128, value=TensorMap(\n" in text
    assert '                    array="map",\n' in text
    what = [words for _, words in draft.blanks(text)]
    assert "elements that one copy takes, likewise" in what
    layout = adopted.parse_map("map", "f16:64x128:128B")
    said = msgspec.structs.replace(answers, maps={"map": layout})
    compiled = adopted.Compiled(
        kernel="k", title="k", source="k.cu", origin="k.cu", arch="sm_90a",
        folder=Path(), entries=(entry,),
    )  # fmt: skip
    known, _ = adopted.described(compiled, (), said, {})
    assert "box=(64, 128),\n" in draft.problem(known.entries, "k.cu", said)
    wrong = msgspec.structs.replace(answers, maps={"mop": layout})
    with pytest.raises(
        UsageError, match=r"--tensor-map: 'mop' is not a tensor map .* Known: map\."
    ):
        adopted.described(compiled, (), wrong, {})


def test_the_block_is_as_said_or_as_the_entry_was_compiled_for() -> None:
    y = pointer("y", "float", written=True)
    assert "block=(32, 1, 1)," in drafted(y)
    assert "block=(96, 1, 1)," in drafted(y, block=(96, 1, 1))
    entry = KernelEntry(symbol="k", signature="k", parameters=(y,), threads=0, dynamic_smem=False)
    assert 'block=blank("the threads of a CTA' in draft.problem([entry], "k.cu", Answers())


def test_the_tolerance_of_a_sum_grows_with_what_is_summed_over() -> None:
    matrices = (
        pointer("a", "float", read=True),
        pointer("b", "float", read=True),
        pointer("c", "float", read=True, written=True),
        *(value(name, "int", 4) for name in "MNK"),
    )
    shapes = {"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "N")}
    of_sum = 'of_rms=1e-05 + 2e-07 * (size["K"]) ** 0.5,'
    assert of_sum in drafted(*matrices, shapes=shapes)
    assert "and of sums of K terms" in drafted(*matrices, shapes=shapes)
    assert "of_rms=1e-05,\n" in drafted(*matrices)
    filters = drafted(*matrices, shapes=shapes | {"b": ("3", "K")})
    assert 'of_rms=1e-05 + 2e-07 * (max(size["K"], 3)) ** 0.5,' in filters


def test_a_tolerance_allows_for_what_matrix_instructions_round_to() -> None:
    f32 = (pointer("a", "float", read=True), pointer("c", "float", written=True))
    sizes = (value("M", "int", 4), value("K", "int", 4))
    shapes = {"a": ("M", "K"), "c": ("M",)}
    text = drafted(*f32, *sizes, arithmetic=TF32, shapes=shapes)
    assert 'of_rms=0.004 + 2e-07 * (size["K"]) ** 0.5' in text
    assert "roundings of f32 operands to TF32 in MMAs" in text
    f16 = (pointer("a", "half", read=True), pointer("c", "half", written=True))
    assert "of_rms=0.004,\n" in drafted(*f16, *sizes, shapes=shapes)
    text = drafted(*f16, *sizes, arithmetic=F16_SUMS, shapes=shapes)
    assert 'of_rms=0.004 + 0.00025 * (size["K"]) ** 0.5' in text
    assert "sums of K terms in f16" in text


@pytest.mark.parametrize(
    ("reference", "absolute"), [("x.sum().reshape(1)", True), ("x.mean().reshape(1)", False)]
)
def test_one_sum_that_may_cancel_is_not_held_to_its_own_size(
    reference: str, absolute: bool
) -> None:
    text = drafted(
        pointer("x", "float", read=True),
        pointer("y", "float", written=True),
        value("n", "int", 4),
        shapes={"x": ("n",), "y": ("1",)},
        references={"y": reference},
    )
    assert ('atol=1e-05 * (size["n"]) ** 0.5 + 2e-07 * (size["n"]),' in text) is absolute


def test_an_integer_sum_is_exact() -> None:
    text = drafted(
        *(pointer("x", "int", read=True), pointer("y", "int", written=True), value("n", "int", 4)),
        shapes={"x": ("n",), "y": ("1",)},
    )
    assert 'Tolerance(rtol=0, why="a guess: integers are exact")' in text


def test_a_size_may_be_smaller_on_the_cpu() -> None:
    text = drafted(
        *(pointer("y", "float", written=True), value("n", "int", 4), value("m", "int", 4)),
        values={"n": 4096, "m": 7},
        emulated={"n": 100},
    )
    assert '"full": {"n": 4096, "m": 7},' in text
    assert '"emulated": {"n": 100, "m": 7},' in text


def test_only_a_size_may_be_smaller_on_the_cpu() -> None:
    parameters = (pointer("y", "float", written=True), value("by", "float", 4))
    with pytest.raises(
        UsageError, match="--emulated: 'by' is not an integer of the kernel; known: n"
    ):
        drafted(*parameters, value("n", "int", 4), emulated={"by": 1})


def test_an_entry_s_parameters_have_names_that_python_takes() -> None:
    assert types_and_names("k", ("const float* in", "float* out"))[1] == ["in_", "out"]
    with pytest.raises(UsageError, match="A parameter named in is in_ there"):
        parse_reference("2 * in")
    assert parse_reference("2 * in_") == "2 * in_"


def test_what_the_kernel_ignores_is_zero() -> None:
    unused = {"name": "p", "type": "", "align": 8, "is_pointer": False, "ignored": True}
    y = pointer("y", "float", written=True)
    text = drafted(y, KernelParameter(size=8, **unused), KernelParameter(size=24, **unused))
    assert 'Scalar(type="u64", value=0),' in text
    assert "StructValue(size=24)," in text


def test_tiles_are_the_ctas_of_the_grid_until_somebody_says_else() -> None:
    given = (pointer("y", "float", written=True), value("n", "int", 4))
    text = drafted(*given, grid=("n / 128", "n"), shapes={"y": ("n",)})
    names: dict[str, object] = {}
    tiles = text[text.index("def tiles") : text.index("def launch")]
    exec(tiles, names)
    assert callable(names["tiles"])
    assert names["tiles"]({}, {"n": 256}) == 512
    assert "def tiles" not in drafted(*given, shapes={"y": ("n",)})


@pytest.mark.parametrize(
    ("emulated", "has_tiles"),
    [({"n": 100}, True), ({"n": 100, "ld": 100}, True), ({"n": 100, "k": 33, "ld": 7}, False)],
)
def test_there_are_no_tiles_where_a_cta_has_more_to_do_at_full_size(
    emulated: dict[str, int], has_tiles: bool
) -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value(name, "int", 4) for name in ("n", "k", "ld")),
        grid=("n / 32",),
        values={"n": 4096, "k": 512, "ld": 4096 if emulated.get("ld") == 100 else 64},
        emulated=emulated,
    )
    assert ("def tiles" in text) is has_tiles


def product(full: dict[str, int], emulated: dict[str, int]) -> str:
    return drafted(
        *(pointer("y", "float", written=True), pointer("a", "float", read=True)),
        *(value(name, "int", 4) for name in ("n", "k")),
        grid=("n / 32",),
        values=full,
        emulated=emulated,
        shapes={"y": ("n", "n"), "a": ("n", "k")},
        references={"y": "a @ a.T"},
    )


def tiles_of(text: str, size: dict[str, int]) -> int:
    names: dict[str, Any] = {}
    exec(text[text.index("def tiles") : text.index("def work")], names)
    return int(names["tiles"]({}, size))


def test_the_length_of_a_loop_counts_as_tiles_with_a_second_size_to_solve_it_from() -> None:
    """A product's K: 16 steps of 32 in the full problem, one, four and eight in the small ones."""
    full = {"n": 4096, "k": 512}
    text = product(full, {"n": 64, "k": 32})
    assert '"emulated_more": {"n": 64, "k": 128},' in text
    assert '"emulated_most": {"n": 64, "k": 256},' in text
    assert tiles_of(text, full) == 128 * 16


def test_a_loop_that_no_number_of_small_ones_fills_is_counted_in_a_divisor_of_it() -> None:
    full = {"n": 4096, "k": 2048}
    text = product(full, {"n": 64, "k": 300})
    assert tiles_of(text, full) == 128 * 16
    assert '"emulated": {"n": 64, "k": 300},' in text
    assert '"emulated_more": {"n": 64, "k": 512},' in text
    assert '"emulated_most": {"n": 64, "k": 1024},' in text


@pytest.mark.parametrize(
    ("full", "small", "words"),
    [
        (
            {"n": 4096, "k": 333, "ld": 1},
            {"n": 64, "k": 50},
            "k=333 is no multiple of the emulated 50",
        ),
        ({"n": 4096, "k": 33, "ld": 1}, {"n": 64, "k": 50}, "k=33 is less than the emulated 50"),
        ({"n": 4096, "k": 512, "ld": 9}, {"n": 64, "k": 33, "ld": 2}, "k and ld both say how much"),
        ({"n": 4096, "k": 512, "ld": 1}, {"n": 64, "k": 32}, ""),
    ],
)
def test_why_there_are_no_tiles_is_told(
    full: dict[str, int], small: dict[str, int], words: str
) -> None:
    shape = LaunchShape(block=(32, 1, 1), grid=("n / 32",))
    answers = Answers(launches=(shape,), values=dict(full), emulated=small)
    told = launch.untold(answers, frozenset(full))
    assert told.startswith(words)
    assert bool(told) == bool(words)


def test_a_size_of_a_later_grid_is_no_loop_of_the_first_launch() -> None:
    """M says how many CTAs the second launch has: 11 times the work if it were taken for a loop."""
    shapes = tuple(LaunchShape(block=(32, 1, 1), grid=(f"{n} * k / 256",)) for n in ("n", "m"))
    full, small = {"n": 4096, "k": 40, "m": 4096}, {"n": 64, "k": 40, "m": 32}
    answers = Answers(launches=shapes, values=dict(full), emulated=small)
    assert launch.tiles(answers, frozenset(full)) == ""
    assert launch.untold(answers, frozenset(full)) == "m says how many CTAs a later launch has"


def test_the_sum_of_a_square_product_is_a_loop_though_its_grid_is_as_long() -> None:
    full = {"n": 4096, "k": 4096}
    text = product(full, {"n": 64, "k": 64})
    assert '"emulated_more": {"n": 64, "k": 256},' in text
    assert tiles_of(text, full) == 128 * 64


def test_counts_are_not_solved_from_rows_that_share_a_line_of_the_cache() -> None:
    """A product's rows of 4 floats: eight of them lie in 128 bytes."""
    text = product({"n": 4096, "k": 512}, {"n": 64, "k": 4})
    assert '"emulated_more": {"n": 64, "k": 32},' in text
    assert '"emulated_most": {"n": 64, "k": 64},' in text


def test_a_second_grid_shows_whether_every_cta_counts_the_same() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value(name, "int", 4) for name in ("n", "k", "ld")),
        grid=("n / 32",),
        values={"n": 4096, "k": 512, "ld": 4096},
        emulated={"n": 64, "ld": 64},
    )
    assert '"emulated_more": {"n": 128, "k": 512, "ld": 128},' in text


def test_a_long_loop_is_no_small_size_twice() -> None:
    text = product({"n": 4096, "k": 16384}, {"n": 64, "k": 1024})
    assert '"emulated_more": {"n": 64, "k": 2048},' in text


@pytest.mark.parametrize(
    ("grid", "small", "more"),
    [
        (("w / 16", "h / 16"), 64, [128, 256]),
        (("w / 16",), 64, [128]),
        (("w / (b - 2)", "h / (b - 2)"), 84, [210, 420, 840]),
    ],
)
def test_a_grid_that_grows_in_two_sizes_has_three_and_whole_tiles_of_every_axis(
    grid: tuple[str, ...], small: int, more: list[int]
) -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value(name, "int", 4) for name in "wh"),
        grid=grid,
        axes={"b": DraftAxis(values=(16, 32), default=16, about="")},
        values={"w": 4096, "h": 4096},
        emulated={"w": small, "h": small},
    )
    names = ("emulated_more", "emulated_most", "emulated_largest")
    drafts = [f'"{name}": {{"w": {n}, "h": {n}}},' for name, n in zip(names, more, strict=False)]
    assert [draft for draft in drafts if draft in text] == drafts
    assert text.count('": {"w": ') == 2 + len(more)


def test_blocks_with_halves_in_them_are_drafted_with_a_word_on_how_to_draw_those() -> None:
    line = "# w has halves in it, and random bits make some infinite"
    for mixed in (True, False):
        blocks = pointer("w", "unsigned char", read=True, packed=True, mixed=mixed)
        text = drafted(blocks, pointer("y", "float", written=True), shapes={"w": ("64",)})
        assert (line in text) == mixed
