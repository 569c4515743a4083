"""Patterns of paths to the files of a project that they name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kernelexp.errors import ConfigurationError

FILES_MAX = 10_000
# What runs write is not what they are made from.
_OWN = (".kernelexp", ".git", "logs")


def find(root: Path, patterns: Iterable[str]) -> list[str]:
    """The regular files that match, by their paths from the root, sorted; hidden folders of the
    tools and links that leave the project left out. ConfigurationError where there are too many."""
    real = os.path.realpath(root)
    found: set[str] = set()
    for pattern in patterns:
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            if name.partition("/")[0] in _OWN or not path.is_file():
                continue
            if Path(os.path.realpath(path)).is_relative_to(real):
                found.add(name)
            if len(found) > FILES_MAX:
                raise ConfigurationError(
                    f"sources: {pattern} matches more than {FILES_MAX:,} files: name fewer."
                )
    return sorted(found)
