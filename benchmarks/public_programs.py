"""Models first launches of public programs, and compares them with their times on an H100.

    python benchmarks/public_programs.py HECBENCH SGEMM_CUDA [NAME ...]
    python benchmarks/public_programs.py HECBENCH SGEMM_CUDA [NAME ...] --time
    python benchmarks/public_programs.py HECBENCH SGEMM_CUDA [NAME ...] --kept FOLDER

HECBENCH and SGEMM_CUDA are checkouts, in which the programs are built with nvcc. A program runs on
the CPU up to its first launch, with its authors' arguments; that launch, with the memory that it
would find, is modelled. results/public_programs.jsonl has a line for each: its family, how it is
run, and what it took on a card. With --time, that is taken on this machine's card and written
there: launch_times.cu says how, and the loader has to find NVIDIA's libcudart.so.13. Names are
parts of those of the file. With --kept, what the CTAs of a launch did is written to FOLDER; where
it is there already, the launch is neither built nor executed, only replayed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import lzma
import multiprocessing
import os
import pickle
import re
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import public_times

from kernelexp.evidence import native
from kernelexp.evidence.programs import compiling, library
from kernelexp.evidence.programs.captures import Allocation, relocated
from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest
from kernelexp.system import disk, toolchain
from warpsim import REFUSALS, modules
from warpsim.errors import UsageError
from warpsim.launch import Launch, StructValue
from warpsim.machine.memory.layout import GlobalLayout
from warpsim.runtime import containers
from warpsim.runtime.capturing import Captor, CapturedLaunch, LaunchChoice, Region
from warpsim.runtime.launching import Request
from warpsim.runtime.loading import Loaded
from warpsim.timing.errors import NotModelled
from warpsim.timing.model import Sample, WholeLaunch

RESULTS = Path(__file__).parent / "results" / "public_programs.jsonl"
CHIP, ARCH = "H100", "sm_90a"
LIMIT_S = 60.0
"""Until a program's first launch."""
LARGEST = 4 << 30
"""Bytes that a launch may be given."""


class PublicProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program of others, and what its first launch took."""

    name: str
    selection: int
    """1: its time was known before the model was last changed. 2: it was not."""
    family: str
    argv: tuple[str, ...]
    us: float
    """Between two events, behind a kernel that empties L2; a median."""
    card: str
    date: str


def first_launch(program: PublicProgram, folder: Path, to: Path) -> CapturedLaunch:
    """Runs a built program up to its first launch, which is kept instead of executed: what its
    arguments point into as files, by their numbers.

    Raises UsageError where it comes to none.
    """

    def keep(
        captor: Captor, loaded: Loaded, symbol: str, request: Request, _: Any
    ) -> CapturedLaunch:
        device = loaded.world.device
        data = b"".join(
            argument.ljust(-(-len(argument) // 8) * 8, b"\0") for argument in request.arguments
        )
        found = {device.live.at(word) for (word,) in struct.iter_unpack("<Q", data)} - {None}
        objects = sorted(found, key=lambda item: item.address)
        size = sum(item.size for item in objects)
        if size > LARGEST:
            raise UsageError(f"it is given {size:,} bytes")
        for place, item in enumerate(objects):
            (to / str(place)).write_bytes(device.read(item))
        return CapturedLaunch(
            symbol=symbol,
            launch=request.launch,
            grid=request.grid,
            block=request.block,
            cluster=request.cluster,
            dynamic_smem_bytes=request.shared,
            arguments=request.arguments,
            ptx="",
            regions=tuple(Region(address=x.address, before=b"", after=b"") for x in objects),
            changed=tuple(loaded.changed()),
        )

    # In this process, which the one that serves the program is a fork of.
    Captor.wants, Captor.keep = lambda captor, symbol: True, keep  # type: ignore[method-assign]
    request = ExecRequest(argv=program.argv, folder=folder, unwritten=0, timeout_s=LIMIT_S)
    tools = toolchain.find(None, public_times.CACHE)
    with open(os.devnull, "w") as null:
        launch, _ = execution.capture(
            request, LaunchChoice(kernel="any"), tools, public_times.CACHE, null.fileno()
        )
    return launch


def model(program: PublicProgram, folder: Path, kept: Path | None) -> dict[str, Any]:
    """What the model says of a program's first launch, whose CTAs are kept in a file."""
    head = {"name": program.name, "family": program.family}
    try:
        if kept is None or not kept.exists():
            executed = execute(program, folder)
            if kept is not None:
                content = pickle.dumps((program.name, *executed))
                disk.write(kept, lzma.compress(content, preset=1))
        else:
            _, *executed = pickle.loads(lzma.decompress(kept.read_bytes()))
        return head | public_times.replayed(*executed, CHIP)
    except (NotModelled, UsageError, *REFUSALS) as fault:
        return head | {"refused": str(fault)}


def execute(program: PublicProgram, folder: Path) -> tuple[list[Sample], WholeLaunch]:
    """What the CTAs of a program's first launch do."""
    with tempfile.TemporaryDirectory() as place:
        kept = first_launch(program, folder, Path(place))
        if kept.changed:
            raise UsageError(f"the program has set {', '.join(kept.changed)}")
        arrays = {
            str(number): np.fromfile(Path(place) / str(number), np.uint8)
            for number in range(len(kept.regions))
        }
        cubin, listing = _machine_code(folder / program.argv[0], kept.symbol, Path(place))
        image = modules.load_cubin(cubin.read_bytes(), listing).entries[kept.symbol].image
        world = GlobalLayout(
            image.variables, arrays, frozenset(), image.heap_bytes, image.functions
        )
        bases = [world.address(name) for name in arrays]
        regions = [
            Allocation(
                address=region.address,
                size=array.nbytes,
                allocation=region.address,
                allocated=array.nbytes,
                changed=True,
            )
            for region, array in zip(kept.regions, arrays.values(), strict=True)
        ]
        data = [relocated(argument, regions, bases) for argument in kept.arguments]
        launch = Launch(
            entry=kept.symbol,
            grid=kept.grid,
            block=kept.block,
            cluster=kept.cluster,
            dynamic_smem_bytes=kept.dynamic_smem_bytes,
            arguments=tuple(StructValue(size=len(each), data=each) for each in data),
        )
        return public_times.executed(cubin, launch, arrays, CHIP)


def _machine_code(program: Path, symbol: str, folder: Path) -> tuple[Path, str]:
    """The cubin of a program that has a kernel, and its listing."""
    content = program.read_bytes()
    magic = containers.MAGIC.to_bytes(4, "little")
    path = folder / "kernel.cubin"
    for found in re.finditer(re.escape(magic), content):
        for image in containers.images(content[found.start() :]):
            if not image.is_ptx and f".text.{symbol}\0".encode() in image.content:
                path.write_bytes(image.content)
                argv = [toolchain.find(None, public_times.CACHE).cuobjdump, "-sass", str(path)]
                done = subprocess.run(argv, check=True, capture_output=True, text=True)
                return path, done.stdout
    raise SystemExit(f"{program} has no machine code of {symbol}")


def build(program: PublicProgram, hecbench: Path, sgemm: Path, to: Path) -> Path:
    """Builds a program with the emulator's runtime, or whichever is found first when it starts; the
    folder that it is run in. `to` is where our own programs are put."""
    tools = toolchain.find(None, public_times.CACHE)
    runtime = library.folder(public_times.CACHE)
    if program.family.startswith("SGEMM"):
        source, flags = Path(__file__).with_name("sgemm_main.cu"), [f"-I{sgemm}/src", "-O3"]
        if not (to / "sgemm").is_file():
            compiling.compile_program([source], flags, tools, runtime, ARCH, to / "sgemm")
        return to
    folder = hecbench / "src" / f"{program.name}-cuda"
    with tempfile.TemporaryDirectory() as place:
        added = compiling.build_environment(Path(place), tools, runtime, ARCH)
        done = subprocess.run(
            ["make", f"ARCH={ARCH}"],
            cwd=folder,
            env=os.environ | added,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(f"{folder}: make fails:\n{done.stderr[-2000:]}")
    return folder


def timer(to: Path) -> Path:
    """Compiles what is preloaded to time a launch."""
    path = to / "launch_times.so"
    source = Path(__file__).with_name("launch_times.cu")
    flags = [f"-arch={ARCH}", "-O2", "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-cudart=shared"]
    flags += [f"-L{library.folder(public_times.CACHE)}"]
    nvcc = toolchain.find(None, public_times.CACHE).nvcc
    subprocess.run([nvcc, *flags, str(source), "-o", str(path), "-ldl"], check=True)
    return path


def timed(program: PublicProgram, folder: Path, preloaded: Path) -> PublicProgram:
    """The program with what its first launch takes on this machine's card."""
    done = subprocess.run(
        ["env", f"LD_PRELOAD={preloaded}", *program.argv],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"us"')]
    if not lines:
        raise SystemExit(f"{program.name}: no launch was timed: {done.stdout[-300:]}{done.stderr}")
    line = json.loads(lines[-1])
    today = datetime.date.today().isoformat()
    return msgspec.structs.replace(program, us=line["us"], card=line["card"], date=today)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hecbench", type=Path)
    parser.add_argument("sgemm", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    lines = RESULTS.read_bytes().splitlines()
    programs = [msgspec.json.decode(line, type=PublicProgram) for line in lines]
    wanted = [
        item
        for item in programs
        if not options.names or any(name in item.name for name in options.names)
    ]
    to = public_times.CACHE / "public_programs"
    to.mkdir(parents=True, exist_ok=True)
    kept = {item.name: options.kept and options.kept / f"{item.name}.sample" for item in wanted}
    folders = {
        item.name: build(item, options.hecbench.resolve(), options.sgemm.resolve(), to)
        for item in wanted
        if options.time or kept[item.name] is None or not kept[item.name].exists()
    }
    if options.time:
        preloaded = timer(to)
        wanted = [timed(item, folders[item.name], preloaded) for item in wanted]
        now = {item.name: item for item in wanted}
        lines = [msgspec.json.encode(now.get(item.name, item)) for item in programs]
        RESULTS.write_bytes(b"".join(line + b"\n" for line in lines))
    native.library(public_times.ROOT)
    modelled = {}
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=1) as pool:
        jobs = [
            (item, pool.apply_async(model, (item, folders.get(item.name, to), kept[item.name])))
            for item in wanted
        ]
        for item, job in jobs:
            modelled[item.name] = job.get()
            print(item.name, modelled[item.name].get("us"), flush=True)
    for selection in sorted({item.selection for item in wanted}):
        own = {item.name: item.us for item in wanted if item.selection == selection}
        print(f"\nSelection {selection}:")
        public_times.print_errors(own, {name: modelled[name] for name in own})


if __name__ == "__main__":
    main()
