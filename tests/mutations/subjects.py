"""The kernels that are mutated, by name: small ones, and variants of this repository."""

from __future__ import annotations

from collections.abc import Mapping

from mutations.small import SMALL, Small
from mutations.variants import LARGE, Large

SUBJECTS: Mapping[str, Small | Large] = {each.name: each for each in (*SMALL, *LARGE)}
