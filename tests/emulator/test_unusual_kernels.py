"""Kernels that are right, though written as few are: no finding, no hang, the right result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from harness import EARLY, LATE, compile_cu, found, ptx, run

import warpsim as emulator
from warpsim import Schedule
from warpsim.front.ptx import inline
from warpsim.launch import Launch, Pointer, Scalar

SOURCE = Path(__file__).parent / "kernels" / "unusual.cu"
SCHEDULES = (
    LATE,
    pytest.param(Schedule(seed=1), marks=pytest.mark.slow),
    pytest.param(EARLY, marks=pytest.mark.slow),
)
T = np.arange(64, dtype=np.uint32)


@functools.cache
def unusual() -> emulator.Module:
    return emulator.load(compile_cu(SOURCE, target="sm_90a"))


def launch(
    entry: str,
    arrays: dict[str, np.ndarray],
    scalars: Sequence[int] = (),
    *,
    threads: int = 32,
    ctas: int = 1,
    schedule: Schedule = LATE,
    unwritten: Sequence[str] = (),
) -> emulator.Result:
    arguments = [*(Pointer(array=name) for name in arrays)]
    arguments += [Scalar(type="u32", value=value) for value in scalars]
    how = Launch(entry=entry, grid=(ctas, 1, 1), block=(threads, 1, 1), arguments=tuple(arguments))
    return emulator.run(unusual(), how, arrays, schedule=schedule, unwritten=unwritten)


class Kernel(NamedTuple):
    """A launch, and what its last array must be."""

    entry: str
    arrays: Callable[[], dict[str, np.ndarray]]
    want: np.ndarray
    scalars: tuple[int, ...] = ()
    threads: int = 32
    ctas: int = 1


def words(**lengths: int) -> Callable[[], dict[str, np.ndarray]]:
    return lambda: {name: np.zeros(length, np.uint32) for name, length in lengths.items()}


def status_and_values() -> dict[str, np.ndarray]:
    return {"status": np.zeros(8, np.uint64), "in": T[:8].copy(), "out": np.zeros(8, np.uint32)}


FIBONACCI = np.array([0, 1, 1, 2, 3, 5, 8, 13] * 4, np.uint32)
KERNELS = (
    Kernel(
        "early_return_then_barrier",
        words(out=64),
        np.where(T < 40, 39 - T, 0),
        scalars=(40,),
        threads=64,
    ),
    Kernel("early_return_then_shuffle", words(out=32), np.where(T[:32] < 20, 20, 0), scalars=(20,)),
    Kernel(
        "syncwarp_at_two_places", words(out=32), np.where(T[:32] % 2, T[:32] + 99, T[:32] + 201)
    ),
    Kernel("padded_struct_copied", words(out=32), 5 * T[:32]),
    Kernel(
        "unwritten_read_that_is_not_used",
        words(out=32),
        np.where(T[:32] < 9, 2 * T[:32] + 1, 7),
        scalars=(9,),
    ),
    Kernel("grid_sync", words(scratch=64, out=64), 63 - T, ctas=2),
    Kernel("printing", words(out=32), np.full(32, 32)),
    Kernel("asserting", words(out=32), np.ones(32), scalars=(32,)),
    Kernel("allocating", words(out=32), T[:32]),
    Kernel("recursion", words(out=32), FIBONACCI),
    Kernel(
        "function_pointers",
        words(out=32),
        np.where(T[:32] % 2, T[:32] ** 2, 2 * T[:32]),
        scalars=(0,),
    ),
    Kernel("ping_pong", words(out=64), np.full(64, 8), threads=64),
    Kernel("a_lock", words(lock=1, count=1), np.array([40]), ctas=40),
    Kernel("a_lock_of_every_lane", words(lock=1, count=1), np.array([64]), ctas=2),
    Kernel(
        "a_barrier_of_the_grid", words(arrived=1, scratch=768, out=256), T[0], 0, 64, 4
    )._replace(scalars=(), want=255 - np.arange(256) + 2),
    Kernel("look_back", status_and_values, np.cumsum(T[:8]), ctas=8, threads=1),
    Kernel("last_cta_adds", words(ticket=1, partial=128, out=32), 4 * T[:32], ctas=4),
)


IN_STEP = Kernel(
    "volatile_reduction",
    lambda: {"x": np.arange(64, dtype=np.float32), "out": np.zeros(1, np.float32)},
    np.array([2016]),
    threads=64,
)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.entry)
def test_an_unusual_kernel_is_right_and_not_accused(kernel: Kernel, schedule: Schedule) -> None:
    arrays = kernel.arrays()
    result = launch(
        kernel.entry,
        arrays,
        kernel.scalars,
        threads=kernel.threads,
        ctas=kernel.ctas,
        schedule=schedule,
    )
    assert result.findings == ()
    last = list(arrays)[-1]
    assert arrays[last].tolist() == kernel.want.astype(arrays[last].dtype).tolist()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_flag_that_other_ctas_poll_is_no_race(schedule: Schedule) -> None:
    arrays = words(flag=1, data=64, out=192)()
    result = launch("a_flag", arrays, threads=64, ctas=4, schedule=schedule)
    assert result.findings == ()
    assert (arrays["out"] == arrays["out"][0]).all()
    assert arrays["out"][0] != 0


def test_spinning_costs_about_as_much_as_the_work_that_is_waited_for() -> None:
    arrays = words(lock=1, count=1)()
    assert launch("a_lock", arrays, ctas=40).warp_instructions < 20_000
    arrays = words(flag=1, data=64, out=192)()
    assert launch("a_flag", arrays, threads=64, ctas=4).warp_instructions < 50_000


def test_an_outcome_that_may_depend_on_the_order_is_no_finding() -> None:
    how = Launch(
        entry="dekker",
        grid=(2, 1, 1),
        block=(1, 1, 1),
        arguments=(Pointer(array="flags"), Pointer(array="out")),
    )
    arrays = words(flags=2, out=2)()
    compared = emulator.compare(
        unusual(), [how], arrays, schedules=[Schedule(seed=seed) for seed in range(8)]
    )
    assert compared.findings == ()
    assert compared.differing == ()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_ring_through_the_shared_memory_of_a_cluster_is_right(schedule: Schedule) -> None:
    out = np.zeros(128, np.uint32)
    how = Launch(
        entry="ring_of_a_cluster",
        grid=(4, 1, 1),
        block=(32, 1, 1),
        cluster=(4, 1, 1),
        arguments=(Pointer(array="out"),),
    )
    assert emulator.run(unusual(), how, {"out": out}, schedule=schedule).findings == ()
    assert out.reshape(4, 32)[:, 0].tolist() == [100, 200, 300, 0]


def test_tf32_fragments_are_multiplied() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((16, 8), (8, 16)))
    out = np.zeros((16, 16), np.float32)
    assert launch("tf32_fragments", {"a": a, "b": b, "out": out}).findings == ()
    assert (out == a @ b).all()


def test_printf_shows_the_text_with_cta_and_thread() -> None:
    result = launch("printing", words(out=64)(), ctas=2)
    assert [(x.cta, x.thread, x.text) for x in result.printed] == [
        (0, 1, "thread 1 of CTA: 12.50%\n"),
        (1, 1, "thread 1 of CTA: 12.50%\n"),
    ]


def test_an_assertion_that_fails_is_named_with_its_condition() -> None:
    (finding,) = launch("asserting", words(out=32)(), (31,)).findings
    assert finding.name == "assertion"
    assert "threadIdx.x < limit" in finding.sentence
    assert "thread 31" in finding.sentence


def test_only_the_entry_that_is_launched_has_to_be_covered() -> None:
    text = ptx("mov.u32 %r0, 1;")
    text += (
        text.partition(".address_size 64")[2]
        .replace(" k(", " other(")
        .replace("mov.u32 %r0, 1;", "frobnicate.u32 %r0, 1;")
    )
    assert found(run(text, {})) == set()


@pytest.mark.parametrize(
    "spelled",
    [
        "vote.ballot.sync.b32 %r1, %p0, -1;",
        "atom.add.relaxed.cta.u32 %r1, [%out], 0;",
        "atom.global.sys.add.u32 %r1, [%out], 0;",
        "mov.u32 %r1, %reserved_smem_offset_1;",
        "mov.u32 %r1, WARP_SZ;",
        "mov.u32 %r2, tile; ldmatrix.sync.aligned.x1.m8n8.shared.b16 %r1, [%r2];",
    ],
)
def test_a_spelling_that_ptxas_takes_is_taken(spelled: str) -> None:
    assert (
        found(
            run(
                ptx(
                    f"setp.eq.u32 %p0, %t, 0; {spelled}",
                    ["out"],
                    shared=".shared .align 16 .b8 tile[128];",
                ),
                {"out": T.copy()},
            )
        )
        == set()
    )


CALLED = """
.func (.param .b32 r) once (.param .b32 p) {
.reg .b32 %a; ld.param.u32 %a, [p]; add.u32 %a, %a, 1; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) often (.param .b32 p) {
.reg .b32 %m; ld.param.u32 %m, [p];
"""
CALL = """{{ .param .b32 to; .param .b32 back; st.param.b32 [to], {0};
call.uni (back), {1}, (to); ld.param.b32 {0}, [back]; }}
"""


def test_a_kernel_may_have_more_calls_than_are_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MOST_INLINED", 100)
    extra = CALLED + CALL.format("%m", "once") * 12 + "st.param.b32 [r], %m; ret; }"
    body = CALL.format("%r1", "often") * 12
    out = np.zeros(1, np.uint32)
    text = ptx(f"mov.u32 %r1, 7; {body} st.u32 [%out], %r1;", ["out"], extra=extra)
    result = run(text, {"out": out}, threads=1)
    assert result.findings == ()
    assert out[0] == 7 + 12 * 12


@pytest.mark.parametrize(("schedule", "right"), [(LATE, True), (Schedule(seed=1), False)])
def test_a_reduction_without_syncwarp_is_right_where_its_lanes_stay_in_step(
    schedule: Schedule, right: bool
) -> None:
    """From Volta on they need not: volatile orders what one thread does, not the lanes."""
    arrays = IN_STEP.arrays()
    launch(IN_STEP.entry, arrays, threads=IN_STEP.threads, schedule=schedule)
    assert (arrays["out"].tolist() == IN_STEP.want.tolist()) is right
