"""kernelexp calibrate: what measurements on this machine are worth."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import output, progress_bars
from kernelexp.cli.options import DeviceOption, JsonOption, MarginOption, NvccOption


@app.command()
def calibrate(
    inject: Annotated[
        str,
        typer.Option(
            "--inject",
            metavar="PERCENTS",
            help="Slow the kernel down by these percentages, and count how often that is detected.",
        ),
    ] = "",
    device: DeviceOption = None,
    margin: MarginOption = 1.0,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Measure this machine's rate of false verdicts, or the smallest slowdown that a run detects.

    A kernel is compared with itself, so every difference is false; with --inject, it is compared
    with itself slowed down by known amounts.

    For example:
        kernelexp calibrate --inject 0.5,1,2,5
    """
    from kernelexp.report.variants import calibration as report
    from kernelexp.services import calibration

    with progress_bars() as bars:
        if inject:
            rates = calibration.injected(inject, device, margin / 100, nvcc, bars)
        else:
            rates = calibration.against_itself(device, margin / 100, nvcc, bars)
    output("calibrate", rates, report.render(rates), json)
