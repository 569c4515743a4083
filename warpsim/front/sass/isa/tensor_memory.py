"""Tensor memory: allocation, loads and stores by warps"""

from __future__ import annotations

import numpy as np

from warpsim.front.sass.decoder import SassDecoder, once_per_warp
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.tensor import tmem_access
from warpsim.machine.tensor.tmem_access import EVERY, TmemForm
from warpsim.machine.wave.machine import Machine, Op, WarpSet

_UNIT = 32
"""Columns that allocations are counted in."""
_UNITS = 16
_SHAPES = {
    "16dp256bit": "16x256b",
    "16dp128bit": "16x128b",
    "16dp64bit": "16x64b",
    "16dp32bit_t0_t15": "16x32bx2",
    "16dp32bit_t16_t31": "16x32bx2",
}
_THREADS = {"16dp32bit_t0_t15": slice(16), "16dp32bit_t16_t31": slice(16, 32)}
_SPELLED = f"{{:|.{'|.'.join(_SHAPES)}}}{{:|.x2|.x4|.x8|.x16|.x32|.x64|.x128}}"


@covers("UTCATOMSWS{:|.2CTA}.FIND_AND_SET.ALIGN")
def allocate(d: SassDecoder) -> Op:
    """Allocates a run of 32 columns each, in both CTAs of the pair with `.2CTA`: its first, and
    whether there was one."""
    result, target, source = d.take(d.operands, 3)
    answer, to = d.to_predicate(result), d.to(target)
    (count,) = d.words(d.unsigned(source), 1)
    group = 2 if "2CTA" in d.modifiers else 1

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        columns = _UNIT * int(R[count][row, 0])
        first = tmem_access.take(machine, issuer.place, columns, group, issuer.site)
        R[answer][row] = first is not None
        R[to][row] = (first or 0) // _UNIT

    return once_per_warp(d, act)


@covers("UTCATOMSWS.AND")
def free(d: SassDecoder) -> Op:
    """Frees the runs of columns that a mask does not have; the old mask may not be used."""
    result, source = d.take(d.operands, 2)
    if not (isinstance(result, RegisterOperand) and result.index == ZERO):
        raise d.refuse("gives a result, which is not covered")
    (mask,) = d.words(d.unsigned(source), 1)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        units = [unit for unit in range(_UNITS) if not int(R[mask][row, 0]) >> unit & 1]
        if units:
            cta = machine.cta_of(issuer.place).place
            columns = _UNIT * len(units)
            machine.tmem.free(cta, _UNIT * units[0], columns, issuer.site, issuer.place)

    return once_per_warp(d, act)


@covers("UVIRTCOUNT.DEALLOC.SMPOOL")
def relinquish(d: SassDecoder) -> Op:
    """The CTA allocates no more."""
    return once_per_warp(d, lambda machine, issuer, *_: machine.tmem.relinquish(issuer.place))


def _form(d: SassDecoder) -> TmemForm:
    spelled = next((modifier for modifier in d.modifiers if modifier in _SHAPES), "")
    shape, threads = _SHAPES.get(spelled, "32x32b"), _THREADS.get(spelled, EVERY)
    count = next((int(modifier[1:]) for modifier in d.modifiers if modifier[0] == "x"), 1)
    return TmemForm(d.site, shape, count, threads=threads)


@covers(f"LDTM{_SPELLED}")
def load(d: SassDecoder) -> Op:
    """The registers hold their values at once; without a shape it is 32x32b. Of 16x32bx2 each half
    of the warp has its own."""
    target, address = d.take(d.operands, 2)
    form, where = _form(d), d.tensor_address(address)
    targets = d.to_words(target, form.registers)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        addresses = [where(R, row) for row in range(warps.count)]
        tmem_access.load(warps, addresses, form, targets, waits=True)

    return d.by_whole_warps(op)


@covers(f"STTM{_SPELLED}")
def store(d: SassDecoder) -> Op:
    """Tensor memory holds the values at once; without a shape it is 32x32b."""
    address, source = d.take(d.operands, 2)
    form, where = _form(d), d.tensor_address(address)
    sources = d.words(d.unsigned(source), form.registers)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            values = np.stack([R[item][row] for item in sources], axis=-1)
            tmem_access.store(warps.machine, place, where(R, row), form, values)
            tmem_access.wait_stores(warps.machine, place)

    return d.by_whole_warps(op)
