"""The tables of a published audit, figure by figure, from the two profiles that it was made of.

The profiles are not part of the repository; where they are missing these tests are skipped.
"""

from __future__ import annotations

import re

import pytest
from support import ROOT

from kernelexp.dossier import subjects
from kernelexp.judge.ranking import ComparedFigure
from kernelexp.report.document import figures
from kernelexp.services import comparisons

DATA = ROOT.parent / "shared/data"
BEFORE, AFTER = DATA / "ncu-b200-baseline.csv", DATA / "ncu-b200-after.csv"

pytestmark = pytest.mark.skipif(not BEFORE.is_file(), reason="the audit's profiles are not here")


@pytest.fixture(scope="module")
def shown() -> dict[tuple[str, str], ComparedFigure]:
    """What `kernelexp compare` prints without any option, by group and label."""
    result = comparisons.compare(
        subjects.find(None, str(BEFORE)),
        subjects.find(None, str(AFTER)),
        comparisons.ComparisonOptions(),
    )
    return {
        (group.group, finding.label): finding
        for group in result.groups
        for finding in group.findings
    }


# Group, label, before and after with as many digits as the audit has, and the change that it says.
AUDIT = [
    ("build", "registers per thread", "216", "222", ""),
    ("build", "spill instructions", "0", "0", ""),
    ("build", "dynamic shared memory", "131200", "215680", ""),
    ("stalls", "selected (issuing)", "14.1", "19.1", "+35%"),
    ("stalls", "short scoreboard", "0.1", "1.2", ""),
    ("stalls", "wait", "0.9", "1.2", ""),
    ("memory throughput", "L1 throughput", "82", "86", ""),
    ("memory throughput", "L2 throughput", "60", "54", "-11%"),
    ("memory throughput", "DRAM cycles active", "24", "27", "+14%"),
    ("memory throughput", "L1 data pipe, shared memory (lsu)", "0.1", "20.6", ""),
    ("access efficiency", "excessive L2 sectors", "44556288", "44556288", ""),
    ("access efficiency", "excessive L2 sectors, of all", "50", "33", ""),
    ("access efficiency", "shared memory wavefronts", "1554", "22279698", ""),
    ("instructions", "global store instructions", "1392384", "3480960", "+150%"),
    ("instructions", "instructions per active cycle", "82.9", "112.2", "+35%"),
    ("instructions", "shared load instructions", "666", "3481626", ""),
    ("instructions", "shared store instructions", "148", "2784916", ""),
    ("instructions", "tensor pipe (tc) active", "36.3", "41.7", ""),
    ("cache", "L1 hit rate", "61.7", "33.6", "-46%"),
    ("cache", "instruction cache requests (L1.5)", "848645", "3510026", "+314%"),
]


@pytest.mark.parametrize(
    ("group", "label", "before", "after", "change"),
    AUDIT,
    ids=[f"{row[0]}: {row[1]}" for row in AUDIT],
)
def test_the_audit_s_figure_is_printed(
    shown: dict[tuple[str, str], ComparedFigure],
    group: str,
    label: str,
    before: str,
    after: str,
    change: str,
) -> None:
    result = shown[group, label]
    for value, text in ((result.before, before), (result.after, after)):
        digits = len(text.partition(".")[2])
        assert f"{value:.{digits}f}" == text
    if change:
        assert result.change is not None
        assert f"{100 * result.change:+.0f}%" == change


@pytest.mark.parametrize(
    ("reason", "before", "after"),
    [
        ("long scoreboard", 6.4, 4.4),
        ("short scoreboard", 0.1, 1.1),
        ("sleeping", 1.3, 1.1),
        ("wait", 0.9, 1.2),
    ],
)
def test_stalls_from_samples_are_close_to_those_that_the_audit_counted(
    shown: dict[tuple[str, str], ComparedFigure], reason: str, before: float, after: float
) -> None:
    result = shown["stalls", reason]
    assert result.before == pytest.approx(before, abs=0.25)
    assert result.after == pytest.approx(after, abs=0.25)


@pytest.mark.parametrize(("reason", "percent"), [("barrier", 0.7), ("mio throttle", 0.0)])
def test_a_stall_that_hardly_changed_is_shown_where_it_is_asked_for(
    reason: str, percent: float
) -> None:
    options = comparisons.ComparisonOptions(metric=re.compile(f"^{reason}$"))
    result = comparisons.compare(
        subjects.find(None, str(BEFORE)), subjects.find(None, str(AFTER)), options
    )
    ((finding,),) = (group.findings for group in result.groups)
    for value in (finding.before, finding.after):
        assert value == pytest.approx(percent, abs=0.05)


def test_the_figures_read_as_the_audit_writes_them(
    shown: dict[tuple[str, str], ComparedFigure],
) -> None:
    result = shown["build", "dynamic shared memory"]
    assert figures.pair(result.before, result.after, result.unit) == ("131.2", "215.7", "kB")
