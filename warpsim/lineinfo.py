"""A line of CUDA source as line tables name it: with the lines that its function was inlined at."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

import msgspec

_TOOLKIT = re.compile(r"/(cuda[^/]*|nvidia/\w+)/([\d.]+/)?(bin/\.\.//?|targets/[^/]+/)?include/")
"""In the paths of headers that come with nvcc: no line of theirs tells anybody anything."""

SourceLine: TypeAlias = tuple[str, int]
"""A file, as the line table names it, and a line of it."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of CUDA source; `caller` is where its function was inlined."""

    file: str
    line: int
    caller: Source | None = None

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"

    def frames(self) -> list[Source]:
        """This line, the line that its function was inlined at, and so on outwards."""
        return [self] if self.caller is None else [self, *self.caller.frames()]

    def relative_to(self, root: str) -> Source:
        """With files below the folder `root` by their path from there."""
        return Source(
            self.file.removeprefix(f"{root.rstrip('/')}/"),
            self.line,
            self.caller.relative_to(root) if self.caller else None,
        )

    def place(self, callers: int = 1) -> str:
        """The line in the kernel's own folder, after those that its function was inlined at.

        `a.cu:7 → b.cuh:3`, and `a.cu:7 → :3` in the same file; at most `callers` come before it.
        """
        frames = self.own().frames()[: callers + 1][::-1]
        return " → ".join(
            f":{frame.line}" if before and frame.file == before.file else str(frame)
            for before, frame in zip([None, *frames], frames, strict=False)
        )

    @property
    def is_toolkits(self) -> bool:
        return _TOOLKIT.search(self.file) is not None

    def own(self) -> Source:
        """The innermost line in the folder of the kernel itself: where a wrapper was used."""
        frames = self.frames()
        folder = os.path.dirname(frames[-1].file)
        return next(f for f in frames if os.path.dirname(f.file) == folder)
