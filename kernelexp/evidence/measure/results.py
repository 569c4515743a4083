"""Compares what a launch wrote with the reference, every element: one check for CPU and GPU.

Arrays are torch tensors on either device. What is not written keeps its poison, and is never right.
An infinity is right where the same infinity is wanted, a NaN where a NaN is wanted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kernelexp.evidence.measure.tensors import POISON, as_numbers, is_integral, is_long
from kernelexp.model.measurement import WORST, ArrayResult
from kernelexp.model.problem import Chunk, Tolerance

if TYPE_CHECKING:
    import torch

# Elements compared at once: four float64 temporaries of this size are 1 GB.
PIECE = 1 << 25
SHOWN = 3
_INTEGERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def compare(
    outputs: Mapping[str, torch.Tensor],
    chunks: Iterable[Chunk],
    tolerance: Tolerance,
    poison: int = POISON,
) -> tuple[ArrayResult, ...]:
    """One result for each output; `chunks` cover each, as Problem.reference makes sure.

    `poison` is the byte that integer outputs were filled with; floating-point ones have POISON.
    """
    tallies = {name: _Tally(name, tensor, poison) for name, tensor in outputs.items()}
    for chunk in chunks:
        tallies[chunk.array].add(chunk, tolerance)
    return tuple(tally.result() for tally in tallies.values())


class _Sample(msgspec.Struct, frozen=True, order=True):
    """A wrong element: its position in the flattened array, and what to say of it."""

    position: int
    words: str


class _Tally:
    """A tally of one output's elements."""

    def __init__(self, name: str, tensor: torch.Tensor, poison: int) -> None:
        self._poison = poison if is_integral(tensor.dtype) else POISON
        self._complex = tensor.is_complex()
        self._name, self._tensor = name, as_numbers(tensor)
        tensor = self._tensor
        self._wrong = self._unwritten = 0
        self._zeros_pass, self._halves_pass, self._wants_more = True, True, False
        self._wants_finite = False
        self._least, self._most = math.inf, -math.inf
        self._worst = self._error2 = self._want2 = 0.0
        self._samples: list[_Sample] = []
        shape = tensor.shape
        self._row = tensor.numel() // shape[0]
        self._last = shape[-1] if len(shape) > 1 else 1
        self._places: tuple[torch.Tensor, torch.Tensor] | None = None

    def add(self, chunk: Chunk, tolerance: Tolerance) -> None:
        import torch

        got = self._tensor[chunk.first : chunk.first + len(chunk.values)].reshape(-1)
        values = chunk.values.to(torch.complex128) if self._complex else chunk.values
        want = as_numbers(values).reshape(-1)
        absolute = tolerance.atol
        if tolerance.of_rms:
            absolute += tolerance.of_rms * _rms(want)
        tolerance = msgspec.structs.replace(tolerance, atol=absolute)
        for start in range(0, want.numel(), PIECE):
            first = chunk.first * self._row + start
            self._compare(got[start : start + PIECE], want[start : start + PIECE], first, tolerance)

    def _compare(
        self, got: torch.Tensor, want: torch.Tensor, first: int, tolerance: Tolerance
    ) -> None:
        import torch

        exact = want.to(got.device)
        values, want = got.to(torch.float64), exact.to(torch.float64)
        bound = want.abs().mul_(tolerance.rtol).add_(tolerance.atol)
        self._wants_more |= bool(want.any())
        finite = torch.isfinite(want)
        self._wants_finite |= bool(finite.any())
        if self._wants_finite:
            self._least = min(self._least, float(torch.where(finite, want, math.inf).min()))
            self._most = max(self._most, float(torch.where(finite, want, -math.inf).max()))
        self._halves_pass &= bool((want.abs() / 2 <= bound).logical_or_(~finite).all())
        self._zeros_pass &= bool((want.abs() <= bound).logical_and_(finite).all())
        error = (values - want).abs_()
        if is_long(got.dtype) and is_long(exact.dtype):
            # float64 rounds them; what differs by more than this wraps around.
            close = (got.view(torch.int64) - exact.view(torch.int64)).abs_().to(torch.float64)
            error = torch.where(error < 2.0**62, close, error)
        # An infinity's bound is infinite, and no error is beyond that: only equality will do.
        right = torch.where(finite, error <= bound, values == want)
        if bool(torch.isnan(want).any()):
            right |= torch.isnan(want) & torch.isnan(values) & ~self._is_poison(got)
        error = torch.where(right & ~torch.isfinite(error), 0.0, error)
        ratio = torch.where(error == 0, 0.0, error / bound)
        worst = ratio.nan_to_num_(nan=WORST, posinf=WORST).max()
        self._worst = max(self._worst, min(WORST, float(worst)))
        self._error2 += float(error.square().sum())
        self._want2 += float(torch.where(torch.isfinite(want), want, 0.0).square().sum())
        wrong = ~right
        if count := int(wrong.sum()):
            self._wrong += count
            numbers = (got, exact) if is_integral(got.dtype) else (values, want)
            self._locate(got, *numbers, wrong, first)

    def _is_poison(self, got: torch.Tensor) -> torch.Tensor:
        import torch

        size = got.element_size()
        pattern = int.from_bytes(bytes([self._poison]) * size, "little", signed=size > 1)
        tensor: torch.Tensor = got.view(getattr(torch, _INTEGERS[size])) == pattern
        return tensor

    def _locate(
        self,
        got: torch.Tensor,
        values: torch.Tensor,
        want: torch.Tensor,
        wrong: torch.Tensor,
        first: int,
    ) -> None:
        """Counts wrong elements by row and by column, and keeps the first few: `values` and `want`
        as they are to be shown."""
        import torch

        poison = self._is_poison(got)
        self._unwritten += int((poison & wrong).sum())
        index = wrong.nonzero().reshape(-1)
        for place in index[:SHOWN].tolist():
            position = first + place
            written = None if bool(poison[place]) else values[place].item()
            words = f"{self._spell(position)}: {spell_pair(written, want[place].item())}"
            self._samples.append(_Sample(position, words))
        self._samples = sorted(self._samples)[:SHOWN]
        index = index + first
        if self._places is None:
            extents = (self._tensor.shape[0], self._last)
            rows, columns = (
                torch.zeros(extent, dtype=torch.int64, device=index.device) for extent in extents
            )
            self._places = rows, columns
        for counts, where in zip(
            self._places, (index // self._row, index % self._last), strict=True
        ):
            counts += torch.bincount(where, minlength=counts.numel())

    def _spell(self, position: int) -> str:
        """y[96, 0]."""
        indices: list[int] = []
        for extent in reversed(self._tensor.shape):
            indices.insert(0, position % extent)
            position //= extent
        return f"{self._name}[{', '.join(map(str, indices))}]"

    def result(self) -> ArrayResult:
        frobenius = math.sqrt(self._error2 / self._want2) if self._want2 > 0 else self._error2
        return ArrayResult(
            name=self._name,
            elements=self._tensor.numel(),
            wrong=self._wrong,
            worst=self._worst,
            frobenius=min(WORST, frobenius) if frobenius == frobenius else WORST,
            unwritten=self._unwritten,
            where=self._where() if self._wrong else "",
            lax=self._lax(),
        )

    def _lax(self) -> str:
        if not self._wants_finite:
            return "not one finite value is wanted"
        if not self._wants_more:
            return "zeros would be right too: every value that is wanted is 0"
        if self._zeros_pass:
            return (
                "zeros would be right too: the tolerance is at least as large as every value that "
                "is wanted"
            )
        if self._halves_pass:
            return "half of each value would be right too: the tolerance is that large"
        if self._least == self._most and self._tensor.numel() > 1:
            return f"a constant would be right too: every value that is wanted is {self._least:g}"
        return ""

    def _where(self) -> str:
        """Describes which elements are wrong: rows and columns if just those, then the first."""
        assert self._places is not None
        rows, columns = (counts.nonzero().reshape(-1).tolist() for counts in self._places)
        extents = (self._tensor.shape[0], self._last)
        between = self._row // self._last
        block = len(rows) * len(columns) * between == self._wrong
        names = ("row" if len(self._tensor.shape) > 1 else "element", "column")
        sets = [
            describe_set(indices, extent, name)
            for indices, extent, name in zip((rows, columns), extents, names, strict=True)
        ]
        place = " of ".join(filter(None, reversed(sets))) if block else ""
        if not block:
            among = [f"{len(rows):,} rows", f"{len(columns):,} columns"]
            place = f"scattered over {' and '.join(among)}" if self._last > 1 else "scattered"
        parts = [" ".join(filter(None, (place, self._written())))]
        shown = self._samples[:1] if self._unwritten == self._wrong else self._samples
        parts.append("first " + ", ".join(sample.words for sample in shown))
        return "; ".join(filter(None, parts))

    def _written(self) -> str:
        if self._unwritten == self._wrong:
            return "never written"
        return f"({self._unwritten:,} of them never written)" if self._unwritten else ""


def _rms(want: torch.Tensor) -> float:
    """Returns the root mean square of the finite values; 0 where there are none."""
    finite = want[want.isfinite()].double()
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def spell_pair(got: float | None, want: float) -> str:
    """Spells an element with enough digits to tell it from the one wanted; None: never written."""
    if got is None:
        return f"never written, want {want:.6g}"
    if isinstance(got, int) and float(want).is_integer():
        return f"got {got}, want {int(want)}"
    digits = next((n for n in (6, 9) if f"{got:.{n}g}" != f"{want:.{n}g}"), 17)
    return f"got {got:.{digits}g}, want {want:.{digits}g}"


def describe_set(indices: Sequence[int], extent: int, name: str) -> str:
    """Ascending `indices` of range(extent), such as "rows 96 to 127"; empty where it is all."""
    if len(indices) == extent:
        return ""
    if len(indices) == 1:
        return f"{name} {indices[0]}"
    runs = _runs(indices)
    first = runs[0][0]
    if len(runs) == 1:
        return f"{name}s {first} to {indices[-1]}"
    if len(indices) > _NEARLY_ALL * extent:
        missing = sorted(set(range(extent)) - set(indices))
        return f"all {name}s but {describe_set(missing, extent, name)}"
    if len(runs) == 2:  # one gap is no period
        one, other = (_spell_run(*run) for run in runs)
        return f"{name}s {one} and {other}"
    lengths = {end - begin for begin, end in runs[:-1]}
    steps = {later[0] - run[0] for run, later in itertools.pairwise(runs)}
    if len(lengths) == len(steps) == 1 and runs[-1][1] - runs[-1][0] <= min(lengths):
        (length,), (step,) = lengths, steps
        if length == 1:
            return f"every {ordinal(step)} {name} from {first} to {indices[-1]}"
        return f"{length} of every {step} {name}s from {first} to {indices[-1]}"
    return f"{len(indices):,} {name}s between {first} and {indices[-1]}"


_NEARLY_ALL = 0.95


def _spell_run(begin: int, end: int) -> str:
    return str(begin) if end == begin + 1 else f"{begin} to {end - 1}"


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Maximal ranges [begin, end) of successive indices."""
    parts = itertools.groupby(enumerate(indices), lambda item: item[1] - item[0])
    runs = [[index for _, index in part] for _, part in parts]
    return [(run[0], run[-1] + 1) for run in runs]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
