"""CUDA sources of a solution, compiled in its own process: torch's load_inline and load without a
toolkit and without a GPU, and files that are called by a C name.

The host code is the solution's own, as it is: what it includes of torch's CUDA side comes from
`headers/`, where a CUDA tensor is one in memory that the emulator's runtime manages.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelexp.model.errors import BuildError
from kernelexp.system.process import processes

VARIABLE = "KERNELEXP_COMPILES"
"""What compiles, as JSON: nvcc and its flags, and the folder that results are left in."""
LIMIT_S = 900.0
HEADERS = Path(__file__).parent / "headers"
_PRELUDE = '#include "cuda_as_cpu.h"\n'
_FFI_PRELUDE = """#include <tvm/ffi/tvm_ffi.h>
#include <tvm/ffi/extra/c_env_api.h>
#define kDLCUDA kDLCPU
"""
_ALL_OF_TORCH = re.compile(r"\btorch::(?:nn|optim|data|jit|serialize|save|load|python)\b")
_OF_TORCH = re.compile(r"\b(?:torch|at|ATen|c10)\b")
_HIDDEN = re.compile(r"warning|note:|^\s|\d+ \||^$")


def _settings() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(os.environ[VARIABLE])
    return data


def on_gpu() -> bool:
    """Whether what is compiled runs on a GPU, and not on the emulator."""
    return bool(_settings().get("gpu"))


def runtime() -> ctypes.CDLL:
    """The CUDA runtime that this process uses."""
    return ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)


def compile_shared(source: Path) -> Path:
    """A .cu file to a library beside the others; BuildError in nvcc's words."""
    return _built({source.name: source.read_text()}, source.stem, ())


def compile_ffi(name: str, sources: Sequence[str]) -> Path:
    """Sources whose functions tvm-ffi binds, to a library that it loads."""
    from tvm_ffi import libinfo

    paths = [Path(text) for text in sources]
    prelude = "" if on_gpu() else _FFI_PRELUDE
    files = {path.name: f'{prelude}#line 1 "{path.name}"\n{path.read_text()}' for path in paths}
    folders = [*libinfo.include_paths(), *sorted({str(path.resolve().parent) for path in paths})]
    library = Path(libinfo.find_libtvm_ffi())
    place = ["-Xlinker", "-rpath", "-Xlinker", str(library.parent)]
    return _built(files, name, [f"-I{folder}" for folder in folders], [str(library), *place])


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    no_implicit_headers: bool = False,
    **_: Any,
) -> ModuleType:
    """Stands in for torch.utils.cpp_extension.load_inline()."""
    plain, cuda = _texts(cpp_sources), _texts(cuda_sources)
    headers = not no_implicit_headers
    files = {"main.cpp": _headed("\n".join(plain) + _binding(functions), "extension", headers)}
    if cuda:
        files["cuda.cu"] = _headed("\n".join(_placed(item) for item in cuda), "types", headers)
    flags = [*_defines(extra_cflags), *(extra_cuda_cflags or ())]
    return _torch_module(files, name, flags)


def load(name: str, sources: str | Sequence[str], **options: Any) -> ModuleType:
    """Stands in for torch.utils.cpp_extension.load()."""
    paths = [Path(text) for text in _texts(sources)]
    files = {path.name: _prefaced(path) for path in paths}
    headers = sorted({f"-I{path.resolve().parent}" for path in paths})
    flags = [
        *headers,
        *_defines(options.get("extra_cflags")),
        *(options.get("extra_cuda_cflags") or ()),
    ]
    return _torch_module(files, name, flags)


def _prefaced(path: Path) -> str:
    text = path.read_text()
    preface = _headed("", "extension", bool(_OF_TORCH.search(text)))
    return f'{preface}#line 1 "{path.name}"\n{text}'


def _headed(text: str, header: str, wanted: bool) -> str:
    """Behind one of torch's headers; what names nothing of torch needs none."""
    if not wanted and not _OF_TORCH.search(text):
        return text
    return f"#include <torch/{header}.h>\n{_PRELUDE}{text}"


def _texts(sources: str | Sequence[str] | None) -> list[str]:
    return [sources] if isinstance(sources, str) else [str(source) for source in sources or ()]


def _defines(flags: Sequence[str] | None) -> list[str]:
    return [flag for flag in flags or () if flag.startswith("-D")]


def _binding(functions: str | Sequence[str] | dict[str, str] | None) -> str:
    if functions is None:
        return ""
    named = functions if isinstance(functions, dict) else {name: name for name in _texts(functions)}
    lines = (f'  m.def("{name}", &{name}, "{text}");' for name, text in named.items())
    return "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "\n".join(lines) + "\n}\n"


def _placed(text: str) -> str:
    """Adds the line of the Python file that the text is written in, where it is found in one."""
    for path in sorted(Path.cwd().glob("*.py")):
        at = path.read_text(errors="replace").find(text)
        if at >= 0:
            line = 1 + path.read_text(errors="replace")[:at].count("\n")
            return f'#line {line} "{path.name}"\n{text}'
    return text


def _torch_module(files: dict[str, str], name: str, flags: Sequence[str]) -> ModuleType:
    own = _torch_flags(name)
    if any(_ALL_OF_TORCH.search(text) for text in files.values()):
        own.append("-DKERNELEXP_ALL_OF_TORCH")
    return _imported(_built(files, name, [*own, *flags], _torch_libraries()), name)


def _built(
    files: dict[str, str], name: str, flags: Sequence[str], link: Sequence[str] = ()
) -> Path:
    """The library; the one that was made before of the same, if there is one."""
    result = _settings()
    digest = hashlib.sha256(json.dumps([files, name, list(flags), result]).encode()).hexdigest()
    folder = Path(result["folder"]) / digest[:16]
    library = folder / f"{name}.so"
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text)

    def compile_one(file: str) -> None:
        # Lines are asked for of launches only.
        own = result["nvcc"] if file.endswith(".cu") else [*result["nvcc"], "-Xcompiler=-g0"]
        _run([*own, *flags, "-c", file, "-o", f"{file}.o"], folder)

    processes.parallel(compile_one, list(files))
    linked = [*result["nvcc"], "-shared", *(f"{file}.o" for file in files), "-o", library.name]
    _run([*linked, *link], folder)
    return library


def _run(argv: list[str], folder: Path) -> None:
    done = processes.run(argv, cwd=folder, timeout_s=LIMIT_S)
    if done.returncode != 0:
        words = done.stderr or done.stdout
        lines = [line for line in words.splitlines() if not _HIDDEN.search(line)]
        raise BuildError("\n".join(lines[:20]) or words[-2000:])


def _torch_flags(name: str) -> list[str]:
    from torch.utils import cpp_extension

    folders = [str(HEADERS), *cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    return [
        *(f"-I{folder}" for folder in folders),
        *(f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"),
    ]


def _torch_libraries() -> list[str]:
    from torch.utils import cpp_extension

    folders = cpp_extension.library_paths()
    names = ("c10", "torch", "torch_cpu", "torch_python")
    return [*(f"-L{folder}" for folder in folders), *(f"-l{name}" for name in names)]


def _imported(library: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise BuildError(f"{name} is not a Python module.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
