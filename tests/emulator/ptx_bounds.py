"""How far PTX lets an approximate function's result lie from the true value (section 9.7.3)."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """How far PTX lets a result lie from the true value."""

    kind: Literal["ulp", "relative", "absolute"]
    size: float
    """Units in the last place of the true value, a fraction of it, or a distance."""
    domain: tuple[float, float] = (-np.inf, np.inf)
    """The arguments for which PTX states the bound."""


BOUNDS: dict[str, Bound] = {
    "ex2": Bound(kind="ulp", size=2.0),
    "rcp": Bound(kind="ulp", size=1.0),
    "rsqrt": Bound(kind="relative", size=2.0**-22.9),
    "sqrt": Bound(kind="relative", size=2.0**-23),
    # PTX: absolute inside (0.5, 2), where the logarithm passes zero; relative 2**-22 outside.
    "lg2": Bound(kind="absolute", size=2.0**-22, domain=(0.5, 2.0)),
    "sin": Bound(kind="absolute", size=2.0**-20.5, domain=(-2 * np.pi, 2 * np.pi)),
    "cos": Bound(kind="absolute", size=2.0**-20.5, domain=(-2 * np.pi, 2 * np.pi)),
    "tanh": Bound(kind="relative", size=2.0**-11),
    "div": Bound(kind="ulp", size=2.0),
}
