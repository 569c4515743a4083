"""Holds what a launch wrote against the reference, every element, on the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernelexp.errors import ConfigurationError
from kernelexp.measurement import ArrayCheck
from kernelexp.problem import Chunk, Tolerance

if TYPE_CHECKING:
    import torch

# Elements compared at once: four float64 temporaries of this size are 1 GB.
PIECE = 1 << 25
# Stands for an infinite error, which JSON can't write.
WORST = 1e30


class Reference:
    """The right outputs for one set of inputs: kept where they fit, computed again where not."""

    def __init__(self, chunks: Iterable[Chunk], keep_bytes: int) -> None:
        self.chunks: list[Chunk] | None = []
        held = 0
        for chunk in chunks:
            held += chunk.values.numel() * chunk.values.element_size()
            if held > keep_bytes:
                self.chunks = None
                break
            self.chunks.append(chunk)


def compare(
    outputs: Mapping[str, torch.Tensor], chunks: Iterable[Chunk], tolerance: Tolerance
) -> tuple[ArrayCheck, ...]:
    """One check for each output; ConfigurationError if the reference leaves elements out."""
    import torch

    wrong = {
        name: torch.zeros((), dtype=torch.int64, device=t.device) for name, t in outputs.items()
    }
    worst = {
        name: torch.zeros((), dtype=torch.float64, device=t.device) for name, t in outputs.items()
    }
    seen = dict.fromkeys(outputs, 0)
    for chunk in chunks:
        got = outputs[chunk.array][chunk.first : chunk.first + len(chunk.values)].reshape(-1)
        want = chunk.values.reshape(-1)
        seen[chunk.array] += want.numel()
        for start in range(0, want.numel(), PIECE):
            one, other = got[start : start + PIECE], want[start : start + PIECE]
            count, most = _compare_piece(one, other, tolerance)
            wrong[chunk.array] += count
            worst[chunk.array] = torch.maximum(worst[chunk.array], most)
    for name, tensor in outputs.items():
        if seen[name] != tensor.numel():
            raise ConfigurationError(
                f"the reference gives {seen[name]:,} elements of {name}, "
                f"which has {tensor.numel():,}: all of them must be checked."
            )
    return tuple(
        ArrayCheck(
            array=name,
            elements=seen[name],
            wrong=int(wrong[name]),
            worst=float(worst[name]),
        )
        for name in outputs
    )


def _compare_piece(
    got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance
) -> tuple[torch.Tensor, torch.Tensor]:
    """Elements beyond the tolerance, and the largest error in units of it; a NaN is beyond any."""
    import torch

    got, want = got.to(torch.float64), want.to(torch.float64)
    bound = want.abs().mul_(tolerance.rtol).add_(tolerance.atol)
    error = (got - want).abs_()
    error = torch.where(got == want, torch.zeros_like(error), error)  # inf - inf is a NaN
    right = error <= bound
    ratio = torch.where(error == 0, error, error / bound)
    most = torch.nan_to_num(ratio, nan=WORST, posinf=WORST).clamp_(max=WORST).max()
    return (~right).sum(), most


def describe(checks: Iterable[ArrayCheck]) -> str:
    """The sentence about arrays that are wrong; empty if none is."""
    wrong = [check for check in checks if check.wrong]
    return "; ".join(
        f"{check.wrong:,} of {check.elements:,} elements of {check.array} differ from the "
        f"reference, the worst by {check.worst:.3g} times the tolerance"
        for check in wrong
    )
