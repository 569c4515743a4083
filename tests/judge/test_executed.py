"""Bounds by what was executed: what an MMA does, and times that no card reaches."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fake_gpu import FakeGpu
from support import ROOT, Kx

from kernelexp.dossier import full_counts
from kernelexp.facts.chips import CHIPS
from kernelexp.judge import consistency, executed
from kernelexp.logs import records
from kernelexp.model.arm import EmulatedEvidence, Status
from kernelexp.model.record import LaunchCounts, Record
from kernelexp.project.problem.consult import Consulted, Facts
from warpsim.launch import Launch

pytestmark = pytest.mark.usefixtures("shared_builds")


@pytest.mark.parametrize(
    ("opcode", "does"),
    [
        ("QGMMA.64x192x32.F32.E4M3.E4M3", ("fp8", 2 * 64 * 192 * 32 // 4)),
        ("HGMMA.64x128x8.F32.TF32", ("tf32", 2 * 64 * 128 * 8 // 4)),
        ("HMMA.16816.F32.BF16", ("bf16", 2 * 16 * 8 * 16)),
        ("IMMA.16832.S8.S8", ("int8", 2 * 16 * 8 * 32)),
        ("HMMA.16816.F16", None),  # twice as fast on some cards
        ("HMMA.SP.16832.F32", None),
        ("IMMA.16864.S4.S4", None),
        ("UTCQMMA.2CTA", None),  # its shape is in a descriptor
        ("HFMA2.MMA", None),
    ],
)
def test_an_opcode_says_what_a_warps_mma_does(opcode: str, does: tuple[str, int] | None) -> None:
    assert executed.mma(opcode) == does


def test_an_mma_of_unknown_rate_bounds_nothing() -> None:
    evidence = EmulatedEvidence(
        size="emulated", opcodes_with_modifiers={"HMMA.16816.F32": 4, "HMMA.16816.F16": 1}
    )
    assert not executed.flops_of_mma(evidence)


def test_a_kernel_that_polls_is_bound_by_its_mmas_and_what_it_moves_only() -> None:
    counters = dict.fromkeys(executed.COUNTERS, 10**9)
    free, polling = (
        [
            words
            for _, words in executed.least(
                LaunchCounts(counters=counters, flops_of_mma={"fp8": 1e5}, polls=polls, how=""),
                CHIPS["H200"],
                1.98e9,
            )
        ]
        for polls in (False, True)
    )
    assert any("instructions of the alu pipe" in words for words in free)
    assert not any("pipe" in words for words in polling)
    assert "MMAs (fp8)" in polling[0]


@pytest.fixture
def record() -> Record:
    return records.read_file(max((ROOT / "logs/runs/H1").glob("*.measured.json")))


def test_a_time_below_what_the_executed_mmas_need_is_invalid_with_its_arithmetic(
    record: Record,
) -> None:
    """H1's launch has 5,569,536 of 196,608 FLOP: 0.512 ms at the highest clock."""
    counts = LaunchCounts(
        counters={"sm__inst_executed_pipe_tensor": 5_569_536},
        flops_of_mma={"fp8": 196_608.0},
        polls=True,
        how="solved from sizes 'emulated' and 'uneven'",
    )
    (candidate,) = record.candidates
    launched = msgspec.structs.replace(record, launched={"candidate": counts})
    assert consistency.qualified(launched, "candidate", candidate, candidate.verdict) == (
        candidate.verdict
    )
    twice = msgspec.structs.replace(counts, counters={"sm__inst_executed_pipe_tensor": 11_139_072})
    launched = msgspec.structs.replace(record, launched={"candidate": twice})
    result = consistency.qualified(launched, "candidate", candidate, candidate.verdict)
    assert (result.status, result.reason) == (Status.INVALID, "faster_than_possible")
    assert "needs 1.023 ms for the 2.19 TFLOP of 11,139,072 MMAs (fp8)" in result.sentence
    assert "what was timed is not what was emulated" in result.sentence


def test_a_run_counts_what_was_timed_only_where_its_time_is_near_what_that_needs(
    scale: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = scale / "variants/scale/problem.py"
    problem.write_text(
        problem.read_text().replace(
            '"emulated": {"count": 4096}',
            '"emulated": {"count": 4096}, "larger": {"count": 8192}',
        )
        + "\n\ndef work(size):\n    from kernelexp.problem import Work\n\n"
        '    return Work(flops=size["count"], bytes=8 * size["count"])\n'
    )
    FakeGpu(tmp_path / "locks", monkeypatch).takes("{1: 1.0, 4: 0.0003}[width]")
    result = kx("run", "S1", cwd=scale)
    (path,) = (scale / "logs/runs/S1").glob("*.measured.json")
    record = records.read_file(path)
    assert record.candidates[0].verdict.status is Status.INVALID, result.output
    assert [*record.launched] == ["candidate"]
    sentence = record.candidates[0].verdict.sentence
    assert "instructions of the" in sentence or "sectors" in sentence
    assert "solved from sizes 'emulated' and 'larger'" in sentence


def test_one_small_size_is_a_bound_where_there_is_no_second() -> None:
    """CTAs with a tile each, as a transpose's, and a smaller size, which bounds nothing."""

    def launch(ctas: int) -> tuple[Launch, ...]:
        return (Launch(entry="t", grid=(ctas, 1, 1), block=(32, 1, 1), arguments=()),)

    facts = Facts(launches={"emulated": launch(2), "full": launch(8), "less": launch(1)})
    sizes = {"emulated": {"rows": 64}, "full": {"rows": 256}, "less": {"rows": 32}}
    consulted = Consulted(kernel="t", sizes=sizes, peers=(), work={}, points=(facts,))
    taken = EmulatedEvidence(size="emulated")
    assert full_counts.least_factor(consulted, taken, "full") == 4
    assert full_counts.least_factor(consulted, taken, "less") == 0
