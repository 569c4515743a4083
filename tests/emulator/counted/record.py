"""What ncu counts of these launches on a GPU, as golden data.

python -m counted.record build FOLDER        # cubins, arrays, launches; needs no GPU
python -m counted.record metrics             # for ncu --metrics
python -m counted.record launch FOLDER GROUP # each launch of a group once, to be run under ncu
python -m counted.record write FOLDER        # what ncu printed (FOLDER/GROUP.csv), as golden data

ncu is to print `--page raw --print-units base --print-metric-instances details`, with neither
clocks nor caches controlled. FOLDER/about.json says which GPU, driver and ncu it was, and when.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import msgspec
import numpy as np

from kernelexp.evidence.profile import pages
from warpsim.launch import Launch

from . import golden, launches
from .golden import Counted, Golden, Source
from .launches import Made
from .metrics import EVERY, EXECUTED, HARDWARE, SOURCE, THREADS
from .program import checkout
from .public import PUBLIC
from .sgemm import SGEMM


class Shot(msgspec.Struct, frozen=True, kw_only=True):
    """A launch in a folder; its files by their names."""

    name: str
    program: str
    cubin: str
    code: str
    launch: Launch
    arrays: str


def build(folder: Path, names: list[str]) -> None:
    """Writes what the launches of groups need, of all if none is named."""
    folder.mkdir(parents=True, exist_ok=True)
    for group in names or launches.GROUPS:
        shots = []
        for i, item in enumerate(launches.group(group)):
            shots.append(_shot(folder, group, i, item))
            print(group, item.case.name, flush=True)
        (folder / f"{group}.json").write_bytes(msgspec.json.encode(shots))


def _shot(folder: Path, group: str, index: int, made: Made) -> Shot:
    code, launch = made.code, made.case.launch
    cubin = hashlib.sha256(code.cubin).hexdigest()[:16] + ".cubin"
    (folder / cubin).write_bytes(code.cubin)
    arrays = f"{group}-{index}.npz"
    np.savez_compressed(folder / arrays, **made.case.arrays)
    return Shot(
        name=made.case.name,
        program=code.name,
        cubin=cubin,
        code=code.digest(launch.entry),
        launch=launch,
        arrays=arrays,
    )


def _shots(folder: Path, group: str) -> list[Shot]:
    return msgspec.json.decode((folder / f"{group}.json").read_bytes(), type=list[Shot])


def launch(folder: Path, group: str) -> None:
    """Launches each once."""
    from conformance.driver import Gpu

    gpu = Gpu()
    modules = {}
    for shot in _shots(folder, group):
        if shot.cubin not in modules:
            modules[shot.cubin] = gpu.load((folder / shot.cubin).read_bytes())
        with np.load(folder / shot.arrays) as file:
            arrays = dict(file)
        gpu.run(modules[shot.cubin], shot.launch, arrays)


def write(folder: Path) -> None:
    """Everything that was printed, as golden data."""
    about = msgspec.json.decode((folder / "about.json").read_bytes(), type=dict[str, str])
    result = {}
    for group in launches.GROUPS:
        printed = pages.read((folder / f"{group}.csv").read_text(), group)
        shots = _shots(folder, group)
        counted = [_counted(shot, item.figures) for shot, item in zip(shots, printed, strict=True)]
        result[group] = {shot.name: item for shot, item in zip(shots, counted, strict=True)}
    golden.write(
        Golden(
            about=about,
            metrics=(*HARDWARE, *SOURCE),
            sources={program.name: _source(program) for program in (SGEMM, *PUBLIC)},
            launches=result,
        )
    )


def _counted(shot: Shot, figures: dict[str, float | str]) -> Counted:
    named = {name: figures.get(f"{name}.sum", 0) for name in HARDWARE}
    named |= {name: figures.get(name, 0) for name in SOURCE}
    return Counted(
        program=shot.program,
        entry=shot.launch.entry,
        code=shot.code,
        figures={name: int(value) for name, value in named.items() if value},
        executed=_instances(figures, EXECUTED),
        threads=_instances(figures, THREADS),
    )


def _instances(figures: dict[str, float | str], metric: str) -> dict[str, int]:
    begun = f"{metric}["
    return {
        name.removeprefix(begun).removesuffix("]"): int(value)
        for name, value in figures.items()
        if name.startswith(begun) and value
    }


def _source(program) -> Source:  # type: ignore[no-untyped-def]
    root = checkout(program)
    assert root is not None, program.repository
    text = (root / program.file).read_bytes()
    return Source(
        repository=program.repository,
        commit=program.commit,
        file=program.file,
        sha256=hashlib.sha256(text).hexdigest(),
    )


def main(argv: list[str]) -> None:
    match argv:
        case ["build", folder, *names]:
            build(Path(folder), names)
        case ["metrics"]:
            print(",".join(EVERY))
        case ["launch", folder, group]:
            launch(Path(folder), group)
        case ["write", folder]:
            write(Path(folder))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
