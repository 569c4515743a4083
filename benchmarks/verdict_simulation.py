"""Simulates what intervals and stopping rules reach, for docs/verdicts.md: no GPU, 3 s.

One process gives a median log ratio: the true effect, plus the process's own offset (placement),
plus what its pairs leave uncertain. Figures in percent of time. Covers: the share of trials where
the interval holds the true effect.
"""

import numpy as np

from kernelexp.judge.statistics.stats import share_of_look, t_quantile

TRIALS = 20_000
RESAMPLES = 500
WITHIN = 0.03
RISK = 0.01
MARGIN = 1.0
NARROW = 0.1


def offsets(rng, shape, kind, sigma):
    """Offsets of processes: normal, or two modes (one process in ten is 5 sigma slower)."""
    drawn = rng.normal(0.0, sigma, shape)
    if kind == "two modes":
        slow = rng.random(shape) < 0.1
        drawn = drawn + 5 * sigma * (slow - 0.1)
    if kind == "heavy tails":
        drawn = rng.standard_t(3, shape) * sigma / np.sqrt(3)
    return drawn


def medians(rng, trials, processes, kind, sigma, truth=0.0):
    shape = (trials, processes)
    return truth + offsets(rng, shape, kind, sigma) + rng.normal(0.0, WITHIN, shape)


def pooled(found):
    """As if every pair were independent: the processes' own differences are not seen."""
    half = 2.5758 * WITHIN / np.sqrt(found.shape[1])
    return found.mean(axis=1), np.full(len(found), half)


def student(found, risk=RISK):
    count = found.shape[1]
    error = found.std(axis=1, ddof=1) / np.sqrt(count)
    return found.mean(axis=1), t_quantile(1 - risk / 2, count - 1) * error


def bootstrap(found, rng):
    """Percentiles of the mean of processes drawn again with replacement."""
    count = found.shape[1]
    low, high = np.empty(len(found)), np.empty(len(found))
    for first in range(0, len(found), 500):
        some = found[first : first + 500]
        picks = rng.integers(0, count, (RESAMPLES, len(some), count))
        means = np.take_along_axis(some[None], picks, axis=2).mean(axis=2)
        low[first : first + 500] = np.quantile(means, RISK / 2, axis=0)
        high[first : first + 500] = np.quantile(means, 1 - RISK / 2, axis=0)
    return (low + high) / 2, (high - low) / 2


def print_intervals(rng):
    print("| offset | processes | pairs pooled | bootstrap of processes | Student's t |")
    print("|---|---|---|---|---|")
    for kind, sigma in (
        ("normal", 0.0),
        ("normal", 0.06),
        ("normal", 0.3),
        ("two modes", 0.06),
        ("heavy tails", 0.1),
    ):
        for processes in (4, 10):
            result = medians(rng, TRIALS, processes, kind, sigma)
            few = result[:4000]
            cells = []
            for center, half in (pooled(result), bootstrap(few, rng), student(result)):
                covered = np.mean(np.abs(center) <= half)
                cells.append(f"{100 * covered:.1f}% (half width {np.median(half):.3f}%)")
            print(f"| {kind} {sigma}% | {processes} | {' | '.join(cells)} |")


def stop(found, spend):
    """Looks at 4, 6, ... processes; where it stopped, and the interval there."""
    trials, most = found.shape
    center, half = np.empty(trials), np.empty(trials)
    used = np.zeros(trials, int)
    for look, count in enumerate(range(4, most + 1, 2), start=1):
        risk = RISK * (share_of_look(look) if spend else 1.0)
        now, width = student(found[:, :count], risk)
        low, high = now - width, now + width
        decided = (high < -MARGIN) | (low > MARGIN) | ((low >= -MARGIN) & (high <= MARGIN))
        ends = (used == 0) & (decided | (width <= NARROW * MARGIN) | (count == most))
        center[ends], half[ends], used[ends] = now[ends], width[ends], count
    return center, half, used


def print_stopping(rng):
    print("| offset | truth | rule | covers the truth | false verdicts | decided | processes |")
    print("|---|---|---|---|---|---|---|")
    for kind, sigma in (("normal", 0.06), ("normal", 0.3), ("normal", 0.6), ("two modes", 0.3)):
        for truth in (0.0, 0.5, 1.0, 2.0):
            result = medians(rng, TRIALS, 16, kind, sigma, truth)
            for name, spend in (("99% at every look", False), ("1% shared by looks", True)):
                center, half, used = stop(result, spend)
                low, high = center - half, center + half
                covered = np.mean((low <= truth) & (truth <= high))
                rejected, improved = low > MARGIN, high < -MARGIN
                neutral = (low >= -MARGIN) & (high <= MARGIN)
                # On the margin itself, either side of it is a false verdict.
                right = neutral if truth < MARGIN else rejected & (truth > MARGIN)
                decided = rejected | improved | neutral
                wrong = decided & ~right
                print(
                    f"| {kind} {sigma}% | {truth:+g}% | {name} | {100 * covered:.2f}% "
                    f"| {100 * wrong.mean():.2f}% | {100 * decided.mean():.1f}% "
                    f"| {used.mean():.1f} |"
                )


def print_power(rng):
    print(
        "| offset | processes | half width | +0.5% seen | +1% seen | +0.5% past 0.25% | +1% past |"
    )
    print("|---|---|---|---|---|---|---|")
    for sigma in (0.0, 0.03, 0.06, 0.1, 0.3):
        for processes in (4, 6, 10):
            cells = []
            for edge in (0.0, 0.25):
                for truth in (0.5, 1.0):
                    result = medians(rng, TRIALS, processes, "normal", sigma, truth)
                    center, half = student(result, RISK * share_of_look(1))
                    cells.append(f"{100 * np.mean(center - half > edge):.1f}%")
            print(
                f"| normal {sigma}% | {processes} | {np.median(half):.3f}% | {' | '.join(cells)} |"
            )


if __name__ == "__main__":
    generator = np.random.default_rng(2026)
    print("## Intervals of 99%, one look")
    print_intervals(generator)
    print("\n## Power of the first look (99.5%)")
    print_power(generator)
    print("\n## Stopping")
    print_stopping(generator)
