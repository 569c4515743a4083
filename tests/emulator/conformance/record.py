"""Builds the suite's programs, runs them on this machine's GPU, and writes the golden data.

python -m conformance.record build FOLDER [AREA ...] # needs the compiler, no GPU
python -m conformance.record run FOLDER OUT [AREA ...]
python -m conformance.record deep FOLDER OUT   # many more inputs, against the arithmetic
python -m conformance.record wavefronts FOLDER # one launch a pattern, to be run under ncu
python -m conformance.record counts NCU_CSV OUT # what ncu printed of them, as golden data
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from kernelexp.system.process.processes import run
from kernelexp.system.toolchain import find

from . import matrices, sparse, wavefronts
from .case import Area, Case
from .cases import AREAS, KERNELS, elementwise_cases, product_cases, windows_case
from .elementwise import AREAS as WRITTEN
from .elementwise import ops

TARGET = "sm_90a"
MODULES: dict[str, Area] = {
    **AREAS,
    "wavefronts": Area(name="wavefronts", cases=wavefronts.cases, source=KERNELS / "wavefronts.cu"),
}
DEEP = 1 << 17
DEEP_DOUBLE = 1 << 12
"""Fewer for f64, whose reference counts on Python integers."""
DEEP_SPARSE = 140
"""Products of a warpgroup; twice as many of a warp."""


def build(folder: Path, names: list[str]) -> None:
    """PTX and cubin of areas, of all if none is named, and the compiler's version."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = find(None, folder)
    for area in (MODULES[name] for name in names or MODULES):
        ptx = folder / f"{area.name}.ptx"
        if area.source is None:
            ptx.write_text(area.origin())
        else:
            compile_ptx(tools.nvcc, area.source, ptx)
        _checked([tools.ptxas, f"-arch={TARGET}", str(ptx), "-o", str(ptx.with_suffix(".cubin"))])
    (folder / "compiler.txt").write_text(tools.version)


def compile_ptx(nvcc: str, source: Path, ptx: Path) -> None:
    """What nvcc makes of a CUDA source; the launch is the GPU's and the emulator's alike."""
    options = ["-O3", "-std=c++17", "-lineinfo", f"-arch=compute_{TARGET[3:]}"]
    _checked([nvcc, "-ptx", *options, str(source), "-o", str(ptx)])


def _checked(argv: list[str]) -> None:
    done = run(argv)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def fingerprint(area: Area, cases: list[Case]) -> str:
    """Changes with the program, the launches and the inputs: stale golden data is refused."""
    digest = hashlib.sha256(area.origin().encode())
    for case in cases:
        seen = msgspec.to_builtins(case.launch)
        del seen["main"]  # nothing that the GPU sees
        for argument in seen["arguments"]:
            if isinstance(argument, dict) and not argument.get("in_memory", True):
                del argument["in_memory"]  # as in data from before there were others
        digest.update(case.name.encode() + msgspec.json.encode(seen))
        for name, array in case.arrays.items():
            digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def record(folder: Path, out: Path, names: list[str]) -> None:
    """Runs areas on the GPU and writes one file an area."""
    from .driver import Gpu

    gpu = Gpu()
    out.mkdir(parents=True, exist_ok=True)
    for name in names or list(AREAS):
        area = AREAS[name]
        cases = list(area.cases())
        mark = fingerprint(area, cases)
        module = gpu.load((folder / f"{name}.cubin").read_bytes())
        outputs = {}
        for i, case in enumerate(cases):
            try:
                gpu.run(module, case.launch, case.arrays)
            except RuntimeError as error:
                raise SystemExit(f"{name}: {case.name}: {error}") from None
            for key in case.outputs:
                outputs[f"{i}.{key}"] = case.arrays[key]
        about = {
            "area": name,
            "fingerprint": mark,
            "cases": [case.name for case in cases],
            "gpu": gpu.name(),
            "driver_cuda": gpu.cuda_version(),
            "driver": _driver_version(),
            "compiler": (folder / "compiler.txt").read_text(),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez_compressed(out / f"{name}.npz", about=text, **outputs)
        print(f"{name}: {len(cases)} cases", flush=True)


def _driver_version() -> str:
    result = run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return result.stdout.strip()


def deep(folder: Path, out: Path) -> None:
    """Compares the arithmetic package with the GPU on many inputs; prints what differs."""
    from .driver import Gpu

    gpu = Gpu()
    out.mkdir(parents=True, exist_ok=True)
    result: dict[str, np.ndarray] = {}
    for name in WRITTEN:
        module = gpu.load((folder / f"{name}.cubin").read_bytes())
        _deep_elementwise(gpu, module, name, result)
    for name, products, block, count in (
        ("mma", matrices.MMA, 32, 2100),
        ("wgmma", matrices.WGMMA, 128, 700),
    ):
        module = gpu.load((folder / f"{name}.cubin").read_bytes())
        cases = product_cases(products, block, count, "deep/")
        for product, case in zip(products, cases, strict=True):
            _deep_product(gpu, module, product, case, result)
    module = gpu.load((folder / "sparse.cubin").read_bytes())
    every = (*sparse.MMA, *sparse.WGMMA)
    for product, case in zip(every, sparse.cases(DEEP_SPARSE, "deep/"), strict=True):
        gpu.run(module, case.launch, case.arrays)
        a, b, c, words, d = (case.arrays[key] for key in ("a", "b", "c", "meta", "d"))
        wrong = sparse.expected(product, a, b, c, words).ravel() != d
        print(f"{product.entry}: {np.count_nonzero(wrong)} of {wrong.size} differ", flush=True)
    module = gpu.load((folder / "cluster.cubin").read_bytes())
    windows = windows_case()
    gpu.run(module, windows.launch, windows.arrays)
    print(
        "mapa windows:",
        [[hex(word) for word in row] for row in windows.arrays["out"].reshape(4, 8)],
    )
    np.savez_compressed(out / "deep.npz", **result)


def _deep_elementwise(gpu, module, area: str, found: dict[str, np.ndarray]) -> None:  # type: ignore[no-untyped-def]
    count = DEEP_DOUBLE if area == "double" else DEEP
    tried = 0
    for op, case in zip(ops(area), elementwise_cases(area, count), strict=True):
        if op.reference is None:
            continue
        tried += 1
        gpu.run(module, case.launch, case.arrays)
        inputs = [case.arrays[letter] for letter in "abc"[: len(op.inputs)]]
        with np.errstate(all="ignore"):
            wanted = np.asarray(op.reference(*inputs)).astype(case.arrays["d"].dtype)
        wrong = np.flatnonzero(wanted != case.arrays["d"])
        if len(wrong) == 0:
            continue
        if op.bound is not None:
            wrong = _beyond(op.name, wanted, case.arrays["d"])
        print(f"{area}: {op.name}: {len(wrong)} of {count} differ", flush=True)
        picked = wrong[:: max(1, len(wrong) // 200)][:200]
        columns = [array[picked] for array in (*inputs, case.arrays["d"], wanted)]
        for i, column in enumerate(columns):
            found[f"{area}/{op.name}/{i}"] = column
        for row in zip(*(column[:3] for column in columns), strict=True):
            print("   ", *(f"{int(x):#x}" for x in row))
    print(f"{area}: {tried} instructions on {count} inputs each", flush=True)


def _beyond(name: str, wanted: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Where an approximate result is farthest from the rounded one, and where its class differs."""
    special = ~np.isfinite(wanted.view(np.float32)) | ~np.isfinite(got.view(np.float32))
    apart = np.abs(wanted.astype(np.int64) - got.astype(np.int64))
    apart[special] = 0
    other = np.flatnonzero(special & (wanted != got))
    print(f"{name}: at most {apart.max()} ulp from the rounded result; {len(other)} special differ")
    return np.concatenate([other[:50], np.argsort(apart)[-50:]])


def _deep_product(gpu, module, product, case: Case, found: dict[str, np.ndarray]) -> None:  # type: ignore[no-untyped-def]
    gpu.run(module, case.launch, case.arrays)
    a, b, c, d = (case.arrays[key] for key in "abcd")
    wanted = matrices.expected(product, a, b, c)
    d = d.reshape(wanted.shape)
    wrong = wanted != d
    by_style = {
        style: f"{np.count_nonzero(wrong[i :: len(matrices.STYLES)])}"
        for i, style in enumerate(matrices.STYLES)
    }
    print(
        f"{product.entry}: {np.count_nonzero(wrong)} of {wrong.size} differ {by_style}", flush=True
    )
    for key, mask in (("wrong", wrong), ("right", ~wrong)):
        item, row, column = np.nonzero(mask)
        step = max(1, len(item) // 3000)
        item, row, column = item[::step][:3000], row[::step][:3000], column[::step][:3000]
        prefix = f"{product.entry}/{key}"
        found[f"{prefix}/style"] = item % len(matrices.STYLES)
        found[f"{prefix}/a"], found[f"{prefix}/b"] = a[item, row], b[item, column]
        found[f"{prefix}/c"] = c[item, row, column]
        found[f"{prefix}/d"] = d[item, row, column]
        found[f"{prefix}/wanted"] = wanted[item, row, column]


def count_wavefronts(folder: Path) -> None:
    from .driver import Gpu

    gpu = Gpu()
    module = gpu.load((folder / "wavefronts.cubin").read_bytes())
    for case in wavefronts.cases():
        gpu.run(module, case.launch, case.arrays)


METRICS = (
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
)


def write_counts(printed: Path, target: Path) -> None:
    """The metrics of each pattern from ncu's raw page, which lists launches in their order."""
    header, _units, *rows = csv.reader(
        line for line in printed.read_text().splitlines() if line.startswith('"')
    )
    places = [header.index(metric) for metric in METRICS]
    with target.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["entry", "pattern", *METRICS])
        for pattern, row in zip(wavefronts.patterns(), rows, strict=True):
            counts = [int(float(row[place])) for place in places]
            lines.writerow([pattern.entry, pattern.name, *counts])


def main(argv: list[str]) -> None:
    started = time.monotonic()
    verb, folder, *rest = argv
    if verb == "build":
        build(Path(folder), rest)
    elif verb == "run":
        record(Path(folder), Path(rest[0]), rest[1:])
    elif verb == "deep":
        deep(Path(folder), Path(rest[0]))
    elif verb == "wavefronts":
        count_wavefronts(Path(folder))
    elif verb == "counts":
        write_counts(Path(folder), Path(rest[0]))
    else:
        raise SystemExit(__doc__)
    print(f"{verb}: {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
