"""Inputs for programs of HeCBench and Rodinia whose own are not in their repositories: made from
one seed, read by what hecbench_sizes.txt and suites.py name."""

from __future__ import annotations

import heapq
import random
import struct
from collections.abc import Callable
from pathlib import Path

Made = Callable[[random.Random], bytes]
SIDE = 64
"""Of pictures and grids, in elements."""


def make(folder: Path) -> None:
    """Writes all of them."""
    for name, content in INPUTS.items():
        write(folder / name, content(random.Random(name)))


def write(path: Path, content: bytes) -> None:
    """A file that has it already stays as it is: a program beside may be reading it."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


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


def _bmp(side: int) -> Made:
    """24 bits a pixel."""

    def made(numbers: random.Random) -> bytes:
        pixels = numbers.randbytes(3 * side * side)
        info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
        return struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54) + info + pixels

    return made


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


def _mesh(numbers: random.Random) -> bytes:
    """A ring of elements with four faces each, as Rodinia's cfd reads it."""
    count = 192
    lines = [str(count)]
    for at in range(1, count + 1):
        words = [f"{numbers.uniform(0.5, 1.5):.5f}"]
        for other in (at - 1, at % count + 1, -2 if at % 7 else -1, (at + 7) % count + 1):
            words += [str(other), *(f"{numbers.uniform(-1, 1):.5f}" for _ in range(3))]
        lines.append(" ".join(words))
    return "\n".join([*lines, ""]).encode()


def _hurricanes(numbers: random.Random) -> bytes:
    """Lines of 49 characters with a latitude and a longitude, as Rodinia's nn reads them."""
    lines = []
    for at in range(512):
        place = f"{numbers.uniform(5, 60):5.1f}{numbers.uniform(5, 99):5.1f}"
        lines.append(f"1950 {at % 12 + 1:2} {at % 28 + 1:2}  6 1 MADE{at:08}"[:28].ljust(28))
        lines[-1] = f"{lines[-1]}{place}  100  200".ljust(48)[:48]
    return "\n".join([*lines, ""]).encode()


def _edges(nodes: int, by: str, head: str, tail: Callable[[random.Random], str]) -> Made:
    """A connected graph, as lines of pairs."""

    def made(numbers: random.Random) -> bytes:
        pairs = {(at, at + 1) for at in range(nodes - 1)}
        more = [numbers.sample(range(nodes), 2) for _ in range(2 * nodes)]
        pairs |= {(min(pair), max(pair)) for pair in more}
        lines = [f"{a}{by}{b}{tail(numbers)}" for a, b in sorted(pairs)]
        return "\n".join([*([head] if head else []), *lines, ""]).encode()

    return made


_ROADS = 600


def _roads() -> tuple[list[list[int]], list[list[int]]]:
    """The neighbours of each node, and how far they are; all nodes are reached from the first."""
    numbers = random.Random("roads")
    ends = [sorted({(at + 1) % _ROADS, numbers.randrange(_ROADS)}) for at in range(_ROADS)]
    return ends, [[numbers.randrange(1, 20) for _ in row] for row in ends]


def _road_map(numbers: random.Random) -> bytes:
    ends, costs = _roads()
    lines, start = [f"{_ROADS} {sum(map(len, ends))} 0"], 0
    for row in ends:
        lines.append(f"{start} {len(row)}")
        start += len(row)
    for row, far in zip(ends, costs, strict=True):
        lines += [f"{end} {cost}" for end, cost in zip(row, far, strict=True)]
    return "\n".join([*lines, ""]).encode()


def _distances(numbers: random.Random) -> bytes:
    """The shortest ways in _road_map(), as Chai's sssp compares its own with."""
    ends, costs = _roads()
    best = {0: 0}
    waiting = [(0, 0)]
    while waiting:
        far, node = heapq.heappop(waiting)
        for end, cost in zip(ends[node], costs[node], strict=True):
            if far + cost < best.get(end, 1 << 30):
                best[end] = far + cost
                heapq.heappush(waiting, (far + cost, end))
    lines = [f"{node} {best[node]}" for node in range(_ROADS)]
    return "\n".join([str(_ROADS), *lines, ""]).encode()


def _twisters() -> list[list[int]]:
    numbers = random.Random("twisters")
    return [[numbers.getrandbits(32) | 1 for _ in range(3)] for _ in range(4096)]


def _twister(numbers: random.Random) -> bytes:
    """A matrix, two masks and a seed of each generator."""
    every = _twisters()
    return b"".join(struct.pack("<4I", *three, 0) for three in every)


def _whole_twister(numbers: random.Random) -> bytes:
    """The same with what they have in common."""
    every = _twisters()
    common = (9, 19, 1, 32, 0xFFFFFFFF, 0xFFFFFFFE, 1, 12, 18, 7, 15)
    return b"".join(struct.pack("<16I", a, *common, b, c, 0, 0) for a, b, c in every)


def _scan(numbers: random.Random) -> bytes:
    """Parboil's mri-q: sizes, then coordinates and phases."""
    samples, voxels = 256, 512
    values = [numbers.uniform(-1, 1) for _ in range(3 * samples + 3 * voxels + 2 * samples)]
    return struct.pack(f"<2i{len(values)}f", samples, voxels, *values)


def _clusters(numbers: random.Random) -> bytes:
    lines = [",".join(f"x{at}" for at in range(4))]
    for at in range(480):
        middle = 10 * (at % 3)
        lines.append(",".join(f"{numbers.gauss(middle, 1):.4f}" for _ in range(4)))
    return "\n".join([*lines, ""]).encode()


def _sparse(numbers: random.Random) -> bytes:
    """A symmetric matrix whose diagonal dominates, in Matrix Market's coordinates: column after
    column, as its own files are."""
    rows = 200
    entries = []
    for column in range(1, rows + 1):
        below = {numbers.randrange(column, rows + 1) for _ in range(4)} - {column}
        entries.append(f"{column} {column} {numbers.uniform(8, 10):.6f}")
        entries += [f"{row} {column} {numbers.uniform(-1, 1):.6f}" for row in sorted(below)]
    head = f"%%MatrixMarket matrix coordinate real symmetric\n{rows} {rows} {len(entries)}"
    return "\n".join([head, *entries, ""]).encode()


def _obstacles(numbers: random.Random) -> bytes:
    walls = [f"{x} {y} 1" for x in range(128) for y in (0, 31)]
    return "\n".join([*walls, *(f"40 {y} 1" for y in range(8, 20)), ""]).encode()


def _flow(numbers: random.Random) -> bytes:
    """Vectors of an optical flow, most of them around one point, as Chai's rsc reads them."""
    lines = []
    for at in range(256):
        x, y = numbers.randrange(320), numbers.randrange(240)
        far = (0.05, 0.05) if at % 5 else (numbers.uniform(-1, 1), numbers.uniform(-1, 1))
        lines.append(f"{x},{y},{int(x + far[0] * (x - 160))},{int(y + far[1] * (y - 120))}")
    return "\n".join([str(len(lines)), *lines, ""]).encode()


def _whole_numbers(numbers: random.Random) -> bytes:
    values = numbers.sample(range(1, 10000), 3000)
    return "\n".join(map(str, [len(values), *values])).encode()


def _genes(numbers: random.Random) -> bytes:
    lines = ["\t".join(["id", *(f"c{at}" for at in range(24))])]
    for at in range(60):
        values = [f"{numbers.gauss(0, 1) + (at % 5) * 2:.4f}" for _ in range(24)]
        lines.append("\t".join([f"g{at}", *values]))
    return "\n".join([*lines, ""]).encode()


def _bigrams(numbers: random.Random) -> bytes:
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = [f"{a}{b} {numbers.uniform(-9, -1):.4f}" for a in letters for b in letters]
    return "\n".join([*lines, ""]).encode()


def _crystal(numbers: random.Random) -> bytes:
    lines = ["25.8 25.8 25.8", "90 90 90", "64 0", "made"]
    for at in range(1, 65):
        place = " ".join(f"{numbers.random():.5f}" for _ in range(3))
        lines.append(f"{at} {numbers.choice(['Zn', 'O', 'C', 'H'])} {place}")
    return "\n".join([*lines, ""]).encode()


def _sequences(count: int, length: int, letters: str) -> Made:
    """FASTA; each fourth is the one before it with a few letters changed."""

    def made(numbers: random.Random) -> bytes:
        lines, last = [], ""
        for at in range(count):
            last = "".join(
                (numbers.choice(letters) if at % 4 != 3 or numbers.random() < 0.02 else letter)
                for letter in (last or "A" * length)
            )
            lines += [f">{at}", last]
        return "\n".join([*lines, ""]).encode()

    return made


def _digits(numbers: random.Random) -> bytes:
    """MNIST's format of pictures."""
    return struct.pack(">4I", 2051, _DIGITS, 28, 28) + numbers.randbytes(_DIGITS * 784)


_DIGITS = 4


def _labels(numbers: random.Random) -> bytes:
    return struct.pack(">2I", 2049, _DIGITS) + bytes(at % 10 for at in range(_DIGITS))


def _atoms(count: int) -> Made:
    def made(numbers: random.Random) -> bytes:
        places = [[numbers.uniform(-20, 20) for _ in range(3)] for _ in range(count)]
        return b"".join(struct.pack("<3fi", *at, numbers.randrange(16)) for at in places)

    return made


def _force_field(numbers: random.Random) -> bytes:
    kinds = [70, 69, 78, 70]
    return b"".join(
        struct.pack("<i3f", kinds[at % 4], *(numbers.uniform(0.5, 2) for _ in range(3)))
        for at in range(16)
    )


def _cloud(numbers: random.Random) -> bytes:
    """Points of a lidar: coordinates, intensity and time."""
    points = []
    for _ in range(1500):
        place = numbers.uniform(-40, 40), numbers.uniform(-40, 40), numbers.uniform(-3, 1)
        points.append(struct.pack("<5f", *place, numbers.random(), 0.0))
    return b"".join(points)


def _ones(numbers: random.Random) -> bytes:
    """A matrix of bits: its size, and where it has a one."""
    places = sorted({(numbers.randrange(96), numbers.randrange(64)) for _ in range(1500)})
    lines = [f"{row} {column}" for row, column in places]
    return "\n".join([f"96 64 {len(lines)}", *lines, ""]).encode()


def _nets(numbers: random.Random) -> bytes:
    """Nets of a chip, as the routing contests of ISPD write them."""
    head = ["grid 64 64 2", "vertical capacity 0 8", "horizontal capacity 8 0"]
    head += ["minimum width 1 1", "minimum spacing 1 1", "via spacing 1 1", "0 0 10 10", ""]
    lines = []
    for at in range(120):
        pins = numbers.randrange(2, 12)
        lines.append(f"n{at} {at} {pins} 1")
        lines += [f"{numbers.randrange(640)} {numbers.randrange(640)} 1" for _ in range(pins)]
    return "\n".join([*head, "num net 120", *lines, ""]).encode()


def _short_words(numbers: random.Random) -> bytes:
    words = ["".join(numbers.choices("ROM", k=numbers.randrange(1, 7))) for _ in range(200)]
    return "\n".join([*words, ""]).encode()


def _cities(numbers: random.Random) -> bytes:
    lines = ["NAME : made", "COMMENT : made", "TYPE : TSP", "DIMENSION : 100"]
    lines += ["EDGE_WEIGHT_TYPE : EUC_2D", "NODE_COORD_SECTION"]
    lines += [
        f"{at} {numbers.uniform(0, 1000):.2f} {numbers.uniform(0, 1000):.2f}"
        for at in range(1, 101)
    ]
    return "\n".join([*lines, "EOF", ""]).encode()


def _anchors(numbers: random.Random) -> bytes:
    """Calls of minimap2's chaining: each with its anchors by their places in the reference."""
    lines = []
    for _ in range(16):
        lines.append("60 15.0 5000 5000 500")
        x = y = 0
        for _ in range(60):
            x, y = x + numbers.randrange(1, 60), y + numbers.randrange(1, 60)
            lines.append(f"1 {x} 15 {y}")
        lines.append("EOR")
    return "\n".join([*lines, ""]).encode()


def _text_file(*lines: str) -> Made:
    return lambda numbers: "\n".join([*lines, ""]).encode()


INPUTS: dict[str, Made] = {
    "picture.bmp": _bmp(SIDE),
    "small.bmp": _bmp(8),
    "large.bmp": _bmp(192),
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
    "blocks.txt": _letters(32768, "etaoinshrdlu "),
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
    "mesh.txt": _mesh,
    "hurricanes.txt": _hurricanes,
    "rodinia.list": _text_file("../../data/made/hurricanes.txt"),
    "hurricanes.list": _text_file("../made/hurricanes.txt"),
    "edges.txt": _edges(16, " ", "", lambda numbers: ""),
    "signed.csv": _edges(150, ",", "from,to,sign", lambda numbers: numbers.choice([",1", ",-1"])),
    "roads.txt": _road_map,
    "distances.txt": _distances,
    "twister.dat": _twister,
    "twister.raw": _whole_twister,
    "scan.bin": _scan,
    "clusters.csv": _clusters,
    "sparse.mtx": _sparse,
    "flow.params": _text_file("128", "32", "4", "16", "0.1", "0.005", "1.7"),
    "obstacles.dat": _obstacles,
    "flow.csv": _flow,
    "whole.txt": _whole_numbers,
    "commands.txt": _text_file("j 40 30", "k 100"),
    "genes.txt": _genes,
    "bigrams.txt": _bigrams,
    "crystal.cssr": _crystal,
    "dna.fasta": _sequences(64, 120, "ACGT"),
    "proteins.fasta": _sequences(24, 90, "ACDEFGHIKLMNPQRSTVWY"),
    "queries.fasta": _sequences(24, 60, "ACDEFGHIKLMNPQRSTVWY"),
    "digits/train-images.idx3-ubyte": _digits,
    "digits/train-labels.idx1-ubyte": _labels,
    "digits/t10k-images.idx3-ubyte": _digits,
    "digits/t10k-labels.idx1-ubyte": _labels,
    "deck/ligand.in": _atoms(12),
    "deck/protein.in": _atoms(60),
    "deck/forcefield.in": _force_field,
    "deck/poses.in": _floats(6 * 256, -3, 3, "f"),
    "deck/ref_energies.out": _numbers(256, 1, -50, 50),
    "clouds/cloud.bin": _cloud,
    "ones.txt": _ones,
    "nets.gr": _nets,
    "words.txt": _text,
    "short.txt": _short_words,
    "cities.tsp": _cities,
    "anchors.txt": _anchors,
    "sky/data": _numbers(256, 2, 0, 90),
    "sky/random.1": _numbers(256, 2, 0, 90),
    "layer.bin": _floats(210_000, 0, 1, "f"),
}
