"""Cases that tests judge: arms of real records, recordings of ncu on an H200."""

from __future__ import annotations

from typing import Any

import msgspec
from support import ROOT

from kernelexp.evidence.profile import pages
from kernelexp.facts import chips
from kernelexp.judge.causes import CausedDifference
from kernelexp.judge.limits import opportunities
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import Cause
from kernelexp.judge.limits.opportunity import Opportunity
from kernelexp.logs.documents import complete
from kernelexp.model.arm import AccessWidths, Arm, BuildEvidence, EmulatedEvidence, ProfiledEvidence
from kernelexp.model.record import Profile, Record

T1 = "logs/runs/T1/20261121T000003Z-045af7a9.measured.json"
H1 = "logs/runs/H1/20261121T015301Z-85251654.measured.json"
TILES = 131_072
DEFAULTS, FOUR_STAGES, PADDED, PLAIN = range(4)
"""The launches of the recordings."""


def as_written(path: str) -> Record:
    """A record without what was recounted of it since."""
    return complete(msgspec.json.decode((ROOT / path).read_bytes(), type=Record))


def arm(record: str, place: int = 0) -> Arm:
    return as_written(record).arms[place]


def transpose(place: int = 0, **changes: Any) -> Case:
    """T1's baseline (plain, with bank conflicts) or its candidate (padded), on an H200."""
    of = arm(T1, place)
    assert of.emulated is not None
    counters = {name: count * TILES // 6 for name, count in of.emulated.counters.items()}
    values = {
        "label": "transpose", "arm": of, "chip": chips.CHIPS["H200"], "bytes": 8 << 27,
        "ctas": TILES, "tiles": TILES, "counters": counters, "clock_hz": 1.98e9,
    }  # fmt: skip
    return Case(**{**values, **changes})


def gemm(**changes: Any) -> Case:
    """H1's baseline: one CTA per SM, warps with roles."""
    of = arm(H1)
    values = {
        "label": "gemm", "arm": of, "chip": chips.CHIPS["H200"], "flops": 1_095_015_333_888,
        "bytes": 2_140_000_000, "ctas": 132, "tiles": 58_016, "clock_hz": 1.635e9,
    }  # fmt: skip
    return Case(**{**values, **changes})


def profile(launch: int) -> ProfiledEvidence:
    """What ncu counted and advised of a launch, recorded on an H200."""
    folder = ROOT / "tests/data/ncu"
    figures, rules = (
        pages.read((folder / f"{name}.csv").read_text(), name)[launch]
        for name in ("limits", "rules")
    )
    return msgspec.structs.replace(figures, advice=rules.advice)


def profiled(case: Case, launch: int, **changes: Any) -> Case:
    result = msgspec.structs.replace(profile(launch), **changes)
    return with_arm(case, profiled=result)


def with_arm(case: Case, **changes: Any) -> Case:
    return msgspec.structs.replace(case, arm=msgspec.structs.replace(case.arm, **changes))


def merged(case: Case) -> Case:
    """As if ptxas had merged the shared loads of a line."""
    widths = AccessWidths(
        file="variants/transpose/transpose.cu",
        line=59,
        what="shared load",
        ptx={32: 4},
        sass={128: 1},
        ratio=0.25,
    )
    return with_arm(case, emulated=msgspec.structs.replace(emulated_of(case), widths=(widths,)))


def build_of(case: Case) -> BuildEvidence:
    assert case.arm.build is not None
    return case.arm.build


def emulated_of(case: Case) -> EmulatedEvidence:
    assert case.arm.emulated is not None
    return case.arm.emulated


def executed_sass(**changes: Any) -> EmulatedEvidence:
    """Of SASS that did what it should."""
    right = emulated_of(transpose())
    return EmulatedEvidence(size="emulated", isa="sass", arrays=right.arrays, **changes)


def cause_of(differing: CausedDifference, name: str) -> Cause:
    return next(cause for cause in differing.causes if cause.name == name)


def published(run: str) -> Case:
    path = ROOT / "logs/profiles" / f"published-{run}.json"
    profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    return Case(label=run, arm=profile.arm, chip=chips.CHIPS["B200"])


def counting(place: int, counters: dict[str, int]) -> EmulatedEvidence:
    emulated = arm(H1, place).emulated
    assert emulated is not None
    return msgspec.structs.replace(emulated, counters=counters)


def counted(*counts: dict[str, int], **changes: Any) -> list[Case]:
    """H1's arms with these counts of the full problem, and the same ones of the small size."""
    return [
        with_arm(
            gemm(arm=arm(H1, place), counters=own, **changes),
            emulated=counting(place, dict.fromkeys(own, 12)),
        )
        for place, own in enumerate(counts)
    ]


def only(rule: opportunities.Rule, case: Case) -> Opportunity:
    (result,) = rule(case)
    assert isinstance(result, Opportunity)
    return result
