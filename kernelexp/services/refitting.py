"""The model's parameters from a card's microbenchmarks: `calibrate --model`."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import msgspec

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.system import disk
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.timing import chips, refit
from warpsim.timing.chips import TimedChip
from warpsim.timing.errors import NotModelled
from warpsim.timing.refit import SOURCE, Refitted

__all__ = ["SOURCE", "ModelRefit", "look", "write"]
LIMIT_S = 600.0
"""Of the microbenchmarks' build, and of their run."""
_FLAGS = ("-O3", "-std=c++17", "-Xcudafe", "--diag_suppress=1886", "-cudart", "static")


class ModelRefit(msgspec.Struct, frozen=True, kw_only=True):
    """A chip's parameters as the microbenchmarks give them."""

    chip: str
    parameters: tuple[Refitted, ...]
    kept: tuple[str, ...]
    """Parameters that no microbenchmark gives."""


def look(chip: str, tools: Toolchain | None, figures: Path | None) -> ModelRefit:
    """Refits from what the microbenchmarks printed, or by building and running them here."""
    try:
        known = chips.find(chip)
    except NotModelled as fault:
        raise UsageError(str(fault)) from None
    if figures is not None:
        try:
            text = figures.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{figures} can't be read: {fault}.") from None
    else:
        assert tools
        text = _run(known, tools)
    try:
        parameters = refit.refit(text.splitlines(), known)
    except NotModelled as fault:
        raise EnvironmentFault(str(fault)) from None
    if not parameters:
        raise UsageError(f"{figures} has none of the figures of {SOURCE.name}.")
    fitted = {item.name for item in parameters}
    return ModelRefit(
        chip=known.name,
        parameters=parameters,
        kept=tuple(name for name in known.parameters if name not in fitted),
    )


def _run(chip: TimedChip, tools: Toolchain) -> str:
    """Returns the output of the microbenchmarks on this machine's card."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "microbenchmarks")
        code = f"arch=compute_{chip.arch[3:]},code={chip.arch}"
        argv = [tools.nvcc, *_FLAGS, "-gencode", code, str(SOURCE), "-o", program]
        built = processes.run(argv, timeout_s=LIMIT_S)
        if built.returncode:
            raise EnvironmentFault(f"{SOURCE.name} does not build: {built.stderr.strip()}")
        return processes.run([program], timeout_s=LIMIT_S).output.decode("utf-8", "replace")


def write(result: ModelRefit, target: Path, source: str) -> None:
    """The chip's file with the parameters as refitted, which have this source."""
    text = chips.path(result.chip).read_text("utf-8")
    for item in result.parameters:
        section = rf"(\[{item.name}\]\nvalue = )\S+(\nunit = .*\norigin = ).*(\nsource = ).*"
        text = re.sub(section, rf'\g<1>{item.refitted:.5g}\g<2>"measured"\g<3>"{source}"', text)
    disk.write(target, text.encode())
