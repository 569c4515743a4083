"""Imports a problem.py, and what it imports that is not installed, from their text alone.

Python takes a compiled file in __pycache__ for a source that has the same time and size. A source
that was restored with its time, or edited twice in a second, can have both and be another one.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

from kernelexp.project.problem import reads


class _TextLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def prepare(path: Path, title: str) -> ModuleType | None:
    """The module of a file, not yet executed, in sys.modules as `title`; None where it can't be.

    Its folder, which is given without links, is the first of sys.path from then on.
    """
    spec = importlib.util.spec_from_file_location(title, path, loader=_TextLoader(title, str(path)))
    if spec is None or not path.is_file():
        return None
    reads.begin()
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    _look_in(path.parent)
    return module


def execute(module: ModuleType) -> None:
    """Runs the module; raises what it raises."""
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    module.__spec__.loader.exec_module(module)


def _look_in(folder: Path) -> None:
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))

    def finder(path: str) -> FileFinder:
        if reads.is_installed(f"{path}/") or not Path(path).is_dir():
            raise ImportError
        return FileFinder(
            path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_TextLoader, SOURCE_SUFFIXES)
        )

    sys.path_hooks.insert(0, finder)
    for item in list(sys.path_importer_cache):
        if not reads.is_installed(f"{item}/"):
            del sys.path_importer_cache[item]
