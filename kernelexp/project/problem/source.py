"""A problem.py as a file: it is executed, and what it raises ends in a sentence with its place."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelexp.model.errors import ConfigurationError, EnvironmentFault, KernelexpError
from kernelexp.model.problem import Blank
from kernelexp.project.problem import imports


class ProblemFile:
    """A problem.py as a file: runs it, and says where in it something went wrong."""

    def __init__(
        self, path: Path, name: str, around: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.path, self.name, self._around = path, name, around

    def execute(self) -> ModuleType:
        module = imports.prepare(self.path, f"kernelexp_problem_{self.path.parent.name}")
        if module is None:
            raise ConfigurationError(f"{self.name} can't be read.")
        with self.blame("import"):
            imports.execute(module)
        return module

    def execute_beside(self, file: str) -> ModuleType | None:
        """Another file of the kernel's folder; None where it is not there."""
        path = self.path.with_name(file)
        module = imports.prepare(path, f"kernelexp_{path.stem}_{path.parent.name}")
        if module is not None:
            with self.blame("import"):
                imports.execute(module)
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
