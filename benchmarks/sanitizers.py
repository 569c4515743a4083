"""Runs compute-sanitizer on small kernels that are right or have a reported fault, on a GPU.

    python benchmarks/sanitizers.py [--results FILE] [--logs FOLDER] [--jobs N] [--only WORD,WORD]

The kernels are those of tests/emulator/reported for sm_90a. Each is launched without a tool and
under racecheck, synccheck, memcheck and initcheck. FILE gets a JSON line per run; h100.jsonl beside
the kernels has those of an H100.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests/emulator"
sys.path.insert(0, str(TESTS))
from reported.faults import HOPPER, SOURCES, Fault  # type: ignore[import-not-found]  # noqa: E402

TOOLS = ("none", "racecheck", "synccheck", "memcheck", "initcheck")
FORMS = ("right", "wrong")
LIMIT_S, KILLED_S = 4, 25
_SUMMARY = re.compile(r"^========= ((?:ERROR|RACECHECK) SUMMARY: .*)$", re.M)
_COUNT = re.compile(r"SUMMARY: (\d+)")


def build(form: str, folder: Path, more: Sequence[str] = ()) -> Path:
    """A program that launches one of the kernels."""
    program = folder / form
    lines = (f'{{"{fault.name}", (const void *){fault.name}}},' for fault in HOPPER)
    (folder / "kernels.inc").write_text("\n".join(lines))
    headers = (SOURCES, TESTS / "correct", folder)
    flags = [
        "-gencode=arch=compute_90a,code=[compute_90a,sm_90a]",
        "-lineinfo",
        "-O3",
        "-std=c++17",
        *more,
    ]
    flags += [*(f"-I{header}" for header in headers), *(["-DWRONG"] if form == "wrong" else [])]
    command = ["nvcc", *flags, str(SOURCES / "launch.cu"), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def run(program: Path, fault: Fault, form: str, tool: str, logs: Path | None) -> dict[str, object]:
    """One run: what the program printed, and what the tool counted."""
    argv = [str(program), fault.name, str(fault.threads), str(fault.ctas)]
    argv += [str(int(fault.takes_map)), str(LIMIT_S)]
    if tool != "none":
        report = ["--racecheck-report", "all"] if tool == "racecheck" else []
        argv = ["compute-sanitizer", "--tool", tool, *report, *argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=KILLED_S, check=False)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode(errors="replace")
    if logs:
        (logs / f"{fault.name}.{form}.{tool}.txt").write_text(text)
    summary = _SUMMARY.findall(text)
    counted = [int(match[1]) for item in summary if (match := _COUNT.search(item))]
    printed = re.findall(r"^(?:result .*|hang|error .*)$", text, re.M)
    return {
        "name": fault.name,
        "form": form,
        "tool": tool,
        "printed": printed[-1] if printed else "",
        "count": sum(counted),
    }


def runs(only: str) -> Iterator[tuple[Fault, str, str]]:
    """Those that hang first: they take longest."""
    faults = sorted(HOPPER, key=lambda fault: fault.finding != "hang")
    for fault in faults:
        for form in FORMS:
            for tool in TOOLS:
                if any(word in fault.name for word in only.split(",")):
                    yield fault, form, tool


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'':46}{''.join(f'{tool:>12}' for tool in TOOLS)}")
    by_run = {(row["name"], row["form"], row["tool"]): row for row in rows}
    for name in dict.fromkeys(row["name"] for row in rows):
        for form in FORMS:
            cells = [by_run.get((name, form, tool)) for tool in TOOLS]
            plain = [str(cell["printed"]).split()[-1:] if cell else [] for cell in cells[:1]]
            counts = "".join(f"{cell['count'] if cell else '-':>12}" for cell in cells[1:])
            print(f"{str(name)[:38]:38} {form:7}{''.join(plain[0])[:12]:>12}{counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if shutil.which("compute-sanitizer") is None:
        sys.exit("compute-sanitizer is not on the PATH: install the CUDA toolkit's")
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            built = pool.map(lambda form: (form, build(form, Path(folder))), FORMS)
            programs = dict(built)
        rows = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            futures = [
                pool.submit(run, programs[form], fault, form, tool, options.logs)
                for fault, form, tool in runs(options.only)
            ]
            for future in concurrent.futures.as_completed(futures):
                rows.append(future.result())
                if options.results:
                    with options.results.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
    show(sorted(rows, key=lambda row: str(row["name"])))


if __name__ == "__main__":
    main()
