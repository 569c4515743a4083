"""Plain types for what people write: kernel, axis, experiment; how names, values of axes and sizes
are spelled; and the variant of a point.

Patterns are read alike by JSON Schema and Python; `$` alone would let a newline through in Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from kernelexp.model.errors import UsageError

AxisValue: TypeAlias = bool | int | str


Point: TypeAlias = dict[str, AxisValue]
"""A value for each axis (or for some of them, where the rest keeps its default)."""


def holds(point: Mapping[str, AxisValue], axes: Mapping[str, AxisValue]) -> bool:
    """Whether `axes` has every value of `point`, of the same type: 1 is not true."""
    return all(
        name in axes and type(axes[name]) is type(value) and axes[name] == value
        for name, value in point.items()
    )


def spell(value: AxisValue) -> str:
    """An axis value as the command line, the log and the compiler's define spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_argument(label: str) -> str:
    """Spells Project.label as commands take it: `gemm@sm_90a: stages=4, x=1` without spaces."""
    return label.removesuffix(": defaults").replace(": ", ":").replace(", ", ",")


def spell_point(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={spell(value)}" for axis, value in point.items()) or "defaults"


FULL = "full"
_SETTING = re.compile(r"(?:([A-Za-z_]\w*)=)?(\d{1,18})")


def split_sizes(text: str) -> tuple[str, ...]:
    """Splits a command line's `M=1024,2048`: numbers after a comma are of the parameter before."""
    names: list[str] = []
    parameter = ""
    for word in (" ".join(part.split()) for part in text.split(",")):
        match = _SETTING.fullmatch(word)
        parameter = f"{match[1]}=" if match and match[1] else parameter if match else ""
        names.append(f"{parameter}{word}" if match and not match[1] else word)
    if "" in names and text:
        raise UsageError(f"--size {text}: a size is missing beside a comma.")
    return tuple(dict.fromkeys(filter(None, names)))


def spell_sizes(written: Sequence[int | str] | Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The sizes that an experiment lists, or each combination of its parameters' values."""
    if not isinstance(written, Mapping):
        return tuple(map(str, written))
    combinations = product(*written.values()) if written else ()
    return tuple(
        " ".join(f"{name}={value}" for name, value in zip(written, combination, strict=True))
        for combination in combinations
    )


def settings_of_size(name: str) -> dict[str, int] | None:
    """Returns what a size sets, "" for the only parameter; None where it is a name."""
    matches = [_SETTING.fullmatch(word) for word in name.split()]
    result = {match[1] or "": int(match[2]) for match in matches if match}
    if not result or len(result) != len(matches) or ("" in result and len(result) > 1):
        return None
    return result


def resolve_size(where: str, sizes: Mapping[str, Mapping[str, int]], name: str) -> dict[str, int]:
    """The parameters of a size; UsageError that says which there are."""
    if name in sizes:
        return dict(sizes[name])
    full = dict(sizes.get(FULL, {}))
    changes = settings_of_size(name) or {}
    if "" in changes and len(full) == 1:
        changes = {next(iter(full)): changes[""]}
    if changes and "" not in changes and changes.keys() <= full.keys():
        return full | changes
    first = next(iter(full), "N")
    how = f"or set its parameters ({', '.join(full)}), as in {first}={full.get(first, 1024)}"
    raise UsageError(f"{where} has no size {name!r}; known: {', '.join(sizes)}; {how}.")


LINE = r"^[^\n]*$(?!\n)"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
AXIS = r"^[a-z][a-z0-9_]*$(?!\n)"
# The compiler is started through a shell and starts others through one, so that what becomes an
# argument has no character that means something to a shell.
PARAMETER = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
TOKEN = (
    r"^((::)?[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*"
    r"|-?[0-9][0-9A-Za-z_.]*([eEpP][+-][0-9]+)?)$(?!\n)"
)
FLAG = r"^(\{torch\}|\{python\}|[A-Za-z0-9_.,:=+/-])+$(?!\n)"
FIGURE = r"^[A-Za-z][A-Za-z0-9_.:]*$(?!\n)"
SOURCE = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$(?!\n)"
SOURCES = r"^[A-Za-z0-9_{][A-Za-z0-9_.+{}-]*(/[A-Za-z0-9_{][A-Za-z0-9_.+{}-]*)*$(?!\n)"
METRIC = r"^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$(?!\n)"
PRINTED = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$(?!\n)"
WORD = r"^[^\x00-\x1f\x7f]*$(?!\n)"
SYMBOL = r"^[a-z](_?[a-z0-9])*$(?!\n)"

SWEEP = "sweep-"
"""How the names begin under which sweeps are recorded; no experiment's id does."""
TIMED, EVALUATED = "time", "evaluation"
"""What stands for an id where `time` compares variants without an experiment."""

SENTENCES = {
    LINE: "this is a single line",
    NAME: "a name is letters, digits, '.', '_' and '-', and begins with a letter or a digit",
    AXIS: "an axis is lower-case letters, digits and '_', since it becomes a macro",
    PARAMETER: "a parameter of a size is named as in SIZES of problem.py",
    TOKEN: "an axis value is a number, true, false or a C++ identifier, which may have ::",
    FLAG: "an argument of nvcc is letters, digits and any of _ . , : = + / -, or {torch}, {python}",
    FIGURE: "a figure is named as in `kernelexp show --json` or as ncu names it",
    SOURCE: "a source is a path in the kernel's folder, of letters, digits and _ . + -",
    SOURCES: "a source is a path in the kernel's folder, of letters, digits, _ . + - and {axis}",
    METRIC: "a metric is a name of ncu's with its suffix, such as sm__inst_executed.sum",
    PRINTED: "a printed figure is named in lower-case letters, digits and '_', as in bandwidth",
    WORD: "an argument of a program is a single line without control characters",
    SYMBOL: "a name in formulas is lower-case letters and digits, with single '_' between them",
}


def is_sweep(name: str) -> bool:
    """Whether records under this name are of sweeps."""
    return name.startswith(SWEEP)


def is_written(name: str) -> bool:
    """Whether experiments.yaml may have what is recorded under this name."""
    return not is_sweep(name) and name not in (TIMED, EVALUATED)


def is_name(text: str) -> bool:
    """Whether `text` may be an experiment's id or a kernel's name."""
    return len(text) <= 100 and re.search(NAME, text) is not None


Line = Annotated[str, Meta(pattern=LINE)]
Name = Annotated[str, Meta(pattern=NAME, max_length=100)]
AxisName = Annotated[str, Meta(pattern=AXIS, max_length=100)]
Parameter = Annotated[str, Meta(pattern=PARAMETER, max_length=100)]
Token = Annotated[str, Meta(pattern=TOKEN, max_length=100)]
Flag = Annotated[str, Meta(pattern=FLAG, max_length=1000)]
FigureName = Annotated[str, Meta(pattern=FIGURE, max_length=300)]
PrintedName = Annotated[str, Meta(pattern=PRINTED, max_length=100)]
Word = Annotated[str, Meta(pattern=WORD, max_length=1000)]
Pattern = Annotated[str, Meta(pattern=LINE, max_length=1000)]
Unit = Annotated[str, Meta(pattern=WORD, max_length=20)]
Source = Annotated[str, Meta(pattern=SOURCE, max_length=200)]
Sources = Annotated[str, Meta(pattern=SOURCES, max_length=200)]


class Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what people write in a project's files: nothing that is not known is let through."""


class Axis(Written, frozen=True, kw_only=True):
    """A named choice of a kernel: `-DKX_STAGES=4` for axis `stages` and value 4."""

    values: Annotated[
        list[bool | int | Token],
        Meta(
            max_length=1000,
            description="The allowed values: numbers, true, false, C++ tokens.",
        ),
    ]
    default: Annotated[AxisValue, Meta(description="The value where a variant names none.")]
    about: Annotated[Line, Meta(description="What the axis chooses, in a line.")] = ""


class PrintedFigure(Written, frozen=True, kw_only=True, omit_defaults=True):
    """A number that a program prints on its standard output, once in a run."""

    pattern: Annotated[
        Pattern,
        Meta(
            description="A regular expression that matches once in the output. Its group is the "
            "number; of several groups, the one with the figure's name: 'time: ([0-9.]+) ms'."
        ),
    ]
    unit: Annotated[Unit, Meta(description="s, ms, us or ns of a time; any other: GB/s.")] = "ms"
    better: Annotated[
        Literal["less", "more"] | None,
        Meta(description="Which way is better. Of a time, less; of another figure, say it."),
    ] = None

    @property
    def is_time(self) -> bool:
        return self.unit in TIME_UNITS


TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
"""What a program may print times in, in microseconds."""


class Program(Written, frozen=True, kw_only=True, omit_defaults=True):
    """The way a program is run, and the figures read from its standard output."""

    figures: Annotated[
        dict[PrintedName, PrintedFigure], Meta(description="What it prints, by name.")
    ]
    judge: Annotated[
        str, Meta(description="The figure that variants are judged by; the first where not given.")
    ] = ""
    arguments: Annotated[
        list[Word],
        Meta(
            max_length=1000,
            description="Its command line. {stages} stands for the variant's value of an axis.",
        ),
    ] = []
    correct: Annotated[
        Pattern,
        Meta(description="A regular expression that its output matches where its result is right."),
    ] = ""
    gpu: Annotated[
        bool, Meta(description="false: it needs no GPU, and is timed on any machine.")
    ] = True

    def command(self, axes: Mapping[str, AxisValue]) -> tuple[str, ...]:
        """The arguments of a variant; braces that name no axis stay as they are."""
        return tuple(fill(word, axes) for word in self.arguments)

    @property
    def judged(self) -> str:
        """The name of the figure that variants are judged by."""
        return self.judge or next(iter(self.figures))


_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def placeholders(word: str) -> list[str]:
    """The axes that a text names in braces."""
    return _PLACEHOLDER.findall(word)


def fill(word: str, axes: Mapping[str, AxisValue]) -> str:
    """The text with values of axes for their names; braces that name none stay as they are."""

    def value(match: re.Match[str]) -> str:
        return spell(axes[match[1]]) if match[1] in axes else match[0]

    return _PLACEHOLDER.sub(value, word)


class Target(Written, frozen=True, kw_only=True):
    """A kernel's source for one architecture, with the axes that this source has."""

    source: Annotated[
        Sources,
        Meta(
            description="The .cu, .ptx or .cubin, in the kernel's folder. {stages} stands for the "
            "variant's value of an axis: a file for each."
        ),
    ]
    axes: Annotated[
        dict[AxisName, Axis], Meta(description="Axes by name, as in -DKX_<NAME>=value.")
    ]
    device: Annotated[Line, Meta(description="The card, as the log's header names it.")] = ""
    flags: Annotated[
        list[Flag], Meta(description="More arguments for nvcc; for ptxas where the source is .ptx.")
    ] = []
    config: Annotated[
        Source | Literal[""],
        Meta(
            description="A header of plain C++, in the kernel's folder, with KX_EXPORT and "
            "static_assert: the host compiler reads it before the build."
        ),
    ] = ""


class Gate(Written, frozen=True, kw_only=True):
    """Requirements of `kernelexp check` on a kernel's variants, besides the committed baseline."""

    arch: Annotated[str, Meta(description="Only variants of this architecture.")] = ""
    of: Annotated[Point, Meta(description="Only variants with these values of axes.")] = {}
    instructions: Annotated[
        list[str],
        Meta(
            description="Conditions on the number of SASS instructions: 'STL == 0', "
            "'LDG.128 >= 1', 'BAR.SYNC in loops <= 2'; 'SHFL unchanged' compares with the baseline."
        ),
    ] = []
    emulated: Annotated[
        dict[FigureName, str],
        Meta(
            description="Conditions on what an emulation counts, by ptx__ names: '< 4096'; "
            "'unchanged' and '+2%' compare with the baseline. The result has to be right."
        ),
    ] = {}
    expected: Annotated[
        Literal["right", "incorrect"] | None,
        Meta(
            description="What executing the variant on the CPU has to show; 'incorrect' is for one "
            "that is wrong on purpose."
        ),
    ] = None
    measured: Annotated[
        bool,
        Meta(description="Not slower than the baseline beyond the margin, where there is a GPU."),
    ] = False


class Kernel(Written, frozen=True, kw_only=True):
    """A folder `variants/<kernel>/`: one problem, its sources, its problem.py; or a program."""

    title: Annotated[Line, Meta(description="What the kernel is, in a line.")]
    problem: Annotated[Line, Meta(description="Shapes and types, as the log's header shows them.")]
    targets: Annotated[dict[str, Target], Meta(description="Sources by architecture: sm_90a.")]
    runner: Annotated[
        Literal["kernel", "program"],
        Meta(description="program: the source has a main of its own, and is run as it is."),
    ] = "kernel"
    program: Annotated[
        Program | None, Meta(description="How it is run, where the runner is program.")
    ] = None
    gates: Annotated[
        list[Gate], Meta(description="What kernelexp check demands of its variants.")
    ] = []


class Experiment(Written, frozen=True, kw_only=True):
    """A hypothesis about a kernel and the variants that test it; also a step of the history."""

    kernel: Annotated[str, Meta(description="The kernel's name.")]
    arch: Annotated[str, Meta(description="The architecture, one of the kernel's targets.")]
    title: Annotated[Line, Meta(description="What is tried, in a line.")]
    baseline: Annotated[
        Point,
        Meta(
            description="Where it departs from the axes' defaults. Without it, the variant that "
            "was accepted last is the baseline (kernelexp decide accept), or the defaults."
        ),
    ] = {}
    candidate: Annotated[
        Point | list[Point],
        Meta(description="Where it departs from the baseline; several candidates as a list."),
    ]
    hypothesis: Annotated[str, Meta(description="What is expected and why, with a figure.")]
    size: Annotated[
        Line, Meta(description="The size of problem.py that is timed; full where none is named.")
    ] = ""
    sizes: Annotated[
        list[int | Line] | dict[Parameter, list[int]],
        Meta(
            description="Several sizes to time in one run, with a verdict on each and one over "
            "all: names of problem.py or numbers, [small, full] or [1024, 4096], or all "
            "combinations of its parameters, {M: [1024, 4096], N: [512]}."
        ),
    ] = []
    weights: Annotated[
        list[float],
        Meta(description="How much each of the sizes counts in the verdict over all; else alike."),
    ] = []
    expect: Annotated[
        dict[FigureName, str] | list[dict[FigureName, str]],
        Meta(
            description="What the hypothesis expects of figures: time_ms: '-30%' (change), '~-30%' "
            "(within a quarter of it), '>= +5%', '-3%..+1%', '+4' (difference), '< 4096' (value), "
            "unchanged. One mapping for all candidates, or a list with one for each."
        ),
    ] = {}
    changes: Annotated[list[str], Meta(description="What changes in the kernel.")] = []
    why: Annotated[str, Meta(description="Why it came out as it did: a person's words.")] = ""
    decision: Annotated[str, Meta(description="What the engineer did: a person's word.")] = ""
    notes: Annotated[str, Meta(description="The notes column of the history.")] = ""

    @property
    def timed_sizes(self) -> tuple[str, ...]:
        """The names of what is timed; empty where the experiment names none."""
        return spell_sizes(self.sizes) or ((self.size,) if self.size else ())

    @property
    def candidates(self) -> list[Point]:
        """The candidates, also where there is one."""
        return self.candidate if isinstance(self.candidate, list) else [self.candidate]

    @property
    def expectations(self) -> list[dict[str, str]]:
        """The expectations of each candidate: figures by name, with conditions as written."""
        if isinstance(self.expect, list):
            return self.expect
        return [self.expect for _ in self.candidates]


class ProjectFile(Written, frozen=True, kw_only=True):
    """experiments.yaml as it is written."""

    version: Literal[1]
    kernels: dict[Name, Kernel]
    experiments: dict[Name, Experiment] = {}
    history: dict[Name, Experiment] = {}
    """The committed steps, by commit, in the order of the log."""


Form: TypeAlias = Literal["source", "ptx", "cubin"]


def form_of(source: str) -> Form:
    """Returns the form of a source by its file name."""
    if source.endswith(".ptx"):
        return "ptx"
    return "cubin" if source.endswith(".cubin") else "source"


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
