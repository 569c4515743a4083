"""One launch of a program, on its own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from warpsim import execute
from warpsim.execute import Result
from warpsim.launch import Dim3, Launch, Residency, StructValue
from warpsim.machine.core.findings import Finding
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.history import Beside
from warpsim.runtime.loading import Loaded
from warpsim.runtime.protocol import Message
from warpsim.schedule import Schedule

SUCCESS = 0
_ERRORS = {
    "out-of-bounds": 700,
    "read-only": 700,
    "misaligned": 716,
    "assertion": 710,
    "trap": 719,
    "stack": 719,
    "hang": 702,
    "step-limit": 702,
}
"""What cudaGetLastError() says of a launch with such a finding (driver_types.h, cudaError)."""
_ACCESSES = ("out-of-bounds", "read-only", "misaligned")
Destroyed = Literal["context", "kernel"]
"""What a bad access ends, by the words of compute-sanitizer's --destroy-on-device-error."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A launch as the program's runtime asks for it."""

    kernel: int
    launch: int
    stream: int
    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    cooperative: bool
    arguments: tuple[bytes, ...]
    frames: tuple[int, ...]


def read(message: Message) -> Request:
    kernel, launch, stream = message.numbers(3)
    grid, block, cluster = (message.numbers(3) for _ in range(3))
    shared, cooperative, count = message.numbers(3)
    arguments = tuple(message.raw() for _ in range(count))
    return Request(
        kernel=kernel,
        launch=launch,
        stream=stream,
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        cluster=(cluster[0], cluster[1], cluster[2]),
        shared=shared,
        cooperative=bool(cooperative),
        arguments=arguments,
        frames=message.frames(),
    )


def run(
    loaded: Loaded,
    entry: str,
    request: Request,
    card: Residency,
    limit: int,
    schedule: Schedule,
    watch: Callable[[Execution], None] | None = None,
    judged: bool = True,
    processes: int = 1,
    beside: Beside | None = None,
) -> Result:
    """Executes a launch, which `watch` is given before it begins; beside: what the launch before
    does, of which it can know only after a griddepcontrol.wait."""
    program = loaded.program(entry)
    cluster = request.cluster
    if program.image.cluster is not None and cluster == (1, 1, 1):
        cluster = program.image.cluster
    launch = Launch(
        entry=entry,
        grid=request.grid,
        block=request.block,
        cluster=cluster,
        dynamic_smem_bytes=request.shared,
        arguments=tuple(
            StructValue(size=len(argument), data=argument) for argument in request.arguments
        ),
    )
    return execute.run_on(
        program,
        launch,
        loaded.world,
        schedule=schedule,
        card=card,
        limit=limit,
        watch=watch,
        judged=judged,
        processes=processes,
        beside=beside,
    )


def error_of(findings: tuple[Finding, ...], destroys: Destroyed) -> int:
    """The number of the error that the program gets for a launch with such findings; 0 for none.

    destroys: "context" as on a card; with "kernel", a bad access ends nothing but its launch.
    """
    ending = [x.name for x in findings if x.name in _ERRORS and not x.survived]
    if not ending or (destroys == "kernel" and ending[0] in _ACCESSES):
        return SUCCESS
    return _ERRORS[ending[0]]
