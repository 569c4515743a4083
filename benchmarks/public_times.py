"""Models the times of launches of public kernels, and compares them with those of a card.

    python benchmarks/public_times.py model FOLDER CHIP [PART OF A NAME ...]
    python benchmarks/public_times.py compare FOLDER
    python benchmarks/public_times.py stalls FOLDER

FOLDER has launches.json, a list of launches: name, family, cubin, symbol, grid, block, smem, and
args, each "LETTER:KINDBYTES:COUNT" (an array; what it holds follows from its letter),
"LETTER=VALUE" (i, u: 32 bits; U: 64; f, d: floating point) or "tmap=ARRAY|SHAPE|STRIDES|BOX". The
code is in FOLDER/cubin. `model` writes modelled.jsonl there; `compare` reads it and times.jsonl,
which has a line for each launch that was timed: name, us. `stalls` reads it and stalls.csv, ncu's
raw page of some of the launches: a row is that of the launch with its kernel, grid and block.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
import math
import multiprocessing
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import warpsim as emulator
from kernelexp.evidence import native
from kernelexp.evidence.code import built
from kernelexp.evidence.code.built import Footprint
from kernelexp.facts.chips import find_arch
from kernelexp.system import toolchain
from warpsim.launch import Argument, Launch, Pointer, Scalar, TensorMap
from warpsim.machine.core.arrays import Array
from warpsim.timing import chips, model
from warpsim.timing.errors import NotModelled
from warpsim.timing.recording import record
from warpsim.timing.replay import REASONS, UNITS

ROOT = Path(__file__).parents[1]
ARCH = "sm_90a"
CACHE = ROOT / ".kernelexp"
LIMIT = 200_000_000
"""Warp instructions that are executed at most."""
BETWEEN_EVENTS_US = 3.17
"""Of an empty kernel between two events, behind the kernel that empties L2: measured on an H100,
as microbenchmarks.cu has it (launch_behind_another)."""
_SCALARS = {"i": "s32", "u": "u32", "U": "u64", "f": "f32", "d": "f64"}


class PublicLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch of a kernel that others wrote."""

    name: str
    family: str
    cubin: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int
    args: tuple[str, ...]


def hashed(count: int, seed: int) -> Array:
    """The words of an array, as the program that timed the launches made them."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed * 40503)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def array(spec: str) -> Array:
    """ "a:f4:1024" and the like."""
    letter, kind, count = spec.split(":")
    kind, *bounds = kind.split(",")
    size = int(kind[1])
    if kind[0] == "z":
        return np.zeros(int(count) * size, np.uint8)
    words = hashed(int(count), ord(letter))
    if kind[0] == "w":
        return words
    if kind[0] == "i":
        low, high = map(int, bounds)
        values = low + (words % np.uint32(high - low)).astype(np.int32)
        return values.astype(np.uint8 if size == 1 else np.int32)
    part = words >> np.uint32(8)
    real = part / np.float32(2**24) if kind[0] == "p" else part / np.float32(2**23) - np.float32(1)
    real = real.astype(np.float32)
    if kind[0] == "b":
        return (real.view(np.uint32) >> 16).astype(np.uint16)
    return real.astype({2: np.float16, 4: np.float32, 8: np.float64}[size])


def arguments(specs: Sequence[str]) -> tuple[tuple[Argument, ...], dict[str, Array]]:
    """Arguments of a launch, and its arrays by their letters."""
    result: list[Argument] = []
    arrays: dict[str, Array] = {}
    for spec in specs:
        if spec.startswith("tmap="):
            content, shape, strides, box = spec[5:].split("|")
            arrays[spec[5]] = array(content)
            sizes = [tuple(map(int, item.split(","))) for item in (shape, strides, box)]
            result.append(
                TensorMap(
                    array=spec[5],
                    element="bf16",
                    shape=sizes[0],
                    strides_bytes=sizes[1],
                    box=sizes[2],
                    swizzle="128B",
                )
            )
        elif spec[1] == "=":
            kind = _SCALARS[spec[0]]
            value = float(spec[2:]) if kind[0] == "f" else int(spec[2:])
            result.append(Scalar(type=kind, value=value))  # type: ignore[arg-type]
        else:
            arrays[spec[0]] = array(spec)
            result.append(Pointer(array=spec[0]))
    return tuple(result), arrays


def model_one(folder: Path, chip: str, public: PublicLaunch) -> dict[str, Any]:
    """What the model says of a launch."""
    head = {"name": public.name, "family": public.family}
    try:
        return head | _model(folder, chip, public)
    except (NotModelled, *emulator.REFUSALS) as fault:
        return head | {"refused": str(fault)}


def _model(folder: Path, name: str, public: PublicLaunch) -> dict[str, Any]:
    given, arrays = arguments(public.args)
    launch = Launch(
        entry=public.symbol,
        grid=public.grid,
        block=public.block,
        dynamic_smem_bytes=public.smem,
        arguments=given,
    )
    return modelled(folder / "cubin" / public.cubin, launch, arrays, name)


def modelled(cubin: Path, launch: Launch, arrays: Mapping[str, Array], name: str) -> dict[str, Any]:
    """The time of a launch on a chip, what its warps wait for, and how busy the units are."""
    return replayed(*executed(cubin, launch, arrays, name), name)


def executed(
    cubin: Path, launch: Launch, arrays: Mapping[str, Array], name: str
) -> tuple[list[model.Sample], model.WholeLaunch]:
    """What the CTAs that are followed do, of a launch on a chip."""
    emulator.load_compiled(Path(native.library(ROOT)))
    argv = [
        toolchain.find(None, CACHE).cuobjdump,
        "-sass",
        "-res-usage",
        "-fun",
        launch.entry,
        str(cubin),
    ]
    listing = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    footprint = Footprint(
        threads=math.prod(launch.block), dynamic_smem_bytes=launch.dynamic_smem_bytes, cluster=1
    )
    used = built.read(cubin, listing, "", launch.entry, footprint)
    resident = built.occupancy(find_arch(ARCH), used).ctas_per_sm
    placement = model.place(launch, resident, chips.find(name))
    code = cubin.read_bytes()
    recording = record(code, listing, launch, arrays, placement.followed, limit=LIMIT)
    sizes = {name: content.nbytes for name, content in arrays.items()}
    sample = model.Sample(recording=recording, placement=placement)
    return [sample], model.WholeLaunch(placement=placement, array_bytes=sizes)


def replayed(
    samples: Sequence[model.Sample], whole: model.WholeLaunch, name: str
) -> dict[str, Any]:
    """As modelled(), of a launch that was executed."""
    emulator.load_compiled(Path(native.library(ROOT)))
    result = model.model(list(samples), whole, chips.find(name))
    replay = result.replayed
    reasons = replay.reasons.sum(axis=0) / replay.reasons.sum()
    busy = replay.busy.max(axis=0) / max(replay.ends)
    return {
        "cycles": result.cycles,
        "us": 1e6 * result.cycles / result.clock_hz + BETWEEN_EVENTS_US,
        "mhz": result.clock_hz / 1e6,
        "reasons": dict(zip(REASONS, map(float, reasons), strict=True)),
        "units": dict(zip(UNITS, map(float, busy), strict=True)),
        "warp_instructions": sum(sample.recording.warp_instructions for sample in samples),
    }


def model_all(folder: Path, chip: str, parts: Sequence[str]) -> None:
    """Writes modelled.jsonl: all launches whose names have one of the parts, or all."""
    launches = msgspec.json.decode((folder / "launches.json").read_bytes(), type=list[PublicLaunch])
    wanted = [
        launch for launch in launches if not parts or any(part in launch.name for part in parts)
    ]
    native.library(ROOT)
    with (
        multiprocessing.get_context("spawn").Pool() as pool,
        (folder / "modelled.jsonl").open("w") as file,
    ):
        for item in pool.imap_unordered(functools.partial(model_one, folder, chip), wanted):
            print(json.dumps(item), file=file, flush=True)
            print(item["name"], item.get("refused") or f"{item['cycles']:,.0f}", flush=True)


def compare(folder: Path) -> None:
    """Prints the tables of launches that were timed and modelled."""
    measured = {line["name"]: line["us"] for line in _lines(folder / "times.jsonl") if "us" in line}
    print_errors(measured, {line["name"]: line for line in _lines(folder / "modelled.jsonl")})


def print_errors(measured: Mapping[str, float], modelled: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints errors and rank correlations by family, and the launches that are farthest off."""
    families = defaultdict(list)
    for name, item in modelled.items():
        if name in measured and "us" in item:
            families[item["family"]].append((measured[name], item["us"]))
    head = "family | launches | mean error | bias | Kendall tau | tau of pairs 5% apart | right"
    print(f"| {head} |\n|---|---|---|---|---|---|---|")
    for family, own in families.items():
        print(_row(family, own), _tau(own), "|", _tau(own, APART), "|", _right(own), "|")
    print(_row("all", [pair for own in families.values() for pair in own]), " | | |")
    errors = {
        x: modelled[x]["us"] / measured[x] - 1 for x in measured if "us" in modelled.get(x, {})
    }
    for name in sorted(errors, key=lambda x: -abs(math.log1p(errors[x])))[:FAR]:
        print(f"{name}: {measured[name]:.1f} us, {modelled[name]['us']:.1f} modelled")
    for name, item in modelled.items():
        if "refused" in item:
            print(f"{name}: {item['refused']}")


FAR = 15
APART = 0.05


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, filter(lambda line: line.startswith("{"), path.open()))


def _row(family: str, own: Sequence[tuple[float, float]]) -> str:
    errors = [after / before - 1 for before, after in own]
    mean = statistics.mean(map(abs, errors))
    return f"| {family} | {len(own)} | {mean:.1%} | {statistics.mean(errors):+.1%} |"


def _tau(own: Sequence[tuple[float, float]], apart: float = 0.0) -> str:
    """Of Kendall: pairs in the right order less those in the wrong one, of all that were measured
    so far apart; nothing where there are none."""
    signs = _signs(own, apart)
    return f"{sum(signs) / len(signs):.2f}" if signs else ""


def _right(own: Sequence[tuple[float, float]]) -> str:
    """Pairs in the right order, of those that were measured APART."""
    signs = _signs(own, APART)
    return f"{signs.count(1)} of {len(signs)}" if signs else ""


def _signs(own: Sequence[tuple[float, float]], apart: float) -> list[int]:
    """Of each pair: 1 in the right order, -1 in the wrong one, 0 where the model has no order."""
    return [
        int(np.sign((a[0] - b[0]) * (a[1] - b[1])))
        for a, b in itertools.combinations(own, 2)
        if max(a[0], b[0]) >= (1 + apart) * min(a[0], b[0])
    ]


SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
QUEUES = {
    "tex_throttle": "mio_throttle",
    "gmma": "math_pipe_throttle",
}
"""The model has no queue for textures; and a wgmma that is refused waits for its pipe."""


def stalls(folder: Path) -> None:
    """Prints the largest reason of each launch by ncu and by the model, and how far shares are
    apart."""
    modelled = {line["name"]: line for line in _lines(folder / "modelled.jsonl")}
    print("| launch | ncu | model | apart |\n|---|---|---|---|")
    apart, same, count = [], 0, 0
    for name, row in _profiled(folder):
        if "reasons" not in modelled.get(name, {}):
            continue
        sampled, own = _sampled(row), _merged(modelled[name]["reasons"])
        first, second = (max(item, key=lambda x: item[x]) for item in (sampled, own))
        wide = [
            abs(sampled.get(x, 0) - own.get(x, 0))
            for x in {*sampled, *own}
            if max(sampled.get(x, 0), own.get(x, 0)) >= 0.02
        ]
        apart += wide
        same += first == second
        count += 1
        print(
            f"| {name} | {first} {sampled[first]:.0%} | {second} {own[second]:.0%} |"
            f" {statistics.median(wide):.1%} |"
        )
    print(
        f"{same} of {count} largest reasons are the same; median of shares:"
        f" {statistics.median(apart):.1%}"
    )


def _profiled(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Launches and their rows of stalls.csv; an error where a row could be that of two."""
    launches = json.loads((folder / "launches.json").read_bytes())
    symbols = "\n".join(item["symbol"] for item in launches)
    argv = ["c++filt"]
    done = subprocess.run(argv, input=symbols, check=True, capture_output=True, text=True)
    rows = {}
    lines = (line for line in (folder / "stalls.csv").open() if line.startswith('"'))
    for row in csv.DictReader(lines):
        if row["ID"]:
            key = _key(row["Kernel Name"], row["Grid Size"], row["Block Size"])
            if key in rows:
                raise SystemExit(f"stalls.csv: two rows have {', '.join(key)}")
            rows[key] = row
    for item, name in zip(launches, done.stdout.splitlines(), strict=True):
        key = _key(name, *(str(tuple(item[size])) for size in ("grid", "block")))
        if key in rows:
            yield item["name"], rows[key]


def _key(kernel: str, grid: str, block: str) -> tuple[str, ...]:
    """A kernel as ncu and c++filt both spell it, without what it returns and takes."""
    name = kernel.partition("(")[0].removeprefix("void ")
    return tuple(text.replace(" ", "") for text in (name, grid, block))


def _sampled(row: Mapping[str, str]) -> dict[str, float]:
    counts = {
        key.removeprefix(SAMPLES): float(value.replace(",", ""))
        for key, value in row.items()
        if key.startswith(SAMPLES) and "not_issued" not in key and value
    }
    total = sum(counts.values())
    return _merged({reason: count / total for reason, count in counts.items()})


def _merged(shares: Mapping[str, float]) -> dict[str, float]:
    merged: dict[str, float] = defaultdict(float)
    for reason, share in shares.items():
        reason = reason.replace("branch_resolving", "branch_resolve")
        if reason != "selected":
            merged[QUEUES.get(reason, reason)] += share
    return merged


if __name__ == "__main__":
    if sys.argv[1] == "model":
        model_all(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        {"compare": compare, "stalls": stalls}[sys.argv[1]](Path(sys.argv[2]))
