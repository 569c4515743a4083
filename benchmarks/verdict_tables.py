"""Prints the tables of docs/verdicts.md from recorded samples: python verdict_tables.py FOLDER.

FOLDER holds what benchmarks/verdict_samples.py wrote. A/A: comparisons drawn from many identical
arms; known slowdowns: the knob kernel. Nothing here needs a GPU.
"""

import statistics
import sys
from pathlib import Path

import msgspec

from kernelexp.judge.statistics import rates
from kernelexp.judge.statistics.stats import log_ratios, median_error
from kernelexp.model.measurement import Measurement

DRAWS = 300


def read(path):
    return msgspec.json.decode(path.read_bytes(), type=Measurement)


def percent(value):
    return f"{100 * value:.3f}%"


def print_spread(name, found):
    """Between processes and within them: equal figures say that processes add nothing."""
    between, within = [], []
    for arm in range(1, len(found.arms)):
        per_process = [log_ratios(worker.blocks, arm, 0)[0] for worker in found.workers]
        medians = [statistics.median(item) for item in per_process]
        between.append(statistics.stdev(medians))
        within.append(statistics.fmean(median_error(item) for item in per_process))
    print(
        f"| {name} | {len(found.workers)} | {len(found.arms)} "
        f"| {percent(statistics.median(between))} | {percent(statistics.median(within))} |"
    )


def print_rates(name, found, processes, margin):
    got = rates.of_same_arms(found, processes, DRAWS, margin)
    print(
        f"| {name} | {processes} | {100 * margin:g}% | {got.comparisons} | {got.disjoint} "
        f"| {got.false_verdicts} | {got.statuses.get('NEUTRAL', 0)} "
        f"| {100 * got.covered / got.comparisons:.1f}% | {percent(got.spread)} "
        f"| {percent(got.half_width)} | {percent(got.detectable)} |"
    )


def print_power(found, processes, margin):
    for extra, got in rates.of_injected(found, processes, DRAWS, margin).items():
        statuses = ", ".join(f"{name} {count}" for name, count in sorted(got.statuses.items()))
        print(
            f"| +{int(extra) / 10:g}% | {100 * got.truth:+.3f}% | {processes} "
            f"| {got.detected}/{got.comparisons} | {100 * margin:g}% | {statuses} "
            f"| {100 * got.bias:+.4f}% | {100 * got.covered / got.comparisons:.1f}% |"
        )


def main(folder):
    recordings = {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
    injected = recordings.pop("inject", None)
    print("spread of the estimate: between processes, within a process")
    for name, item in recordings.items():
        print_spread(name, item)
    print("A/A")
    for name, item in recordings.items():
        for processes in (4, 10):
            for margin in (0.01, 0.0025):
                print_rates(name, item, processes, margin)
    if injected:
        print("known slowdowns", rates.true_effects(injected))
        for processes in (4, 10):
            for margin in (0.01, 0.0025):
                print_power(injected, processes, margin)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
