"""Arrays that lie beside a problem.py, compressed and named by their content."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.model.errors import ConfigurationError
from warpsim.dtypes import TORCH_NAMES, DType

if TYPE_CHECKING:
    import torch

FOLDER = "captured"
_DIGITS = 16


def store(folder: Path, content: bytes) -> str:
    """The name of a file below the kernel's folder, which is written unless it is there."""
    name = hashlib.sha256(content).hexdigest()[:_DIGITS]
    path = _path(folder, name)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, compresslevel=1, mtime=0))
    return name


def read_array(
    problem: str, name: str, dtype: DType, shape: tuple[int, ...], device: str = "cpu"
) -> torch.Tensor:
    """An array that was stored beside a problem.py, which passes its `__file__`."""
    import torch

    content = _content(_path(Path(problem).parent, name), name)
    array = torch.frombuffer(bytearray(content), dtype=getattr(torch, TORCH_NAMES[dtype]))
    return array.reshape(shape).to(device)


def _content(path: Path, name: str) -> bytes:
    if (kept := _read.get(path)) is not None:
        return kept
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"{path} can't be read: {error}.") from None
    if hashlib.sha256(content).hexdigest()[:_DIGITS] != name:
        raise ConfigurationError(f"{path} is damaged: its content is not what its name says.")
    if sum(map(len, _read.values())) + len(content) <= _KEPT_BYTES:
        _read[path] = content
    return content


_KEPT_BYTES = 1 << 30
_read: dict[Path, bytes] = {}
"""What this process has read: a measuring process takes its inputs and its reference 20 times, and
a megabyte takes 10 to 20 ms to decompress."""


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.gz"
