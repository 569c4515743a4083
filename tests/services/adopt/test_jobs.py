"""Several launches of one job: what they share, and how they are written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt import draft, jobs, launch_axes, notation
from kernelexp.services.adopt import entry as reading
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, LaunchShape
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.launched import AdoptedLaunch


def array(name: str, **use: bool) -> KernelParameter:
    return KernelParameter(name=name, type="float", size=8, align=8, is_pointer=True, **use)


def whole(name: str) -> KernelParameter:
    return KernelParameter(name=name, type="int", size=4, align=4, is_pointer=False)


def entry(name: str, *parameters: KernelParameter) -> KernelEntry:
    return KernelEntry(
        symbol=name,
        name=name,
        signature=name,
        parameters=parameters,
        threads=32,
        dynamic_smem=False,
    )


PARTS = entry("parts", array("x", read=True), array("sums", written=True), whole("n"))
TOTAL = entry("total", array("sums", read=True), array("y", written=True), whole("count"))


def test_an_array_between_launches_is_neither_given_nor_compared() -> None:
    assert jobs.between([PARTS, TOTAL], Answers(), ()) == ["sums"]
    assert jobs.between([PARTS, TOTAL], Answers(), ("sums",)) == []
    assert jobs.between([PARTS, TOTAL], Answers(references={"sums": "x"}), ()) == []
    assert jobs.between([PARTS], Answers(), ()) == []


def test_what_a_later_launch_changes_in_place_is_a_result() -> None:
    again = entry("again", array("sums", read=True, written=True))
    assert jobs.between([PARTS, again], Answers(), ()) == []
    (sums,) = (job for job in jobs.values([PARTS, again]) if job.name == "sums")
    assert sums.written
    assert not sums.read


def test_a_job_is_drafted_as_a_list_of_launches() -> None:
    total = jobs.called(TOTAL, ("sums", "y", "n/512"))
    shapes = (LaunchShape(grid=("n/512",)), LaunchShape(grid=("1",), block=(64, 1, 1)))
    answers = Answers(launches=shapes, between=("sums",), values={"n": 4096})
    text = draft.problem([PARTS, total], "sum.cu", answers)
    names: dict[str, object] = {}
    exec(text.partition('"""\n\n')[2], names)
    launch = names["launch"]
    assert callable(launch)
    first, second = launch({}, {"n": 1000})
    assert (first.entry, first.grid, first.block) == ("parts", (2, 1, 1), (32, 1, 1))
    assert (second.entry, second.grid, second.block) == ("total", (1, 1, 1), (64, 1, 1))
    assert second.arguments[2].value == 2
    assert '"sums": Array(' in text
    assert 'Chunk(array="sums"' not in text


def test_arguments_rename_parameters_and_are_as_many() -> None:
    renamed = jobs.called(TOTAL, ("parts", "", "n"))
    assert [parameter.name for parameter in renamed.parameters] == ["parts", "y", "n"]
    with pytest.raises(UsageError, match=r"total has 3 parameters \(sums, y, count\), and 1 arg"):
        jobs.called(TOTAL, ("sums",))
    with pytest.raises(UsageError, match="sums is an array: pass it by a name, not 'n \\+ 1'"):
        jobs.called(TOTAL, ("n + 1", "y", "n"))


def test_a_launch_is_written_as_in_cuda() -> None:
    wanted = notation.parse(
        "ns::scan<int, 64><<<dim3(n / 64, m), (16, 16), 1024>>>(y, nullptr, 2*n);"
    )
    assert (wanted.entry, wanted.plain) == ("ns::scan<int, 64>", "scan")
    assert wanted.shape == LaunchShape(grid=("n / 64", "m"), block=(16, 16, 1), smem="1024")
    assert wanted.arguments == ("y", "0", "2*n")


def test_shared_memory_may_follow_a_size() -> None:
    wanted = notation.parse("scan<<<1, 32, 2 * k * sizeof(float)>>>")
    assert wanted.shape.smem == "2 * k * 4"
    text = draft.problem([TOTAL], "k.cu", Answers(launches=(wanted.shape,), values={"k": 3}))
    assert 'dynamic_smem_bytes=2 * size["k"] * 4,' in text


@pytest.mark.parametrize(
    ("inside", "shape"),
    [
        ("n/block", LaunchShape(grid=("n/block",))),
        ("n/128,", LaunchShape(grid=("n/128",))),
        (", 128", LaunchShape(block=(128, 1, 1))),
        (",, 1024", LaunchShape(smem="1024")),
        ("", LaunchShape()),
    ],
)
def test_any_part_of_a_launch_can_be_left_out(inside: str, shape: LaunchShape) -> None:
    assert notation.parse(f"scan<<<{inside}>>>(x)").shape == shape


@pytest.mark.parametrize("text", ["gemm", "gemm<(Kind)1, sizeof(int)>", "gemm<A<int>>"])
def test_a_name_alone_is_a_launch_of_which_nothing_else_is_known(text: str) -> None:
    assert notation.parse(text) == notation.WantedLaunch(entry=text)


def test_arguments_may_be_given_without_a_shape() -> None:
    wanted = notation.parse("gemm<64>(a, b, _)")
    assert wanted == notation.WantedLaunch(entry="gemm<64>", arguments=("a", "b", ""))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("scan<<<1, 32", "has no >>>"),
        ("scan<<<1, 2000>>>(x)", "a CTA has 1,024 at most"),
        ("scan<<<1, 32>>> x", "should be as in"),
    ],
)
def test_what_is_no_launch_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        notation.parse(text)


def test_two_instances_of_a_template_are_told_apart_by_their_symbols() -> None:
    ptx = ".entry _Z3sumILi32EEvPf(\n.entry _Z3sumILi64EEvPf(\n"
    assert jobs.symbol(ptx, "sum", "sum< 64 >") == "_Z3sumILi64EEvPf"
    with pytest.raises(UsageError, match=r"write it as the compiler does:\n  sum<32>\n  sum<64>$"):
        jobs.symbol(ptx, "sum", "sum<FULL>")


INSTANCES = [
    f"_ZN2ns4gemmINS_4TileI{'Lj256E' * 12}L4Mode{mode}EEEEEvPf" for mode in range(2)
]  # of ns::gemm<ns::Tile<256u, ..., (Mode)0> >(float*)


def test_instances_that_differ_at_their_end_are_named_whole_and_taken_as_they_are_named() -> None:
    ptx = "".join(f".entry {item}(\n" for item in INSTANCES)
    with pytest.raises(UsageError) as raised:
        jobs.symbol(ptx, "gemm", "ns::gemm<ns::Tile<256, MODE>>")
    _, *printed = str(raised.value).splitlines()
    assert len(printed) == 2
    for text, symbol in zip(printed, INSTANCES, strict=True):
        for written in (
            text,
            f"void {text.strip()}(float*)",
            f"void {text.strip()}(float*)<<<1>>>",
        ):
            wanted = notation.parse(written)
            assert not wanted.arguments
            assert jobs.symbol(ptx, wanted.plain, wanted.entry) == symbol


def test_an_instance_may_be_named_without_namespaces_and_suffixes() -> None:
    ptx = "".join(f".entry {item}(\n" for item in INSTANCES)
    written = f"gemm<Tile<{'256, ' * 12}(Mode)1>>"
    assert jobs.symbol(ptx, "gemm", written) == INSTANCES[1]


def test_an_enumerator_is_taken_as_the_source_names_it_where_one_instance_fits() -> None:
    entries = [f"_Z4copyIL4Mode{mode}ELi{n}EEvPf" for mode, n in ((0, 2), (0, 4), (1, 4))]
    ptx = "".join(f".entry {item}(\n" for item in entries)
    assert jobs.symbol(ptx, "copy", "copy<Mode::rows, 2>") == entries[0]
    with pytest.raises(UsageError, match="write it as the compiler does"):
        jobs.symbol(ptx, "copy", "copy<Mode::rows, 4>")


def test_a_number_that_is_passed_is_no_parameter_of_the_job() -> None:
    assert [value.name for value in jobs.called(PARTS, ("", "", "512")).values] == ["x", "sums"]
    assert msgspec.structs.replace(whole("n"), passed="512").passed == "512"


def test_dynamic_shared_memory_is_of_the_entries_that_name_it() -> None:
    ptx = """.version 8.0
.target sm_90
.address_size 64
.func helper
()
;
.extern .shared .align 16 .b8 pool[];
.visible .entry uses()
{
    .reg .b32 %r<2>;
    mov.u32 %r1, pool;
    ret;
}
.visible .entry other()
{
    ret;
}
"""
    assert reading.read(ptx, (), "uses").dynamic_smem
    assert not reading.read(ptx, (), "other").dynamic_smem


def varied(usual: tuple[int, int, int] | None, *launches: str) -> Answers:
    """A job of total(), launched so, with the axis of the block."""
    compiled = Compiled(
        kernel="k", title="k", source="k.cu", origin="k.cu", arch="sm_90a",
        folder=Path(), entries=(TOTAL,) * len(launches),
    )  # fmt: skip
    shapes = tuple(notation.parse(f"total<<<{text}>>>").shape for text in launches)
    answers = Answers(launches=shapes, values={"n": 1000, "bins": 8})
    launch = AdoptedLaunch(compiled=compiled, answers=answers, flags=())
    return launch_axes.add(launch, "block", (128, 256), usual).answers


def test_the_blocks_of_several_launches_follow_one_axis_where_they_are_its_value() -> None:
    answers = varied((128, 1, 1), "1, 32", "n/128, 128", "n/128, 64", "1, bins", "n/BLOCK, block")
    assert answers.axes["block"].default == 128
    assert [(shape.grid, shape.extents or shape.block) for shape in answers.launches] == [
        (("1",), (32, 1, 1)),
        (("n/block",), ("block", "1", "1")),
        (("n/128",), (64, 1, 1)),
        (("1",), ("bins", "1", "1")),
        (("n/block",), ("block", "1", "1")),
    ]
    text = draft.problem([TOTAL] * 5, "k.cu", answers)
    assert text.count('block=(axes["block"], 1, 1)') == 2


@pytest.mark.parametrize(
    ("usual", "launches", "sentence"),
    [
        ((96, 1, 1), ["1, 32", "n/128, 128"], "no launch has a block of 96 in x.* but 32, 128"),
        (None, ["n/128, 128", "n/128"], "what the block of total is now: --block 256 for every"),
        (None, ["1, bins"], "say which block is the one of now, as in --block 256"),
    ],
)
def test_an_axis_of_the_block_that_no_launch_has_is_a_sentence(
    usual: tuple[int, int, int] | None, launches: list[str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        varied(usual, *launches)


def test_a_number_stays_where_a_launch_names_the_axis_elsewhere() -> None:
    block = "dim3(16, 16)"
    answers = varied((16, 16, 1), f"dim3(n/BLOCK, n/16), {block}", f"dim3(n/16, n/16), {block}")
    assert [shape.grid for shape in answers.launches] == [("n/block", "n/16"), ("n/block", "n/16")]
    assert [shape.extents for shape in answers.launches] == [("block", "16", "1")] * 2
