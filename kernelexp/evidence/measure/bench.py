"""The work of one measuring process: load the arms, check them, time them, check again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec.structs import asdict

from kernelexp.evidence.measure.arrays import InputSet, choose
from kernelexp.evidence.measure.gpu_timing import (
    GraphSampler,
    Hang,
    LaunchSampler,
    Sampler,
    Timer,
    sparse,
    strides,
    time_share,
    warm_up,
)
from kernelexp.evidence.measure.job import PREPARING_PEERS, Turn, WorkerJob
from kernelexp.evidence.measure.placement import Placement
from kernelexp.evidence.measure.results import compare
from kernelexp.judge.outputs import describe_wrong
from kernelexp.model.measurement import ArrayCheck, Block, Check, Worker
from kernelexp.model.problem import Chunk, Problem
from kernelexp.system.device import Monitor

When = Literal["before", "during", "after"]
# Of the free memory; the rest is for the sets and the comparison's temporaries.
REFERENCE_SHARE = 0.25
# After a check the card has done other work: warm again, this long at most.
WARM_AGAIN_S = 0.4
# Besides the first: a kernel that does every second launch gets past three with one chance in
# eight, and there are four rounds in each of four processes.
SETS_CHECKED = 3
# With many arms a process checks each of them less often, and rows take longer.
ARMS_PER_CHECKED_SET = 6
ARMS_PER_TIMING = 8
FEW_ROWS = 8
ESTIMATE_ROWS = 3
POLL_S = 0.0001


class WrongResult(Exception):
    """An arm that wrote a wrong result, or wrote where it should not."""

    def __init__(self, arm: str, words: str) -> None:
        super().__init__(words)
        self.arm = arm


class GpuInUse(Exception):
    """Another process uses the GPU."""

    def __init__(self, others: int) -> None:
        super().__init__(f"{others} other processes use the GPU")
        self.others = others


class Bench:
    """One process's arms, arrays and samplers."""

    def __init__(
        self,
        job: WorkerJob,
        turn: Turn,
        problem: Problem,
        say: Callable[[str], None],
    ) -> None:
        self._job, self._problem, self._say = job, problem, say
        self._options, self._size = job.options, job.job.size
        arms = {
            index: arm
            for index, arm in enumerate(job.job.arms)
            if arm.arm.name not in turn.excluded and (arm.arm.role != "peer" or job.with_peers)
        }
        self._tolerances = {
            arm.arm.name: problem.tolerance(self._size, job.device.arch, arm.axes)
            for arm in arms.values()
            if arm.launches
        }
        self._placed = Placement(problem, self._size, arms)
        self._rng = random.Random(job.seed)
        self._checks: list[Check] = []
        self.current = ""
        """The arm that alone has launched since the GPU was last known to be well."""
        self.is_launching = False
        """Kernels under test are being launched or waited for: what hangs now is one of them."""

    @contextmanager
    def _launches(self) -> Iterator[None]:
        self.is_launching = True
        try:
            yield
        finally:
            self.is_launching = False

    def name(self, index: int) -> str:
        return self._job.job.arms[index].arm.name

    @property
    def _own(self) -> list[int]:
        """All arms but the peers: what is decided about."""
        return self._with_roles("baseline", "placebo", "candidate")

    @property
    def _timed(self) -> list[int]:
        """Peers meet the same heat as all other arms, in the same rows."""
        return list(self._placed.arms)

    def _with_roles(self, *roles: str) -> list[int]:
        return [index for index, arm in self._placed.arms.items() if arm.arm.role in roles]

    def launch_each_once(self) -> None:
        """Launches without timing or reference: what compute-sanitizer looks at."""
        self._load()
        for index in self._placed.judged():
            self.current = self.name(index)
            self._placed.sets[0].reset(self._rng.randrange(1, 255))
            self._launch(index, 0)

    def check_each_once(self) -> tuple[Check, ...]:
        """One launch of each arm, alone, compared with the reference: what ncu looks at.

        ncu repeats the launch on the same memory, so what is compared is as one launch leaves it.
        """
        self._load()
        self._check_first()
        return tuple(self._checks)

    def run(self) -> Worker:
        """Everything, in order; raises Wrong, Hang, Busy, or what the driver's failure raises."""
        monitor = Monitor(self._job.device.uuid)
        self._load()
        self._refuse_company(monitor.others())
        self._say("checking")
        self._check_first()
        self._say("warming up")
        launches_per_sample, slow = self._add_sets()
        timer = Timer(self._sampler(launches_per_sample), self._rng, self._options.launch_timeout_s)
        timer.strides = slow
        timer.window = len(self._placed.sets) if launches_per_sample == 1 else 1
        with self._launches():
            warmth = warm_up(timer, timer.dense(self._timed))
        self._say("timing")
        blocks = self._time(timer, monitor, warmth.rows_per_block)
        self._say("checking")
        self._check_round(timer, "after")
        return Worker(
            process=self._job.process,
            seed=self._job.seed,
            load_order=self._job.load_order,
            launches_per_sample=launches_per_sample,
            sets=len(self._placed.sets),
            warm_up_s=round(warmth.spent_s, 3),
            drift=round(warmth.drift, 6),
            blocks=tuple(blocks),
            checks=tuple(self._checks),
        )

    def _load(self) -> None:
        import torch

        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the context that the driver calls then find
        for index in self._job.load_order:
            if index in self._placed.arms:
                self.current = self.name(index)
                self._placed.load(index)
        self.current = ""
        seed = self._draw_seed()
        self._placed.add_set(seed)
        self._placed.sets[0].require_seeded(seed)

    def _draw_seed(self) -> int:
        return self._rng.randrange(1 << 31)

    def _refuse_company(self, others: int) -> None:
        if others and not self._options.shared_gpu:
            raise GpuInUse(others)

    def _launch(self, index: int, set_index: int) -> float:
        """One launch, waited for; its time in microseconds."""
        if not self._placed.arms[index].launches:  # a peer may compile itself in its first call
            return self._wait_for(index, set_index)
        with self._launches():
            return self._wait_for(index, set_index)

    def _wait_for(self, index: int, set_index: int) -> float:
        import torch

        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream()
        start.record(stream)
        self._placed.call(index, set_index, stream.cuda_stream)
        end.record(stream)
        limit = time.monotonic() + self._options.launch_timeout_s
        while not end.query():
            if time.monotonic() > limit:
                raise Hang(index, self._options.launch_timeout_s)
            time.sleep(POLL_S)
        return float(start.elapsed_time(end)) * 1000.0

    def _check_first(self) -> None:
        """Each arm's first launch, alone: a fault here has one author."""
        first = self._placed.sets[0]
        reference = self._reference(first)
        for index in self._placed.judged():
            self.current = self.name(index)
            first.reset(self._rng.randrange(1, 255))
            before = first.fingerprint(self.current)
            self._launch(index, 0)
            self._hold_against(reference, first, before, "before")
        self.current = ""

    def _check_round(self, timer: Timer, when: When) -> None:
        """Each arm once more, through the timed path, on values that it has never seen."""
        # The first set, which a kernel that keeps one result would keep, and some of the others.
        others = range(1, len(self._placed.sets))
        arms = self._placed.judged()
        sets = max(0, SETS_CHECKED - len(arms) // ARMS_PER_CHECKED_SET)
        drawn = self._rng.sample(others, min(sets, len(others)))
        for turn in (0, *drawn):
            chosen = self._placed.sets[turn]
            chosen.refresh(self._draw_seed())
            reference = self._reference(chosen)
            self._rng.shuffle(arms)
            for index in arms:
                if turn and index in timer.strides:
                    continue  # one that is many times slower: one set of each round
                before = chosen.fingerprint(self.name(index))
                with self._launches():
                    timer.until(self._own, index, turn)
                self.current = self.name(index)
                self._hold_against(reference, chosen, before, when)
            self.current = ""

    def _reference(self, chosen: InputSet) -> list[Chunk] | None:
        import torch

        keep = int(torch.cuda.mem_get_info()[0] * REFERENCE_SHARE)
        return kept(self._problem.reference(chosen.inputs, self._size), keep)

    def _hold_against(
        self,
        reference: list[Chunk] | None,
        chosen: InputSet,
        before: tuple[int, ...],
        when: When,
    ) -> None:
        # Copied in the stream's order, right behind the launch: what another stream writes late is
        # not in the copy.
        written = {name: output.tensor.clone() for name, output in chosen.outputs.items()}
        # Before the reference is computed, if it has to be again: it must not be from inputs that
        # the kernel changed.
        if chosen.fingerprint(self.current) != before:
            raise WrongResult(self.current, "it changed its inputs")
        chunks = reference or self._problem.reference(chosen.inputs, self._size)
        tolerance = self._tolerances[self.current]
        arrays = compare(written, chunks, tolerance, chosen.poison_byte)
        if sentence := describe_wrong(arrays):
            raise WrongResult(self.current, sentence)
        for name, output in chosen.written(self.current).items():
            if not output.guards_intact():
                raise WrongResult(self.current, f"it wrote outside of {name}")
        checks = tuple(ArrayCheck(**asdict(array)) for array in arrays)
        self._checks.append(Check(arm=self.current, when=when, arrays=checks))

    def _add_sets(self) -> tuple[int, dict[int, int]]:
        """Times roughly, makes as many sets as that asks for; how many launches a sample times, and
        the strides of slow arms."""
        import torch

        self._prepare_peers()
        own = self._own
        # Through a sampler: after a flush the launch is queued before the GPU comes to it, while
        # alone it is timed together with the 20 us that Python takes to launch.
        probe = Timer(self._sampler(1), self._rng, self._options.launch_timeout_s)
        with self._launches():
            rows = probe.rows(self._timed, 1)
            slow = strides(rows[0], own) if self._options.race else {}
            slow = {arm: stride for arm, stride in slow.items() if arm in own}
            probe.strides = slow | sparse(rows[0], self._with_roles("peer"), self._extent()[0])
            rows += probe.rows(probe.dense(own), ESTIMATE_ROWS - 1)
        pairs = [pair for row in rows for pair in zip(row.order, row.times_us, strict=True)]
        rough = min(time_us for arm, time_us in pairs if arm in own)
        free = torch.cuda.mem_get_info()[0]
        hot = self._options.l2 == "hot"
        chosen = choose(rough, self._placed.sets[0].bytes(), free, hot)
        while len(self._placed.sets) < chosen.sets:
            self._placed.add_set(self._draw_seed())
        self._prepare_peers()
        self._placed.anew(self._rng)
        return chosen.launches_per_sample, dict(probe.strides)

    def _prepare_peers(self) -> None:
        """The first call of each, in which it may compile itself; others ran to be checked."""
        if self._with_roles("peer"):
            self._say(PREPARING_PEERS)
            for index, place in self._placed.add_peers():
                self.current = self.name(index)
                self._launch(index, place)
            self.current = ""
            self._say("warming up")

    def _sampler(self, launches_per_sample: int) -> Sampler:
        calls = self._placed.calls(len(self._job.job.arms))
        if launches_per_sample > 1:
            return GraphSampler(self._placed.sets, calls, self._rng)
        return LaunchSampler(self._placed.sets, calls, self._options.l2 == "hot")

    def _time(self, timer: Timer, monitor: Monitor, rows_per_block: int) -> list[Block]:
        """Blocks until their rows have filled the time asked for, check rounds among them.

        What peers take, and arms that sit out rows, is not counted.
        """
        blocks: list[Block] = []
        dense, counted = timer.dense(self._timed), timer.dense(self._own)
        timing_s, checks = self._extent()
        spent, checked, rows_timed = 0.0, 0, 0
        timer.begin()
        while spent < timing_s or checked < checks or self._too_few(rows_timed, spent / timing_s):
            if checked < checks and spent >= timing_s * (checked + 1) / (checks + 1):
                checked += 1
                self._check_round(timer, "during")
                self._placed.anew(self._rng)
                timer.sampler = self._sampler(timer.sampler.launches)
                with self._launches():
                    warm_up(timer, dense, WARM_AGAIN_S)
                timer.begin()
            before = monitor.read()
            self._refuse_company(before.others)
            begun, first = time.monotonic(), timer.turn % len(self._placed.sets)
            with self._launches():
                rows = timer.rows(self._timed, rows_per_block)
            spent += (time.monotonic() - begun) * time_share(rows, counted)
            rows_timed += len(rows)
            blocks.append(Block(before=before, after=monitor.read(), rows=rows, set=first))
        return blocks

    def _extent(self) -> tuple[float, int]:
        """Seconds to fill with rows, and check rounds among them."""
        timing_s, checks = self._options.timing_s, self._options.checks_during
        if not self._options.race:
            return timing_s, checks
        many = len(self._own) / ARMS_PER_TIMING
        return timing_s * max(1.0, many), min(checks, 1) if many > 1 else checks

    def _too_few(self, rows: int, filled: float) -> bool:
        """Whether a race's long rows, which fill the time soon, are too few for a median."""
        return self._options.race and rows < FEW_ROWS and filled < 3.0


def kept(chunks: Iterable[Chunk], most_bytes: int) -> list[Chunk] | None:
    """Chunks of a reference, computed before a launch; None where they take more than that."""
    chosen, held = [], 0
    for chunk in chunks:
        held += chunk.values.numel() * chunk.values.element_size()
        if held > most_bytes:
            return None
        chosen.append(chunk)
    return chosen
