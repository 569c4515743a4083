"""Files that a compiler would read now instead of headers that a record names.

A record says what was read, not what was looked for in vain: a header that was added since beside
the file that includes it is found first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelexp.system import ownfiles
from kernelexp.system.toolchain import HEADERS

_INCLUDES = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
_LONGEST = 8 << 20


class Shadows:
    """What shadows headers in a project as it is now; each file is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._included: dict[str, tuple[str, ...]] = {}

    def of(self, read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The new file and the header that it would be taken for, of a record that read these."""
        known = set(read)
        for path in known:
            for name in self._names(path):
                beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
                if beside in known or not self._is_there(beside):
                    continue
                if any(item.endswith(f"/{name}") for item in known) or (HEADERS / name).is_file():
                    yield beside, name

    def _names(self, path: str) -> tuple[str, ...]:
        """What a file includes by quotes."""
        if path not in self._included:
            self._included[path] = tuple(self._read(path))
        return self._included[path]

    def _read(self, path: str) -> Iterator[str]:
        file = self._root / path
        if not self._is_there(path) or file.stat().st_size > _LONGEST:
            return
        for name in _INCLUDES.findall(file.read_bytes()):
            yield os.fsdecode(name)

    def _is_there(self, path: str) -> bool:
        return ownfiles.is_own(self._root, path) and os.path.isfile(self._root / path)
