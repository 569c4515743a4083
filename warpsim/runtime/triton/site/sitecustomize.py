"""Makes the emulator Triton's device in a Python program that `exec` has started.

Python imports a module of this name when it starts. Nothing else happens until the program imports
Triton; another sitecustomize, which this one hides, is run first.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).parent
_CHANGED = {
    "triton.runtime.driver": "activate",
    "triton.compiler.compiler": "note_kernels",
    "triton.testing": "take_clock",
    "torch": "give_device",
    "torch._inductor.config": "compile_to_triton",
    "torch._inductor.runtime.hints": "describe_card",
    "torch._inductor.runtime.triton_heuristics": "load_on_cpu",
    "torch._inductor.runtime.triton_helpers": "keep_driver",
    "torch.utils._triton": "have_triton",
}
"""Modules of Triton's and PyTorch's, and the function of ours that is given them."""


class _Finder(importlib.abc.MetaPathFinder):
    """Has something done to one of these modules as soon as it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _CHANGED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        emulated = _load("_warpsim_triton", _HERE.parent / "driver.py")
        getattr(emulated, _CHANGED[module.__name__])(module)


def _load(name: str, path: Path) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run_hidden() -> None:
    """The sitecustomize that would have been imported without this one."""
    rest = [place for place in sys.path if Path(place or ".").resolve() != _HERE.resolve()]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_hidden()
sys.meta_path.insert(0, _Finder())
