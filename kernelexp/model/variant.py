"""A variant: a point on the axes of a kernel, for one architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from kernelexp.model.axes import AxisValue, spell
from kernelexp.model.experiment import Form, Program, form_of


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A point on a kernel's axes for one architecture: all that a build is made from."""

    kernel: str
    arch: str
    source: str
    """Path of the .cu, .ptx or .cubin, from the project's root."""
    sources: str = ""
    """The same as the target names it, where it depends on axes."""
    axes: dict[str, AxisValue]
    flags: tuple[str, ...] = ()
    config: str = ""
    """Path of the header that is read before the build; empty where there is none."""
    program: Program | None = None
    """How it is run where it is a program with a main of its own."""

    @property
    def form(self) -> Form:
        """The form of its source: another compiler may have made PTX or a cubin of it."""
        return form_of(self.source)

    @property
    def defines(self) -> tuple[str, ...]:
        """`KX_STAGES=4`; strings as bare tokens, so that a source writes TmemLoad::KX_TMEM_LOAD."""
        return tuple(f"KX_{axis.upper()}={spell(value)}" for axis, value in self.axes.items())


class Placed(Protocol):
    """Anything with a place on a kernel's axes: a variant, or an arm."""

    @property
    def kernel(self) -> str: ...

    @property
    def arch(self) -> str: ...

    @property
    def axes(self) -> Mapping[str, AxisValue]: ...


def arm_names(candidates: int) -> tuple[str, ...]:
    """The names of a baseline and so many candidates, in their order."""
    if candidates == 1:
        return "baseline", "candidate"
    return "baseline", *(f"candidate {number}" for number in range(1, candidates + 1))
