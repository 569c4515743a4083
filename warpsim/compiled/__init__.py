"""The emulator's inner loops in C++, for a process that was given the library compiled from them.

They only make it faster: where there is no library, or a function declines, Python computes the
same bits, findings and counters. Their sources are the .cpp files beside this one.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, ClassVar


class _Loaded:
    library: Any = None
    functions: ClassVar[dict[tuple[Any, ...], Any]] = {}
    operations: ClassVar[dict[str, int]] = {}


def load(path: Path) -> None:
    """From now on functions come from this library; OSError where it can't be used here."""
    import numpy as np  # not for who asks where the sources are

    library = ctypes.PyDLL(str(path))
    matrix = np.zeros((4, 6), np.uint16)[1:, ::2]
    check = library.kx_is_array
    check.argtypes = [ctypes.py_object, ctypes.c_void_p, *[ctypes.c_int64] * 4]
    if not check(matrix, matrix.ctypes.data, *matrix.shape, *matrix.strides):
        raise OSError(f"{path} does not know NumPy {np.__version__}'s arrays.")
    _Loaded.functions.clear()
    _Loaded.operations.clear()
    _Loaded.library = library


def unload() -> None:
    """Back to Python."""
    _Loaded.library = None
    _Loaded.functions.clear()


def is_loaded() -> bool:
    return _Loaded.library is not None


def function(name: str, *arguments: Any) -> Any:
    """A function that returns an int, by name and ctypes argument types; only after load().

    An array is passed as ctypes.py_object: that costs a tenth of what ndpointer does.
    """
    key = name, *arguments
    loaded = _Loaded.functions.get(key)
    if loaded is None:
        loaded = _Loaded.functions[key] = _Loaded.library[name]
        loaded.argtypes = list(arguments)
    return loaded


def operation(name: str) -> int:
    """The index of an operation of the interpreter, -1 if there is none of that name."""
    number = _Loaded.operations.get(name)
    if number is None:
        number = function("kx_operation", ctypes.c_char_p)(name.encode())
        _Loaded.operations[name] = number
    return number
