"""The program ncu: where it is, what it prints of a report, and why it could not profile."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.profile import merging, pages
from kernelexp.evidence.profile.merging import ProfilingSession
from kernelexp.evidence.profile.pages import Page
from kernelexp.model.errors import EnvironmentFault, UsageError, suggest
from kernelexp.model.text import printable, shorten
from kernelexp.system.process import processes

IMPORT = "profile on another machine and import it: kernelexp profile --import FILE --variant NAME"
SOURCE = "SourceCounters"
SECTIONS = (
    *("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis"),
    *("MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SchedulerStats"),
    *("WarpStateStats", "InstructionStats", "LaunchStats", "Occupancy", "WorkloadDistribution"),
)
"""ncu's sections that are collected where none are named, besides SOURCE."""

# An import of a report of 400 MB took a minute.
PRINT_LIMIT_S = 600.0
# The options of each page of a report.
REPORT = ("raw", "details", "sass", "cuda,sass")
"""The pages that have all of a report but the instances of metrics, which can be many."""
PAGES: dict[str, tuple[str, ...]] = {
    "raw": ("--page", "raw", "--print-units", "base"),
    "instances": (
        *("--page", "raw", "--print-units", "base"),
        *("--print-metric-instances", "details"),
    ),
    "details": ("--page", "details", "--print-units", "base"),
    "sass": ("--page", "source", "--print-source", "sass"),
    "cuda,sass": ("--page", "source", "--print-source", "cuda,sass"),
}


class Ncu(msgspec.Struct, frozen=True, kw_only=True):
    """One installed ncu."""

    program: str
    version: str
    """Such as 2025.3.1.0."""

    @property
    def name(self) -> str:
        return f"ncu {self.version}"


def find(named: str | None = None) -> Ncu:
    """The ncu of --ncu, else of the PATH; UsageError or EnvironmentFault where there is none."""
    program = shutil.which(named or "ncu")
    if program is None and named:
        raise UsageError(f"--ncu names {named}, which is not a program that can be run.")
    if program is None:
        raise EnvironmentFault(
            f"ncu (Nsight Compute) is not on the PATH: install it, name it with --ncu, or {IMPORT}."
        )
    done = processes.run([program, "--version"], timeout_s=60)
    match = re.search(r"Version (\d+(?:\.\d+)+)", done.stdout)
    if done.returncode != 0 or match is None:
        raise EnvironmentFault(f"{program} --version does not answer like ncu.")
    return Ncu(program=program, version=match[1])


def sections(ncu: Ncu, wanted: str | None) -> tuple[str, ...]:
    """The sections of --sections: names with commas, `all`, or the usual ones."""
    if wanted is None:
        return (*SECTIONS, SOURCE)
    known = _known_sections(ncu)
    if wanted == "all":
        return tuple(known)
    names = tuple(dict.fromkeys(name.strip() for name in wanted.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(
                f"--sections: {ncu.name} has no section {name!r}{suggest(name, known)}."
            )
    return names


def _known_sections(ncu: Ncu) -> list[str]:
    done = processes.run([ncu.program, "--list-sections"], timeout_s=60)
    lines = done.stdout.splitlines()
    rules = [index for index, line in enumerate(lines) if line.startswith("---")]
    names = [line.split()[0] for line in lines[rules[1] + 1 :] if line.strip()] if rules[1:] else []
    names = [name for name in names if re.fullmatch(r"\w+", name)]
    if done.returncode != 0 or not names:
        raise EnvironmentFault(f"{ncu.program} --list-sections lists no sections.")
    return names


def read_report(ncu: Ncu, report: Path, wanted: Sequence[str], name: str = "") -> list[Page]:
    """Pages of a report, by their names in PAGES; those after the first may be absent.

    EnvironmentFault where ncu can't read the file, UsageError where it holds no launch.
    """
    result = []
    for page in wanted:
        argv = [ncu.program, "--import", str(report), "--csv", *PAGES[page]]
        done = processes.run(argv, timeout_s=PRINT_LIMIT_S)
        if done.returncode != 0:
            raise EnvironmentFault(
                f"{ncu.name} can't read {printable(name or report.name)}: {last_words(done)}"
            )
        try:
            lines = io.StringIO(done.stdout, newline=None)
            result.append(pages.parse(lines, f"{name or report.name} ({page} page)"))
        except UsageError:
            if page == wanted[0]:
                raise
    return result


def read_session(ncu: Ncu, report: Path) -> ProfilingSession:
    """Reads how a report was recorded, as far as its session page tells."""
    argv = [ncu.program, "--import", str(report), "--csv", "--page", "session"]
    return merging.read(processes.run(argv, timeout_s=PRINT_LIMIT_S).stdout)


# ---- messages ------------------------------------------------------------------------------------

_UNAVAILABLE = re.compile(r"Unable to access the following \d+ metrics?: ([^\n]*)")
_UNSUPPORTED = re.compile(
    r"ERR_NVCMPGPU|not supported on this (?:device|GPU)|driver (?:version|resource)"
)
_NOT_FOUND = re.compile(r"[Ff]ailed to find metric (?:regex:)?\^?([\w.]+)")


def messages(completed: processes.Completed, kind: str) -> Iterator[str]:
    """ncu's own lines of a kind (ERROR, WARNING) in what a profiled program printed."""
    for line in f"{completed.stdout}\n{completed.stderr}".splitlines():
        if line.startswith(f"=={kind}=="):
            yield printable(line.removeprefix(f"=={kind}==").strip())


def last_words(completed: processes.Completed) -> str:
    """Returns the reason that ncu gives, or the end of its output, as one sentence."""
    lines = f"{completed.stdout}\n{completed.stderr}".split("\n")
    words = (
        list(messages(completed, "ERROR")) or [line.strip() for line in lines if line.strip()][-1:]
    )
    sentence = (
        shorten(printable(words[0]), 300) if words else f"it ended with {completed.returncode}"
    )
    return sentence if sentence.endswith(".") else f"{sentence}."


def refusal(completed: processes.Completed) -> EnvironmentFault | None:
    """Returns why this machine does not let ncu profile; None where ncu does not say so."""
    errors = " ".join(messages(completed, "ERROR"))
    if "ERR_NVGPUCTRPERM" in errors:
        return EnvironmentFault(
            "the driver lets only root read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or "
            "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or " + IMPORT + "."
        )
    if _UNSUPPORTED.search(errors):
        return EnvironmentFault(f"ncu can't profile this GPU: {last_words(completed)}")
    return None


def missing_metrics(completed: processes.Completed) -> Iterator[str]:
    """The metrics that ncu says this chip, driver or version does not have."""
    for line in (*messages(completed, "WARNING"), *messages(completed, "ERROR")):
        if match := _UNAVAILABLE.search(line):
            yield from (name.strip() for name in match[1].rstrip(".").split(",") if name.strip())
        yield from _NOT_FOUND.findall(line)
