"""The launches of the small kernels in kernels/, and what each must write."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import ROOT

sys.path.insert(0, str(Path(__file__).parents[1] / "emulator"))

from harness import compile_cu

from mutations.case import Case, Source
from warpsim.launch import Launch, Pointer, Scalar, TensorMap

KERNELS = Path(__file__).parent / "kernels"


INCLUDE = ROOT / "variants" / "include"


@functools.cache
def _compiled(path: Path, target: str) -> str:
    return compile_cu(path, target=target, include=[INCLUDE])


U32 = np.uint32
RNG = np.random.default_rng(5)
IN = RNG.integers(0, 1 << 20, 512).astype(U32)
T32, T64, T128 = (np.arange(n, dtype=U32) for n in (32, 64, 128))


class Small(NamedTuple):
    """A launch of a small kernel: its arrays, in the order of its arguments; `out` is the last."""

    file: str
    name: str
    inputs: Mapping[str, np.ndarray]
    out: np.ndarray
    threads: int | tuple[int, int]
    ctas: int = 1
    cluster: int = 1
    scratch: tuple[str, ...] = ()
    """Inputs that hold nothing yet."""
    starts: bool = False
    """Whether `out` begins as zeros, instead of unwritten."""
    maps: Mapping[str, TensorMap] = {}
    scalars: tuple[int, ...] = ()
    dynamic: int = 0

    @property
    def per_kind(self) -> int:
        return 3

    @property
    def arch(self) -> str:
        return "sm_100a" if self.file == "tensor_memory" else "sm_90a"

    def path(self) -> Path:
        return KERNELS / f"{self.file}.cu"

    def folders(self) -> tuple[Path, ...]:
        """Of headers."""
        return (INCLUDE,)

    def defines(self) -> tuple[str, ...]:
        return ()

    def part(self, text: str) -> slice:
        """Its body, among those of its file."""
        first = text.index(f" {self.name}(")
        end = text.find("\n}\n", first)
        return slice(first, end)

    def source(self) -> Source:
        return Source(_compiled(self.path(), self.arch), self.name)

    def case(self, exports: Mapping[str, int]) -> Case:
        x, y = self.threads if isinstance(self.threads, tuple) else (self.threads, 1)
        named = [*self.inputs, "out"]
        arguments = [self.maps.get(name, Pointer(array=name)) for name in named]
        arguments += [Scalar(type="u32", value=value) for value in self.scalars]
        how = Launch(
            entry=self.name,
            grid=(self.ctas, 1, 1),
            block=(x, y, 1),
            cluster=(self.cluster, 1, 1),
            dynamic_smem_bytes=self.dynamic,
            arguments=tuple(arguments),
        )

        def arrays() -> dict[str, np.ndarray]:
            fresh = {name: array.copy() for name, array in self.inputs.items()}
            return fresh | {"out": np.zeros_like(self.out)}

        unwritten = (*self.scratch, *(() if self.starts else ("out",)))
        return Case(how, arrays, unwritten, lambda got: np.array_equal(got["out"], self.out))


def _rows(array: str, rows: int) -> TensorMap:
    """Boxes of 8 rows of 32 words."""
    return TensorMap(
        array=array, element="u32", shape=(32, rows), strides_bytes=(128,), box=(32, 8)
    )


def _tile(array: str, element: str, shape: tuple[int, int], box: tuple[int, int]) -> TensorMap:
    """Boxes in the 128-byte swizzle."""
    size = 1 if element == "u8" else 2
    return TensorMap(
        array=array,
        element=element,  # type: ignore[arg-type]
        shape=shape,
        strides_bytes=(shape[0] * size,),
        box=box,
        swizzle="128B",
    )


def _f16(rows: int, columns: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).integers(-4, 5, (rows, columns)).astype(np.float16)
    return values.view(np.uint16)


def _value(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float16).astype(np.float32)


def _e4m3(rows: int, seed: int) -> np.ndarray:
    """Integers from -15 to 15, as codes [rows, 128]."""
    exponent = np.random.default_rng(seed).integers(7, 10, (rows, 128))
    return (
        exponent << 3 | np.random.default_rng(seed + 1).integers(0, 256, (rows, 128)) & 0x84
    ).astype(np.uint8)


def _decoded(codes: np.ndarray) -> np.ndarray:
    sign = np.where(codes >> 7, -1.0, 1.0)
    return sign * (8 + (codes & 7)) * 2.0 ** ((codes >> 3 & 15).astype(int) - 10)


A16, B16 = _f16(64, 128, 1), _f16(64, 128, 2)
PRODUCT = _value(A16) @ _value(B16).T
STEPS = (_value(A16[:, :64]) @ _value(B16[:, :64]).T).astype(np.float16).view(np.uint16)
A8, B8 = _e4m3(640, 3), _e4m3(32, 4)
ROWS8 = (_decoded(A8) @ _decoded(B8).T).astype(np.float32)
BLOCKS = IN.reshape(-1, 128)
QUADS = np.arange(1024, dtype=U32).reshape(4, 64, 4)


def _ahead() -> np.ndarray:
    out = QUADS[:, np.arange(64) ^ 33].copy()
    out[..., 0] += np.arange(4, dtype=U32)[:, None]
    return out.ravel()


def _voted() -> np.ndarray:
    value = IN[:32]
    ballot = U32(sum(1 << i for i in range(32) if value[i] & 1))
    match = np.array([sum(1 << j for j in range(32) if value[j] % 4 == v % 4) for v in value], U32)
    low = np.where(T32 < 16, value[T32 % 16 ^ 3] + value[:16].sum(dtype=U32), 0).astype(U32)
    return (ballot ^ match) + low


def _barrier_of_the_grid() -> np.ndarray:
    value = IN[:256].copy()
    for _ in range(2):
        value = value + np.roll(value, -64)
    return value


def _remote() -> np.ndarray:
    other = IN[:64].reshape(2, 32)[::-1]
    return (other[:, ::-1] * 3 + other[:, T32 ^ 1] + 1).astype(U32).ravel()


_IN = {"in": IN}
_NOTHING = np.zeros(512, U32)
SMALL = (
    Small("threads", "reduce_tree", _IN, BLOCKS[:2].sum(1, dtype=U32), 128, 2),
    Small("threads", "reduce_warps", _IN, BLOCKS[:2].sum(1, dtype=U32), 128, 2),
    Small("threads", "scan", _IN, np.cumsum(IN[:64], dtype=U32), 64),
    Small(
        "threads",
        "transpose_twice",
        {"in": np.arange(2048, dtype=U32)},
        np.arange(2048, dtype=U32).reshape(64, 32).T.ravel(),
        (32, 4),
    ),
    Small("threads", "histogram", _IN, np.bincount(IN[:128] % 8).astype(U32), 64, 2, starts=True),
    Small("threads", "lanes_exchange", _IN, 2 * np.roll(IN[:32], -3), 32),
    Small("threads", "votes", _IN, _voted(), 32),
    Small("threads", "named_barriers", _IN, 3 * IN[:256].reshape(4, 64)[:, ::-1].ravel(), 128),
    Small(
        "threads",
        "grid_barrier",
        _IN | {"arrived": np.zeros(1, U32), "scratch": _NOTHING},
        _barrier_of_the_grid(),
        64,
        4,
        scratch=("scratch",),
    ),
    Small(
        "threads",
        "last_adds",
        _IN | {"ticket": np.zeros(1, U32), "partial": _NOTHING},
        2 * IN[:256].reshape(4, 64).sum(0, dtype=U32),
        64,
        4,
        scratch=("partial",),
    ),
    Small(
        "threads",
        "look_back",
        _IN | {"flags": np.zeros(8, U32), "sums": _NOTHING},
        np.cumsum(IN[:8], dtype=U32),
        1,
        8,
        scratch=("sums",),
    ),
    Small(
        "threads",
        "spin_lock",
        _IN | {"lock": np.zeros(1, U32)},
        IN[:6].sum(keepdims=True, dtype=U32),
        32,
        6,
        starts=True,
    ),
    Small(
        "threads",
        "cluster_exchange",
        _IN,
        (IN[:128].reshape(2, 64) + IN[:128].reshape(2, 64)[::-1, ::-1]).ravel(),
        64,
        2,
        2,
    ),
    Small("threads", "barrier_votes", {"in": np.where(T64 == 5, 7, T64)}, np.full(64, 23, U32), 64),
    Small("engines", "copies_ahead", {"in": QUADS}, _ahead(), 64, scalars=(4,)),
    Small("engines", "copies_arrive", {"in": QUADS}, QUADS[0, np.arange(64) ^ 33].ravel(), 64),
    Small(
        "engines",
        "ring_of_stores",
        _IN,
        5 * IN[:160].reshape(5, 32)[:, T32 ^ 7].ravel(),
        64,
        scalars=(5,),
    ),
    Small(
        "engines",
        "ring_of_tma",
        {"in": QUADS},
        (QUADS.reshape(4, 256)[:, np.arange(256) ^ 33] + np.arange(4, dtype=U32)[:, None]).ravel(),
        96,
        maps={"in": _rows("in", 32), "out": _rows("out", 32)},
        scalars=(4,),
    ),
    Small("engines", "linear_copies", _IN, IN[:64][T64 ^ 33] + T64, 64, starts=True),
    Small(
        "engines",
        "multicast",
        {"in": QUADS},
        (QUADS.reshape(4, 1, 8, 32)[..., T32 ^ 9] + np.arange(2, dtype=U32)[:, None, None]).ravel(),
        64,
        2,
        2,
        maps={"in": _rows("in", 32)},
        scalars=(4,),
    ),
    Small("engines", "remote_stores", _IN, _remote(), 32, 2, 2),
    Small(
        "engines",
        "multiply",
        {"a": A16, "b": B16},
        PRODUCT.view(U32).ravel(),
        128,
        maps={name: _tile(name, "f16", (128, 64), (64, 64)) for name in "ab"},
        scalars=(2,),
        dynamic=16384,
    ),
    Small(
        "engines",
        "staged_multiply",
        {"a": A16[:, :64].copy(), "b": B16[:, :64].copy()},
        STEPS,
        128,
        maps={
            "out": TensorMap(
                array="out", element="f16", shape=(64, 64), strides_bytes=(128,), box=(64, 16)
            )
        },
        dynamic=24576,
    ),
    Small("engines", "register_pool", _IN, np.tile(IN[:128][T128 ^ 1] + 1, 2), 384),
    Small(
        "tensor_memory",
        "one_tile",
        {"a": A8, "b": B8},
        ROWS8[:128].view(U32).ravel(),
        128,
        maps={
            "a": _tile("a", "u8", (128, 640), (128, 128)),
            "b": _tile("b", "u8", (128, 32), (128, 32)),
        },
        dynamic=20480,
    ),
    Small(
        "tensor_memory",
        "five_tiles",
        {"a": A8, "b": B8},
        ROWS8.view(U32).ravel(),
        192,
        maps={
            "a": _tile("a", "u8", (128, 640), (128, 128)),
            "b": _tile("b", "u8", (128, 32), (128, 32)),
        },
        dynamic=20480,
    ),
    Small("tensor_memory", "stored_rows", _IN, IN[128:256] + 2 * IN[:128], 128),
)
