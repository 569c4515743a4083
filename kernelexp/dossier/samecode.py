"""Whether a variant's sources compile to the machine code that a record was made with.

A record keeps a digest of the code that it was made with, as early ones do not; logs/compiled has
it of sources, then and now, by their content. Where it is the same, a change of the text alone
leaves the record as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from kernelexp.logs import compiled
from kernelexp.logs.records import Unreadable
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant


def words(rewritten: Iterable[str]) -> str:
    """Says that figures are current although these sources have changed."""
    return (
        f"sources changed since ({', '.join(dict.fromkeys(rewritten))}), the machine code did not"
    )


class MachineCode:
    """The machine code of a project's variants as it is known; files are read when asked for."""

    def __init__(self, root: Path, is_current: Callable[[Variant, Arm], bool]) -> None:
        """`is_current`: whether an arm was compiled from what its variant is made of now."""
        self._root = root
        self._is_current = is_current
        self._now: dict[tuple[str, str, str], frozenset[str]] = {}

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The files of logs/compiled that are not to be believed."""
        return self._kept[1]

    def is_same(self, variant: Variant, arm: Arm, compiler: str) -> bool:
        """Whether a variant's code is now what it was when `compiler` made that of `arm`."""
        code = self.then(arm, compiler)
        return bool(code) and code in self.now(variant)

    def then(self, arm: Arm, compiler: str) -> str:
        """The digest of an arm's code; empty where it is not known."""
        if arm.code or not self._kept[0]:
            return arm.code
        return self._by_state.get((compiled.state(arm, compiler), compiled.spelled(arm.axes)), "")

    def now(self, variant: Variant) -> frozenset[str]:
        """The digests of a variant's code as compilers make it now; none where it is not known."""
        name = (variant.kernel, variant.arch, compiled.spelled(variant.axes))
        if name not in self._now:
            self._now[name] = frozenset(
                arm.code
                for arm, _ in self._kept[0]
                if name == (arm.kernel, arm.arch, compiled.spelled(arm.axes))
                and self._is_current(variant, arm)
            )
        return self._now[name]

    @functools.cached_property
    def _kept(self) -> tuple[tuple[tuple[Arm, str], ...], tuple[Unreadable, ...]]:
        """The arms that are kept, each with its compiler's version."""
        states, unreadable = compiled.read_all(self._root)
        arms = ((arm, one.compiler) for one in states for arm in one.arms)
        return tuple(arms), tuple(unreadable)

    @functools.cached_property
    def _by_state(self) -> dict[tuple[str, str], str]:
        return {
            (compiled.state(arm, compiler), compiled.spelled(arm.axes)): arm.code
            for arm, compiler in self._kept[0]
        }
