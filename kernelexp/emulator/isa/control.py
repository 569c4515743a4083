"""Fences, register counts, sleep, trap."""

from __future__ import annotations

from typing import Any

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.findings import Fatal
from kernelexp.emulator.isa.memory import nothing
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array


@builder("fence.proxy.async{s:|.global|.shared::cta|.shared::cluster}")
def fence_async(ins: Instruction, d: Decoder) -> Op:
    """What the lanes wrote is visible to the copy engine and the tensor core from here on."""
    parts = modifiers(ins)
    if parts[-1] == "global":
        return nothing

    def op(R: list[Array], m: Any, warps: Any) -> None:
        warps.machine.clocks.fence_async(warps.warps, m)

    return op


@builder("fence{o:|.sc|.acq_rel|.acquire|.release}{s:.cta|.cluster|.gpu|.sys}")
@builder("fence.acquire.sync_restrict::shared::{a:cta|cluster}.cluster")
@builder("fence.release.sync_restrict::shared::{a:cta|cluster}.cluster")
@builder("membar.{s:cta|gl|sys}")
def fence(ins: Instruction, d: Decoder) -> Op:
    """Memory is sequentially consistent here; order between warps comes from flags and barriers."""
    return nothing


@builder("fence.mbarrier_init.release.cluster")
def fence_init(ins: Instruction, d: Decoder) -> Op:
    """An initialised mbarrier is visible at once here: leaving this fence out is not found."""
    return nothing


@builder("fence.proxy.{p:alias|tensormap}")
@builder("fence.proxy.tensormap::generic.{o:acquire|release}.{s:cta|cluster|gpu|sys}")
def fence_other(ins: Instruction, d: Decoder) -> Op:
    """Tensor maps are constant here."""
    return nothing


@builder("griddepcontrol.{o:launch_dependents|wait}")
def griddepcontrol(ins: Instruction, d: Decoder) -> Op:
    """One kernel runs at a time."""
    return nothing


@builder("nanosleep.u32")
def nanosleep(ins: Instruction, d: Decoder) -> Op:
    """Takes no time."""
    return nothing


@builder("{o:trap|brkpt}")
def trap(ins: Instruction, d: Decoder) -> Op:
    """Ends the launch with a finding."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        warps.machine.found("trap", "the kernel executed trap.", ins, int(warps.warps[0]))
        raise Fatal

    return op


@builder("setmaxnreg.{o:inc|dec}.sync.aligned.u32", sync=True)
def setmaxnreg(ins: Instruction, d: Decoder) -> Op:
    """The count must be 24 to 256 in steps of 8; that registers suffice is not modelled."""
    count = d.constant(ins.operands[0], ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        if count % 8 or not 24 <= count <= 256:
            warps.machine.found(
                "setmaxnreg",
                f"setmaxnreg of {count} registers: 24 to 256 in steps of 8 are allowed.",
                ins,
                int(warps.warps[0]),
            )

    return op
