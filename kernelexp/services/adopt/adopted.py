"""A foreign kernel in its folder of the project: compiled, then finished or discarded; what is said
of its arrays, and the clusters that host code launches it with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast, get_args

import msgspec
import yaml

from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.logs import records
from kernelexp.model.errors import UsageError, join, suggest
from kernelexp.model.experiment import is_name
from kernelexp.project import PROJECT_FILE, Project, editing, files_of, load
from kernelexp.services.adopt import answers as answering
from kernelexp.services.adopt import draft, jobs
from kernelexp.services.adopt import entry as entries
from kernelexp.services.adopt.answers import Answers, LaunchShape, MapLayout
from kernelexp.services.adopt.copying import Omitted
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.expressions import names_in, parse_expressions
from kernelexp.system import disk
from warpsim.dtypes import SCALARS, TORCH_NAMES, DType, own_name
from warpsim.launch import Element, Swizzle


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is to become a kernel, compiled in its place in the project."""

    kernel: str
    """The name that it has in the project."""
    title: str
    source: str
    """What a variant is built from, in the folder."""
    origin: str
    """The file that it came from, as it was given."""
    arch: str
    folder: Path
    entries: tuple[KernelEntry, ...]
    """In the order of their launches; an entry that is launched twice is there twice."""
    left: tuple[Omitted, ...] = ()
    """What the copy lacks of the source."""
    flags: tuple[str, ...] = ()
    """What its source needs beside those that a person has given."""
    places: dict[str, int] = {}
    """Of axes, by the place in a template's arguments that they have."""
    cluster: tuple[str, ...] = ()
    """That its source's host code launches it with, in the notation of a grid."""
    unset: tuple[str, ...] = ()
    """Constant memory that it reads and that the source gives no value."""
    dynamic_smem_bytes: int = 0
    """Of its launch, where the compiler that made it has written that down."""


def name_kernel(project: Project, wanted: str, option: str = "--kernel") -> str:
    """The name of a new kernel, which `option` gives; UsageError where it can't be that."""
    if not is_name(wanted):
        raise UsageError(f"{wanted!r} can't be a kernel's name: give another with {option}.")
    if wanted in project.kernels or (project.root / "variants" / wanted).exists():
        raise UsageError(
            f"there is a kernel {wanted} already: edit variants/{wanted}/problem.py and run "
            f"kernelexp emulate {wanted}, give another name with {option}, or replace it: "
            f"{option} {wanted} --replace."
        )
    return wanted


@contextmanager
def replacing(project: Project, kernel: str, option: str) -> Iterator[str]:
    """Removes a kernel and its experiments, to make room for another of its name; where its folder
    is meanwhile, from the root. Puts them back where no other takes its place.

    UsageError, which names the `option` of another name, where any of them has a record.
    """
    own = [name for name, item in project.experiments.items() if item.kernel == kernel]
    if recorded := [name for name in own if records.count(project.root, name)]:
        raise UsageError(
            f"--replace: {join(recorded)} of {kernel} has records: give the new kernel another "
            f"name with {option}."
        )
    before = configuration(project.root)
    text = editing.read(project.root)
    inside = [name for name in own if project.places[name].startswith(f"{PROJECT_FILE}:")]
    text = editing.remove(text, "experiments", inside) if inside else text
    text = editing.remove(text, "kernels", [kernel])
    folder, kept = project.root / "variants" / kernel, f".kernelexp/replaced/{kernel}"
    place = project.root / kept
    former = place.with_name(f"{place.name}.former")  # of a replacement before this one
    shutil.rmtree(former, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        disk.write((project.root / PROJECT_FILE).resolve(), text.encode())
        for name in own:
            if name not in inside:
                (project.root / project.places[name].partition(":")[0]).unlink()
        if folder.is_dir():
            if place.is_dir():
                place.rename(former)
            folder.rename(place)
        yield kept
    finally:
        if not folder.exists():
            if place.is_dir():
                place.rename(folder)
            if former.is_dir():
                former.rename(place)
            with disk.alone(project.root):
                _put_back(project, kernel, inside, before)
        shutil.rmtree(former, ignore_errors=True)


def _put_back(
    project: Project, kernel: str, experiments: Sequence[str], before: Mapping[Path, bytes]
) -> None:
    """Restores a kernel and its experiments; what others have written since stays, also where it
    has the id of one of them, which gets another."""
    file = project.root / PROJECT_FILE
    for path, content in before.items():
        if path != file and not path.exists():
            disk.write(path, content)
    then, text = before[file].decode(), editing.read(project.root)
    was, now = yaml.safe_load(then), yaml.safe_load(text)
    if kernel not in (now.get("kernels") or {}):
        text = editing.insert(text, "kernels", {kernel: was["kernels"][kernel]})
    taken = now.get("experiments") or {}
    if own := {name: was["experiments"][name] for name in experiments if name not in taken}:
        text = editing.insert(text, "experiments", own)
    _write_yaml(file, then if yaml.safe_load(text) == was else text)
    for name in experiments:
        if name in taken:
            now_project, item = load(project.root), was["experiments"][name]
            editing.add(now_project, editing.next_id(now_project, kernel, item["arch"]), item)


def _write_yaml(file: Path, text: str) -> None:
    disk.write(file.resolve(), text.encode())


@contextmanager
def whole(folder: Path) -> Iterator[None]:
    """Makes the kernel's folder; whatever ends that early leaves none."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def finish(project: Project, compiled: Compiled, answers: Answers, flags: Sequence[str]) -> str:
    """Writes problem.py and the kernel's entry in experiments.yaml; the text of problem.py."""
    text = draft.problem(compiled.entries, compiled.origin, answers)
    card = ARCHITECTURES[compiled.arch].card
    every = tuple(dict.fromkeys((*flags, *compiled.flags)))
    entry = draft.kernel(compiled.title, compiled.source, compiled.arch, card, every, answers.axes)
    with disk.alone(project.root):
        whole = editing.insert(editing.read(project.root), "kernels", {compiled.kernel: entry})
        write(compiled.folder, {"problem.py": text})
        _write_yaml(project.root / PROJECT_FILE, whole)
    return text


def configuration(root: Path) -> dict[Path, bytes]:
    """The files that define a project's kernels and experiments."""
    others, _ = files_of(root)
    names = [PROJECT_FILE, *(item.file for item in others)]
    return {root / name: (root / name).read_bytes() for name in names}


def discard(compiled: Compiled, before: Mapping[Path, bytes]) -> None:
    """Removes a kernel that was not finished: its folder, and what experiments.yaml and experiments
    have of it that configuration() did not have. What others have written since stays."""
    shutil.rmtree(compiled.folder, ignore_errors=True)
    root = compiled.folder.parent.parent
    with disk.alone(root):
        now = configuration(root)
        for path in now.keys() - before.keys():
            if yaml.safe_load(now[path]).get("kernel") == compiled.kernel:
                path.unlink()
        file = root / PROJECT_FILE
        if now[file] != before[file]:
            _write_yaml(file, _without(compiled.kernel, now[file].decode(), before[file].decode()))


def _without(kernel: str, text: str, before: str) -> str:
    """The text of experiments.yaml without a kernel and its experiments that were not in it before;
    that text where nothing else has changed."""
    was, now = yaml.safe_load(before), yaml.safe_load(text)
    given = now.get("experiments") or {}
    own = [name for name in given if given[name].get("kernel") == kernel]
    own = [name for name in own if name not in (was.get("experiments") or {})]
    text = editing.remove(text, "experiments", own) if own else text
    if kernel in (now.get("kernels") or {}) and kernel not in (was.get("kernels") or {}):
        text = editing.remove(text, "kernels", [kernel])
    left = yaml.safe_load(text)
    same = all((left.get(key) or {}) == (was.get(key) or {}) for key in left.keys() | was.keys())
    return before if same else text


def parse_map(name: str, text: str) -> MapLayout:
    """f16:64x128:128B as a layout, or with globalDim and globalStrides behind it,
    f16:64x128:128B:K,M:2*K; UsageError where it is none."""
    element, box, swizzle, extents, strides = [*text.split(":"), "", "", "", ""][:5]
    # 64xBN is two extents, and so is BN x 64; a name in lower case may have an x in it.
    known, numbers = get_args(Swizzle), re.split(r"(?<![a-z_])x|x(?![a-z_])", box)
    if (
        text.count(":") > 4
        or element not in _ELEMENTS
        or not all(re.fullmatch(r"[\w+*/() -]+", number) for number in numbers)
        or (swizzle or "none") not in known
    ):
        raise UsageError(
            f"--tensor-map {name}={text}: say TYPE:BOX:SWIZZLE, as in f16:64x128:128B, or "
            f"f16:64xBN:128B with an axis; the swizzle is one of {', '.join(known)}."
        )
    layout = MapLayout(
        element=cast(Element, element),
        box=tuple(part for number in numbers for part in parse_expressions(number)),
        swizzle=cast(Swizzle, swizzle or "none"),
        extents=parse_expressions(extents) if extents else (),
        strides=parse_expressions(strides) if strides else (),
    )
    rank = len(layout.box)
    if extents and (len(layout.extents), len(layout.strides)) != (rank, rank - 1):
        raise UsageError(
            f"--tensor-map {name}={text}: a box of {rank} dimensions has as many extents, and "
            f"strides of {rank - 1}, in bytes: {element}:{box}:{swizzle or 'none'}:K,M:2*K."
        )
    return layout


_ELEMENTS = tuple(get_arg for get_arg in get_args(Element) if get_arg in SCALARS)


def parse_dtype(name: str, text: str) -> DType:
    """f16 or torch.float16; UsageError where it is not a type."""
    dtype = own_name(text)
    if dtype not in TORCH_NAMES:
        raise UsageError(
            f"--dtype {name}={text}: there is no such type{suggest(dtype, TORCH_NAMES)}."
        )
    return dtype


def described(
    compiled: Compiled, outputs: Sequence[str], answers: Answers, dtypes: Mapping[str, DType]
) -> tuple[Compiled, Answers]:
    """Adds what a person says of its arrays, and those that are between its launches."""
    maps = {name: cast(DType, layout.element) for name, layout in answers.maps.items()}
    elements = maps | dict(dtypes)
    arrays = [value for value in jobs.values(compiled.entries) if value.is_array]
    every_name = [value.name for value in arrays]
    # An array may be a pointer in one launch and behind a descriptor in another.
    every_value = (value for entry in compiled.entries for value in entry.values)
    of_maps = [value.name for value in every_value if value.is_tensor_map]
    answering.require_known(
        ("--output", outputs, every_name, "an array"),
        ("--dtype", dtypes, every_name, "an array"),
        ("--tensor-map", maps, of_maps, "a tensor map"),
    )
    every = tuple(entries.described(entry, outputs, elements) for entry in compiled.entries)
    named = {*outputs, *elements, *answers.shapes, *answers.workspaces, *answers.zeros}
    every = tuple(entries.without_unseen(x, named) for x in every)
    inner, zeroed = jobs.between(every, answers, outputs), jobs.zeroed(every, answers, outputs)
    noted = LaunchShape(smem=str(compiled.dynamic_smem_bytes or ""))
    shapes = tuple(answering.completed(launch, noted) for launch in answers.launches)
    return (
        msgspec.structs.replace(compiled, entries=every),
        msgspec.structs.replace(
            answers,
            between=tuple(inner),
            workspaces=(*answers.workspaces, *zeroed),
            zeros=tuple(name for name in answers.zeros if name not in zeroed),
            launches=shapes,
        ),
    )


def rewritten(
    compiled: Compiled, answers: Answers, rewrite: Callable[[str], str]
) -> tuple[Compiled, Answers]:
    """Rewrites each expression of sizes: in grids, blocks, bytes of shared memory, shapes, tensor
    maps, and in what is passed."""

    def every(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(rewrite, texts))

    def passed(parameter: KernelParameter) -> KernelParameter:
        return msgspec.structs.replace(parameter, passed=rewrite(parameter.passed))

    launches = [
        msgspec.structs.replace(
            shape,
            grid=every(shape.grid),
            extents=every(shape.extents),
            smem=rewrite(shape.smem),
            cluster=every(shape.cluster),
        )
        for shape in answers.launches
    ]
    maps = {
        array: msgspec.structs.replace(
            item, box=every(item.box), extents=every(item.extents), strides=every(item.strides)
        )
        for array, item in answers.maps.items()
    }
    shapes = {array: every(shape) for array, shape in answers.shapes.items()}
    entries = [
        msgspec.structs.replace(entry, parameters=tuple(map(passed, entry.parameters)))
        for entry in compiled.entries
    ]
    return (
        msgspec.structs.replace(compiled, entries=tuple(entries)),
        msgspec.structs.replace(answers, launches=tuple(launches), shapes=shapes, maps=maps),
    )


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Those of the files that are not as they should be already."""
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            disk.write(path, text.encode(), durable=False)


_MEMBER = re.compile(r"\bclusterDim\s*\.\s*([xyz])\s*=([^;]+);")
_WHOLE = re.compile(
    r"\bclusterDim\s*=\s*(?:dim3)?\s*[({]([^;]*)[)}]\s*;"
    r"|\bdim3\s+\w*[cC]luster\w*\s*(?:=\s*dim3\s*)?[({]([^;]*)[)}]\s*;"
)
"""cudaLaunchAttributeClusterDimension, and a dim3 that is named for it."""


def launched(texts: Iterable[str]) -> tuple[str, ...]:
    """The cluster that host code of these sources launches with, in the notation of a grid; nothing
    where it says none, or several."""
    found = {item for text in texts for item in _stated(text)}
    return next(iter(found)) if len(found) == 1 else ()


def _stated(text: str) -> Iterator[tuple[str, ...]]:
    extents = {match[1]: match[2] for match in _MEMBER.finditer(text)}
    whole = [match[1] or match[2] for match in _WHOLE.finditer(text)]
    if extents:
        whole.append(",".join(extents.get(axis, "1") for axis in "xyz"))
    for inside in whole:
        try:
            x, y, z = [*parse_expressions(re.sub(r"(?<=\d)[uU]\b", "", inside)), "1", "1"][:3]
        except UsageError:
            continue  # such as size<0>(ClusterShape{})
        yield x, y, z


def assumed(
    compiled: Compiled, answers: Answers, numbers: Mapping[str, int], axes: Collection[str]
) -> Answers:
    """The answers with the source's cluster for kernels that speak of one and have none said, if
    its names are constants of the source or axes."""
    if not compiled.cluster or names_in(compiled.cluster) - {*numbers, *axes}:
        return answers
    shapes = tuple(
        msgspec.structs.replace(shape, cluster=compiled.cluster) if is_open(entry, shape) else shape
        for entry, shape in zip(compiled.entries, answers.launches, strict=True)
    )
    return msgspec.structs.replace(answers, launches=shapes)


def is_open(entry: KernelEntry, shape: LaunchShape) -> bool:
    """Whether a kernel speaks of its cluster and nobody has said how large that is."""
    return entry.in_cluster and not shape.cluster and entry.cluster == (1, 1, 1)
