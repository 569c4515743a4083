"""Parameters of a chip from what its microbenchmarks print: microbenchmarks.cu.

What the model adds to a figure by itself, as encoded stalls and queues do, is taken off: with the
parameter that results, a modelled run of the microbenchmark takes as long as the card did.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from warpsim.timing.chips import TimedChip
from warpsim.timing.errors import NotModelled

SOURCE = Path(__file__).with_name("microbenchmarks.cu")
MEMORY_BYTES = 7 << 30
"""Of a card, that they need."""
_GIB = 1e9
_SECTORS = 8192 * 8192
"""Of 4 bytes each that read_columns_8192 and write_columns_8192 touch apart."""
_COPY = 1024
_LINE = 128


class Refitted(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter, as it stands and as the figures have it."""

    name: str
    unit: str
    value: float
    refitted: float

    @property
    def change(self) -> float:
        """Relative; of what is 0, absolute."""
        return self.refitted / self.value - 1 if self.value else self.refitted


class _Figures(msgspec.Struct, frozen=True):
    """What was printed, by name, and the chip that it is of."""

    by_name: Mapping[str, float]
    chip: TimedChip

    def __getitem__(self, name: str) -> float:
        return self.by_name[name]

    def middle(self, *names: str) -> float:
        return statistics.median(self.by_name[name] for name in names)

    def ns(self, cycles: float) -> float:
        return 1e9 * cycles / self.chip.clock_hz

    def cycles_of_copies(self, of: str, size: int = _COPY) -> float:
        """Of a bulk copy of so many bytes by each SM at once."""
        if of == "l2":
            return size / self[f"bulk_l2_1x{size}"]
        rate = self[f"bulk_dram_1x{size}"] * _GIB
        return size * self.chip.sms * self.chip.clock_hz / rate

    def from_dram(self, size: int = _COPY) -> float:
        """Cycles that a copy takes longer from DRAM than from L2."""
        return self.cycles_of_copies("dram", size) - self.cycles_of_copies("l2", size)

    def per_sector(self, microseconds: float) -> float:
        return 1e-6 * microseconds * self.chip.clock_hz * self.chip.sms / _SECTORS


def _dram_writes(figures: _Figures) -> float:
    """A copy reads and writes as many bytes: its time less that of the reads."""
    of_both = 1 / (figures["dram_copy_2GiB"] * _GIB)
    return 0.5 / (of_both - 0.5 / (figures["dram_read_4GiB_blocks1"] * _GIB))


_WAITING = (4096, 16384, 32768)
"""Bytes of copies, one per SM, that keep DRAM busy for a third to nearly all of the time."""


def _wait(figures: _Figures, size: int) -> float:
    """What a copy waits for DRAM, over b / (1.5 - b) where it is busy for a part b of the time."""
    busy = figures[f"bulk_dram_1x{size}"] / figures["dram_read_4GiB_blocks1"]
    return figures.ns(figures.from_dram(size) - figures.from_dram()) * (1.5 - busy) / busy


_FITS: Mapping[str, Callable[[_Figures], float]] = {
    "shared_latency": lambda x: x["chain_lds"] - 1,
    "constant_interval": lambda x: x["ldc_warps16_ways32"] / 32,
    "constant_latency": lambda x: (x["ldc_chain_ways32"] - x["ldc_chain_ways1"]) / 31,
    "l1_latency": lambda x: x["chase_ca_64KiB"] - 7,
    "l2_latency": lambda x: x.ns(x["chase_cg_8192KiB"] - 8.7),
    "l2_rate": lambda x: 1e12 * x["l2_read_48MiB"],
    "l2_write_rate": lambda x: 1e12 * x.middle("l2_write_8MiB", "l2_write_16MiB", "l2_write_24MiB"),
    "l2_port": lambda x: (x["l2_read_sms1"] + x["bulk_l2_one_sm_4x32768"]) / 2,
    "l2_read_interval": lambda x: x.per_sector(x["read_columns_8192"]),
    "l2_write_interval": lambda x: x.per_sector(x["write_columns_8192"]),
    "l2_atomic_rate": lambda x: _LINE / x["red_add_side_by_warp_full"] * _GIB,
    "whole_turn": lambda x: x["red_add_sector_lanes8"],
    "part_turn": lambda x: x["red_add_word_lanes32"] / 32,
    "float_turn": lambda x: x["red_addf_word_lanes32"] / 32,
    "dram_latency": lambda x: x.ns(x.from_dram()),
    "dram_wait": lambda x: statistics.median(_wait(x, size) for size in _WAITING),
    "dram_rate": lambda x: x["dram_read_4GiB_blocks1"] * _GIB,
    "dram_write_rate": _dram_writes,
    "tma_rate": lambda x: (65536 - 256) / (x["bulk_hot_65536"] - x["bulk_hot_256"]),
    "tma_latency": lambda x: x["bulk_hot_256"] - x["chase_cg_8192KiB"] - 57,
    "barrier_per_warp": lambda x: (x["barrier_warps16"] - x["barrier_warps4"]) / 12,
    "barrier_latency": lambda x: (4 * x["barrier_warps4"] - x["barrier_warps16"]) / 3,
    "branch": lambda x: x["loop_turn"] - 24,
    "turnover": lambda x: x.middle("turnover_0", "turnover_100000", "turnover_200000"),
    "launch_interval": lambda x: 1e-12 * x["ctas_1e6_threads256"] * x.chip.clock_hz * x.chip.sms,
    "return_interval": lambda x: (x["lds128_stride32_warps1"] - x["lds128_stride8_warps1"]) / 24,
    "gmma_tail": lambda x: x["wgmma_bf16_n128_groups1_first"] - 64 - 6,
    "mma_flops": lambda x: x["hmma_rate_warps4"] / 4 * 2 * 16 * 8 * 16,
}
"""By parameter; the others of a chip are published, inferred, or fitted to several figures."""


def refit(lines: Iterable[str], chip: TimedChip) -> tuple[Refitted, ...]:
    """The parameters whose figures were printed; NotModelled where an error was, or nothing."""
    by_name = {}
    for line in lines:
        try:
            content = json.loads(line)
        except ValueError:
            continue  # what others print, and figures that are infinite
        if "error" in content:
            raise NotModelled(f"the microbenchmarks ended: {content['error']}.")
        if isinstance(content.get("value"), int | float):
            by_name[content["name"]] = float(content["value"])
    return tuple(_refitted(_Figures(by_name, chip)))


def _refitted(figures: _Figures) -> Iterable[Refitted]:
    for name, fit in _FITS.items():
        parameter = figures.chip.parameters.get(name)
        try:
            refitted = fit(figures)
        except KeyError:
            continue  # a figure that was not printed
        if parameter is not None:
            yield Refitted(name=name, unit=parameter.unit, value=parameter.value, refitted=refitted)
