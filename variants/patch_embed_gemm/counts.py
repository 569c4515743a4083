"""What the global loads and the instructions of a launch grow with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelexp.problem import Axes, Size

TILE_PERIOD = 49
"""Row tiles on sm_90a from one that begins with the first row of the table to the next."""


def loads(axes: Axes, size: Size, exports: Mapping[str, int]) -> int | None:
    """On sm_90a, where a warpgroup keeps its rows of the table until they differ."""
    if axes["combined"] != "registers" or axes.get("operand_b") != "resident":
        return None
    columns = size["n"] // exports["tile_n"]  # of tiles: each has a CTA of a worker
    workers = max(1, size["ctas_sm_90a"] // columns)
    turns = 1 if axes["schedule"] == "cooperative" else 2
    row_tiles = size["m"] // exports["tile_m"]
    count = 0
    for worker in range(workers):
        held: list[int | None] = [None] * turns
        for index, row_tile in enumerate(_row_tiles(axes["order"], row_tiles, worker, workers)):
            place = row_tile * exports["tile_m"] % size["period"]
            count += place != held[index % turns]
            held[index % turns] = place
    return count * columns


def blocks(axes: Axes, size: Size, exports: Mapping[str, int]) -> int | None:
    """On sm_90a, by period: windows of 49 row tiles, which tiles_sm90a.cuh finds by other code than
    the tiles that are left, and of which small sizes have none."""
    if axes.get("order") != "period" or "operand_b" not in axes:
        return None
    windows = size["m"] // exports["tile_m"] // TILE_PERIOD
    return windows * (size["n"] // exports["tile_n"]) or None


def _row_tiles(order: object, tiles: int, worker: int, workers: int) -> Iterator[int]:
    """Those of a worker on sm_90a in their order: see tiles_sm90a.cuh."""

    def first(count: int, of: int = worker) -> int:
        return of * count // workers

    if order == "strided":
        yield from range(worker, tiles, workers)
        return
    if order != "period":
        yield from range(first(tiles), first(tiles, worker + 1))
        return
    windows, last = divmod(tiles // TILE_PERIOD, workers)
    for window in range(windows):
        for index in range(TILE_PERIOD):
            place = worker * TILE_PERIOD + index
            yield (window * workers + place % workers) * TILE_PERIOD + place // workers
    for place in range(first(last * TILE_PERIOD), first(last * TILE_PERIOD, worker + 1)):
        yield (windows * workers + place % last) * TILE_PERIOD + place // last
    rest = (windows * workers + last) * TILE_PERIOD
    left = tiles % TILE_PERIOD
    yield from range(rest + first(left), rest + first(left, worker + 1))
