"""Runs the codes of the Indigo suite on the emulator: which planted races it finds, by kind of bug.

    python benchmarks/indigo.py FOLDER [--every N] [--only WORD] [--graph NAME] [--results FILE]
        [-n PROCESSES]

FOLDER is a checkout of HiRace-Artifact-SC24, which has the codes, their graphs and the selection;
nothing is fetched or changed there. A code is racy if its name has another bug than a bound: a
bound alone is an access outside an array. --every runs each Nth code. With --results, what is known
of a code is kept in a file (JSON lines) and not done again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain

PUBLISHED = {"HiRace": "346", "iGUARD": "298", "Compute Sanitizer": "92 to 128"}
"""Racy codes that others found of the same 346, by graph: the SC24 paper's table."""
_BUG = re.compile(r"_([a-z]+)Bug")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was reported of one code."""

    name: str
    findings: tuple[str, ...] = ()
    """Name and place of each."""
    refused: str = ""
    seconds: float = 0.0

    @property
    def bugs(self) -> tuple[str, ...]:
        return tuple(sorted(_BUG.findall(self.name)))

    @property
    def racy(self) -> bool:
        return bool(set(self.bugs) - {"bounds"})

    def has(self, name: str) -> bool:
        return any(finding.split()[0] == name for finding in self.findings)


def selected(folder: Path) -> list[Path]:
    """The codes that the artifact's own script pairs with an instrumented one."""
    plain, other = (
        folder / "indigo" / name for name in ("indigo_sources", "indigo_hirace_sources")
    )
    paired = {str(path.relative_to(other)).replace("_hirace", "") for path in other.glob("**/*.cu")}
    return sorted(path for path in plain.glob("**/*.cu") if str(path.relative_to(plain)) in paired)


def run(source: Path, folder: Path, tools: Toolchain, size: Sequence[str]) -> Outcome:
    graph, include = folder / "indigo/input" / size[0], folder / "indigo/indigo_include"
    result = ExecRequest(
        sources=(source,), flags=(f"-I{include}",), argv=(str(graph), *size[1:]), timeout_s=120.0
    )
    try:
        with tempfile.TemporaryFile() as output:
            executed = execution.execute(result, tools, Path.cwd(), output=output.fileno())
    except KernelexpError as error:
        return Outcome(name=source.stem, refused=str(error)[-300:])
    return Outcome(
        name=source.stem,
        findings=tuple(f"{finding.name} line {finding.line}" for finding in executed.findings),
        refused=executed.refused,
        seconds=executed.seconds,
    )


def show(outcomes: Sequence[Outcome]) -> None:
    racy = [outcome for outcome in outcomes if outcome.racy]
    right = [outcome for outcome in outcomes if not outcome.bugs]
    bounds = [outcome for outcome in outcomes if "bounds" in outcome.bugs]
    print(f"{'planted':32} {'codes':>6} {'found':>6}")
    for kind in sorted({item.bugs for item in racy}):
        _line(" + ".join(kind), [item for item in racy if item.bugs == kind], "race")
    _line("racy, all", racy, "race")
    _line("out of bounds", bounds, "out-of-bounds")
    accused = [item for item in right if item.findings]
    print(f"{'right, accused':32} {len(right):6} {len(accused):6}")
    for name, count in PUBLISHED.items():
        print(f"{name + ', published':32} {346:6} {count:>6}")
    for title, names in (
        ("not found", [item.name for item in racy if not item.has("race")]),
        ("accused", [f"{item.name}: {'; '.join(item.findings)}" for item in accused]),
        (
            "refused",
            [f"{outcome.name}: {outcome.refused}" for outcome in outcomes if outcome.refused],
        ),
    ):
        print("".join(f"\n{title}: {name}" for name in names), end="")
    print(f"\n{sum(outcome.seconds for outcome in outcomes):.0f} s of emulation")


def _line(title: str, outcomes: Iterable[Outcome], finding: str) -> None:
    codes = list(outcomes)
    print(f"{title:32} {len(codes):6} {sum(code.has(finding) for code in codes):6}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="words in the names of codes")
    parser.add_argument("--graph", default="DAG_100n_200e.egr")
    parser.add_argument("--blocks", default="128")
    parser.add_argument("--threads", default="64")
    parser.add_argument("--results", type=Path)
    parser.add_argument("-n", type=int, default=2, metavar="PROCESSES")
    options = parser.parse_args()
    folder = options.folder.resolve()
    tools = toolchain.find(None, Path.cwd() / ".kernelexp")
    kept = (
        options.results.read_bytes().splitlines()
        if (options.results and options.results.exists())
        else []
    )
    done = {item.name: item for item in (msgspec.json.decode(line, type=Outcome) for line in kept)}
    sources = [source for source in selected(folder) if options.only in source.stem]
    sources = sources[:: options.every]
    open_ = [source for source in sources if source.stem not in done]
    size = options.graph, options.threads, options.blocks
    context = multiprocessing.get_context("spawn")  # Each forks for the programs that it runs.
    with concurrent.futures.ProcessPoolExecutor(options.n, context) as pool:
        futures = [pool.submit(run, source, folder, tools, size) for source in open_]
        for future in concurrent.futures.as_completed(futures):
            outcome = future.result()
            done[outcome.name] = outcome
            if options.results:
                with options.results.open("ab") as file:
                    file.write(msgspec.json.encode(outcome) + b"\n")
    show([done[source.stem] for source in sources])


if __name__ == "__main__":
    main()
