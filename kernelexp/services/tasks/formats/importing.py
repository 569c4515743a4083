"""Modules of a problem or a solution, imported from a folder in a process of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from kernelexp.model.errors import ConfigurationError


def module(path: Path, needed: tuple[str, ...] = ()) -> ModuleType:
    """Imports a file, which may import what lies beside it; ConfigurationError where it lacks one
    of the names."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path.name} is not a Python module.")
    module_type = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module_type
    spec.loader.exec_module(module_type)
    for name in needed:
        if not hasattr(module_type, name):
            raise ConfigurationError(f"{path.name} does not define {name}.")
    return module_type
