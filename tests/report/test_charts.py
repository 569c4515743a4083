"""Charts are data from the repository's own records; what draws them takes any title."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp.logs import profiles, records
from kernelexp.model import errors
from kernelexp.model.arm import Arm, ProfiledEvidence
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import spell_point
from kernelexp.model.record import Profile
from kernelexp.report.charts import changes, ncu, text
from kernelexp.report.charts.chart import (
    Band,
    Bars,
    Chart,
    ChartAxis,
    HeatMap,
    Mark,
    Plot,
    Series,
    Tile,
)
from kernelexp.report.document.document import Table, text_of
from kernelexp.report.runs import sweep_map
from kernelexp.report.site import drawing, svg

HOSTILE = "<script>alert(1)</script> $\\frac{1}{ & \x1b[31m 速"


def plot(title: str = "t") -> Plot:
    return Plot(
        title=title,
        x=ChartAxis(label=title, categories=(title, "b")),
        y=ChartAxis(label="time", unit="ms", log=True),
        series=(
            Series(name=title, marks=(Mark(x=0, y=1.0, low=0.5, high=2.0), Mark(x=1, y=3.0))),
            Series(name="all", marks=(Mark(x=0, y=1.0),), look="dots"),
            Series(name="roof", marks=(Mark(x=0, y=1.0), Mark(x=1, y=1.0)), look="line"),
        ),
        bands=(Band(name=title, low=0.9, high=1.1),),
        note=title,
    )


EVERY: tuple[Chart, ...] = (
    plot(HOSTILE),
    HeatMap(
        title=HOSTILE,
        across="a",
        down="b",
        columns=("1", HOSTILE),
        rows=("x",),
        tiles=((Tile(value=None, text="refused"), Tile(value=0.0, text="best")),),
    ),
    Bars(title=HOSTILE, unit="cycles", names=(HOSTILE, "b"), groups=((HOSTILE, (1.0, None)),)),
)


def show(kx: Kx, *arguments: str) -> list[dict[str, object]]:
    result = kx("plot", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


def test_the_history_has_the_times_of_the_log(kx: Kx) -> None:
    logged = {
        (log["kernel"], log["arch"], step["id"]): step["arms"][-1]
        for log in json.loads(kx("log", "--json").stdout)
        for step in log["history"]
    }
    shown = {}
    for chart in json.loads(kx("plot", "history", "--json").stdout):
        unit = chart["y"]["unit"]
        metric = "time_ms" if "measured" in chart["title"] else "published_time_ms"
        metric = "published_tflops" if unit == "TFLOPS" else metric
        kernel, arch = chart["title"].split(":")[0].split(", ")
        for series in chart["series"]:
            for mark in series["marks"]:
                step = chart["x"]["categories"][int(mark["x"])]
                shown[kernel, arch, step, metric] = mark["y"]
    expected = {
        (*where, metric): arm[metric]
        for where, arm in logged.items()
        for metric in ("time_ms", "published_time_ms", "published_tflops")
        if metric in arm
    }
    assert shown == expected
    assert shown


def test_measured_and_published_times_never_share_a_plot(kx: Kx) -> None:
    titles = [str(chart["title"]) for chart in show(kx, "history", "patch_embed_gemm")]
    assert ["published" in title for title in titles] == [
        "measured" not in title for title in titles
    ]
    assert len(titles) == 3


def test_the_pairs_of_a_run_lie_around_the_interval_of_its_record() -> None:
    record = records.read_file(records.find(ROOT, "S7", measured=True))
    (chart,) = changes.of_pairs(record)
    dots, medians = chart.series
    margin, interval = chart.bands
    effect = record.candidates[0].arm.measured.effect  # type: ignore[union-attr]
    assert effect is not None
    assert interval.low == pytest.approx(100 * (effect.low - 1))
    assert (margin.low, margin.high) == (-1.0, 1.0)
    assert len(medians.marks) == effect.processes
    assert len(dots.marks) <= changes.DOTS_MAX
    assert min(m.y for m in dots.marks) <= 100 * (effect.ratio - 1) <= max(m.y for m in dots.marks)


def test_the_pairs_of_a_run_at_an_unusual_size_name_it(kx: Kx) -> None:
    titles = kx("plot", "run", "20261122T115231Z-2b0ca5cb").stdout.splitlines()
    assert "A16, block_n=176, size long128: change of time in each pair" in titles


def test_the_best_field_of_a_map_is_of_the_fastest_variant() -> None:
    record = records.read_file(records.find(ROOT, "sweep-transpose"))
    (chart,) = sweep_map.charts(record)
    fastest = min(
        (arm for arm in record.arms if arm.measured), key=lambda arm: arm.measured.time_us
    )  # type: ignore[union-attr]
    best = [
        (row, column)
        for row, tiles in zip(chart.rows, chart.tiles, strict=True)
        for column, tile in zip(chart.columns, tiles, strict=True)
        if tile and tile.value == min(t.value for tiles in chart.tiles for t in tiles if t)
    ]
    assert best == [(str(fastest.axes[chart.down]), str(fastest.axes[chart.across]))]
    assert chart.columns == tuple(sorted(chart.columns, key=int)) or chart.rows == tuple(
        sorted(chart.rows, key=int)
    )


@pytest.fixture(scope="module")
def kept() -> list[Profile]:
    return profiles.read_all(ROOT)[0]


def measured(arm: Arm) -> Arm | None:
    device = arm.profiled.device if arm.profiled else ""
    result = records.latest_measured(ROOT, arm, arm.files, device)
    return result[1] if result else None


def labelled(kept: list[Profile]) -> list[tuple[str, Profile]]:
    return [(spell_point(item.arm.axes), item) for item in kept]


def test_no_variant_stands_above_the_highest_roof(kept: list[Profile]) -> None:
    (chart,), _ = ncu.rooflines(labelled(kept), measured)
    highest = max(m.y for item in chart.series if item.look == "line" for m in item.marks)
    points = [m for item in chart.series if item.look == "points" for m in item.marks]
    assert len(points) == 5
    assert all(0 < point.y < highest for point in points)


def test_the_time_of_other_sources_is_no_time_of_a_profile(kept: list[Profile]) -> None:
    (own,) = (item for item in kept if "052206Z" in item.run)
    arm = msgspec.structs.replace(own.arm, files=dict.fromkeys(own.arm.files, "0" * 64))
    charts, (reason,) = ncu.rooflines(labelled([msgspec.structs.replace(own, arm=arm)]), measured)
    assert charts == ()
    assert "has no measured record of its variant, sources, size" in reason


def test_a_kernel_without_useful_work_has_no_roofline(kept: list[Profile]) -> None:
    own = [item for item in kept if item.arm.kernel == "transpose"]
    charts, reasons = ncu.rooflines(labelled(own), measured)
    assert charts == ()
    assert any(reason.endswith("states no useful FLOPs") for reason in reasons)


def test_an_unknown_type_of_operand_is_refused_with_those_of_the_chip(
    kept: list[Profile],
) -> None:
    own = [item for item in labelled(kept) if "052206Z" in item[1].run]
    with pytest.raises(UsageError, match="known are fp8, bf16"):
        ncu.rooflines(own, measured, dtype="fp9")


def test_stalls_of_two_profiles_stand_side_by_side(kx: Kx) -> None:
    (chart,) = show(kx, "stalls", "20261122T052421Z", "20261122T052444Z")
    groups = dict(chart["groups"])  # type: ignore[call-overload]
    assert groups["mio throttle"][0] < groups["mio throttle"][1]


def test_a_profile_without_stalls_is_named() -> None:
    with pytest.raises(UsageError, match="the profile of F3 has no stalls"):
        ncu.stalls([("F3", ProfiledEvidence(entry="k", figures={"sm__cycles.sum": 1.0}))])


def test_texts_stay_what_they_are_in_svg(tmp_path: Path) -> None:
    drawing.write(EVERY, tmp_path / "a.svg")
    tree = ElementTree.parse(tmp_path / "a.svg")
    shown = [item.text or "" for item in tree.iter() if item.tag.endswith("text")]
    assert any("<script>alert(1)</script> $\\frac{1}{ & \\x1b[31m" in item for item in shown)
    assert not [item for item in tree.iter() if item.tag.endswith("script")]


@pytest.mark.slow
def test_the_same_charts_give_the_same_bytes() -> None:
    assert drawing.render((plot(),)) == drawing.render((plot(),))


def test_a_chart_is_drawn_as_png_at_twice_its_size(tmp_path: Path) -> None:
    drawing.write((plot(),), tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == 2 * drawing.WIDTH


def test_a_png_has_its_letters_where_the_machine_has_no_font() -> None:
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
    letter = picture.format('<text x="2" y="15" font-family="sans-serif">M</text>')
    assert drawing.to_png(letter) != drawing.to_png(picture.format(""))


def test_a_figure_has_the_same_shade_on_every_map_and_the_baseline_has_none() -> None:
    record = records.read_file(records.find(ROOT, "sweep-transpose"))
    (chart,) = sweep_map.charts(record)
    shades = {tile.text: svg.shade(tile.value) for row in chart.tiles for tile in row if tile}
    assert [shades[text] for text in ("-1.92%", "base", "+0.15%", "+20.58%", "2.1x")] == [
        *(0, 0, 0, 3, 5)
    ]
    assert svg.shade(0.0929) == svg.shade(0.0931) == 2


def test_a_drawn_map_has_each_field_s_figure_on_its_shade() -> None:
    fields = (Tile(value=0.0, text="best"), Tile(value=None, text="refused"))
    slow = (Tile(value=3.0, text="4.0x"), None)
    kinds = {"across": "a", "down": "d", "columns": ("x", "y"), "rows": ("r", "s")}
    tree = ElementTree.fromstring(
        drawing.render((HeatMap(title="t", tiles=(fields, slow), **kinds),))
    )
    shades = [item.get("class") for item in tree.iter() if item.tag.endswith("rect")][1:]
    texts = {item.text: item.get("class") for item in tree.iter() if item.tag.endswith("text")}
    assert shades == ["h0", "h5"]
    assert (texts["best"], texts["refused"], texts["4.0x"]) == ("h0", "title", "h5")


def test_drawn_bars_are_as_long_as_their_figures() -> None:
    tree = ElementTree.fromstring(
        drawing.render((Bars(title="t", unit="ms", names=("a", "b"), groups=(("g", (4.0, 1.0)),)),))
    )
    bars = [item for item in tree.iter() if item.tag.endswith("rect")][1:]
    one, other = (float(item.get("width", "0")) for item in bars)
    assert one == pytest.approx(4 * other, abs=0.5)


def test_a_bar_of_full_length_is_all_of_a_percentage() -> None:
    groups = (("L2", (41.0, 12.0)),)
    assert Bars(title="t", unit="%", names=("a", "b"), groups=groups).most == 100
    assert Bars(title="t", unit="ms", names=("a", "b"), groups=groups).most == 41
    assert Bars(title="t", unit="ms", names=("a",), groups=(("g", (None,)),)).most == 1


def test_nothing_of_a_drawing_is_left_of_or_below_it() -> None:
    tree = ElementTree.fromstring(drawing.render(EVERY))
    tops = [
        float(item.get("transform", "0 0)").split()[1].rstrip(")"))
        for item in tree
        if item.tag.endswith("}g")
    ]
    assert tops == sorted(tops)
    assert tops[-1] < float(tree.get("height", "0"))
    for item in tree.iter():
        if item.tag.endswith("text") and item.get("x"):
            assert 0 <= float(item.get("x", "0")) <= drawing.WIDTH


def test_a_terminal_shows_marks_between_the_ends_of_their_intervals() -> None:
    rows = next(block for block in text.render((plot(),)) if isinstance(block, Table)).rows
    assert [text_of(row[-1])[0] for row in rows] == ["├", " "]
    assert "●" in text_of(rows[0][-1])


def test_another_format_is_refused(kx: Kx) -> None:
    result = kx("plot", "history", "--out", "chart.pdf")
    assert (result.exit_code, result.stderr) == (
        errors.USAGE,
        "error: --out chart.pdf should end in .svg or .png.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "name it"),
        (("sweep", "S7"), "not a sweep"),
        (("history", "transposed"), "did you mean"),
        (("run", "F3"), "timed no pairs"),
        (("history", "--by", "a,b"), "goes with `plot sweep`"),
    ],
)
def test_what_cannot_be_shown_is_said(kx: Kx, arguments: tuple[str, ...], words: str) -> None:
    result = kx("plot", *arguments)
    assert result.exit_code == errors.USAGE
    assert words in result.stderr


def test_charts_of_the_terminal_fit_80_columns(kx: Kx) -> None:
    for arguments in (("history",), ("run", "T3"), ("roofline",), ("stalls", "published-9bf658a")):
        lines = kx("plot", *arguments).stdout.splitlines()
        assert max(map(len, lines)) <= 80, arguments


def test_an_interval_is_drawn_with_both_its_ends(kx: Kx) -> None:
    whiskers = [line for line in kx("plot", "run", "T3").stdout.splitlines() if "├" in line]
    assert whiskers
    assert all(line.rstrip().endswith(("┤", "●")) for line in whiskers)


def test_a_roofline_of_the_terminal_has_both_axes_and_a_letter_for_each_variant(kx: Kx) -> None:
    text = kx("plot", "roofline").stdout
    drawing, _, legend = text.partition("variant")
    assert "useful FLOPs per byte of DRAM (FLOP/B)" in drawing
    assert "2,000 ┤" in drawing
    rows = [line.split() for line in legend.splitlines() if "cluster=" in line]
    rates = [float(row[1].replace(",", "")) for row in rows]
    assert [row[0] for row in rows] == list("ABCDE")
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("what", "known"), [("run", "A16"), ("sweep", "transpose"), ("stalls", "published-9bf658a")]
)
def test_a_chart_without_its_name_lists_what_there_is(kx: Kx, what: str, known: str) -> None:
    result = kx("plot", what)
    assert result.exit_code == errors.USAGE
    assert known in result.stderr


def test_without_a_name_it_lists_what_there_is(kx: Kx) -> None:
    result = kx("plot")
    assert result.exit_code == errors.OK
    words = " ".join(result.stdout.split())
    assert "plot sweep NAME patch_embed_gemm, transpose," in words
    assert "plot stalls NAME published-9bf658a," in words


def test_a_sweep_is_found_by_its_kernel_where_one_architecture_was_swept(kx: Kx) -> None:
    assert kx("plot", "sweep", "transpose").stdout.startswith("transpose, sm_90a: change of time")
