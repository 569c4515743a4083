"""The kernels that are mutated, by name: small ones, variants of this repository, and the sources
of some of both."""

from __future__ import annotations

from collections.abc import Mapping

from mutations.small import SMALL, Small
from mutations.texts import TEXTS, TextSubject
from mutations.variants import LARGE, Large

SUBJECTS: Mapping[str, Small | Large | TextSubject] = {
    item.name: item for item in (*SMALL, *LARGE, *TEXTS)
}
