"""Inputs for programs of HeCBench whose own are not in its repository: made from one seed, read by
what hecbench_sizes.txt names."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

Made = Callable[[random.Random], bytes]
SIDE = 64
"""Of pictures and grids, in elements."""


def make(folder: Path) -> None:
    """Writes all of them."""
    folder.mkdir(exist_ok=True)
    for name, content in INPUTS.items():
        numbers = random.Random(name)
        (folder / name).write_bytes(content(numbers))


def _numbers(
    rows: int, columns: int, low: float, high: float, first: str = "", by: str = " "
) -> Made:
    def made(numbers: random.Random) -> bytes:
        lines = [
            by.join(f"{numbers.uniform(low, high):.6f}" for _ in range(columns))
            for _ in range(rows)
        ]
        return "\n".join([*([first] if first else []), *lines, ""]).encode()

    return made


def _floats(count: int, low: float, high: float, code: str) -> Made:
    def made(numbers: random.Random) -> bytes:
        values = [numbers.uniform(low, high) for _ in range(count)]
        return struct.pack(f"<{count}{code}", *values)

    return made


def _bmp(numbers: random.Random) -> bytes:
    """24 bits a pixel."""
    pixels = numbers.randbytes(3 * SIDE * SIDE)
    info = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    return struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54) + info + pixels


def _ppm(numbers: random.Random) -> bytes:
    return f"P6\n{SIDE} {SIDE}\n255\n".encode() + numbers.randbytes(3 * SIDE * SIDE)


def _frame(numbers: random.Random) -> bytes:
    rows = [" ".join(str(numbers.randrange(256)) for _ in range(SIDE)) for _ in range(SIDE)]
    return f"{SIDE}\n{SIDE}\n".encode() + "\n".join([*rows, ""]).encode()


def _point_spread(numbers: random.Random) -> bytes:
    """One at its centre, small elsewhere."""
    values = [numbers.uniform(0, 0.1) for _ in range(SIDE * SIDE)]
    values[SIDE * (SIDE // 2) + SIDE // 2] = 1.0
    return struct.pack(f"<{SIDE * SIDE}f", *values)


def _letters(count: int, letters: str) -> Made:
    return lambda numbers: "".join(numbers.choices(letters, k=count)).encode()


def _text(numbers: random.Random) -> bytes:
    words = ["kernel", "stream", "clEnqueueNDRangeKernel", "warp", "memory", "of", "the"]
    return " ".join(numbers.choices(words, k=10000)).encode()


def _reads(numbers: random.Random) -> bytes:
    """Pairs of sequences of 100 bases; the second differs in a few."""
    lines = []
    for _ in range(256):
        read = numbers.choices("ACGT", k=100)
        other = list(read)
        for at in numbers.sample(range(100), numbers.randrange(12)):
            other[at] = numbers.choice("ACGT")
        lines.append(f"{''.join(read)}\t{''.join(other)}\n")
    return "".join(lines).encode()


def _svm(numbers: random.Random) -> bytes:
    lines = []
    for _ in range(64):
        values = " ".join(f"{at}:{numbers.uniform(-1, 1):.4f}" for at in range(1, 33))
        lines.append(f"{numbers.choice(['+1', '-1'])} {values}\n")
    return "".join(lines).encode()


def _graph(numbers: random.Random) -> bytes:
    """Nodes with their edges, as Rodinia's bfs reads it."""
    nodes, degree = 1024, 4
    starts = [f"{node * degree} {degree}" for node in range(nodes)]
    edges = [f"{numbers.randrange(nodes)} 1" for _ in range(nodes * degree)]
    return "\n".join([str(nodes), *starts, "0", str(len(edges)), *edges, ""]).encode()


def _weighted(nodes: int) -> Made:
    """An undirected graph in ECL's binary format: degrees added up, neighbours, weights."""

    def made(numbers: random.Random) -> bytes:
        pairs = {tuple(sorted(numbers.sample(range(nodes), 2))) for _ in range(4 * nodes)}
        edges = sorted([(a, b) for a, b in pairs] + [(b, a) for a, b in pairs])
        starts = [sum(a < node for a, _ in edges) for node in range(nodes + 1)]
        weights = [1 + (a + b) % 7 for a, b in edges]
        values = [nodes, len(edges), *starts, *(b for _, b in edges), *weights]
        return struct.pack(f"<{len(values)}i", *values)

    return made


def _points(numbers: random.Random) -> bytes:
    """Around three centres, for mean shift; N and the centres are in the program."""
    rows = []
    for at in range(320):
        centre = CENTRES[at % 3]
        rows.append(",".join(f"{numbers.gauss(value, 3):.4f}" for value in centre))
    return "\n".join([*rows, ""]).encode()


CENTRES = ((0, 0, 0), (200, 0, 0), (0, 200, 0))


def _triangle(numbers: random.Random) -> bytes:
    """A lower triangular matrix with its diagonal, in Matrix Market's coordinates."""
    rows = 300
    entries = [f"{row} {row} {numbers.uniform(1, 2):.6f}" for row in range(1, rows + 1)]
    for row in range(2, rows + 1):
        for column in {numbers.randrange(1, row) for _ in range(3)}:
            entries.append(f"{row} {column} {numbers.uniform(-1, 1):.6f}")
    head = f"%%MatrixMarket matrix coordinate real general\n{rows} {rows} {len(entries)}"
    return "\n".join([head, *entries, ""]).encode()


def _centres(numbers: random.Random) -> bytes:
    return "\n".join([*(",".join(map(str, centre)) for centre in CENTRES), ""]).encode()


INPUTS: dict[str, Made] = {
    "picture.bmp": _bmp,
    "picture.ppm": _ppm,
    "frame0.txt": _frame,
    "frame1.txt": _frame,
    "locations.txt": _numbers(2000, 2, -85, 85),
    "temperatures.txt": _numbers(8 * SIDE * SIDE, 1, 320, 340),
    "power.txt": _numbers(8 * SIDE * SIDE, 1, 0, 0.01),
    "matrices.txt": _numbers(200, 9, -1, 1, first="200"),
    "colours.txt": _numbers(SIDE * SIDE, 4, 0, 4, first=f"{SIDE} {SIDE}"),
    "dirty.img": _floats(SIDE * SIDE, 0, 1, "f"),
    "psf.img": _point_spread,
    "doubles.bin": _floats(16384, 0, 1, "d"),
    "genome.txt": _letters(4000, "ACGT"),
    "text.txt": _text,
    "reads.txt": _reads,
    "svm.txt": _svm,
    "graph.txt": _graph,
    "graph.egr": _weighted(1000),
    "small.egr": _weighted(48),
    "weights.txt": _numbers(400, 1, -1, 1),
    "points.csv": _points,
    "centres.csv": _centres,
    "features.txt": _numbers(256, 35, 0, 1),
    "triangle.mtx": _triangle,
    "columns.txt": _numbers(5000, 2, 0, 1, by="\t"),
}
