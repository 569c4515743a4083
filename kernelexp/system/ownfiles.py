"""Which files a project has: those below its root, and those of the repository around it.

A record calls both by their path from the root (`variants/k/k.cu`, `../common/tile.cuh`), which is
the same on every machine. Where other headers are is a matter of the machine.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

RESTORED = ".kernelexp/restored"
"""Where the files of a run are put to repeat it, in a folder for each run."""
_INSTALLED = "site-packages"


@functools.cache
def _repository(root: Path) -> Path:
    """The folder of the repository that a project is in; its own where there is none.

    A run that is repeated has its repository's files in its own folder.
    """
    for parent in (root, *root.parents):
        if (parent / ".git").exists() or parent.parent.as_posix().endswith(f"/{RESTORED}"):
            return parent
    return root


@functools.lru_cache(maxsize=4096)
def is_own(root: Path, name: str) -> bool:
    """Whether a path from the root names a file of the project or of its repository.

    Not what is installed there, as the compiler's headers in a virtual environment, nor what is
    hidden beside the project.
    """
    if not name or os.path.isabs(name) or "\0" in name:
        return False
    whole = Path(os.path.normpath(root / name))
    if whole.is_relative_to(root):
        return _INSTALLED not in whole.relative_to(root).parts
    top = _repository(root)
    if not whole.is_relative_to(top):
        return False
    parts = whole.relative_to(top).parts
    return not any(part == _INSTALLED or part.startswith(".") for part in parts)


def name(root: Path, path: str) -> str:
    """Returns a file's name in records, by its path from the root or in full; empty for others'
    files."""
    relative = os.path.relpath(path, root) if os.path.isabs(path) else path
    return relative if is_own(root, relative) else ""
