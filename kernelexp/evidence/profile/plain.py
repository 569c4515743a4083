"""ncu's output without --csv, as people commit it: launches, sections as tables, rules as text.

[1253] python3@127.0.0.1
  kernel(const float *) (132, 1, 1)x(384, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         3.20
    ----------------------- ----------- ------------

    OPT   Est. Speedup: 85.18%
          The memory access pattern ...
"""

from __future__ import annotations

import re

from kernelexp.evidence.profile import figures, labels
from kernelexp.evidence.profile.reader import LaunchReading
from kernelexp.model.arm import Advice

_PROCESS = re.compile(r"\[(\d+)\] \S.*")
_TRIPLE = r"\((\d+, \d+, \d+)\)"
_LAUNCH = re.compile(
    rf"\s*(?P<entry>\S.*?)(?: {_TRIPLE}x{_TRIPLE}|, \d{{4}}-\w+-\d+ [\d:]+),"
    r" Context \d+, Stream \d+(?:, Device (?P<device>\d+))?(?:, CC (?P<cc>\d+\.\d+))?\s*"
)
_RULES = re.compile(r"\s*-{3,}(?: -{3,})*\s*")
_ADVICE = re.compile(r"\s*(OPT|WRN|INF|ERR)\s{2,}(\S.*)")
_SPEEDUP = re.compile(r"Est\.?(?: (Local))? Speedup: ([\d.,]+)%\s*")
_SECTION = "Section: "
# The text has no names of rules: they are known by their first words.
_NAMED: tuple[tuple[str, str], ...] = (
    (r"bank conflict", "SharedMemoryConflicts"),
    (r"uncoalesced shared", "UncoalescedSharedAccess"),
    (r"uncoalesced global", "UncoalescedGlobalAccess"),
    (r"bytes? transmitted per sector|bytes utilized per thread|memory access pattern for global",
     "MemoryCacheAccessPattern"),
    (r"achieved occupancy|difference between calculated theoretical", "AchievedOccupancy"),
    (r"theoretical occupancy|theoretical warps per scheduler", "TheoreticalOccupancy"),
    (r"grid (for this launch )?is (configured to|too small)|__syncthreads", "LaunchConfiguration"),
    (r"^Every scheduler is capable", "IssueSlotUtilization"),
    (r"each warp of this .* spends|Warp Stall Sampling", "CPIStall"),
    (r"ratio of peak float|peak performance", "SOLFPRoofline"),
    (r"fused", "FPInstructions"),
    (r"under-utilized|highest-utilized pipeline|well-utilized", "HighPipeUtilization"),
    (r"L2 Compression", "MemoryL2Compression"),
    (r"active threads per warp|threads being active", "ThreadDivergence"),
    (r"greater than 80\.0% of the available|low compute throughput|more heavily utilized|balanced",
     "SOLBottleneck"),
)  # fmt: skip


class PlainReader:
    """Lines to launches; what is not part of a launch is passed over."""

    def __init__(self) -> None:
        self.launches: list[LaunchReading] = []
        self._process = ""
        self._current: LaunchReading | None = None
        self._section = ""
        self._columns: list[tuple[int, int]] = []
        self._advice: tuple[str, list[str]] | None = None

    def take(self, line: str) -> None:
        """The next line; `end` comes after the last one."""
        text = line.rstrip("\r\n")
        if result := _PROCESS.fullmatch(text.strip()):
            self._process = result[1]
        elif result := _LAUNCH.fullmatch(text) if ", Context " in text else None:
            self._begin(result)
        elif self._current is not None:
            self._take(text)

    def end(self) -> None:
        """Completes the rule that is being read."""
        if self._advice and self._current is not None:
            kind, parts = self._advice
            advice = _advice(self._section, kind, " ".join(parts))
            if advice not in self._current.advice:
                self._current.advice.append(advice)
        self._advice = None

    def _begin(self, header: re.Match[str]) -> None:
        self.end()
        number = str(len(self.launches))
        self._current = LaunchReading("details", header["entry"].strip(), self._process, number)
        self._current.about = {
            name: text
            for name, text in (
                ("Grid Size", header[2] or ""),
                ("Block Size", header[3] or ""),
                ("CC", header["cc"] or ""),
            )
            if text
        }
        self.launches.append(self._current)
        self._section, self._columns = "", []

    def _take(self, text: str) -> None:
        stripped = text.strip()
        if stripped.startswith(_SECTION):
            self.end()
            self._section, self._columns = stripped.removeprefix(_SECTION).strip(), []
        elif _RULES.fullmatch(text):
            self._columns = [match.span() for match in re.finditer("-+", text)]
        elif result := _ADVICE.fullmatch(text):
            self.end()
            self._advice = result[1], [result[2].strip()]
        elif not stripped:
            self.end()
            self._columns = []
        elif self._advice:
            self._advice[1].append(stripped)
        elif len(self._columns) == 3 and not stripped.startswith("Metric Name"):
            self._take_metric(text)

    def _take_metric(self, text: str) -> None:
        """Reads a metric by the columns of the dashes above: name, unit (may be empty), value."""
        assert self._current is not None
        (_, name_end), (unit_begin, unit_end), (value_begin, _) = self._columns
        name, unit = text[:name_end].strip(), text[unit_begin:unit_end].strip()
        value = text[value_begin:].strip()
        if not value or text[name_end:unit_begin].strip() or text[unit_end:value_begin].strip():
            cells = re.split(r"\s{2,}", text.strip())  # a cell wider than its column
            name, unit, value = cells[0], cells[1] if len(cells) > 2 else "", cells[-1]
        if name and value and name != value:
            metric = labels.name(self._section, name)
            self._current.texts.setdefault(metric, (value, unit))


def _advice(section: str, kind: str, sentence: str) -> Advice:
    estimate = _SPEEDUP.match(sentence)
    words = sentence[estimate.end() :] if estimate else sentence
    rule = next((name for pattern, name in _NAMED if re.search(pattern, words)), section)
    return Advice(
        section=section,
        rule=rule,
        kind=kind,
        sentence=" ".join(words.split()),
        speedup_percent=figures.number(estimate[2]) if estimate else None,
        scope=("local" if estimate[1] else "global") if estimate else "",
    )
