"""Simulates races among 24 variants, for docs/verdicts.md: no GPU, a minute.

Each process gives every arm a log ratio: its true effect, and an offset of its own. A model of what
a process costs (COST) turns processes into seconds. kernelexp.judge.statistics.racing is compared
with timing every arm in every process, and with two methods of fixed budget that are given the time
that the race took on average.
"""

import math
import random
import statistics
import sys
from pathlib import Path

import msgspec

from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.stats import share_of_look
from kernelexp.model.measurement import Measurement

TRIALS = 1000
ARMS = 24
RISK, MARGIN = 0.01, 0.01
LOOKS = (2, 3, 4, 6, 8, 10, 12, 14, 16)
FASTEST_S = 0.004
"""A launch of the fastest arm: the slowest takes 60 times as long."""
SAMPLES = Path(__file__).parents[1] / "tests/data/samples"


class Cost:
    """Seconds of one process: what it costs by itself, for each arm, and for launches of slow arms,
    which sit out rows. As on an H200, but with a context of 1.5 s instead of 0.2 s."""

    START = 3.0
    PROCESS = 1.5 + 0.6
    ARM = 3 * 0.05
    TIMING = 1.0
    ARMS_PER_TIMING = 8
    SLOW = 4.0
    SLOW_LAUNCHES = 9

    @classmethod
    def of(cls, effects):
        arms = len(effects) + 1  # the placebo
        fastest = min(effects)
        slow = [x for x in effects if x - fastest > math.log(cls.SLOW)]
        launches = sum(math.exp(x) for x in slow) * FASTEST_S * cls.SLOW_LAUNCHES
        rows = cls.TIMING * max(1.0, arms / cls.ARMS_PER_TIMING)
        return cls.PROCESS + cls.ARM * arms + rows + launches


FIELDS = {
    "1% apart, up to 60x": [0.0, *(math.log1p(0.01 * 5900 ** (i / 22)) for i in range(23))],
    "all within 5%, best by 1%": [0.0, *(math.log1p(0.01 + 0.04 * i / 22) for i in range(23))],
    "steps of 0.3%": [0.003 * i for i in range(ARMS)],
    "two equal, the rest 2% behind": [0.0, 0.0, *[0.02] * 22],
    "all equal": [0.0] * ARMS,
}


def normal(sigma):
    return lambda rng: rng.gauss(0.0, sigma)


def two_modes(rng):
    """One process in ten is 0.3% slower."""
    return rng.gauss(0.0, 0.0006) + (0.003 if rng.random() < 0.1 else 0.0)


def heavy_tails(rng):
    """Student's t with three degrees of freedom, of standard deviation 0.1%."""
    chi = sum(rng.gauss(0.0, 1.0) ** 2 for _ in range(3))
    return 0.001 / math.sqrt(3) * rng.gauss(0.0, 1.0) / math.sqrt(chi / 3)


def recorded(name):
    """Offsets of the processes of a recording of one kernel against itself."""
    path = SAMPLES / f"h200-{name}.json"
    result = msgspec.json.decode(path.read_bytes(), type=Measurement)
    pool = []
    for arm in result.arms[1:]:
        own = [score[arm.name] for score in racing.scores(result) if arm.name in score]
        pool += [value - statistics.fmean(own) for value in own] if own else []
    scale = math.sqrt(len(result.workers) / (len(result.workers) - 1))
    return lambda rng: scale * rng.choice(pool)


NOISES = {
    "normal, 0.03%": normal(0.0003),
    "normal, 0.06%": normal(0.0006),
    "normal, 0.3%": normal(0.003),
    "one in ten 0.3% slower": two_modes,
    "heavy tails, 0.1%": heavy_tails,
    "recorded: GEMM": recorded("gemm"),
    "recorded: `knob`": recorded("knob"),
    "recorded: `knob`, short": recorded("short"),
}


class Trial:
    """One field of arms, whose processes are drawn as they are asked for."""

    def __init__(self, field, noise, rng):
        names = [f"a{i}" for i in range(ARMS)]
        shuffled = rng.sample(field, len(field))
        self.effects = dict(zip(names, shuffled, strict=True))
        self.noise, self.rng, self.seconds = noise, rng, Cost.START
        self.taken, self.samples = [], 0

    def process(self, arms):
        self.taken.append({arm: self.effects[arm] + self.noise(self.rng) for arm in arms})
        self.seconds += Cost.of([self.effects[arm] for arm in arms])
        self.samples += len(arms)

    def excess(self, arm):
        return self.effects[arm] - min(self.effects.values())

    def mean(self, arm):
        return statistics.fmean(item[arm] for item in self.taken if arm in item)


def race(trial, leave=True):
    """Until it is decided, or after 16 processes; the leader, and whether a best arm is left."""
    running = list(trial.effects)
    for number, processes in enumerate(LOOKS, 1):
        while len(trial.taken) < processes:
            trial.process(running)
        risk = RISK * share_of_look(number, race=True) / (ARMS - 1)
        standing = racing.race(trial.taken, running, risk, MARGIN)
        kept = [arm for arm in running if arm not in standing.slower]
        if leave:
            # The baseline, the first arm, is timed to the end.
            running = [arm for arm in running if arm in kept or arm == "a0"]
        if not standing.open:
            break
    return standing.leader, any(trial.excess(arm) == 0.0 for arm in kept), not standing.open


def halving(trial, seconds):
    """Sequential halving: as many rounds as halvings, each with its share of the time."""
    running = list(trial.effects)
    rounds = math.ceil(math.log2(ARMS))
    for number in range(rounds):
        until = seconds * (number + 1) / rounds
        trial.process(running)
        while trial.seconds + Cost.of([trial.effects[arm] for arm in running]) <= until:
            trial.process(running)
        running = sorted(running, key=trial.mean)[: math.ceil(len(running) / 2)]
    return running[0]


def rejects(trial, seconds):
    """Successive rejects: the worst arm leaves after each of 23 phases of Audibert & Bubeck's
    lengths, in processes, scaled so that they take the time given."""
    harmonic = 0.5 + sum(1.0 / i for i in range(2, ARMS + 1))
    running = list(trial.effects)
    budget = seconds / Cost.of([0.0] * ARMS) * ARMS
    for phase in range(1, ARMS):
        wanted = max(1, math.ceil((budget - ARMS) / harmonic / (ARMS + 1 - phase)))
        while len(trial.taken) < wanted:
            trial.process(running)
        running = sorted(running, key=trial.mean)[:-1]
    return running[0]


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def print_races(trials):
    print("| variants | offsets | best kept | leader within 1% | decided | seconds: median, 95% |")
    print("|---|---|---|---|---|---|")
    for title, field in FIELDS.items():
        for label, noise in NOISES.items():
            rng = random.Random(2026)
            result = [Trial(field, noise, rng) for _ in range(trials)]
            came = [race(trial) for trial in result]
            near = [
                t.excess(leader) <= MARGIN for t, (leader, *_) in zip(result, came, strict=True)
            ]
            seconds = [trial.seconds for trial in result]
            kept, decided = (sum(item[i] for item in came) / trials for i in (1, 2))
            print(
                f"| {title} | {label} | {100 * kept:.1f}% | {100 * sum(near) / trials:.1f}% "
                f"| {100 * decided:.1f}% "
                f"| {statistics.median(seconds):.0f}, {quantile(seconds, 0.95):.0f} |"
            )


def print_methods(trials):
    print("| variants | method | finds the best | seconds | arms timed, over all processes |")
    print("|---|---|---|---|---|")
    noise = NOISES["normal, 0.3%"]
    for title in list(FIELDS)[:3]:
        methods = {
            "race": lambda trial: race(trial)[0],
            "all arms in each process": lambda trial: race(trial, leave=False)[0],
        }
        mean_s = 0.0
        for label, method in methods.items():
            result = print_method(title, label, method, noise, trials)
            mean_s = mean_s or statistics.fmean(trial.seconds for trial in result)
        for label, method in (("sequential halving", halving), ("successive rejects", rejects)):
            print_method(title, label, lambda t, m=method, s=mean_s: m(t, s), noise, trials)


def print_method(title, label, method, noise, trials):
    rng = random.Random(7)
    result = [Trial(FIELDS[title], noise, rng) for _ in range(trials)]
    right = sum(trial.excess(method(trial)) == 0.0 for trial in result)
    seconds = statistics.median(trial.seconds for trial in result)
    samples = statistics.median(trial.samples for trial in result)
    print(f"| {title} | {label} | {100 * right / trials:.1f}% | {seconds:.0f} | {samples:.0f} |")
    return result


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    print(f"## Races among {ARMS} variants, {count} trials each")
    print_races(count)
    print("\n## Methods, offsets of 0.3%")
    print_methods(count)
