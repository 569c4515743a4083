"""The contents of a section file, as plain types."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from kernelexp.model import experiment
from kernelexp.model.experiment import Line, Name, Written

Symbol = Annotated[str, Meta(pattern=experiment.SYMBOL, max_length=60)]
MetricName = Annotated[str, Meta(pattern=experiment.METRIC, max_length=200)]
FAMILIES = ("tu102", "ga100", "ga102", "ad102", "gh100", "gb100", "gb110", "gb202")
"""The chips that ncu's metrics differ between."""


class ConditionalSentence(Written, frozen=True, kw_only=True):
    """A sentence, and when it holds."""

    when: Annotated[Line, Meta(description="A formula; without one the sentence always holds.")] = (
        ""
    )
    without: Annotated[
        Line, Meta(description="A value: the sentence holds only where it is not known.")
    ] = ""
    text: Annotated[
        str, Meta(description="The sentence; {name} stands for a value of the section.")
    ]


Texts: TypeAlias = str | list[ConditionalSentence]


class ShownValue(Written, frozen=True, kw_only=True):
    """How a value of a section is shown."""

    label: Line
    group: Annotated[
        Line, Meta(description="The title over its rows, where a section has some.")
    ] = ""
    unit: Annotated[Line, Meta(description="Where the profile gives none.")] = ""
    text: Annotated[Texts, Meta(description="What the value means; of several, the first.")] = ""
    shown: Annotated[bool, Meta(description="Whether it is a row, or only used in formulas.")] = (
        True
    )


class SectionMetric(ShownValue, frozen=True, kw_only=True):
    """A metric of ncu's under a short name."""

    metric: Annotated[
        MetricName | dict[str, MetricName],
        Meta(
            description="ncu's name, or the name on each chip (gb100, gh100, ad102, ga102, ga100, "
            "...) where they differ; a chip that is not named has no such counter."
        ),
    ]


class Sum(ShownValue, frozen=True, kw_only=True):
    """The sum of a column over instructions of the source page."""

    column: Annotated[Line, Meta(description="ncu's column, such as Instructions Executed.")]
    opcode: Annotated[Line, Meta(description="Opcodes, with * and ? as in a file name: STG*.")] = (
        "*"
    )


class Derived(ShownValue, frozen=True, kw_only=True):
    """A value worked out from others."""

    formula: Annotated[
        Line | list[Line],
        Meta(description="A formula over the names above it; of several, the first with a value."),
    ]


class Instructions(Written, frozen=True, kw_only=True):
    """The instructions of the source page to list: those with the most of a column."""

    column: Line
    reasons: Annotated[Line, Meta(description="How the names of the columns that divide it begin.")]
    at_least: int = 1
    most: int = 10


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section file: values, and what they mean."""

    version: Literal[1]
    name: Name
    title: Line
    about: str = ""
    metrics: dict[Symbol, SectionMetric] = {}
    sums: dict[Symbol, Sum] = {}
    derived: dict[Symbol, Derived] = {}
    caveats: Annotated[
        list[ConditionalSentence],
        Meta(description="Said under the table when their conditions hold."),
    ] = []
    instructions: Instructions | None = None
