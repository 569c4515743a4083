"""Sections: tables of a profile's figures, derived values and what they mean, as data.

A section is a YAML file. Those of kernelexp are in `data/`; a user's own files work the same:

    version: 1
    name: occupancy
    title: Occupancy
    metrics:
      active: {metric: sm__warps_active.avg.per_cycle_active, label: warps per SM, unit: warps}
    derived:
      share:
        label: share of the warps that an SM holds
        unit: "%"
        formula: 100 * active / 64
        text:
          - {when: share < 25, text: "Few warps: latencies are hidden within a warp, or not."}

A formula (formula.py) uses the names above it and those of evaluate.GIVEN.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from kernelexp.model.errors import ConfigurationError, UsageError, explain, suggest
from kernelexp.model.text import quote
from kernelexp.project import shape as form
from kernelexp.project.sections import check
from kernelexp.project.sections.shape import Section
from kernelexp.project.yamlfile import Document

NAMES: tuple[str, ...] = (
    "tensor",
    "pipes",
    "conflicts",
    "multicast",
    "tmem",
    "icache",
    "stalls",
    "global",
    "source",
)
"""kernelexp's sections, in the order of a report."""

BYTES_MAX = 1 << 20


def parse(text: str, file: str) -> Section:
    """The section that a file's text says; ConfigurationError with all its mistakes."""
    document = Document(text, file, form.scalars(Section))
    faults = list(document.faults)
    if document.readable:
        faults += form.check(document, Section)
    section = form.convert(document.value, Section) if document.readable and not faults else None
    if section is not None:
        faults += check.faults(document, section)
    if faults or section is None:
        raise ConfigurationError(*(fault.sentence() for fault in sorted(faults)))
    return section


@functools.cache
def builtin(name: str) -> Section:
    """One of kernelexp's own sections, `gap` included; UsageError if there is none."""
    if name not in (*NAMES, "gap"):
        raise UsageError(f"there is no section {quote(name)}{suggest(name, NAMES)}.")
    source = resources.files(__name__) / "data" / f"{name}.yaml"
    return parse(source.read_text(encoding="utf-8"), f"{name}.yaml")


def read(path: Path) -> Section:
    """The section of a user's file; UsageError if it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{explain(error)}.") from None
    if len(data) > BYTES_MAX:
        raise UsageError(f"{path}: a section file has at most {BYTES_MAX:,} bytes.")
    try:
        return parse(data.decode(), str(path))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; write section files in UTF-8.") from None


def is_own(name: str) -> bool:
    """Whether a name is that of a section of kernelexp's, or of a user's file."""
    return name in (*NAMES, "gap") or name.endswith((".yaml", ".yml"))


def find(which: Sequence[str] = ()) -> tuple[Section, ...]:
    """Sections by name or by file (what ends in .yaml or .yml); without any, all of kernelexp's."""
    return tuple(
        read(Path(name)) if name.endswith((".yaml", ".yml")) else builtin(name)
        for name in (which or NAMES)
    )


def metrics_to_ask(sections: Iterable[Section], family: str) -> tuple[str, ...]:
    """The names that ncu is asked for on a chip (gh100, ...), each once, in the sections' order.

    What the chip lacks is left out. Without a family, the names of all chips.
    """
    names: dict[str, None] = {}
    for section in sections:
        for metric in section.metrics.values():
            if isinstance(metric.metric, str):
                names[metric.metric] = None
            else:
                chosen = metric.metric.values() if not family else [metric.metric.get(family)]
                names.update((name, None) for name in chosen if name)
    return tuple(names)


def wants_source(sections: Iterable[Section]) -> bool:
    """Whether a section needs the source page."""
    return any(section.sums or section.instructions for section in sections)
