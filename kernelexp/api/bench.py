"""`do_bench`, as Triton has it: the same arguments, and an answer that says how sure it is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kernelexp.model.errors import EnvironmentFault, UsageError

CACHE_BYTES = 512 << 20
"""Written before each call, so that nothing is left in L2."""
CONFIDENCE = 0.95
MANY = 1000
"""Samples."""
_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}


class BenchTime(float):
    """Milliseconds; a number like any other, with the interval of the median and all samples."""

    low: float
    high: float
    samples: tuple[float, ...]

    def __new__(cls, value: float, samples: Sequence[float]) -> BenchTime:
        time = super().__new__(cls, value)
        time.low, time.high = median_interval(samples)
        time.samples = tuple(samples)
        return time

    def __str__(self) -> str:
        return f"{float(self):.4f} ms (median {self.low:.4f} to {self.high:.4f})"


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Order statistics between which the median lies in 95% of such samples, whatever their
    distribution; all of them where there are fewer than six."""
    ordered = sorted(samples)
    outer = _outer(len(ordered))
    return ordered[outer], ordered[-1 - outer]


def _outer(count: int) -> int:
    """Returns how many samples the interval excludes on each side."""
    if count > MANY:  # the binomial distribution is normal there
        return int(count / 2 - 0.98 * math.sqrt(count)) - 1
    rank, tail = 0, 1
    while rank < count // 2 and tail / 2**count <= (1 - CONFIDENCE) / 2:
        rank += 1
        tail += math.comb(count, rank)
    return max(rank - 1, 0)


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds of one call of `fn` on the GPU, from a cache without its data.

    As triton.testing.do_bench, whose arguments it has: `warmup` and `rep` are milliseconds. The
    number that comes back has `.low`, `.high` and `.samples` too; for quantiles and "all" it is a
    list of plain numbers. For a verdict between two kernels use `kernelexp time`, which measures
    them in turns.
    """
    if return_mode not in (*_MODES, "all"):
        raise UsageError(f"return_mode {return_mode!r} should be one of {', '.join(_MODES)}, all.")
    samples = _sampled(fn, warmup, rep, tuple(grad_to_none or ()))
    if quantiles is not None:
        return [_quantile(samples, quantile) for quantile in quantiles]
    if return_mode == "all":
        return samples
    return BenchTime(_MODES[return_mode](samples), samples)


def _quantile(samples: Sequence[float], share: float) -> float:
    """Returns a quantile, interpolated between two neighbours as in torch.quantile."""
    ordered = sorted(samples)
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def _sampled(
    fn: Callable[[], Any], warmup: float, rep: float, gradients: Sequence[Any]
) -> list[float]:
    import torch

    if not torch.cuda.is_available():
        raise EnvironmentFault(
            "do_bench needs a GPU: there is none, or torch was installed without CUDA."
        )
    cache = torch.empty(CACHE_BYTES, dtype=torch.int8, device="cuda")

    def time_one() -> float:
        for gradient in gradients:
            gradient.grad = None
        cache.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        fn()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end))

    fn()
    torch.cuda.synchronize()
    estimate = max(statistics.median(time_one() for _ in range(5)), 1e-3)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    return [time_one() for _ in range(max(1, int(rep / estimate)))]
