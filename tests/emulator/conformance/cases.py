"""Every program of the suite with its launch and inputs, for the GPU and the emulator alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from ptx_bounds import BOUNDS

from warpsim.launch import Scalar

from . import atomics, correct_kernels, elementwise, matrices, sparse, tensor_copies
from .case import Area, Array, Case, case, output, u32, words
from .values import DTYPE, WIDTH, operands, random_bits

KERNELS = Path(__file__).parent / "kernels"


def elementwise_cases(area: str, count: int = elementwise.COUNT) -> Iterator[Case]:
    for index, op in enumerate(elementwise.ops(area)):
        inputs = operands(op.inputs, f"{area}/{op.name}", count)
        arrays = dict(zip("abc", inputs, strict=False))
        arrays["d"] = output(count, DTYPE[WIDTH[op.output]])
        bound = BOUNDS[op.bound] if op.bound else None
        entry = elementwise.entry_name(index)
        yield case(op.name, entry, count // 128, 128, arrays, "d", bound=bound)


def atomic_cases() -> Iterator[Case]:
    for index, atomic in enumerate(atomics.atomics()):
        kinds = (atomic.kind,) * 3
        cell, b, c = operands(kinds, atomic.name, atomics.COUNT)
        if atomic.operation == "cas":
            b = np.where(np.arange(len(b)) % 2 == 0, cell, b)  # half of them match
        arrays = {"m": cell, "b": b, "c": c, "d": output(atomics.COUNT, cell.dtype.type)}
        yield case(atomic.name, atomics.entry_name(index), 1, atomics.COUNT, arrays, "m d")


def warp_cases() -> Iterator[Case]:
    warps, count = 12, 12 * 32
    value, lane = words("warp/a", count), words("warp/b", count) % 40
    segments = [
        0x1F,
        0x101F,
        0x181F,
        0x1C1F,
        0x1E1F,
        0x1F1F,
        0,
        0x1800,
        0x0F,
        0x1010,
        0x1807,
        0x1C03,
    ]
    controls = np.array(segments, np.uint32)
    masks = words("warp/masks", warps)
    masks[:6] = [0xFFFFFFFF, 1, 0x80000000, 0xAAAAAAAA, 0xFFFF0000, 0x00010001]
    per_warp = {"a": value, "masks": masks}
    arrays: dict[str, Array] = {
        "a": value,
        "b": lane,
        "control": controls,
        "out": output(8 * count),
    }
    yield case("shuffle", "shuffle", 3, 128, arrays, "out")
    arrays = {"a": value, "b": lane, "masks": masks, "out": output(2 * count)}
    yield case("shuffle_some", "shuffle_some", 3, 128, arrays, "out")
    for name, slots in (("vote", 4), ("match", 4), ("redux", 8)):
        yield case(name, name, 3, 128, {**per_warp, "out": output(slots * count)}, "out")
    alike = np.repeat(words("warp/alike", warps), 32).astype(np.uint32)
    alike[0] ^= 1
    arrays = {"a": alike, "masks": masks, "out": output(4 * count)}
    yield case("vote alike", "vote", 3, 128, arrays, "out")
    arrays = {"a": alike, "masks": masks, "out": output(4 * count)}
    yield case("match alike", "match", 3, 128, arrays, "out")
    yield case("elect", "elect", 3, 128, {"masks": masks, "out": output(2 * count)}, "out")
    arrays = {"a": value[:48].copy(), "b": lane[:48].copy(), "out": output(4 * 48)}
    yield case("partial", "partial", 1, 48, arrays, "out")


def control_cases() -> Iterator[Case]:
    count = 256
    for name in ("collatz", "cases", "local_array", "structs"):
        arrays: dict[str, Array] = {"a": words(name, count), "out": output(count)}
        yield case(name, name, 2, 128, arrays, "out")
    signed = {"a": words("nested/a", count), "b": words("nested/b", count), "out": output(count)}
    yield case("nested", "nested", 4, 64, signed, "out")
    floats = operands(("f32",), "calls", count)[0]
    floats = np.where((floats & 0x7FFFFFFF) > 0x50000000, np.uint32(0x42280000), floats)
    arrays = {"a": words("calls/a", count), "b": floats, "out": output(count, np.uint64)}
    yield case("calls", "calls", 2, 128, arrays, "out")
    arrays = {"a": words("early", count), "out": output(count)}
    yield case("early_exit", "early_exit", 3, 72, arrays, "out", u32(201))
    arrays = {"out": output(16 * 12 * 40)}
    yield case("special_registers", "special_registers", (2, 3, 2), (5, 4, 2), arrays, "out")


def memory_cases() -> Iterator[Case]:
    count = 64
    stream = words("memory", 4 * 64).view(np.uint8)
    arrays: dict[str, Array] = {"bytes": stream, "out": output(18 * count, np.uint64)}
    yield case("load_widths", "load_widths", 1, count, arrays, "out")
    arrays = {"bytes": stream, "out": output(9 * count)}
    yield case("load_vectors", "load_vectors", 1, count, arrays, "out")
    arrays = {"a": random_bits("store", count), "out": output(64 * count, np.uint8)}
    yield case("store_widths", "store_widths", 1, count, arrays, "out")
    arrays = {"a": random_bits("shared", 128), "out": output(4 * 128, np.uint64)}
    yield case("shared_widths", "shared_widths", 1, 128, arrays, "out")
    arrays = {"a": words("constants", count), "out": output(4 * count)}
    scalars = (
        u32(0xDEADBEEF),
        Scalar(type="s32", value=-12345),
        Scalar(type="u64", value=0x0123456789ABCDEF),
        Scalar(type="f32", value=0.1),
        Scalar(type="f64", value=1.0 / 3.0),
    )
    yield case("constants", "constants", 1, count, arrays, "out", *scalars)


def sync_cases() -> Iterator[Case]:
    arrays: dict[str, Array] = {"a": words("named", 256), "out": output(2 * 3 * 64)}
    yield case("named_barriers", "named_barriers", 2, 128, arrays, "out")
    signs = words("reductions", 3 * 96)
    signs[:96] &= 0x7FFFFFFF
    arrays = {"a": signs, "out": output(3 * 3 * 96)}
    yield case("barrier_reductions", "barrier_reductions", 3, 96, arrays, "out")
    arrays = {"a": words("ring", 9 * 32), "out": output(96)}
    yield case("mbarrier_ring", "mbarrier_ring", 1, 96, arrays, "out", u32(9))
    yield case("mbarrier_states", "mbarrier_states", 1, 32, {"out": output(20)}, "out")
    arrays = {"a": words("roles", 128), "out": output(128)}
    yield case("register_roles", "register_roles", 1, 256, arrays, "out")


def copy_cases() -> Iterator[Case]:
    count = 4 * 128
    stream = words("cp_async", 4 * count).view(np.uint8)
    sizes = words("cp_async/sizes", count)
    arrays: dict[str, Array] = {
        "bytes": stream,
        "sizes": sizes,
        "out": output(16 * count, np.uint8),
    }
    yield case("cp_async", "cp_async", 4, 128, arrays, "out")
    arrays = {"a": words("groups", 7 * 64), "out": output(64)}
    yield case("cp_async_groups", "cp_async_groups", 1, 64, arrays, "out", u32(7))
    arrays = {"a": words("tracked", 64), "out": output(64)}
    yield case("cp_async_mbarrier", "cp_async_mbarrier", 1, 64, arrays, "out")
    for size in (16, 496, 2048):
        arrays = {"a": words("bulk", size // 2), "out": output(size // 2)}
        yield case(f"bulk {size}", "bulk", 2, 64, arrays, "out", u32(size), smem=size)
    for form, kind in (
        ("add_u32", "u32"), ("min_s32", "s32"), ("max_u32", "u32"), ("xor_b32", "b32"),
        ("add_f16", "f16x2"), ("add_bf16", "bf16x2"), ("add_f32", "f32"),
    ):  # fmt: skip
        a, target = operands((kind, kind), f"bulk_{form}", 256)
        yield case(f"bulk_{form}", f"bulk_{form}", 2, 128, {"a": a, "out": target}, "out")


def matrix_cases() -> Iterator[Case]:
    items = 3
    a = words("matrix", items * 128)
    rows = words("matrix/rows", items * 32)
    arrays: dict[str, Array] = {"a": a, "rows": rows, "out": output(items * 14 * 32)}
    yield case("ldmatrix", "ldmatrix", items, 32, arrays, "out")
    for name in ("stmatrix_x1", "stmatrix_x2", "stmatrix_x4", "stmatrix_x4_trans"):
        yield case(name, name, items, 32, {"a": a, "out": output(items * 128)}, "out")
    yield case("movmatrix", "movmatrix", items, 32, {"a": a, "out": output(items * 32)}, "out")
    for entry, m, n in (
        ("wmma_f16_row", 16, 16),
        ("wmma_f16_col", 16, 16),
        ("wmma_f16_m8n32", 8, 32),
    ):
        yield _wmma(entry, m, n, "f16")
    for entry, m, n in (("wmma_s8_m8n32", 8, 32), ("wmma_s8_m16n16", 16, 16)):
        yield _wmma(entry, m, n, "s8")


def _wmma(entry: str, m: int, n: int, kind: str) -> Case:
    items = 4
    c_type = "f32" if kind == "f16" else "s32"
    styles = ("bell", "wide", "codes", "cancel")
    columns = [
        (
            matrices.codes(kind, style, f"{entry}/{style}/a", (m, 16)),
            matrices.codes(kind, style, f"{entry}/{style}/b", (n, 16)),
            matrices.addend(c_type, style, f"{entry}/{style}/c", (m, n)),
        )
        for style in styles
    ]
    a, b, c = (np.ascontiguousarray(np.stack(column)) for column in zip(*columns, strict=True))
    arrays = {"a": a, "b": b, "c": c, "d": output(items * m * n)}
    return case(entry, entry, items, 32, arrays, "d")


def product_cases(
    products: tuple[matrices.Product, ...], block: int, count: int, seed: str = ""
) -> Iterator[Case]:
    for product in products:
        a, b, c = matrices.batch(product, seed + product.entry, count)
        arrays = {"a": a, "b": b, "c": c, "d": output(c.size, c.dtype.type)}
        yield case(product.entry, product.entry, count, block, arrays, "d")


def mma_cases() -> Iterator[Case]:
    yield from product_cases(matrices.MMA, 32, 2 * len(matrices.STYLES))


def wgmma_cases() -> Iterator[Case]:
    yield from product_cases(matrices.WGMMA, 128, len(matrices.STYLES))
    for span in (128, 64, 32):
        a = matrices.codes("e4m3", "bell", f"swizzle/{span}/a", (2 * 64, span))
        b = matrices.codes("e4m3", "bell", f"swizzle/{span}/b", (2 * 16, span))
        arrays = {"a": a, "b": b, "d": output(2 * 64 * 16)}
        name = f"wgmma_swizzle_{span}B"
        yield case(name, name, 2, 128, arrays, "d", smem=(64 + 16) * span)


def cluster_cases() -> Iterator[Case]:
    for size in (2, 4):
        arrays: dict[str, Array] = {
            "a": words("cluster", 2 * size * 64),
            "out": output(2 * size * 128),
        }
        yield case(f"neighbours {size}", "neighbours", 2 * size, 64, arrays, "out", cluster=size)
        arrays = {"a": words("cluster/store", 2 * size * 64), "out": output(2 * size * 64)}
        yield case(
            f"remote_store {size}", "remote_store", 2 * size, 64, arrays, "out", cluster=size
        )
        arrays = {"a": words("cluster/arrive", 2 * size), "out": output(2 * size * 32)}
        yield case(
            f"remote_arrive {size}", "remote_arrive", 2 * size, 32, arrays, "out", cluster=size
        )
    arrays = {"out": output(4 * 8)}
    yield case("registers", "cluster_registers", 4, 32, arrays, "out", cluster=2)


def windows_case() -> Case:
    """Not compared: the addresses through which CTAs of a cluster see each other."""
    return case("windows", "windows", 4, 32, {"out": output(4 * 8)}, "out", cluster=4)


def _written(name: str) -> Area:
    return Area(
        name=name,
        cases=lambda: elementwise_cases(name),
        text=lambda: elementwise.ptx(name),
    )


def _compiled(name: str, cases: Callable[[], Iterator[Case]], source: str | None = None) -> Area:
    return Area(name=name, cases=cases, source=KERNELS / f"{source or name}.cu")


AREAS: dict[str, Area] = {
    area.name: area
    for area in (
        *map(_written, elementwise.AREAS),
        Area(name="atomics", cases=atomic_cases, text=atomics.ptx),
        _compiled("warp", warp_cases),
        _compiled("control", control_cases),
        _compiled("memory", memory_cases),
        _compiled("sync", sync_cases),
        _compiled("copy", copy_cases),
        _compiled("tma", tensor_copies.tma_cases),
        _compiled("tma_store", tensor_copies.tma_store_cases, "tma"),
        _compiled("matrix", matrix_cases),
        _compiled("mma", mma_cases),
        _compiled("wgmma", wgmma_cases),
        _compiled("sparse", sparse.cases),
        _compiled("cluster", cluster_cases),
        *correct_kernels.areas(),
    )
}
