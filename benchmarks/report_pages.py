"""How long the web pages of a large project take: to be made, and to be usable in a browser.

    python benchmarks/report_pages.py [EXPERIMENTS] [RECORDS]

Makes a project of 1,000 experiments with 10,000 records: one in ten of the records is measured,
with the samples of a real run. Prints the CPU time of `kernelexp report`, the size of its pages,
and, where Chromium and selenium are, the time from opening the first page until its table filters,
and from a key in its search field until the rows that fit are laid out: by the clock, which counts
what else the machine does, and as CPU time of the page's thread. Then one record is added, and the
report is written again.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.logs import records
from kernelexp.report.site import server, site
from kernelexp.system import device

ROOT = Path(__file__).parent.parent
MEASURED_EVERY = 10
LOADS = 5
SEARCHES = ("X", "X7", "X77", "padded", "nothing has this", "")
_SEARCH = """
const field = document.querySelector("#filters input[name=q]"), start = performance.now();
field.value = arguments[0];
field.dispatchEvent(new Event("input", { bubbles: true }));
document.getElementById("experiments").getBoundingClientRect();
return performance.now() - start;"""


def fill(root: Path, experiments: int, count: int) -> None:
    """Experiments like T1, each with its share of the records, of which the last is measured."""
    shutil.copy(ROOT / "experiments.yaml", root)
    shutil.copytree(ROOT / "variants", root / "variants")
    (root / "experiments").mkdir()
    measured = records.read_file(records.find(ROOT, "T1", measured=True))
    untimed = msgspec.structs.replace(measured, measurement=None, estimate=None, device="")
    for number in range(experiments):
        name = f"X{number}"
        (root / "experiments" / f"{name}.yaml").write_text(
            f"kernel: transpose\narch: sm_90a\ntitle: Experiment {number}\n"
            "baseline: {layout: plain}\ncandidate: {layout: padded}\nhypothesis: It is faster.\n"
        )
        for place in range(count // experiments):
            last = place % MEASURED_EVERY == MEASURED_EVERY - 1
            record = msgspec.structs.replace(
                measured if last else untimed,
                experiment=name,
                run=f"20261101T{number:06d}Z-{place:08x}",
            )
            path = root / records.FOLDER / name / records.file_name(record)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(records.encode(record))


class InBrowser(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds by the clock and of the thread's CPU time: of several loads, of several searches."""

    loads: list[tuple[float, float]]
    searches: list[tuple[float, float]]


def in_browser(page: Path) -> InBrowser | None:
    """None without a browser."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    with webdriver.Chrome(options, Service(driver)) as browser:
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        return InBrowser(
            loads=[_timed(browser, lambda: _load(browser, page)) for _ in range(LOADS)],
            searches=[
                _timed(browser, lambda word=word: _search(browser, word)) for word in SEARCHES
            ],
        )


def _timed(browser: Any, do: Callable[[], float]) -> tuple[float, float]:
    before = _thread(browser)
    return do(), _thread(browser) - before


def _thread(browser: Any) -> float:
    values = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in values if one["name"] == "TaskDuration"))


def _said(label: str, times: Sequence[tuple[float, float]]) -> str:
    clock, cpu = zip(*times, strict=True)
    middle = f"{1000 * statistics.median(clock):.0f} ms, {1000 * statistics.median(cpu):.0f} ms CPU"
    return f"{label:28}{middle}; most {1000 * max(clock):.0f} ms, {1000 * max(cpu):.0f} ms CPU"


def _load(browser: Any, page: Path) -> float:
    browser.get("about:blank")
    browser.get(page.as_uri())
    ready = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    return float(browser.execute_script(ready)) / 1000


def _search(browser: Any, word: str) -> float:
    """Until the rows are laid out again, which reading the table's height waits for."""
    return float(browser.execute_script(_SEARCH, word)) / 1000


def _report(root: Path, out: Path) -> float:
    """The CPU time of a report, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [sys.executable, "-m", "kernelexp", "report", "--out", str(out)]
    subprocess.run(program, cwd=root, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _first_page(root: Path) -> float:
    """CPU time until a server that has just started has its first page."""
    pages, start = server.Pages(root), time.process_time()
    pages.page(site.INDEX)
    return time.process_time() - start


def main() -> None:
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder) / "project", Path(folder) / "out"
        root.mkdir()
        fill(root, experiments, count)
        whole = _report(root, out)
        first, again = _first_page(root), _first_page(root)
        size = sum(path.stat().st_size for path in out.rglob("*.html"))
        machine = device.read_machine()
        print(f"{machine.cpu}, {machine.cores} cores, Python {machine.python}")
        print(f"{experiments:,} experiments, {count:,} records")
        print(f"kernelexp report            {whole:6.1f} s of CPU time, {size / 1e6:.0f} MB")
        one = records.find(root, "X7", measured=True)
        newer = msgspec.structs.replace(records.read_file(one), run="20261201T000007Z-00000000")
        (one.parent / records.file_name(newer)).write_text(records.encode(newer))
        print(f"again after one more record {_report(root, out):6.1f} s of CPU time")
        print(f"the first page of --serve   {first:6.1f} s of CPU time, {again:.2f} s unchanged")
        seen = in_browser(out / site.INDEX)
        if seen is None:
            print("no Chromium here")
            return
        print(_said("usable in Chromium after", seen.loads))
        print(_said("a search in Chromium", seen.searches))


if __name__ == "__main__":
    main()
