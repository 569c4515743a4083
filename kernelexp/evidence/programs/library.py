"""The emulator's CUDA runtime as a shared library, made by the host compiler once per user.

Its folder has what a program is linked with: libcudart.so, and a libcudart_static.a that names it,
so that a build which asks for the static runtime gets this one; and LIBRARIES of the emulator's
own, with their headers, for where NVIDIA's are not installed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import warpsim
from kernelexp.evidence import hostcompiler
from kernelexp.evidence.hostcompiler import HostCompiler
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import disk, toolchain

NAME = "libcudart.so.13"
SOURCES = Path(warpsim.__file__).parent / "runtime" / "cudart"
LIBRARIES = {"cublas": 13, "cublasLt": 13, "cufft": 12, "curand": 10, "cusparse": 12, "nvrtc": 13}
"""Folders of sources beside the runtime's, and the version in the name of CUDA 13's library."""
_WHAT = "the emulator's CUDA runtime"
_UNITS = 2
"""Translation units of the runtime. Two take 11 s of CPU time; one for each source took 20 s,
most of it for headers."""
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=default", "-Wall")
HEADERS = "include"
"""The folder in the library's own with the headers of what NVIDIA's compiler has none of."""
_DEVICE_RUNTIME = "libcudadevrt.a"
"""Which nvcc links with whatever it links."""
_ERRORS = 1100
"""Error numbers are below."""
_PER_THREAD = re.compile(r"(.+)_pt(?:sz|ds)")


def folder(root: Path) -> Path:
    """Returns the library's folder; EnvironmentFault where this machine can't make it."""
    compiler = hostcompiler.find(_WHAT, _FLAGS)
    genuine = _genuine()
    sources = sorted(SOURCES.glob("*.cpp"))
    others = [*SOURCES.glob("*.h*"), SOURCES / "exports.map"]
    others += [file for library in LIBRARIES for file in (SOURCES.parent / library).iterdir()]
    files = (*sources, *sorted(others), Path(compiler.program), genuine, Path(__file__))
    name = f"cudart-{hostcompiler.digest(files, _FLAGS)}"
    return hostcompiler.library(
        root, name, _WHAT, lambda place: _compile(compiler, sources, genuine, place)
    )


def headers() -> list[str]:
    """Flags that find the toolkit's.

    The wheel of the runtime names headers that are in nvidia-cuda-crt, which torch does not bring:
    where that is missing, the compiler's own toolkit has them.
    """
    folders = [_genuine().parent.parent / "include"]
    if not (folders[0] / "crt").is_dir():
        folders.append(toolchain.locate_nvcc().parent.parent / "include")
    return [f"-I{folder}" for folder in folders]


def own_headers() -> list[str]:
    """Flags with which the libraries are compiled: NVIDIA's cuBLAS may be installed too, and must
    not be taken for the emulator's."""
    return [f"-I{SOURCES.parent / 'cublas'}", *headers()]


def _genuine() -> Path:
    """NVIDIA's library, whose functions this one names."""
    found_at = importlib.util.find_spec("nvidia")
    for place in (found_at.submodule_search_locations or []) if found_at else []:
        for path in sorted(Path(place).glob(f"cu*/lib/{NAME}")):
            return path
    raise EnvironmentFault(
        f"{NAME} was not found: install kernelexp with its dependencies (nvidia-cuda-runtime)."
    )


def _compile(compiler: HostCompiler, sources: Sequence[Path], genuine: Path, place: Path) -> Path:
    hostcompiler.announce(_WHAT)
    generated = place / "generated.cpp"
    generated.write_text(_generated(genuine))
    every = [generated]
    for start in range(_UNITS):
        unit = place / f"unit{start}.cpp"
        unit.write_text("".join(f'#include "{source}"\n' for source in sources[start::_UNITS]))
        every.append(unit)
    own = [SOURCES.parent / library / f"{library}.cpp" for library in LIBRARIES]
    objects = compiler.objects([*own, *every], place, *own_headers())
    finished = place / "finished"
    finished.mkdir()
    script = f"-Wl,--version-script={SOURCES / 'exports.map'}"
    runtime = map(objects.__getitem__, every)
    compiler.run("-shared", *runtime, f"-Wl,-soname,{NAME}", script, "-o", str(finished / NAME))
    for source, (library, version) in zip(own, LIBRARIES.items(), strict=True):
        name = f"lib{library}.so.{version}"
        compiler.run(
            *("-shared", objects[source], f"-L{finished}", f"-l:{NAME}"),
            *(f"-Wl,-soname,{name}", "-o", str(finished / name)),
        )
    for name in (NAME, *(f"lib{library}.so.{version}" for library, version in LIBRARIES.items())):
        disk.sync(finished / name)
        (finished / name.rpartition(".")[0]).symlink_to(name)
    for driver in ("libcuda.so", "libcuda.so.1"):  # its functions are the runtime's
        (finished / driver).symlink_to(NAME)
    (finished / HEADERS).mkdir()
    for library in LIBRARIES:
        for header in (SOURCES.parent / library).glob("*.h"):
            shutil.copy(header, finished / HEADERS)
    for header in SOURCES.glob("cuda_*.h"):
        shutil.copy(header, finished / HEADERS)
    (finished / "libcudart_static.a").write_text(f"INPUT ( {NAME} )\n")
    shutil.copy(genuine.parent / _DEVICE_RUNTIME, finished)
    return finished


def _generated(genuine: Path) -> str:
    """Generates code from NVIDIA's library: the texts of errors, a refusal for each function."""
    texts = "\n".join(f"{{{number}, {name}, {text}}}," for number, name, text in _texts(genuine))
    named = set(_exports(genuine)) - {"cudaGetErrorName", "cudaGetErrorString"}
    refusals = "\n".join(map(_refusal, sorted(named)))
    return f"""#include <cuda_runtime_api.h>
extern "C" [[noreturn]] void warpsim_missing(const char*);
namespace {{
struct Text {{ int number; const char *name, *text; }};
constexpr Text texts[] = {{
{texts}
}};
}}
extern "C" const char* cudaGetErrorName(cudaError_t error) {{
  for (const Text& each : texts) if (each.number == error) return each.name;
  return "unrecognized error code";
}}
extern "C" const char* cudaGetErrorString(cudaError_t error) {{
  for (const Text& each : texts) if (each.number == error) return each.text;
  return "unrecognized error code";
}}
{refusals}
"""


def _texts(genuine: Path) -> Iterator[tuple[int, str, str]]:
    library = ctypes.CDLL(str(genuine))
    functions = (library.cudaGetErrorName, library.cudaGetErrorString)
    for function in functions:
        function.restype = ctypes.c_char_p
    for number in range(_ERRORS):
        name, text = (function(number).decode() for function in functions)
        if name.startswith("cuda"):
            yield number, _quoted(name), _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _exports(genuine: Path) -> Iterator[str]:
    from elftools.elf.elffile import ELFFile

    with genuine.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym")
        for symbol in symbols.iter_symbols():
            known = symbol["st_shndx"] != "SHN_UNDEF" and "cuda" in symbol.name
            if known and symbol.name.isidentifier():
                yield symbol.name


def _refusal(name: str) -> str:
    """Returns assembly: a call of warpsim_missing with the name, which any other definition
    replaces; of a form for per-thread streams, the usual function."""
    arm = platform.machine() == "aarch64"
    usual = _PER_THREAD.fullmatch(name)
    if usual:
        jump = f"b {usual[1]}" if arm else f"jmp {usual[1]}@PLT"
        return _assembly(f".globl {name}", f".type {name}, @function", f"{name}: {jump}")
    text = (".section .rodata", f'8: .asciz "{name}"', ".text")
    load = ("adrp x0, 8b", "add x0, x0, :lo12:8b") if arm else ("lea 8b(%rip), %rdi",)
    call = "bl warpsim_missing" if arm else "and $-16, %rsp\ncall warpsim_missing@PLT"
    return _assembly(*text, f".weak {name}", f".type {name}, @function", f"{name}:", *load, call)


def _assembly(*lines: str) -> str:
    return "asm(" + _quoted("\n".join(lines)).replace("\n", "\\n") + ");"
