"""Experiments on GPU kernel variants: hypothesis, build, evidence, verdict, log.

What a problem.py needs is imported from here: `from kernelexp import Array, Launch, Pointer`.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing's own takes 3 ms, before signals are handled
if TYPE_CHECKING:
    from typing import Any

    from kernelexp.model.problem import (
        Array,
        Axes,
        Budget,
        Chunk,
        Size,
        Tensors,
        Tolerance,
        Work,
        blank,
    )
    from kernelexp.model.stored import read_array
    from warpsim.launch import Field, Launch, Pointer, Scalar, StructValue, TensorMap

__version__ = "0.1.0"
# kernelexp.problem and kernelexp.launch, for the problem.py files that records keep.
__path__.append(f"{__path__[0]}/model/earlier")
__all__ = [
    "Array",
    "Axes",
    "Budget",
    "Chunk",
    "Field",
    "Launch",
    "Pointer",
    "Scalar",
    "Size",
    "StructValue",
    "TensorMap",
    "Tensors",
    "Tolerance",
    "Work",
    "blank",
    "do_bench",
    "read_array",
]
_OF_LAUNCHES = frozenset(["Field", "Launch", "Pointer", "Scalar", "StructValue", "TensorMap"])


def __getattr__(name: str) -> Any:
    # Imported when asked for: a command line that needs none of them starts without them.
    if name not in __all__:
        raise AttributeError(f"module 'kernelexp' has no attribute {name!r}")
    if name == "do_bench":
        return importlib.import_module("kernelexp.api.bench").do_bench
    if name == "read_array":
        return importlib.import_module("kernelexp.model.stored").read_array
    home = "warpsim.launch" if name in _OF_LAUNCHES else "kernelexp.model.problem"
    return getattr(importlib.import_module(home), name)
