"""kernelexp calibrate: what measurements on this machine are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.console import output, print_message, progress_bars
from kernelexp.cli.options import HERE, option
from kernelexp.model.errors import UsageError

CHIP = "H200"
"""The chip that there are microbenchmarks for."""


@app.command()
def calibrate(
    inject: Annotated[
        str,
        option(
            "--inject PERCENTS",
            "Slow the kernel down by these percentages, and count how often that is detected.",
        ),
    ] = "",
    model: Annotated[
        bool,
        option(
            "--model", "Refit the model of time to this machine's card, by its microbenchmarks."
        ),
    ] = False,
    validate: Annotated[
        bool,
        option(
            "--validate", "With --model: model what records measured, and compare. Needs no GPU."
        ),
    ] = False,
    experiment: Annotated[
        list[str] | None,
        option(
            "--experiment ID", "With --validate: only the records of this experiment. Repeatable."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        option(
            "--figures FILE",
            "With --model: what the microbenchmarks printed elsewhere. Needs no GPU.",
        ),
    ] = None,
    write: Annotated[
        Path | None, option("--write FILE", "With --model: write the chip's refitted parameters.")
    ] = None,
    chip: Annotated[str, option("--chip NAME", "With --model: H200, H100 or B200.")] = CHIP,
    device: options.Device = None,
    margin: options.Margin = 1.0,
    json: options.Json = False,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Measure this machine's rate of false verdicts, or the smallest slowdown that a run detects.

    A kernel is compared with itself, so every difference is false; with --inject, it is compared
    with itself slowed down by known amounts. With --model, microbenchmarks give the parameters of
    the model of time; with --model --validate, modelled times are compared with those of the
    project's records.

    For example:
        kernelexp calibrate --inject 0.5,1,2,5
    """
    if model or validate:
        if not model or inject:
            raise UsageError("--validate goes with --model, and --model not with --inject.")
        if not validate:
            _refit(project, chip, nvcc, figures, write, json)
            return
        _validate(project, chip, experiment or (), nvcc, json)
        return
    from kernelexp.report import calibrated
    from kernelexp.services import calibration

    with progress_bars() as bars:
        if inject:
            rates = calibration.injected(inject, device, margin / 100, nvcc, bars)
        else:
            rates = calibration.against_itself(device, margin / 100, nvcc, bars)
    output("calibrate", rates, calibrated.rates(rates), json)


def _refit(
    project: Path,
    chip: str,
    nvcc: str | None,
    figures: Path | None,
    target: Path | None,
    json: bool,
) -> None:
    from kernelexp.report import calibrated
    from kernelexp.services import calibration

    tools = None if figures else common.tools(common.load(project), nvcc)
    result = calibration.refit_model(chip, tools, figures)
    if target:
        calibration.write_chip(result, target)
        print_message(f"wrote {target}")
    output("model-refit", result, calibrated.refitted(result), json)


def _validate(
    project: Path, chip: str, experiments: Sequence[str], nvcc: str | None, json: bool
) -> None:
    from kernelexp.report import calibrated
    from kernelexp.services import validating

    loaded = common.load(project)
    with common.session(loaded, nvcc, None) as session:
        result = validating.validate(loaded, session, experiments, chip)
    output("model-validation", result, calibrated.validated(result), json)
