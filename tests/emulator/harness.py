"""Builds small PTX kernels and runs them: one instruction, or a body of them."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kept
import numpy as np
from support import ROOT

import warpsim as emulator
from kernelexp.system import toolchain
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import Argument, Launch, Pointer, Residency
from warpsim.machine.core.marks import Origin
from warpsim.machine.wave.undefined import Undefined

_WIDTHS = {8: "b8", 16: "b16", 32: "b32", 64: "b64"}
LATE = emulator.Schedule(seed=0, asynchrony="late")
EARLY = emulator.Schedule(seed=0, asynchrony="early")


def ptx(
    body: str,
    arrays: Sequence[str] = (),
    *,
    shared: str = "",
    target: str = "sm_100a",
    extra: str = "",
) -> str:
    """A module with entry `k`; each array's address is in %<name>, the thread in %tid."""
    parameters = ",\n".join(f".param .u64 k_{name}" for name in arrays)
    loads = "\n".join(f"ld.param.u64 %{name}, [k_{name}];" for name in arrays)
    registers = "\n".join(f".reg .b64 %{name};" for name in arrays)
    return f"""
.version 9.0
.target {target}
.address_size 64
{extra}
.visible .entry k({parameters})
{{
.reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %d<64>; .reg .b32 %t;
{registers}
{shared}
mov.u32 %t, %tid.x;
{loads}
{body}
ret;
}}
"""


def run(text: str, arrays: Mapping[str, np.ndarray], **how: Any) -> emulator.Result:
    """Runs entry `k` with the arrays as its arguments, in order."""
    return launched(emulator.load(text), arrays, **how)


def launched(
    module: emulator.Module,
    arrays: Mapping[str, np.ndarray],
    *,
    threads: int = 32,
    grid: int = 1,
    cluster: int = 1,
    dynamic: int = 0,
    arguments: Sequence[Argument] | None = None,
    schedule: emulator.Schedule = LATE,
    unwritten: Sequence[str] = (),
    card: Residency | None = None,
) -> emulator.Result:
    launch = Launch(
        entry="k",
        grid=(grid, 1, 1),
        block=(threads, 1, 1),
        cluster=(cluster, 1, 1),
        dynamic_smem_bytes=dynamic,
        arguments=tuple(arguments or [Pointer(array=name) for name in arrays]),
    )
    return emulator.run(module, launch, arrays, schedule=schedule, unwritten=unwritten, card=card)


@contextlib.contextmanager
def marks_at_the_end() -> Iterator[list[tuple[int, bytes, Origin]]]:
    """Of launches meanwhile: register, lanes and origin of each register that is marked at the end
    of a wave."""
    plain, ends = Undefined.finish, []

    def finish(undefined: Undefined, state: np.ndarray) -> None:
        marks = undefined.marks
        every = np.zeros((0, 1, 32), np.uint16) if marks._marks is None else marks._marks
        counts = [np.count_nonzero(lanes.any(axis=1)) for lanes in every]
        assert marks._marked[: len(every)].tolist() == counts
        assert marks.layout.total == sum(counts)
        ends.extend(
            (number, lanes.tobytes(), Origin(*marks._origins[number].tolist()))
            for number, lanes in enumerate(every)
            if lanes.any()
        )
        plain(undefined, state)

    Undefined.finish = finish  # type: ignore[method-assign]
    try:
        yield ends
    finally:
        Undefined.finish = plain  # type: ignore[method-assign]


def found(result: emulator.Result) -> set[str]:
    return {finding.name for finding in result.findings}


@functools.lru_cache(maxsize=512)
def _one(opcode: str, widths: tuple[int, ...], result: int, literals: tuple[str, ...]) -> object:
    """The module that applies an opcode lane by lane: out[t] = opcode(in0[t], in1[t], ...)."""
    names = [f"in{i}" for i in range(len(widths))]
    lines = []
    registers = []
    for name, width in zip(names, widths, strict=True):
        kind, size = _WIDTHS[width], max(1, width // 8)
        register = f"%{'h' if width <= 16 else 'r' if width == 32 else 'd'}{len(lines)}"
        lines.append(f"mul.wide.u32 %d60, %t, {size}; add.u64 %d61, %{name}, %d60;")
        lines.append(f"ld.global.{kind} {register}, [%d61];")
        registers.append(register)
    target = {1: "%p0", 16: "%h31", 32: "%r63", 64: "%d63"}[result]
    operands = ", ".join([target, *registers, *literals])
    lines.append(f"{opcode} {operands};")
    if result == 1:
        lines.append("selp.b32 %r63, 1, 0, %p0;")
        result, target = 32, "%r63"
    lines.append(f"mul.wide.u32 %d60, %t, {result // 8}; add.u64 %d61, %out, %d60;")
    lines.append(f"st.global.{_WIDTHS[result]} [%d61], {target};")
    return emulator.load(ptx("\n".join(lines), [*names, "out"]))


def apply(
    opcode: str, *inputs: np.ndarray, result: int, literals: Sequence[str] = ()
) -> np.ndarray:
    """What an opcode makes of unsigned arrays of equal length, lane by lane."""
    widths = tuple(8 * array.itemsize for array in inputs)
    module = _one(opcode, widths, result, tuple(literals))
    count = len(inputs[0])
    out = np.zeros(count, f"u{4 if result == 1 else result // 8}")
    arrays = {f"in{i}": np.ascontiguousarray(array) for i, array in enumerate(inputs)}
    arrays["out"] = out
    launch = Launch(
        entry="k",
        grid=(1, 1, 1),
        block=(count, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    result_ = emulator.run(module, launch, arrays)  # type: ignore[arg-type]
    assert not result_.findings, result_.findings
    return out


def compile_cu(
    source: Path,
    *,
    target: str = "sm_100a",
    defines: Sequence[str] = (),
    include: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> str:
    """PTX of a CUDA source, with line numbers, from the nvcc of the package."""
    arch = target.replace("sm_", "compute_")
    command = [
        _tools().nvcc,
        "-ptx",
        "-lineinfo",
        "-O3",
        "-std=c++17",
        f"-gencode=arch={arch},code={target}",
        *(f"-D{define}" for define in defines),
        *(f"-I{folder}" for folder in include),
        *options,
    ]
    if not source.is_relative_to(ROOT):
        command += [source.name, "-o", "k.ptx"]
        return kept.run(command, {source.name: source.read_text()}, "k.ptx", include).decode()
    command.append(str(source))

    def make(folder: Path) -> Path:
        completed = processes.run([*command, "-o", str(folder / "k.ptx")])
        assert completed.returncode == 0, completed.stderr
        return folder / "k.ptx"

    return kept.output(command, [source, source.parent, *include], make).decode()


def assemble(text: str, target: str, *options: str) -> tuple[bytes, str]:
    """What ptxas makes of PTX: the cubin, and the listing that cuobjdump prints of it."""
    return assemble_all([text], target, *options)[0]


def assemble_all(texts: Sequence[str], target: str, *options: str) -> list[tuple[bytes, str]]:
    """What assemble() returns of each; in less time, as one process prints the listings."""
    tools = _tools()
    command = [tools.ptxas, f"-arch={target}", *options, "k.ptx", "-o", "k.cubin"]
    cubins = [kept.run(command, {"k.ptx": text}, "k.cubin") for text in texts]
    return list(zip(cubins, kept.listings(tools.cuobjdump, cubins), strict=True))


@functools.cache
def _tools() -> Toolchain:
    with tempfile.TemporaryDirectory() as folder:
        return toolchain.find(None, Path(folder))


def run_sass(
    text: str, target: str, arrays: Mapping[str, np.ndarray], **how: Any
) -> emulator.Result:
    """Runs entry `k` of PTX as run() does, but by the SASS that ptxas makes of it."""
    return launched(emulator.load_cubin(*assemble(text, target)), arrays, **how)
