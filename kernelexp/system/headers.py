"""Folders of headers that experiments.yaml names by `{torch}` and `{python}`: where PyTorch and
Python have theirs on this machine."""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from kernelexp.model.errors import EnvironmentFault

TORCH, PYTHON = "{torch}", "{python}"


def torch() -> Path | None:
    """Returns the headers of the PyTorch that is installed beside this package."""
    spec = importlib.util.find_spec("torch")
    folder = Path(spec.origin).parent / "include" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


def python() -> Path:
    return Path(sysconfig.get_path("include"))


def expanded(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags with these folders in them; EnvironmentFault where PyTorch is not installed."""
    if not any(TORCH in flag or PYTHON in flag for flag in flags):
        return tuple(flags)
    folder = torch()
    if folder is None and any(TORCH in flag for flag in flags):
        raise EnvironmentFault(f"flags name {TORCH}, the headers of PyTorch: pip install torch.")
    return tuple(flag.replace(TORCH, str(folder)).replace(PYTHON, str(python())) for flag in flags)
