"""Fences, register counts, sleep, trap."""

from __future__ import annotations

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.isa.memory import nothing
from warpsim.front.ptx.registry import builder
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.forms import MEMORIES, CompiledForm, Formed
from warpsim.machine.sync.register_pool import SetRegisters
from warpsim.machine.wave.machine import Op, WarpSet, each_warp


@builder("fence.proxy.async{s:|.global|.shared::cta|.shared::cluster}")
def fence_async(d: PtxDecoder) -> Op:
    """Makes the lanes' earlier writes visible to the copy engine and the tensor core."""
    last = d.parts[-1]
    spaces = ("shared", "global") if last == "async" else (last.partition("::")[0],)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for space in spaces:
            warps.machine.clocks.fence_async(space, warps.warps, m)
        warps.machine.clocks.tick()

    bits = sum(1 << MEMORIES[space] for space in spaces)
    return Formed(op, CompiledForm("fence.proxy.async", (), (bits,)))


@builder("fence{o:|.sc|.acq_rel|.acquire|.release}{s:.cta|.cluster|.gpu|.sys}")
@builder("fence.acquire.sync_restrict::shared::{a:cta|cluster}.cluster")
@builder("fence.release.sync_restrict::shared::{a:cta|cluster}.cluster")
@builder("membar.{s:cta|gl|sys}")
def fence(d: PtxDecoder) -> Op:
    """Makes the warp's accesses visible to other CTAs, except with scope cta. What it orders within
    a CTA is in order here anyway."""
    if d.parts[-1] == "cta":
        return nothing
    return each_warp(lambda machine, warp: machine.clocks.fence(warp))


@builder("fence.mbarrier_init.release.cluster")
def fence_init(d: PtxDecoder) -> Op:
    """An initialised mbarrier is visible at once here; a missing fence is a warning."""
    op = each_warp(lambda machine, warp: machine.clocks.fence_init(warp))
    return Formed(op, CompiledForm("fence.mbarrier_init", ()))


@builder("fence.proxy.{p:alias|tensormap}")
@builder("fence.proxy.tensormap::generic.{o:acquire|release}.{s:cta|cluster|gpu|sys}")
def fence_other(d: PtxDecoder) -> Op:
    """Tensor maps are constant here."""
    return nothing


@builder("griddepcontrol.{o:launch_dependents|wait}")
def griddepcontrol(d: PtxDecoder) -> Op:
    """One kernel runs at a time, but `wait` orders what comes after it after the one before."""
    if d.parts[-1] != "wait":
        return nothing

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        machine = warps.machine
        if machine.execution.history.has_beside:
            for place in warps.warps.tolist():
                machine.clocks.wait_for_launch(place)

    return op


@builder("nanosleep.u32")
def nanosleep(d: PtxDecoder) -> Op:
    """Takes no time."""
    return nothing


@builder("{o:trap|brkpt}")
def trap(d: PtxDecoder) -> Op:
    """Ends the launch with a finding."""
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        warps.machine.report("trap", "the kernel executed trap.", site, int(warps.warps[0]))
        raise Fatal

    return op


@builder("setmaxnreg.{o:inc|dec}.sync.aligned.u32", gate=True)
def setmaxnreg(d: PtxDecoder) -> SetRegisters:
    """The count must be 24 to 256 in steps of 8. `inc` waits for registers that others give back;
    a CTA begins with as many as its launch bounds leave each thread."""
    return SetRegisters(d.site, d.constant(d.operands[0]), d.parts[1] == "inc")
