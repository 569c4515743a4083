"""kernelexp calibrate and kernelexp selftest: what measurements on this machine are worth."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import output, progress_bars
from kernelexp.cli.options import DeviceOption, JsonOption, MarginOption, NvccOption


@app.command()
def calibrate(
    device: DeviceOption = None,
    margin: MarginOption = 1.0,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Measure this machine's rate of false verdicts."""
    from kernelexp.report.variants import calibration as report
    from kernelexp.services import calibration

    with progress_bars() as bars:
        rates = calibration.against_itself(device, margin / 100, nvcc, bars)
    output("calibrate", rates, report.render(rates), json)


@app.command()
def selftest(
    inject: Annotated[
        str, typer.Option("--inject", metavar="PERCENTS", help="Slowdowns to inject.")
    ] = "0.5,1,2,5",
    device: DeviceOption = None,
    margin: MarginOption = 1.0,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Measure the smallest slowdown that a run detects here."""
    from kernelexp.report.variants import calibration as report
    from kernelexp.services import calibration

    with progress_bars() as bars:
        rates = calibration.injected(inject, device, margin / 100, nvcc, bars)
    output("calibrate", rates, report.render(rates), json)
