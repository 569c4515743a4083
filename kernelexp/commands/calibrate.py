"""What measurements on this machine are worth: the commands `calibrate` and `selftest`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from kernelexp import build, calibrate, toolchain
from kernelexp.calibrate import Knob, Rates
from kernelexp.errors import EnvironmentFault, UsageError
from kernelexp.gpu import device as devices
from kernelexp.gpu.measure import OnProgress
from kernelexp.model import Variant

KNOB = Path(__file__).parents[1] / "knob"
COMPARED = 4
"""Processes a comparison is drawn from: what a run takes by default."""


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """Rates by the extra work of the candidate, in percent; 0 is the kernel against itself."""

    device: str
    driver: str
    margin: float
    rates: dict[str, Rates]


def against_itself(
    device: str | None, margin: float, nvcc: str | None, on_progress: OnProgress | None
) -> Calibrated:
    """A/A: how often a run would call the same kernel faster or slower."""
    with _built_knob(device, nvcc) as knob:
        recorded = calibrate.record_same_arms(knob, device=device, on_progress=on_progress)
    rates = {"0": calibrate.of_same_arms(recorded, processes=COMPARED, margin=margin)}
    return Calibrated(
        device=recorded.device.name, driver=recorded.device.driver, margin=margin, rates=rates
    )


def injected(
    percents: str,
    device: str | None,
    margin: float,
    nvcc: str | None,
    on_progress: OnProgress | None,
) -> Calibrated:
    """The same kernel with known extra work, such as "0.5,1,2,5" percent of it."""
    extra = _parse_percents(percents)
    with _built_knob(device, nvcc) as knob:
        recorded = calibrate.record_injected(
            knob, list(extra.values()), device=device, on_progress=on_progress
        )
    found = calibrate.of_injected(recorded, processes=COMPARED, margin=margin)
    rates = {percent: found[key] for percent in extra if (key := _key(found, extra[percent]))}
    return Calibrated(
        device=recorded.device.name, driver=recorded.device.driver, margin=margin, rates=rates
    )


def _parse_percents(text: str) -> dict[str, int]:
    """Extra work in thousandths by the percents as they were written."""
    try:
        found = {each.strip(): round(10 * float(each)) for each in text.split(",")}
    except ValueError:
        found = {}
    if not found or min(found.values()) < 1:
        raise UsageError(f"--inject {text!r} should be percents of work, as in 0.5,1,2,5.")
    return found


def _key(found: Mapping[str, Rates], extra: int) -> str | None:
    return next((key for key in found if key.split("-")[-1] == str(extra)), None)


@contextmanager
def _built_knob(device: str | None, nvcc: str | None) -> Iterator[Knob]:
    """The knob kernel for this machine's GPU, in a project that lasts as long as it is used."""
    target = devices.find(device)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        root = Path(folder)
        problem = Path(shutil.copytree(KNOB, root / "variants/knob")) / "problem.py"
        source = "variants/knob/knob.cu"
        variant = Variant(kernel="knob", arch=target.arch, source=source, axes={})
        tools = toolchain.find(nvcc, root / build.CACHE)
        (built,) = build.build(root, [variant], tools)
        if not built.ok:
            raise EnvironmentFault(f"the knob kernel does not build here: {built.failure}")
        yield Knob(problem=str(problem), cubin=str(built.cubin), arch=target.arch)


def render(found: Calibrated) -> Iterator[Table | Text]:
    """A row for each amount of extra work."""
    yield Text(
        f"{found.device}, driver {found.driver}: comparisons of {COMPARED} processes drawn from "
        f"one recording, margin {100 * found.margin:g}%"
    )
    header = ("extra work", "true", "estimate", "spread", "detected", "faster", "slower", "covered")
    table = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in table.columns:
        column.justify = "right"
    for percent, rates in found.rates.items():
        count = rates.comparisons
        table.add_row(
            f"{percent}%",
            f"{100 * rates.truth:+.2f}%",
            f"{100 * (rates.truth + rates.bias):+.2f}%",
            f"{100 * rates.spread:.3f}%",
            f"{rates.detected}/{count}",
            str(rates.statuses.get("IMPROVED", 0)),
            str(rates.statuses.get("REJECTED", 0)),
            f"{rates.covered}/{count}",
        )
    yield table
    disjoint = sum(rates.disjoint for rates in found.rates.values())
    yield Text(f"Draws share processes: {disjoint} of them are disjoint.", style="dim")
