"""The fifth-generation tensor core: products, copies to tensor memory, shifts, and their commit"""

from __future__ import annotations

from collections.abc import Collection

from warpsim.front.sass.decoder import SassDecoder, once_per_warp
from warpsim.front.sass.operands import is_predicate
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, Described, Operand, RegisterOperand
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.instruction_descriptor import DescriptorFields, shape_of
from warpsim.machine.tensor import tensor_core, tmem_copies
from warpsim.machine.tensor.scale_factors import Factors
from warpsim.machine.tensor.tensor_core import Mma
from warpsim.machine.tensor.tmem_copies import TmemCopy
from warpsim.machine.wave.machine import Machine, Op

_TF32 = 2
"""The type of A in an instruction descriptor."""
_A_KEPT, _B_KEPT = {"A_KEEP", "A_REUSE"}, {"B_KEEP", "B_REUSE", "BUFFER1", "BUFFER2", "BUFFER3"}
"""What the collectors keep of an operand, which has no effect on results."""
_KINDS = {"UTCQMMA": "f8f6f4", "UTCIMMA": "i8"}


def _described(
    d: SassDecoder, operand: Operand, kind: str, kept: Collection[str] = ()
) -> RegisterOperand:
    """The first register that describes an operand."""
    if not isinstance(operand, Described) or operand.kind != kind or operand.offset:
        raise d.refuse("has an operand that is not covered")
    if not set(operand.parts) <= set(kept):
        raise d.refuse("has an operand that is not covered")
    return operand.register


class _TensorOperands:
    """D, A, B, the instruction descriptor and the predicate, as all forms have them.

    Before the descriptor stands where the metadata of a sparse A lies, whether A is sparse or not:
    that is a bit of the descriptor.
    """

    def __init__(self, d: SassDecoder, count: int) -> None:
        """count: operands of the form's own, before the predicate."""
        if len(d.operands) > 5 and not is_predicate(d.operands[-1]):
            raise d.refuse("scales what it adds to, which the emulator does not model")
        left, right, to, _, descriptor, *own, accumulates = d.take(d.operands, 6 + count)
        self.own = own
        self.a_in_tmem = isinstance(left, Described) and left.kind == "tmem"
        a = _described(d, left, "tmem" if self.a_in_tmem else "gdesc", _A_KEPT)
        self._a = d.words(a, 1 if self.a_in_tmem else 2)
        self._b = d.words(_described(d, right, "gdesc", _B_KEPT), 2)
        (self._to,) = d.words(_described(d, to, "tmem"), 1)
        (self._descriptor,) = d.words(_described(d, descriptor, "idesc"), 1)
        self._enable, self._flip = d.predicate_slot(accumulates)
        self._joined = d.joined

    def descriptor(self, R: list[Array], row: int) -> int:
        return int(R[self._descriptor][row, 0])

    def mma(self, R: list[Array], row: int, shape: DescriptorFields) -> Mma:
        return Mma(
            shape=shape,
            d=int(R[self._to][row, 0]),
            a=self._joined(R, self._a, row),
            a_in_tmem=self.a_in_tmem,
            b=self._joined(R, self._b, row),
            accumulate=bool(R[self._enable][row, 0]) != self._flip,
        )


def _kind(base: str, descriptor: int) -> str:
    """What PTX calls the kind of a product; UTCHMMA has two."""
    if base in _KINDS:
        return _KINDS[base]
    return "tf32" if descriptor >> 7 & 7 == _TF32 else "f16"


def _group(d: SassDecoder) -> int:
    return 2 if "2CTA" in d.modifiers else 1


def _is_scaled(d: SassDecoder) -> bool:
    """Whether an operand says where scale factors lie."""
    return any(
        isinstance(operand, Described) and operand.kind == "tmem" for operand in d.operands[5:]
    )


@covers("{:UTCHMMA|UTCQMMA|UTCIMMA}{:|.2CTA}")
def mma(d: SassDecoder) -> Op:
    """Pairs of registers of the warp describe A and B, A may lie in tensor memory; registers may
    name lanes that are not written, or, of UTCQMMA, where scale factors lie. Sparse forms and
    `.ASHIFT` are refused, and inputs that are scaled."""
    if d.instruction.base == "UTCQMMA" and _is_scaled(d):
        return scaled_mma(d)
    group, base = _group(d), d.instruction.base
    operands = _TensorOperands(d, 1 if len(d.operands) > 6 else 0)
    disabled = [slot for operand in operands.own for slot in _lanes(d, operand, 4 * group)]

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        value = operands.descriptor(R, row)
        product = operands.mma(R, row, shape_of(value, _kind(base, value), group))
        lanes = tuple(int(R[slot][row, 0]) for slot in disabled)
        tensor_core.issue(machine, issuer, product._replace(disabled=lanes))

    return once_per_warp(d, act)


@covers("UTCOMMA{:|.2CTA}{:|.4X}")
def scaled_mma(d: SassDecoder) -> Op:
    """Block-scaled: a pair of registers of the warp names where the factors of A and of B lie, and
    a row has two, or four with `.4X`."""
    kind, scales = "mxf8f6f4", 1
    if d.instruction.base == "UTCOMMA":
        kind, scales = "mxf4nvf4", 4 if "4X" in d.modifiers else 2
    group, operands = _group(d), _TensorOperands(d, 1)
    of_a, of_b = d.words(_described(d, operands.own[0], "tmem"), 2)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        shape = shape_of(operands.descriptor(R, row), kind, group, scales=scales)
        factors = (
            Factors(shape, int(R[of_a][row, 0]), of_b=False),
            Factors(shape, int(R[of_b][row, 0]), of_b=True),
        )
        tensor_core.issue(machine, issuer, operands.mma(R, row, shape)._replace(factors=factors))

    return once_per_warp(d, act)


@covers("{:UTCHMMA|UTCQMMA|UTCIMMA}.WS")
def stationary_mma(d: SassDecoder) -> Op:
    """Weight-stationary. A pair of registers may hold a mask of columns of B that are zeros, which
    must be empty; A in tensor memory needs M = 128."""
    base, operands = d.instruction.base, _TensorOperands(d, 1 if len(d.operands) > 6 else 0)
    mask = [slot for operand in operands.own for slot in _lanes(d, operand, 2)]

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        value = operands.descriptor(R, row)
        shape = shape_of(value, _kind(base, value), 1, stationary=True)
        product = operands.mma(R, row, shape)
        tensor_core.issue_stationary(machine, issuer, product, d.joined(R, mask, row))

    return once_per_warp(d, act)


def _lanes(d: SassDecoder, operand: Operand, count: int) -> list[int]:
    if not isinstance(operand, RegisterOperand) or operand.file != "UR":
        raise d.refuse("has operands that are not covered")
    return d.words(d.unsigned(operand), count)


_SHAPES = {
    "128dp128bit": "128x128b",
    "4dp256bit": "4x256b",
    "4x32dp128bit": "32x128b.warpx4",
    "2x64dp128bit_lw02_lw13": "64x128b.warpx2::02_13",
    "2x64dp128bit_lw01_lw23": "64x128b.warpx2::01_23",
}
_WIDENED = {"U4x16P64": 4, "U6x16P32": 6}


@covers(f"UTCCP.T.S{{:|.2CTA}}{{:|.{'|.'.join(_SHAPES)}}}{{:|.{'|.'.join(_WIDENED)}}}")
def copy(d: SassDecoder) -> Op:
    """From the shared memory of each CTA of the group to its tensor memory, 128 rows of 256 bits
    unless the opcode says another shape; codes of 4 and 6 bits are widened to bytes."""
    to, source = d.take(d.operands, 2)
    shape = next((_SHAPES[modifier] for modifier in d.modifiers if modifier in _SHAPES), "128x256b")
    bits = next((_WIDENED[modifier] for modifier in d.modifiers if modifier in _WIDENED), 0)
    where, group = d.tensor_address(to), _group(d)
    descriptor = d.words(_described(d, source, "gdesc"), 2)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        result = TmemCopy(shape, group, where(R, row), d.joined(R, descriptor, row), bits)
        tmem_copies.copy(machine, issuer, result)

    return once_per_warp(d, act)


@covers("UTCSHIFT{:|.2CTA}.DOWN")
def shift(d: SassDecoder) -> Op:
    """Each row of 32 bytes gets what the next one holds, but for the last of each 32 lanes."""
    (operand,) = d.take(d.operands, 1)
    where, group = d.tensor_address(operand), _group(d)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        tmem_copies.shift(machine, issuer, group, where(R, row))

    return once_per_warp(d, act)


@covers("UTCBAR", "UTCBAR{:|.2CTA}.MULTICAST", "UTCBAR.2CTA")
def commit(d: SassDecoder) -> Op:
    """One arrival when the warp's products so far have landed, with `.MULTICAST` in every CTA of a
    mask."""
    address, unused, *mask = d.operands
    d.take(mask, 1 if "MULTICAST" in d.modifiers else 0)
    if not (isinstance(unused, RegisterOperand) and unused.index == ZERO):
        raise d.refuse("has operands that are not covered")
    (bar,) = d.uniform(address, 1)
    ranks = d.words(d.unsigned(mask[0]), 1)[0] if mask else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        named = None if ranks is None else int(R[ranks][row, 0]) & 0xFFFF
        tensor_core.commit(machine, issuer, int(R[bar][row, 0]), named)

    return once_per_warp(d, act)
