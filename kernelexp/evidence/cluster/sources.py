"""A project's files on their way to workers: a plugin, which workers that join later get too."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from kernelexp.project.problem import files

FOLDER = "kernelexp"
_ROOT = "variants"


def read(root: Path) -> dict[str, bytes]:
    """Reads the files that variants are built from and problem.py reads, by path from the root."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in files.below(root, root / _ROOT)
    }


def digest(files: dict[str, bytes]) -> str:
    """A name for exactly these files."""
    whole = hashlib.sha256()
    for path, content in sorted(files.items()):
        whole.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return whole.hexdigest()[:32]


def folder(local_directory: str, name: str) -> Path:
    """Returns the folder where a worker has the files of a digest."""
    return Path(local_directory) / FOLDER / name


class Sources(WorkerPlugin):  # type: ignore[misc]
    """Writes a project's files into a worker's own folder, each set of files once."""

    idempotent = True

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.name = f"{FOLDER}-{digest(files)}"

    def setup(self, worker: Any) -> None:
        """Whole or not at all; raises ValueError where they are not what was sent."""
        own = digest(self.files)
        if self.name != f"{FOLDER}-{own}":
            raise ValueError("the project's files were damaged on their way to this worker")
        target = folder(worker.local_directory, own)
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"tmp-{uuid.uuid4().hex[:12]}")
        for path, content in self.files.items():
            (temporary / path).parent.mkdir(parents=True, exist_ok=True)
            (temporary / path).write_bytes(content)
        (temporary / _ROOT).mkdir(parents=True, exist_ok=True)
        try:
            temporary.rename(target)
        except OSError:  # another thread was faster
            shutil.rmtree(temporary, ignore_errors=True)
