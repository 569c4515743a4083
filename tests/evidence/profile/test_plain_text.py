"""ncu's plain text, as people commit it: the same figures as its CSV of the same launches."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path

import msgspec
import pytest
from judge_cases import arm
from support import Kx

from kernelexp.evidence.profile import pages
from kernelexp.evidence.profile.imports import read_file
from kernelexp.judge import consistency
from kernelexp.model.arm import ProfiledEvidence

DATA = Path(__file__).parents[2] / "data" / "ncu"
OLDER = """\
==PROF== Disconnected from process 77
[77] app@127.0.0.1
  scale(float *, int), 2021-Mar-02 10:11:12, Context 1, Stream 7
    Section: GPU Speed Of Light
    ---------------------------------------- --------------- ------------------------------
    dram__bytes.sum.per_second                  Gbyte/second                          250.5
    gpu__time_duration.sum                           usecond                          12.25
    ---------------------------------------- --------------- ------------------------------
"""


def plain(details: str) -> str:
    """The launches of a details page as ncu prints them without --csv."""
    rows = list(csv.DictReader(io.StringIO(details)))
    launches: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        launches.setdefault(row["ID"], {}).setdefault(row["Section Name"], []).append(row)
    return "".join(map(launch, launches.values()))


def launch(sections: dict[str, list[dict[str, str]]]) -> str:
    first = next(iter(sections.values()))[0]
    text = f"[{first['Process ID']}] {first['Process Name']}@{first['Host Name']}\n"
    text += f"  {first['Kernel Name']} {first['Grid Size']}x{first['Block Size']}, Context 1, "
    text += f"Stream 7, Device 0, CC {first['CC']}\n"
    return text + "".join(section(name, rows) for name, rows in sections.items()) + "\n"


def section(name: str, rows: list[dict[str, str]]) -> str:
    table = [
        (row["Metric Name"], row["Metric Unit"], row["Metric Value"])
        for row in rows
        if row["Metric Name"]
    ]
    text = f"    Section: {name}\n"
    if table:
        head = ("Metric Name", "Metric Unit", "Metric Value")
        widths = [max(len(row[at]) for row in (head, *table)) for at in range(3)]
        dashes = "    " + " ".join("-" * width for width in widths) + "\n"

        def line(row: tuple[str, str, str]) -> str:
            return f"    {row[0]:<{widths[0]}} {row[1]:>{widths[1]}} {row[2]:>{widths[2]}}\n"

        text += dashes + line(head) + dashes + "".join(map(line, table)) + dashes + "\n"
    return text + "".join(rule(row) for row in rows if row["Rule Description"])


def rule(row: dict[str, str]) -> str:
    speedup, kind = row["Estimated Speedup"], row["Estimated Speedup Type"]
    words = row["Rule Description"]
    if speedup:
        local = "Local " if kind == "local" else ""
        words = f"Est. {local}Speedup: {speedup}%" + " " * 40 + words
    wrapped = textwrap.wrap(words, 110, drop_whitespace=True)
    return f"    {row['Rule Type']:<5} " + "\n          ".join(wrapped) + "\n\n"


def evidence(text: str) -> tuple[ProfiledEvidence, ...]:
    return pages.read(text, "ncu.txt")


@pytest.mark.parametrize("page", ["details.csv", "rules.csv"])
def test_plain_text_has_the_figures_and_the_advice_of_the_csv(page: str) -> None:
    printed = (DATA / page).read_text()
    want, result = evidence(printed), evidence(plain(printed))
    assert len(want) == len(result) > 1
    for one, other in zip(want, result, strict=True):
        assert other.figures == one.figures
        assert other.units == one.units
        assert (other.entry, other.grid, other.block) == (one.entry, one.grid, one.block)
        assert other.capability == one.capability
        answer = {(item.kind, item.speedup_percent, item.scope) for item in one.advice}
        assert {(item.kind, item.speedup_percent, item.scope) for item in other.advice} == answer


def test_rules_are_known_by_their_words() -> None:
    printed = (DATA / "rules.csv").read_text()
    for one, other in zip(evidence(printed), evidence(plain(printed)), strict=True):
        assert sorted(item.rule for item in other.advice) == sorted(
            item.rule for item in one.advice
        )


def test_what_a_program_prints_around_it_is_passed_over() -> None:
    printed = (DATA / "details.csv").read_text()
    noisy = "==PROF== Connected to process 1\nM=1024, N=1024\n" + plain(printed) + "\ndone in 3 s\n"
    assert [item.figures for item in evidence(noisy)] == [
        item.figures for item in evidence(plain(printed))
    ]


def test_the_text_of_an_older_ncu_is_read() -> None:
    (result,) = evidence(OLDER)
    assert result.entry == "scale(float *, int)"
    assert result.figures["gpu__time_duration.sum"] == pytest.approx(12_250)
    assert result.figures["dram__bytes.sum.per_second"] == pytest.approx(250.5e9)


def test_a_file_of_it_is_imported_as_a_csv_page_is(tmp_path: Path) -> None:
    path = tmp_path / "ncu.txt"
    path.write_text(plain((DATA / "details.csv").read_text()))
    page = read_file(path)
    assert page.launches[0].evidence.figures["launch__registers_per_thread"] == 168
    assert page.lost == ()


def test_a_profile_of_another_build_is_doubted() -> None:
    """Of the same project, with another kernel's 168 registers and 384 threads."""
    (taken, *_) = evidence((DATA / "details.csv").read_text())
    build = arm("logs/runs/T1/20261121T000003Z-045af7a9.measured.json").build
    assert build is not None
    words = consistency.other_build(build, taken)
    assert words.startswith("168 registers per thread (this variant: ")
    assert "384 threads per CTA (this variant: 256)" in words
    same = msgspec.structs.replace(taken, figures={}, block=(32, 8, 1))
    assert consistency.other_build(build, same) == ""


def test_a_profile_is_imported_without_a_compiler_and_with_a_warning(
    scale: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ncu.txt"
    path.write_text(plain((DATA / "details.csv").read_text()))
    arguments = ("profile", "--import", str(path), "--variant", "scale", "--launch", "1")
    shown = " ".join(kx(*arguments, cwd=scale).stdout.split())
    assert "The launch has 168 registers per thread (this variant: " in shown
    monkeypatch.setenv("KERNELEXP_NVCC", str(tmp_path / "nvcc"))
    result = kx(*arguments, cwd=scale)
    assert result.exit_code == 0
    assert "imported from ncu.txt" in " ".join(result.stdout.split())
