"""Settings for the evidence of one command: compiler, executor, time limits."""

from __future__ import annotations

import msgspec

from kernelexp.evidence.executor import Executor, Local
from kernelexp.model.limits import Limits
from kernelexp.system.live import OnProgress
from kernelexp.system.toolchain import Toolchain


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that services need besides the project and their own input."""

    tools: Toolchain
    limits: Limits = Limits()
    executor: Executor = Local()
    """Where builds, emulations and measurements run."""
    emulate: bool = False
    """Emulate variants of which no emulation is kept."""
    on_progress: OnProgress | None = None
