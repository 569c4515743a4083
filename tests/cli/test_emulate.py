"""The command `emulate`, and counters of the full problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, Kx

from kernelexp.dossier import emulations
from kernelexp.dossier.emulations import Emulation
from kernelexp.evidence.emulate.scaling import Extent, scale
from kernelexp.facts.counters import SECTORS
from kernelexp.model import errors
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLine
from kernelexp.model.measurement import ArrayResult
from kernelexp.report.document.document import as_markdown
from kernelexp.report.variants import emulation
from kernelexp.report.variants import emulations as report

pytestmark = pytest.mark.usefixtures("shared_builds")

COUNTS = st.integers(0, 10**6)
FUSED = "{ .reg .f32 t; mul.f32 t, %0, %1; add.f32 %0, t, %2; }"
# What a launch of the full problem counts on a B200, as ncu published it, but for what ptxas adds a
# launch (tcgen05.alloc's bookkeeping) and the 32-byte stores, which ncu leaves out of its sectors.
STORES = "sass__inst_executed_global_stores"
FULL = {
    "ptx__sass__inst_executed_global_loads": (2_784_768, 2_784_768),
    "ptx__sass__inst_executed_global_stores": (1_392_384, 3_480_960),
    "ptx__sass__inst_executed_shared_stores": (None, 2_784_768),
    "ptx__smsp__sass_inst_executed_op_tmem_ldt": (696_192, 696_192),
    "ptx__smsp__sass_inst_executed_op_utcmma": (261_072, 261_072),
    "ptx__smsp__inst_executed_op_tma_ld": (261_072, 261_072),
    "ptx__memory_l2_theoretical_sectors_global": (133_668_864, 133_668_864),
    "ptx__memory_l2_theoretical_sectors_global_ideal": (89_112_576, 89_112_576),
    "ptx__memory_l1_tag_requests_global": (133_668_864, 100_251_648),
    "ptx__l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld": (133_668_864, 133_668_864),
}


@given(COUNTS, COUNTS, st.integers(1, 50), st.integers(1, 50), st.integers(2, 50))
def test_what_a_tile_and_a_cta_add_is_found_again(
    tile: int, cta: int, tiles: int, ctas: int, more: int
) -> None:
    def launch(extent: Extent) -> EmulatedEvidence:
        count = tile * extent.tiles + cta * extent.ctas
        return EmulatedEvidence(size="any", counters={"counter": count})

    few, many = Extent(tiles=tiles, ctas=ctas), Extent(tiles=tiles, ctas=ctas * more)
    full = Extent(tiles=10_878, ctas=148)
    (result,) = scale(launch(few), few, launch(many), many, full)
    assert (result.per_tile, result.per_cta, result.full) == (tile, cta, tile * 10_878 + cta * 148)


def test_where_each_cta_has_as_many_tiles_everywhere_ctas_alone_are_counted() -> None:
    one, two, full = (Extent(tiles=2 * ctas, ctas=ctas) for ctas in (3, 5, 100))
    (result,) = scale(counted(21), one, counted(35), two, full)
    assert (result.per_tile, result.per_cta, result.full) == (0, 7, 700)


def test_a_counter_that_does_not_grow_with_the_ctas_is_left_out() -> None:
    one, two, full = (Extent(tiles=ctas, ctas=ctas) for ctas in (3, 5, 100))
    assert list(scale(counted(21), one, counted(36), two, full)) == []


ONE, TWO, WHOLE = Extent(tiles=8, ctas=4), Extent(tiles=32, ctas=8), Extent(tiles=640, ctas=20)


def named(name: str, count: int) -> EmulatedEvidence:
    return EmulatedEvidence(size="any", counters={name: count})


def test_what_a_cta_does_for_all_its_tiles_but_the_first_is_solved() -> None:
    name = "sass__inst_executed_warp_barrier"
    (result,) = scale(named(name, 40), ONE, named(name, 208), TWO, WHOLE)
    assert (result.per_tile, result.per_cta) == (8, -6)
    assert list(scale(named(name, 40), ONE, named(name, 272), TWO, WHOLE)) == []  # 12 and -14


def test_only_what_polls_count_in_may_be_a_fraction() -> None:
    polled, other = "smsp__inst_executed", "sm__inst_executed_pipe_alu"
    (result,) = scale(named(polled, 34_504), ONE, named(polled, 123_852), TWO, WHOLE)
    assert (result.per_tile, result.per_cta) == (3428, 1770)
    assert result.full == 3427.75 * 640 + 1770.5 * 20
    assert list(scale(named(other, 34_504), ONE, named(other, 123_852), TWO, WHOLE)) == []


def test_global_loads_grow_with_the_tiles_that_load() -> None:
    """Of six tiles all load in both small launches, of 1,000 every tenth does."""
    one, two = Extent(tiles=6, ctas=2, loads=6), Extent(tiles=6, ctas=3, loads=6)
    full = Extent(tiles=1000, ctas=10, loads=100)
    loads, tags = "sass__inst_executed_global_loads", "memory_l1_tag_requests_global"

    def of(*, stores: int, lines: tuple[EmulatedLine, ...] = ()) -> dict[str, int]:
        counters = {"other": 12, loads: 30, tags: 60, STORES: stores}
        few = EmulatedEvidence(size="any", counters=counters, lines=lines)
        return {item.counter: item.full for item in scale(few, one, few, two, full)}

    assert of(stores=0) == {"other": 2000, loads: 500, tags: 1000, STORES: 0}
    assert of(stores=12)[tags] == 10_000  # of both, and nobody knows how many of each
    split = (
        EmulatedLine(file="k.cu", line=1, counters={loads: 30, tags: 42}),
        EmulatedLine(file="k.cu", line=2, counters={STORES: 12, tags: 18}),
    )
    assert of(stores=12, lines=split)[tags] == 42 // 6 * 100 + 18 // 6 * 1000


def counted(count: int) -> EmulatedEvidence:
    return EmulatedEvidence(size="any", counters={"counter": count})


def test_sizes_that_tell_tiles_from_ctas_are_needed() -> None:
    one, two, full = Extent(tiles=2, ctas=1), Extent(tiles=4, ctas=2), Extent(tiles=9, ctas=3)
    with pytest.raises(ValueError, match="same number of tiles per CTA"):
        list(scale(counted(1), one, counted(1), two, full))


@pytest.mark.slow
@pytest.mark.parametrize(("store", "column"), [("direct_v8", 0), ("staged", 1)])
def test_the_full_problem_is_counted_as_ncu_counted_it(kx: Kx, store: str, column: int) -> None:
    result = kx(
        "emulate", "patch_embed_gemm@sm_100a", "--set", f"store={store}", "--full", "--json"
    )
    (answer,) = json.loads(result.stdout)
    (launch,) = (item for item in answer["scaled"] if item["isa"] == "ptx")
    full = {counter["counter"]: counter["full"] for counter in launch["counters"]}
    wanted = {name: values[column] for name, values in FULL.items() if values[column] is not None}
    assert {name: full[name] for name in wanted} == wanted


def test_a_right_variant_ends_well_and_says_so(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale:width=2", cwd=scale)
    assert result.exit_code == errors.OK
    assert "y correct, all 4,096 elements" in result.stdout


def test_nothing_kept_in_the_project_is_no_hindrance(scale: Path, kx: Kx) -> None:
    """As where it is read-only."""
    (scale / ".kernelexp").mkdir(exist_ok=True)
    (scale / ".kernelexp/emulated").write_text("")
    assert kx("emulate", "scale:width=2", cwd=scale).exit_code == errors.OK


def test_a_wrong_variant_ends_with_4(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each += factor"))
    result = kx("emulate", "scale", cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    assert "INCORRECT" in result.stdout


def sized(root: Path) -> None:
    """Gives the project's kernel what --full needs."""
    problem = root / "variants/scale/problem.py"
    more = '"emulated": {"count": 4096}, "more": {"count": 8192}'
    problem.write_text(problem.read_text().replace('"emulated": {"count": 4096}', more))


def test_a_wrong_result_does_not_take_the_counters_of_the_full_problem(scale: Path, kx: Kx) -> None:
    sized(scale)
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each += factor"))
    result = kx("emulate", "scale", "--full", "--json", cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    (answer,) = json.loads(result.stdout)
    counters = answer["scaled"][0]["counters"]
    full = {counter["counter"]: counter["full"] for counter in counters}
    assert full["ptx__sass__inst_executed_global_stores"] == (1 << 20) // 32


def test_counts_of_the_full_problem_have_readable_names_on_one_page(scale: Path, kx: Kx) -> None:
    sized(scale)
    output = kx("emulate", "scale", "--full", cwd=scale).stdout
    (row,) = (line for line in output.splitlines() if line.startswith(" global store instructions"))
    assert row.split()[-1] == f"{(1 << 20) // 32:,}"
    assert "__" not in output
    verbose = kx("emulate", "scale", "--full", "--verbose", cwd=scale).stdout
    assert "full problem on PTX" in verbose
    assert "sass__inst_executed_global_stores" in verbose


def test_why_there_are_no_counters_of_the_full_problem_is_said(scale: Path, kx: Kx) -> None:
    sized(scale)
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("y[i] = v;", "y[i + count] = v;"))
    result = kx("emulate", "scale", "--full", cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    assert "no counters of the full problem: the launch did not run" in result.stdout


def test_what_never_ran_because_it_is_impossible_ends_with_3(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale:order=backward,width=4", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert "IMPOSSIBLE" in result.stdout


def test_an_emulation_past_its_limit_is_one_sentence_for_each_variant(cold: Path, kx: Kx) -> None:
    result = kx("emulate", "scale@sm_90a", "--limit", "emulation=0.001s", cwd=cold)
    assert result.exit_code == errors.ENVIRONMENT
    assert result.stderr == (
        "error: scale@sm_90a: defaults: the emulation had not ended after 0.001s; allow more with "
        "--limit emulation=0.002s.\n"
    )


def test_a_fault_of_several_variants_is_said_once(scale: Path, kx: Kx) -> None:
    problem = scale / "variants/scale/problem.py"
    problem.write_text(
        problem.read_text().replace('Array(shape=(size["count"],)', "Array(shape=()")
    )
    result = kx("emulate", "scale@sm_90a", "scale@sm_90a:width=2", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert result.stderr.count("error: ") == 1


def test_an_unknown_size_is_a_sentence(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale", "--size", "huge", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "has no size 'huge'; known: full, emulated;" in result.stderr


def test_the_b200_kernel_s_axes_are_emulated_by_name(kx: Kx) -> None:
    assert (ROOT / "experiments.yaml").exists()
    result = kx("emulate", "patch_embed_gemm@sm_100a", "--set", "stages=7")
    assert result.exit_code == errors.USAGE
    assert "axis 'stages' has no value '7'; known: 4, 5, 6." in result.stderr


@pytest.mark.slow
def test_a_schedule_that_fails_is_printed_and_fails_again_alone(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    racing = "__shared__ float s[256]; s[threadIdx.x ^ 32] = v.at[0]; v.at[0] = s[threadIdx.x];"
    source.write_text(source.read_text().replace("y[i] = v;", f"{racing} y[i] = v;"))
    result = kx("emulate", "scale", "--schedules", "4", "--json", cwd=scale)
    (answer,) = json.loads(result.stdout)
    failing = answer["arm"]["emulated"]["failing"]
    assert "seed 3, late" in failing
    again = kx("emulate", "scale", "--schedule", "seed 3, late", cwd=scale)
    assert again.exit_code == errors.WRONG_RESULT
    output = " ".join(again.stdout.split())
    assert "failing schedules (1 of 1): seed 3, late." in output
    assert "kernelexp emulate scale@sm_90a --schedule 'seed 3, late'" in output


@pytest.mark.slow
def test_pedantic_makes_a_warning_a_mistake(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    init = 'asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address));'
    twice = (
        "__shared__ __align__(8) unsigned long long barrier;"
        "unsigned address = (unsigned)__cvta_generic_to_shared(&barrier);"
        f"if (threadIdx.x == 0) {{ {init} {init} }} y[i] = v;"
    )
    source.write_text(source.read_text().replace("y[i] = v;", twice))
    lenient = kx("emulate", "scale", cwd=scale)
    assert lenient.exit_code == errors.OK
    assert "warning: missing-inval:" in lenient.stdout
    assert kx("emulate", "scale", "--pedantic", cwd=scale).exit_code == errors.WRONG_RESULT


def test_one_schedule_and_many_exclude_each_other(kx: Kx) -> None:
    result = kx("emulate", "scale", "--schedules", "4", "--schedule", "seed 3, late", cwd=ROOT)
    assert result.exit_code == errors.USAGE
    assert "--schedules and --schedule exclude each other." in result.stderr


def test_the_sass_of_a_variant_is_executed_too(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale@sm_90a", "--isa", "sass", "--schedules", "1", "--json", cwd=scale)
    assert result.exit_code == errors.OK
    (answer,) = json.loads(result.stdout)
    assert "emulated" not in answer["arm"]
    taken = answer["arm"]["emulated_sass"]
    assert (taken["isa"], taken["arrays"][0]["wrong"]) == ("sass", 0)
    assert taken["opcodes"]["STG"] == taken["counters"]["sass__inst_executed_global_stores"]
    assert taken["counters"]["smsp__inst_executed"] == sum(taken["opcodes"].values())
    assert not any(name.startswith("ptx__") for name in taken["counters"])


def test_an_unknown_instruction_set_is_a_sentence(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale", "--isa", "arm", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "--isa is one of ptx, sass, both, not 'arm'." in result.stderr


def test_a_run_judges_by_ptx_counts_on_sass_and_says_whether_they_agree(
    scale: Path, kx: Kx
) -> None:
    result = kx("run", "S1", "--no-record", "--json", cwd=scale)
    (ran,) = json.loads(result.stdout)
    arm = ran["record"]["candidates"][0]["arm"]
    ptx, sass = arm["emulated"], arm["emulated_sass"]
    assert ptx["outputs"] == sass["outputs"] != {}
    assert len(ptx["schedules"]) > len(sass["schedules"]) == 1
    assert all(name.startswith("ptx__") for name in ptx["counters"])
    stores = "sass__inst_executed_global_stores"
    assert sass["counters"][stores] == ptx["counters"][f"ptx__{stores}"] > 0
    output = " ".join(kx("run", "S1", "--no-record", cwd=scale).stdout.split())
    assert "baseline, candidate: PTX and SASS were both executed and give the same bits" in output


@pytest.mark.slow
def test_a_product_and_a_sum_that_ptxas_fuses_give_other_bits_which_is_said(
    scale: Path, kx: Kx
) -> None:
    source = scale / "variants/scale/scale.cu"
    asm = f'asm("{FUSED}" : "+f"(each) : "f"(factor), "f"(each * 1e-7f))'
    source.write_text(source.read_text().replace("each *= factor", asm))
    problem = scale / "variants/scale/problem.py"
    problem.write_text(problem.read_text().replace("rtol=2**-24", "rtol=2**-20"))
    result = kx("emulate", "scale@sm_90a", cwd=scale)
    assert result.exit_code == errors.OK
    output = " ".join(result.stdout.split())
    assert "Its SASS writes other bits to y than its PTX, within the tolerance" in output
    assert "Counted at size emulated: " in output


def test_sass_that_is_not_covered_leaves_the_counts_to_ptx() -> None:
    right = ArrayResult(name="y", elements=4, wrong=0, worst=0.0)
    counts = {"ptx__inst_executed": 8}
    ptx = EmulatedEvidence(size="emulated", arrays=(right,), schedules=("1",), counters=counts)
    sass = EmulatedEvidence(size="emulated", isa="sass", unsupported="`BPT` is not covered.")
    arm = Arm(emulated=ptx, emulated_sass=sass)
    page = "".join(as_markdown(report.render([Emulation(label="scale", arm=arm)])))
    assert "Counts are of PTX only, as the SASS can't be executed: `BPT` is not covered." in page
    assert "Counted at size emulated on PTX: 8 instructions." in page
    assert emulations.exit_code([arm], []) == errors.OK


def test_what_an_emulation_says_fits_eight_lines_and_verbose_has_every_counter(
    scale: Path, kx: Kx
) -> None:
    problem = scale / "variants/scale/problem.py"  # an odd last CTA, so that no guard is warned of
    problem.write_text(problem.read_text().replace('{"count": 4096}', '{"count": 4000}'))
    usual = kx("emulate", "scale@sm_90a:width=4", cwd=scale).stdout
    assert "Counted at size emulated: " in usual
    assert "ptx__" not in usual
    assert "(--verbose: all)" in " ".join(usual.split())
    assert len(usual.splitlines()) <= 8
    assert "ptx__inst_executed" in kx("emulate", "scale@sm_90a:width=4", "-v", cwd=scale).stdout


def test_an_axis_in_place_of_a_kernel_is_told_where_it_goes(scale: Path, kx: Kx) -> None:
    result = kx("emulate", "scale", "order=forward", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "as in scale:order=forward." in " ".join(result.stderr.split())


def test_of_a_launch_that_an_assertion_ended_neither_outputs_nor_counts_are_judged(
    scale: Path, kx: Kx
) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text().replace("y[i] = v;", "assert(count < 0); y[i] = v;")
    source.write_text(f"#include <cassert>\n{text}")
    result = kx("emulate", "scale@sm_90a:width=4", cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    assert result.stdout.splitlines()[1].startswith("scale: INCORRECT")
    assert "it ended there, so that its outputs are not judged." in result.stdout
    assert "never written" not in result.stdout
    assert "Counted" not in result.stdout


def test_a_variant_that_does_not_build_shows_what_the_compiler_said(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text() + "\nint broken = undefined_name;\n")
    result = kx("emulate", "scale@sm_90a", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert 'identifier "undefined_name" is undefined' in " ".join(result.stdout.split())
    assert "--verbose shows" not in result.stdout


def test_the_lines_with_most_sectors_are_those_of_bulk_copies_too() -> None:
    loads, bulk = SECTORS[:2]
    lines = (
        EmulatedLine(file="a/k.cu", line=3, counters={loads: 10}),
        EmulatedLine(file="a/k.cu", line=7, counters={bulk: 30, loads: 2}),
    )
    evidence = EmulatedEvidence(size="emulated", isa="sass", lines=lines)
    arm = Arm(kernel="k", arch="sm_90a", axes={}, emulated_sass=evidence, emulated=evidence)
    shown = as_markdown(emulation.dearest({"k": arm}))
    assert "Most global sectors: k.cu:7 32, k.cu:3 10" in shown
