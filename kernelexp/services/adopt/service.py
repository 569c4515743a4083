"""Brings entries of a foreign CUDA source into a project as a kernel of its own."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.build import Diagnostic
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.arm import Arm, sound
from kernelexp.model.errors import BuildError, UsageError, join, suggest
from kernelexp.model.experiment import Variant
from kernelexp.project import Project
from kernelexp.services.adopt import adopted, constants, copying, draft, jobs
from kernelexp.services.adopt import entry as entries
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.copying import SourceCopy
from kernelexp.services.adopt.declarations import Declaration, read
from kernelexp.services.adopt.entry import KernelEntry
from kernelexp.services.adopt.notation import WantedLaunch
from kernelexp.system.live import OnProgress
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import plain_name

ORIGIN = "origin"
"""The folder of the copy, in the kernel's own."""


class ChosenEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a kernel of a source."""

    declaration: Declaration
    template: str
    """The instance to compile, such as gemm<64>; empty where the kernel is not a template."""
    arguments: tuple[str, ...]
    """What is passed, as far as that has been said."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a source that are to become a kernel."""

    copy: SourceCopy
    entries: tuple[ChosenEntry, ...]
    kernel: str
    """The name that they get in the project."""
    places: dict[str, int] = {}
    """Of axes, by the place in a template's arguments that they have."""
    flags: tuple[str, ...] = ()
    """Of the compiler: folders of headers that are copied are those of the copy."""


def choose(
    project: Project,
    source: Path,
    wanted: Sequence[WantedLaunch],
    kernel: str,
    flags: Sequence[str] = (),
    axes: Mapping[str, int] = {},
    option: str = "--kernel",
) -> Chosen:
    """The entries of a source, or its only one; UsageError lists those that there are.

    axes: values of names among a template's arguments that stand for nothing in the source;
    option: gives another name of the kernel.
    """
    copy = copying.read(source, copying.folders_of(flags, project.root))
    own = {x: n for x, n in axes.items() if not any(_defines(t, x) for t in copy.texts.values())}
    places = {
        name: place
        for item in wanted
        for place, name in enumerate(_arguments(item.entry))
        if name in own
    }
    for name in places:
        words = rf"(?<=[<,\s]){name}(?=\s*[,>])"
        wanted = [
            msgspec.structs.replace(item, entry=re.sub(words, str(own[name]), item.entry))
            for item in wanted
        ]
    declarations = copying.kernels(copy)
    if not declarations:
        raise UsageError(f"{source} has no __global__ function.")
    entries = tuple(_choose(source, declarations, launch) for launch in wanted)
    name = adopted.name_kernel(project, kernel or entries[0].declaration.kernel, option)
    into = f"variants/{name}/{ORIGIN}"
    moved = copying.moved(flags, copy, project.root, into)
    return Chosen(copy=copy, entries=entries, kernel=name, flags=moved, places=places)


def _arguments(entry: str) -> list[str]:
    """Returns the arguments of a template, as they are written."""
    inside = entry.partition("<")[2].rpartition(">")[0]
    return [part.strip() for part in entries.split(inside)]


def _defines(text: str, name: str) -> bool:
    """Whether an --entry may name it: a macro, or a constant outside of functions and types."""
    if re.search(rf"#\s*define\s+{name}\b", text):
        return True
    given = re.compile(rf"\b{name}\s*=(?!=)")
    return any(given.search(_outside(text, item)) for item in read(text))


def _outside(text: str, declaration: Declaration) -> str:
    """A declaration without what only it can name: a body, and the parameters of a template."""
    own = text[declaration.first : declaration.end]
    if own.endswith("}"):  # a function
        return ""
    own = _TEMPLATE.sub("", own)
    return own if "enum" in declaration.words else own.partition("{")[0]


_TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")


def _choose(source: Path, declarations: Sequence[Declaration], wanted: WantedLaunch) -> ChosenEntry:
    text, plain = wanted.entry, wanted.plain
    named = [item for item in declarations if item.kernel == plain] if text else declarations
    if not named:
        raise UsageError(f"{source} has no kernel {text!r}{suggest(plain, _names(declarations))}.")
    if not text and len(declarations) > 1:
        raise UsageError(
            f"{source} has several kernels: say which with --entry: {join(_names(declarations))}."
        )
    declaration = named[0]
    if declaration.template and "<" not in text:
        raise UsageError(
            f"{declaration.kernel} is a template: name its arguments, as in "
            f"--entry '{declaration.kernel}<...>'."
        )
    template = text if declaration.template else ""
    return ChosenEntry(declaration=declaration, template=template, arguments=wanted.arguments)


def _names(declarations: Sequence[Declaration]) -> list[str]:
    return list(
        dict.fromkeys(
            declaration.kernel + "<...>" * declaration.template for declaration in declarations
        )
    )


def compile_any(
    project: Project,
    chosen: Chosen,
    arch: str,
    tools: Toolchain,
    *,
    torch: bool = False,
    on_progress: OnProgress | None = None,
) -> Compiled:
    """compile_entry(), also with flags that errors name; with PyTorch's headers and flags where
    these are asked for, or where a source that includes some does not compile without them."""

    compiled = functools.partial(
        compile_entry, project, chosen, arch, tools, on_progress=on_progress
    )
    more = copying.torch_flags(chosen.copy) if torch else ()
    while True:
        try:
            return compiled(more)
        except copying.FlaglessError as error:
            if error.flag in more:
                raise
            more = (*more, error.flag)
        except BuildError as error:
            if torch or not copying.includes_torch(chosen.copy):
                raise
            alone = error
            break
    # Most kernels of extensions need no more of those headers than the names of integers: the rest
    # would take a minute of each build.
    with contextlib.suppress(BuildError):
        return compiled((*more, copying.INTEGERS))
    try:
        return compiled(copying.torch_flags(chosen.copy))
    except BuildError as error:
        raise copying.with_headers(chosen.copy, alone, error) from None


def compile_entry(
    project: Project,
    chosen: Chosen,
    arch: str,
    tools: Toolchain,
    more: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Compiled:
    """Writes the kernel's folder, with the copy and the source that includes it, and compiles;
    `more`: flags besides those that were chosen.

    BuildError, in a sentence, where that does not come to an end; the folder is gone then.
    """
    if arch not in ARCHITECTURES:
        raise UsageError(f"there is no architecture {arch!r}{suggest(arch, ARCHITECTURES)}.")
    folder = project.root / "variants" / chosen.kernel
    names = ", ".join(
        dict.fromkeys(entry.template or entry.declaration.kernel for entry in chosen.entries)
    )
    copy, others = copying.only(
        chosen.copy, frozenset(entry.declaration.kernel for entry in chosen.entries)
    )
    variant = Variant(
        kernel=chosen.kernel,
        arch=arch,
        source=f"variants/{chosen.kernel}/{chosen.kernel}.cu",
        axes={},
        flags=(*chosen.flags, *more),
    )
    templates = [
        (entry.declaration.namespace, entry.template) for entry in chosen.entries if entry.template
    ]
    text = draft.wrapper(names, templates, f"{ORIGIN}/{copy.main}", copy.origin)
    builds: list[Arm] = []
    with adopted.whole(folder):
        adopted.write(folder, {f"{chosen.kernel}.cu": text})
        whole, left = copying.compile_copy(
            copy, _attempt(project.root, folder, variant, tools, builds, on_progress)
        )
        more = (*more, *_stub_flags(variant.kernel, whole.texts))
        variant = msgspec.structs.replace(variant, flags=(*chosen.flags, *more))
        entries = _entries(project.root, variant, tools, builds[-1], chosen.entries)
        unset = jobs.unset_constants(_ptx(project.root, builds[-1]))
    return Compiled(
        kernel=chosen.kernel,
        title=f"{_short(names, chosen.entries)} of {Path(copy.origin).name}",
        source=f"{chosen.kernel}.cu",
        origin=copy.origin,
        arch=arch,
        folder=folder,
        entries=entries,
        left=(*others, *left),
        flags=tuple(more),
        places=chosen.places,
        unset=unset,
        cluster=adopted.launched(chosen.copy.texts.values()),
    )


def _short(names: str, entries: Sequence[ChosenEntry]) -> str:
    """The kernels without their template arguments where those would fill a card of the report."""
    plain = dict.fromkeys(entry.declaration.kernel for entry in entries)
    return names if len(names) <= _TITLE else ", ".join(plain)


_TITLE = 80


def _stub_flags(kernel: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the option that finds the empty headers of a copy, where it has some."""
    folder = f"variants/{kernel}/{ORIGIN}/{copying.STUBS}"
    has_some = any(name.startswith(f"{copying.STUBS}/") for name in texts)
    return (f"-I{folder}",) if has_some else ()


def _attempt(
    root: Path,
    folder: Path,
    variant: Variant,
    tools: Toolchain,
    builds: list[Arm],
    on_progress: OnProgress | None,
) -> Callable[[Mapping[str, str]], tuple[Diagnostic, ...]]:
    """Compiles the texts of a copy, appends the build, and returns the errors."""
    prefix = f"variants/{variant.kernel}/{ORIGIN}/"

    def attempt(texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        adopted.write(folder, {f"{ORIGIN}/{name}": text for name, text in texts.items()})
        flags = (*variant.flags, *_stub_flags(variant.kernel, texts))
        own = msgspec.structs.replace(variant, flags=flags)
        (one,) = build.build(root, [own], tools, on_progress=on_progress)
        arm = sound(one)
        builds.append(arm)
        log = arm.build_log
        diagnostics = (*build.iter_errors(log), build.first_error(log)) if arm.refused else ()
        return tuple(
            msgspec.structs.replace(fromkey, file=fromkey.file.removeprefix(prefix))
            for fromkey in dict.fromkeys(diagnostics)
            if fromkey
        )

    return attempt


def _entries(
    root: Path,
    variant: Variant,
    tools: Toolchain,
    built: Arm,
    chosen: Sequence[ChosenEntry],
) -> tuple[KernelEntry, ...]:
    ptx = _ptx(root, built)
    chosen_symbols = [_symbol(root, variant, tools, ptx, chosen_entry) for chosen_entry in chosen]
    names = Counter(map(plain_name, jobs.symbols(ptx)))

    def read(symbol: str, chosen_entry: ChosenEntry) -> KernelEntry:
        written = chosen_entry.declaration.parameters
        entry = entries.read(ptx, written, symbol)
        if any(parameter.is_structure for parameter in entry.parameters):
            members = constants.members(root, variant, tools, symbol)
            entry = entries.read(ptx, written, symbol, members)
        # A template's other instances are in the build too where the source has them.
        plain = plain_name(symbol)
        named = msgspec.structs.replace(entry, name=plain if names[plain] == 1 else symbol)
        return jobs.called(named, chosen_entry.arguments)

    return tuple(map(read, chosen_symbols, chosen))


def _ptx(root: Path, built: Arm) -> str:
    path = build.artefacts(root, built.identity).ptx
    assert path is not None  # of a source there always is one
    return path.read_text("utf-8", "replace")


def _symbol(root: Path, variant: Variant, tools: Toolchain, ptx: str, chosen: ChosenEntry) -> str:
    """The entry's, also where its template's arguments are constants of the source."""
    kernel, template = chosen.declaration.kernel, chosen.template
    try:
        return jobs.symbol(ptx, kernel, template)
    except UsageError:
        names = re.findall(r"(?<!:)\b[A-Za-z_]\w*\b(?!\s*[:<])", template.partition("<")[2])
        space = chosen.declaration.namespace
        numbers = constants.evaluate(root, variant, names, tools, [space]) if names else {}
        if not numbers:
            raise
        pattern = rf"\b({'|'.join(numbers)})\b"
        return jobs.symbol(ptx, kernel, re.sub(pattern, lambda x: str(numbers[x[1]]), template))
