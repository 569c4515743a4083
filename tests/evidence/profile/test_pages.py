"""ncu's pages as an H200 printed them, and all that may be wrong with such a file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from ncu_pages import figure, raw, read, text

from kernelexp.evidence.profile import pages
from kernelexp.evidence.profile.merging import merge
from kernelexp.model.errors import UsageError

TIME = "gpu__time_duration.sum"
BANDWIDTH = "dram__bytes.sum.per_second"


# ---- what ncu prints -----------------------------------------------------------------------------


def test_every_launch_of_a_raw_page_is_an_evidence_of_its_own() -> None:
    result = read(text("raw.csv"))
    assert [item.entry for item in result] == ["patch_embed_gemm"] * 2 + ["transpose"] * 2
    assert result[0].grid == (132, 1, 1)
    assert result[0].block == (384, 1, 1)
    assert (result[0].device, result[0].capability) == ("NVIDIA H200", "9.0")


def test_scaled_units_and_base_units_give_the_same_figures() -> None:
    for scaled, base in zip(read(text("raw.csv")), read(text("raw-base.csv")), strict=True):
        assert scaled.units == base.units
        for name, value in base.figures.items():
            if isinstance(value, float):
                assert scaled.figures[name] == pytest.approx(value, rel=5e-3), name


def test_figures_are_in_base_units() -> None:
    first = read(text("raw.csv"))[0]
    assert first.figures[TIME] == pytest.approx(754_368)
    assert first.units[TIME] == "ns"
    assert first.figures[BANDWIDTH] == pytest.approx(2.81e12, rel=1e-3)
    assert first.units[BANDWIDTH] == "byte/s"
    assert first.units["gpc__cycles_elapsed.avg.per_second"] == "hz"


def test_a_text_is_a_figure_as_it_is() -> None:
    assert read(text("raw.csv"))[0].figures["launch__cluster_scheduling_policy"] == "PolicySpread"


def test_metrics_without_a_figure_are_missing() -> None:
    first = read(text("raw.csv"))[0]
    assert "sass__inst_executed_register_spilling_mem_local" in first.missing
    assert "derived_tempMetric4" in first.missing
    assert not set(first.missing) & set(first.figures)


def test_details_give_the_figures_of_the_raw_page_under_the_same_names() -> None:
    of_raw, of_details = read(text("raw.csv"))[0], read(text("details.csv"))[0]
    both = set(of_raw.figures) & set(of_details.figures)
    assert TIME in both
    assert len(both) > 12
    for name in both:
        value = of_raw.figures[name]
        expected = value if isinstance(value, str) else pytest.approx(value, rel=5e-3, abs=0.01)
        assert of_details.figures[name] == expected


def test_details_have_the_advice_of_ncus_rules() -> None:
    last = read(text("details.csv"))[-1]
    advice = next(item for item in last.advice if item.rule == "UncoalescedSharedAccess")
    assert (advice.section, advice.kind, advice.scope) == ("SourceCounters", "OPT", "global")
    assert advice.speedup_percent == 93.53
    assert advice.sentence.startswith("This kernel has uncoalesced shared accesses")


def test_details_that_were_printed_with_metric_names_keep_them() -> None:
    printed = text("details.csv").replace('"Duration"', f'"{TIME}"')
    assert read(printed)[0].figures[TIME] == pytest.approx(754_370)


def test_a_label_whose_metric_is_not_known_keeps_its_section() -> None:
    printed = text("details.csv").replace('"Duration"', '"Length"')
    assert "GPU Speed Of Light Throughput: Length" in read(printed)[0].figures


def test_a_source_page_has_instructions_by_their_offset() -> None:
    gemm, _, transpose, _ = read(text("source-sass.csv"))
    assert [instruction.offset for instruction in gemm.instructions[:3]] == [0, 16, 32]
    assert gemm.instructions[0].sass == "LDC R1, c[0x0][0x28]"
    assert gemm.instructions[0].figures["Instructions Executed"] == 1584
    assert "Divergent Branches" not in gemm.instructions[0].figures
    assert transpose.instructions[0].figures["Instructions Executed"] == 1_048_576


def test_figures_of_a_source_page_stand_under_their_own_columns_where_one_is_not_printed() -> None:
    transpose = read(text("source-sass.csv"))[2]
    assert transpose.instructions[0].figures["Warp Stall Sampling (All Samples)"] == 87
    for instruction in transpose.instructions:
        stalls = {
            name: value
            for name, value in instruction.figures.items()
            if name.startswith("stall_") and not name.endswith("(Not Issued)")
        }
        assert sum(stalls.values()) == instruction.figures["Warp Stall Sampling (All Samples)"]


def test_a_page_of_cuda_and_sass_tells_the_line_of_an_instruction() -> None:
    gemm = read(text("source-cuda-sass.csv"))[0]
    assert {instruction.file.rpartition("/")[2] for instruction in gemm.instructions} == {
        "patch_embed_gemm_sm90a.cu",
        "tiles_sm90a.cuh",
    }
    assert all(instruction.line for instruction in gemm.instructions)


def test_a_file_that_comes_again_is_of_the_next_launch() -> None:
    assert [item.entry for item in read(text("source-cuda-sass.csv"))] == [
        "patch_embed_gemm",
        "patch_embed_gemm",
        "transpose",
        "transpose",
    ]


def test_the_line_of_the_project_counts_where_an_instruction_is_of_a_toolkits_header_too() -> None:
    (evidence,) = read(
        '"File Path","/usr/local/cuda/include/crt/math.hpp"\n"Function Name","k"\n'
        '"Line No","Source","Address","Source","# Samples"\n'
        '"896","return umin(a, b);","-","-","3"\n"","","0x7f0010","      UMIN","3"\n'
        '"File Path","tiles.cuh"\n"Function Name","k"\n'
        '"Line No","Source","Address","Source","# Samples"\n'
        '"86","n = min(a, b);","-","-","3"\n"","","0x7f0010","      UMIN","3"\n'
    )
    assert [(instruction.file, instruction.line) for instruction in evidence.instructions] == [
        ("tiles.cuh", 86)
    ]


def test_quotes_in_a_line_of_source_do_not_move_its_columns() -> None:
    (evidence,) = read(
        '"File Path","C:\\src\\cluster.cuh"\n"Function Name","k"\n'
        '"Line No","Source","Address","Source","# Samples"\n'
        '"18","asm("mapa %0, %1;" : "=r"(mapped) : "r"(a), "r"(b));","-","-","399"\n'
        '"","","0x7f0000","      MAPA R1","399"\n'
        '"19","f("a","b");","-","-","1"\n'
        '"","","0x7f0010","      NOP","1"\n'
    )
    assert [instruction.line for instruction in evidence.instructions] == [18, 19]
    assert evidence.instructions[0].file == "C:\\src\\cluster.cuh"
    assert evidence.instructions[0].figures == {"# Samples": 399}


def test_instances_of_a_metric_follow_its_total() -> None:
    (evidence,) = read(raw(("sass__opcodes", "inst", "1,234 (LDS: 1,000; LDL.64: 234)")))
    assert evidence.figures == {
        "sass__opcodes": 1234,
        "sass__opcodes[LDS]": 1000,
        "sass__opcodes[LDL.64]": 234,
    }


def test_instances_without_names_are_numbered() -> None:
    (evidence,) = read(raw(("a__b", "Kbyte", "3 (1; 2)")))
    assert evidence.figures == {"a__b": 3000, "a__b[0]": 1000, "a__b[1]": 2000}


# ---- what else is in the output ------------------------------------------------------------------


def test_what_ncu_and_the_program_print_before_the_page_is_left_out() -> None:
    before = (
        "==PROF== Connected to process 1 (/usr/bin/python3)\n"
        "==WARNING== Note: Running with unmodified GPU clocks.\n"
        'loading "weights", 3,5\n"quoted" by the program\n'
        '==PROF== Profiling "kernel": 0%....50%....100% - 38 passes\n'
    )
    assert read(before + text("raw.csv") + "==PROF== Done\nbye\n") == read(text("raw.csv"))


def test_what_the_program_prints_between_rows_is_left_out() -> None:
    first, second, rest = text("raw.csv").split("\n", 2)
    assert read(f"{first}\nhello\n{second}\n\n==PROF== x\n{rest}") == read(text("raw.csv"))


def test_a_page_without_the_row_of_units_is_read() -> None:
    assert figure("1,234.5", units=False) == 1234.5


@pytest.mark.parametrize("name", ["raw.csv", "details.csv", "source-sass.csv"])
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(name: str) -> None:
    printed = text(name)
    assert read("\ufeff" + printed.replace("\n", "\r\n")) == read(printed)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_page_that_a_spreadsheet_wrote_anew_is_read(delimiter: str) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(csv.reader(io.StringIO(text("raw.csv"))))
    assert read(written.getvalue()) == read(text("raw.csv"))


def test_a_description_over_several_lines_is_one_sentence() -> None:
    printed = text("details.csv").replace("uncoalesced shared accesses", "uncoalesced\naccesses")
    assert any("uncoalesced\naccesses" in item.sentence for item in read(printed)[-1].advice)


def test_quotes_in_a_description_do_not_move_its_columns() -> None:
    printed = text("details.csv").replace("shared accesses resulting", 's "a","b" resulting')
    advice = read(printed)[-1].advice[-1]
    assert 's "a","b" resulting' in advice.sentence
    assert advice.speedup_percent == 93.53


def test_two_pages_that_follow_each_other_are_one_launch_each() -> None:
    result = read(text("raw.csv") + text("source-sass.csv"))
    assert len(result) == 4
    assert all(item.figures and item.instructions for item in result)


def test_rows_of_the_same_launch_are_one_evidence() -> None:
    once, again = raw(("a__b", "", "1")), raw(("c__d", "", "2"))
    (evidence,) = read(once + again)
    assert evidence.figures == {"a__b": 1, "c__d": 2}


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("1,234", 1234),
        ("1,234.5", 1234.5),
        ("150,109,880,320", 150_109_880_320),
        ("1.234,5", 1234.5),
        ("1.234.567", 1_234_567),
        ("0,53", 0.53),
        ("1\u202f234,5", 1234.5),
        ("1\u00a0234.5", 1234.5),
        ("1 234", 1234),
        ("1'234.5", 1234.5),
        ("0.123", 0.123),
        ("-3.5", -3.5),
        ("1.5e+06", 1.5e6),
        ("44.556288", 44.556288),
    ],
)
def test_a_number_is_read_in_any_locale(printed: str, value: float) -> None:
    assert figure(printed) == value


def test_a_comma_parts_thousands_unless_the_file_shows_otherwise() -> None:
    assert figure("1,234") == 1234
    (evidence,) = read(raw(("a__b", "", "1,234"), ("c__d", "%", "71,38")))
    assert evidence.figures["a__b"] == 1.234


def test_a_point_is_the_decimal_mark_where_a_file_has_both() -> None:
    (evidence,) = read(raw(("a__b", "", "1,234"), ("c__d", "%", "71,38"), ("e__f", "%", "0.5")))
    assert evidence.figures["a__b"] == 1234


@pytest.mark.parametrize("printed", ["n/a", "no data", "nan", "-nan", "inf", "(!) n/a", "N/A"])
def test_what_is_no_figure_is_missing(printed: str) -> None:
    (evidence,) = read(raw(("a__b.sum", "inst", printed)))
    assert evidence.figures == {}
    assert evidence.missing == ("a__b.sum",)


@pytest.mark.parametrize(
    ("unit", "factor", "base"),
    [
        ("Kbyte", 1e3, "byte"),
        ("Tbyte/s", 1e12, "byte/s"),
        ("us", 1e3, "ns"),
        ("msecond", 1e6, "ns"),
        ("Ghz", 1e9, "hz"),
        ("sector/ns", 1e9, "sector/s"),
        ("%/Kbyte", 1e-3, "%/byte"),
        ("Kbyte/block", 1e3, "byte/block"),
        ("Mibyte", 1024**2, "byte"),
        ("register/thread", 1, "register/thread"),
        ("SM", 1, "SM"),
        ("Ginst", 1e9, "inst"),
    ],
)
def test_units_become_base_units(unit: str, factor: float, base: str) -> None:
    (evidence,) = read(raw(("a__b", unit, "3")))
    assert evidence.figures["a__b"] == pytest.approx(3 * factor)
    assert evidence.units["a__b"] == base


# ---- what is broken ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["raw.csv", "details.csv", "source-sass.csv"])
def test_a_file_that_ends_within_a_row_keeps_what_is_whole_and_says_so(name: str) -> None:
    whole = text(name)
    cut = whole[: whole.rindex('","', 0, len(whole) - 60) + 4]
    page = pages.parse(cut.splitlines(keepends=True), "cut.csv")
    assert page.lost
    assert all(sentence.startswith("cut.csv") for sentence in page.lost)
    everything = {name for item in read(whole) for name in item.figures}
    assert all(set(launch.evidence.figures) <= everything for launch in page.launches)


def test_a_number_that_no_float_holds_is_no_number() -> None:
    many = "9" * 5000
    printed = text("raw.csv").replace("(132, 1, 1)", f"({many}, 1, 1)") + text(
        "source-cuda-sass.csv"
    )
    assert figure(many) == many
    assert read(printed.replace('"12"', f'"{many}"'))[0].grid is None


def test_a_cell_that_was_cut_off_is_no_figure() -> None:
    printed = raw(("a__b", "", "12"), ("c__d", "", "3456"))
    (evidence,) = read(printed[: printed.index("3456") + 2])
    assert evidence.figures == {"a__b": 12}


def test_only_a_file_that_ends_within_a_row_is_said_to(tmp_path: Path) -> None:
    printed = raw(("a__b", "", "1")) + '"a program began to quote\n' + raw(("a__b", "", "1"))
    page = pages.parse(printed.splitlines(keepends=True), "page.csv")
    assert not any("ends in the middle" in sentence for sentence in page.lost)


@pytest.mark.parametrize("last", ['"', '""', '"0', '"0"', '"0",', '"",'])
def test_a_row_of_one_cell_or_none_is_no_launch(last: str) -> None:
    assert read(text("raw.csv") + last) == read(text("raw.csv"))


def test_columns_that_a_row_lacks_are_said_with_their_line() -> None:
    printed = raw(("a__b", "", "1"), ("c__d", "", "2")).replace(',"2"', "")
    page = pages.parse(printed.splitlines(keepends=True), "page.csv")
    assert page.lost == ("page.csv, line 3: 1 of its columns are missing.",)


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("", "is not a page of ncu"),
        ("a,b\n1,2\n", "is not a page of ncu"),
        ("\x00\x01NVR", "is not a page of ncu"),
        ("==PROF== Disconnected\n", "is not a page of ncu"),
        ('"ID","Kernel Name","a__b"\n', "has the header of a CSV page of ncu, and no launch"),
        ('"File Name","k.cu"\n"Line No","Source"\n"1","//"\n', "of CUDA lines alone"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_in_one_sentence(printed: str, why: str) -> None:
    with pytest.raises(UsageError, match=r"^page\.csv ") as error:
        read(printed)
    assert why in str(error.value)
    assert "--csv --page raw" in str(error.value)


# ---- several pages -------------------------------------------------------------------------------


def test_pages_of_one_report_are_merged_by_launch() -> None:
    parsed = [
        pages.parse(io.StringIO(text(name)), name).launches
        for name in ("source-cuda-sass.csv", "details.csv", "source-sass.csv", "raw.csv")
    ]
    merged = [launch.evidence for launch in merge(parsed)]
    assert [item.entry for item in merged] == ["patch_embed_gemm"] * 2 + ["transpose"] * 2
    assert [bool(item.advice) for item in merged] == [True, False, False, True]
    assert all(item.instructions and item.figures for item in merged)
    assert merged[0].figures[TIME] == read(text("raw.csv"))[0].figures[TIME]
    assert merged[0].instructions[0].line
    assert merged[0].instructions[0].figures["Instructions Executed"] == 1584


def test_launches_with_different_grids_are_not_merged() -> None:
    other = text("details.csv").replace("(132, 1, 1)", "(131, 1, 1)")
    parsed = [pages.parse(io.StringIO(page), "a").launches for page in (text("raw.csv"), other)]
    assert len(merge(parsed)) == 5


def test_a_page_that_prints_parameters_is_of_the_same_kernel() -> None:
    source = text("source-sass.csv").replace('"transpose"', '"transpose(float*, int)"')
    parsed = [pages.parse(io.StringIO(page), "a").launches for page in (text("raw.csv"), source)]
    assert len(merge(parsed)) == 4


def test_the_lines_of_a_function_are_those_of_the_kernel_that_calls_it() -> None:
    sass = (
        '"Kernel Name","kernel"\n"Address","Source","# Samples"\n'
        '"0x7f0000","CALL","1"\n"0x7f0010","EXIT","2"\n"0x7f0020","RET","3"\n'
    )
    lines = "".join(
        f'"File Path","{file}"\n"Function Name","{function}"\n'
        f'"Line No","Source","Address","Source","# Samples"\n"{line}","x","-","-","1"\n'
        f'"","","{address}","{opcode}","1"\n'
        for file, function, line, address, opcode in (
            ("f.cuh", "function", 7, "0x7f0020", "RET"),
            ("k.cu", "kernel", 9, "0x7f0000", "CALL"),
        )
    )
    (evidence,) = read(sass + lines)
    assert [(instruction.file, instruction.line) for instruction in evidence.instructions] == [
        ("k.cu", 9),
        ("", 0),
        ("f.cuh", 7),
    ]


def test_a_source_page_alone_has_the_totals_of_its_columns() -> None:
    result = read(text("source-transpose-plain.csv"))[0]
    assert result.figures["smsp__pcsamp_warps_issue_stalled_mio_throttle"] == 30_180
    assert result.figures["smsp__pcsamp_warps_issue_stalled_long_scoreboard"] == 13_192
    whole = read(text("source-sass.csv"))
    assert whole[3].figures["smsp__inst_executed.sum"] == 6_291_456  # of the rows that are there
