"""The tolerance of a drafted problem.py: a guess that scales with the outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kernelexp.services.adopt.entry import KernelParameter
from kernelexp.services.adopt.expressions import of_size
from warpsim.dtypes import INTEGERS

# Of a result: many roundings of its type, in units of the result.
_ROUNDING: dict[str, float] = {
    **{"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "e4m3": 0.25, "e5m2": 0.5, "f64": 1e-13},
    **dict.fromkeys(INTEGERS, 0.0),
}
# Of a sum of n terms, times sqrt(n): roundings of its type add up as a random walk does.
_OF_SUM = {"f32": 2e-7, "f64": 4e-16}


def guess(
    outputs: Sequence[KernelParameter],
    given: Sequence[KernelParameter],
    shapes: Mapping[str, Sequence[str]],
    names: Collection[str],
) -> str:
    """The arguments of a guess, which scales with the outputs: roundings of a result, and those of
    sums over the extents that inputs have and outputs lack."""
    types = [parameter.dtype or "f32" for parameter in outputs]
    coarsest = max(types, key=lambda dtype: _ROUNDING.get(dtype, _ROUNDING["f32"]))
    rounding = _ROUNDING.get(coarsest, _ROUNDING["f32"])
    if not rounding:
        return 'rtol=0, why="a guess: integers are exact"'
    why = f"a guess: roundings of {coarsest}, relative to each value and to the RMS of all"
    summed = dict.fromkeys(
        extent
        for output in outputs
        for parameter in given
        for extent in shapes.get(parameter.name, ())
        if output.name in shapes and extent not in shapes[output.name]
    )
    term = max(_OF_SUM.get(kind, 0.0) for kind in types)
    if not term or not summed:
        return f'\n        rtol={rounding},\n        of_rms={rounding},\n        why="{why}",\n    '
    extents = [of_size(item, names) for item in summed]
    terms = extents[0] if len(extents) == 1 else f"max({', '.join(extents)})"
    return (
        f"\n        rtol={rounding},\n        of_rms={rounding} + {term} * ({terms}) ** 0.5,\n"
        f'        why="{why}, and of sums of {", ".join(summed)} terms",\n    '
    )
