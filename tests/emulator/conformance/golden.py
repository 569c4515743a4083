"""The golden data: what a GPU wrote for each area, and on which machine."""

from __future__ import annotations

import csv
import functools
import json
from pathlib import Path

import msgspec
import numpy as np

from .case import Area, Case
from .cases import AREAS
from .record import fingerprint

FOLDER = Path(__file__).parent / "golden"


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """One area's outputs, by the case's name and the array's."""

    about: dict[str, object]
    """gpu, driver, compiler, date, fingerprint."""
    outputs: dict[tuple[str, str], np.ndarray]


def recorded() -> list[str]:
    """Areas with golden data, in the suite's order."""
    return [name for name in AREAS if (FOLDER / f"{name}.npz").is_file()]


@functools.cache
def cases(name: str) -> tuple[Case, ...]:
    return tuple(AREAS[name].cases())


def load(name: str) -> Golden:
    with np.load(FOLDER / f"{name}.npz") as file:
        about = json.loads(file["about"].tobytes())
        outputs = {
            (case, key.split(".")[1]): file[key]
            for i, case in enumerate(about["cases"])
            for key in file.files
            if key.split(".")[0] == str(i)
        }
    return Golden(about=about, outputs=outputs)


def is_current(area: Area, golden: Golden) -> bool:
    """Whether the data was made from the programs and inputs as they are now."""
    return golden.about["fingerprint"] == fingerprint(area, list(cases(area.name)))


def wavefronts() -> dict[tuple[str, str], dict[str, int]]:
    """What ncu counted, by entry and pattern: its metrics."""
    with (FOLDER / "wavefronts.csv").open() as file:
        return {
            (row.pop("entry"), row.pop("pattern")): {key: int(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        }


def counters() -> dict[tuple[str, str], dict[str, int]]:
    """What ncu counted of launches, by area and case: its metrics, but those left empty."""
    with (FOLDER / "counters.csv").open() as file:
        return {
            (row.pop("area"), row.pop("case")): {key: int(n) for key, n in row.items() if n}
            for row in csv.DictReader(file)
        }
