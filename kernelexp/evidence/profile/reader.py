"""The rows of ncu's pages to launches, with texts as they were printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from kernelexp.evidence.profile import figures, labels
from kernelexp.evidence.profile.figures import ProfileRow
from kernelexp.model.arm import Advice
from kernelexp.model.text import printable

Kind = Literal["raw", "details", "source"]

_ABOUT = frozenset(
    (
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC"),
    )
)
"""The columns of a launch that are no metrics."""
_NAMELESS = frozenset({"Line No", "Source", "Address", "#"})
_ZEROS = frozenset({"0", "-", "", "0.00", "0.000000"})


class LaunchReading:
    """A launch while its rows are read; figures are texts until the file's locale is known."""

    def __init__(self, kind: Kind, entry: str, process: str = "", number: str = "") -> None:
        self.kind, self.entry, self.process, self.number = kind, entry, process, number
        self.about: dict[str, str] = {}
        self.texts: dict[str, tuple[str, str]] = {}
        """Text and unit, by metric."""
        self.advice: list[Advice] = []
        self.instructions: dict[int, tuple[str, dict[str, str]]] = {}
        """SASS and figures, by address."""
        self.lines: dict[tuple[str, int], list[int]] = {}
        """The addresses of a source line, by file and line."""

    def numbers(self) -> Iterable[str]:
        yield from (text for text, _ in self.texts.values())
        for _, cells in self.instructions.values():
            yield from cells.values()


class Reader:
    """Rows to launches; the header before a row says of which page it is."""

    def __init__(self) -> None:
        self.pages: list[list[LaunchReading]] = []
        """The launches of each page, in their order."""
        self.header: list[str] = []
        self.is_cuda_only = False
        self._known: dict[tuple[str, str, str, str], LaunchReading] = {}
        self._kind: Kind | None = None
        self._units: list[str] = []
        self._at: dict[str, int] = {}
        """The columns of a source page by name; of two that are Source, the one of SASS."""
        self._current: LaunchReading | None = None
        self._path, self._line = "", 0
        self._paths: set[str] = set()
        self._view = ""
        self._lost: dict[str, tuple[int, int]] = {}
        self._cut = False

    def take(self, row: ProfileRow) -> None:
        cells, self._cut = row.cells, row.cut
        if not cells:
            return
        first = cells[0]
        if first == "ID" and "Kernel Name" in cells:
            self.header, self._units = cells, []
            self._kind = "details" if "Metric Name" in cells else "raw"
            self._turn(self._kind)
        elif first == "Kernel Name" and len(cells) <= 3:
            self._turn("sass")
            self._begin_source(cells[1] if len(cells) > 1 else "")
        elif first in ("File Path", "File Name") and len(cells) <= 3:
            self._path, self._line = cells[1] if len(cells) > 1 else "", 0
        elif first == "Function Name" and len(cells) <= 3:
            self._turn("cuda,sass")
            self._begin_function(cells[1] if len(cells) > 1 else "")
        elif "Source" in cells and first in ("Address", "Line No", "#"):
            self.header, self._kind = cells, "source" if "Address" in cells else None
            self._at = {column: index for index, column in enumerate(cells)}
            self.is_cuda_only = self.is_cuda_only or self._kind is None
            if self._kind and self._current is None:
                self._turn("sass")
                self._begin_source("")
        elif self._kind is not None:
            self._take_values(row)

    def lost(self, name: str) -> Iterable[str]:
        """Yields what could not be read."""
        for fault, (line, count) in self._lost.items():
            yield f"{printable(name)}, line {line}: {fault}" + (
                f" (and {count - 1:,} more such rows)." if count > 1 else "."
            )
        if self._cut:
            yield f"{printable(name)} ends in the middle of a row: what followed is lost."

    def _lose(self, line: int, fault: str) -> None:
        begun, count = self._lost.get(fault, (line, 0))
        self._lost[fault] = (begun, count + 1)

    def _turn(self, view: str) -> None:
        """A page begins, unless this one goes on."""
        if view != self._view:
            self._view, self._current = view, None
            self.pages.append([])

    # ---- raw and details ----

    def _take_values(self, row: ProfileRow) -> None:
        if self._kind == "source":
            self._take_instruction(row)
        elif row.cells[0] == "" and self._kind == "raw":
            self._units = row.cells
        elif not row.cells[0].isdecimal():
            self._lose(row.line, "this is no row of a launch, and is left out")
        elif self._kind == "raw":
            self._take_raw(row)
        else:
            self._take_details(row)

    def _reading(self, kind: Kind, named: dict[str, str]) -> LaunchReading:
        entry = named.get("Kernel Name", "")
        process, number = named.get("Process ID", ""), named["ID"]
        key = (kind, process, number, entry)
        if key not in self._known:
            self._known[key] = LaunchReading(kind, entry, process, number)
            self.pages[-1].append(self._known[key])
        return self._known[key]

    def _take_raw(self, row: ProfileRow) -> None:
        if len(row.cells) < len(self.header):
            self._lose(
                row.line, f"{len(self.header) - len(row.cells):,} of its columns are missing"
            )
        named = dict(zip(self.header, row.cells, strict=False))
        if "Kernel Name" not in named:
            return
        reading = self._reading("raw", named)
        for index, (metric, text) in enumerate(zip(self.header, row.cells, strict=False)):
            if metric in _ABOUT:
                reading.about.setdefault(metric, text)
            elif metric:
                unit = self._units[index] if index < len(self._units) else ""
                reading.texts.setdefault(metric, (text, unit))

    def _take_details(self, row: ProfileRow) -> None:
        cells = _whole(row.cells, self.header, "Rule Description")
        named = dict(zip(self.header, cells, strict=False))
        if row.cut or "Section Name" not in named or len(row.cells) < self._details_width(named):
            self._lose(row.line, "the row is not whole, and is left out")
            if "Section Name" not in named:
                return
        reading = self._reading("details", named)
        reading.about.update((key, named[key]) for key in _ABOUT if key in named)
        label, text = named.get("Metric Name", ""), named.get("Metric Value")
        if label and text is not None:
            metric = labels.name(named["Section Name"], label)
            reading.texts.setdefault(metric, (text, named.get("Metric Unit", "")))
        elif named.get("Rule Description"):
            speedup = figures.number(named.get("Estimated Speedup", ""))
            advice = Advice(
                section=named["Section Name"],
                rule=named.get("Rule Name", ""),
                kind=named.get("Rule Type", ""),
                sentence=named["Rule Description"],
                speedup_percent=speedup,
                scope=named.get("Estimated Speedup Type", ""),
            )
            if advice not in reading.advice:
                reading.advice.append(advice)

    def _details_width(self, named: dict[str, str]) -> int:
        column = "Metric Value" if named.get("Metric Name") else "Rule Description"
        return self.header.index(column) + 1 if column in self.header else 0

    # ---- source ----

    def _begin_source(self, entry: str) -> None:
        self._current = LaunchReading("source", entry)
        self.pages[-1].append(self._current)
        self._paths = set()

    def _begin_function(self, entry: str) -> None:
        """A file's part of a launch; a file that comes again is of the next launch."""
        if self._current is None or self._current.entry != entry or self._path in self._paths:
            self._begin_source(entry)
        self._paths.add(self._path)

    def _take_instruction(self, row: ProfileRow) -> None:
        cells = _whole(row.cells, self.header, "Source")
        if len(cells) < len(self.header):
            self._lose(row.line, f"{len(self.header) - len(cells):,} of its columns are missing")
            cells = [*cells, *[""] * (len(self.header) - len(cells))]
        if "Line No" in self._at:
            number = cells[self._at["Line No"]]
            if number.isdecimal() and len(number) < 10:
                self._line = int(number)
        address = _address(cells[self._at["Address"]])
        if address is None or self._current is None:
            return  # a line of source, or what stands for a gap
        if "Line No" in self._at:
            self._current.lines.setdefault((self._path, self._line), []).append(address)
        pairs = zip(self.header, cells, strict=False)
        texts = {column: text for column, text in pairs if text not in _ZEROS}
        for column in _NAMELESS:
            texts.pop(column, None)
        sass = cells[self._at["Source"]].strip()
        self._current.instructions.setdefault(address, (sass, texts))


def _whole(cells: list[str], header: Sequence[str], column: str) -> list[str]:
    """A row of which a cell was split at quotes and commas of its own; of two columns of one name,
    that of the first."""
    excess = len(cells) - len(header)
    if excess > 0 and column == "Source" and cells[-1] == "":
        cells, excess = cells[:-1], excess - 1
    if excess <= 0 or column not in header:
        return cells
    at = header.index(column)
    return [*cells[:at], '","'.join(cells[at : at + excess + 1]), *cells[at + excess + 1 :]]


def _address(text: str) -> int | None:
    try:
        return int(text, 16) if text[:2] in ("0x", "0X") or len(text) >= 8 else int(text)
    except ValueError:
        return None
