"""JSON as a type, in any thread.

msgspec makes a type's description at its first use and, in the middle of that, runs Python: another
thread that decodes the same type then reads half of it, and the process ends by a segmentation
fault (msgspec 0.22; `emulate` on two busy cores). So descriptions are made one at a time.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_lock = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def decode(content: bytes | str | msgspec.Raw, kind: type[T]) -> T: ...
@overload
def decode(content: bytes | str | msgspec.Raw, kind: object) -> Any: ...
def decode(content: bytes | str | msgspec.Raw, kind: Any) -> Any:
    """Decodes like msgspec.json.decode(); msgspec.DecodeError where it is invalid or too deep."""
    with _lock:
        decoder = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    try:
        return decoder.decode(content)
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from None
