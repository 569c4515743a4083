"""A problem.py as a file: it is executed, and what it raises ends in a sentence with its place."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from kernelexp.model.errors import ConfigurationError, EnvironmentFault, KernelexpError
from kernelexp.model.problem import Blank
from kernelexp.project.problem import files


class _TextLoader(SourceFileLoader):
    """Reads the text alone, and no compiled file in __pycache__.

    Python takes that for a source which has the same time and size: one that was restored with its
    time, or edited twice in a second, can have both and be another one.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class ProblemFile:
    """A problem.py as a file: runs it, and says where in it something went wrong."""

    def __init__(
        self, path: Path, name: str, around: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.path, self.name, self._around = path, name, around

    def execute(self) -> ModuleType:
        module = self._execute(self.path, f"kernelexp_problem_{self.path.parent.name}")
        if module is None:
            raise ConfigurationError(f"{self.name} can't be read.")
        return module

    def execute_beside(self, file: str) -> ModuleType | None:
        """Another file of the kernel's folder; None where it is not there."""
        path = self.path.with_name(file)
        return self._execute(path, f"kernelexp_{path.stem}_{path.parent.name}")

    def _execute(self, path: Path, title: str) -> ModuleType | None:
        """The module of a file, in sys.modules as `title`; None where there is no such file.

        Its folder, which is given without links, is the first of sys.path from then on.
        """
        loader = _TextLoader(title, str(path))
        spec = importlib.util.spec_from_file_location(title, path, loader=loader)
        if spec is None or not path.is_file():
            return None
        files.begin()
        module = importlib.util.module_from_spec(spec)
        sys.modules[title] = module
        _look_in(path.parent)
        with self.blame("import"):
            loader.exec_module(module)
        return module

    @contextmanager
    def blame(self, function: str) -> Iterator[None]:
        """Turns what problem.py raises into the sentence that says where it came from."""
        try:
            with self._around(function):
                yield
        except (KernelexpError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if is_device_failure(error):
                raise  # a kernel's, seen here because launches are asynchronous
            place = self._place(error)
            if isinstance(error, Blank):
                raise ConfigurationError(f"{place}: {error}") from None
            if is_out_of_memory(error):
                words = str(error).partition("\n")[0]
                raise EnvironmentFault(
                    f"{place}: this machine has not enough memory for it: {words}"
                ) from error
            if isinstance(error, SystemExit):
                raise ConfigurationError(
                    f"{place}: it calls sys.exit({error.code!r}): raise an exception instead."
                ) from None
            words = f"there is no key {error} (KeyError)" if isinstance(error, KeyError) else ""
            words = words or f"{type(error).__name__}: {error}"
            raise ConfigurationError(f"{place}: {words}") from error

    def _place(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename == str(self.path):
            return f"{self.name}:{error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        for frame in reversed(frames):
            path = Path(frame.filename)
            if path.is_relative_to(self.path.parent):
                return f"{self.neighbour(path)}:{frame.lineno}"
        return self.name

    def neighbour(self, path: Path) -> str:
        """The name of a file in the kernel's folder."""
        return self.name.removesuffix("problem.py") + path.relative_to(self.path.parent).as_posix()

    def at(self, function: Callable[..., Any]) -> str:
        """Returns the place where a function is defined."""
        code = getattr(function, "__code__", None)
        if code is None or not Path(code.co_filename).is_relative_to(self.path.parent):
            return self.name
        return f"{self.neighbour(Path(code.co_filename))}:{code.co_firstlineno}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch ran out of memory, on the host or on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def is_device_failure(error: BaseException) -> bool:
    """Whether torch says that the GPU failed, rather than that it was used wrongly."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    accelerator = getattr(torch, "AcceleratorError", None)
    if accelerator is not None and isinstance(error, accelerator):
        return True
    return "CUDA error" in str(error)


def _look_in(folder: Path) -> None:
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))

    def finder(path: str) -> FileFinder:
        if files.is_installed(f"{path}/") or not Path(path).is_dir():
            raise ImportError
        return FileFinder(
            path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_TextLoader, SOURCE_SUFFIXES)
        )

    sys.path_hooks.insert(0, finder)
    for item in list(sys.path_importer_cache):
        if not files.is_installed(f"{item}/"):
            del sys.path_importer_cache[item]
