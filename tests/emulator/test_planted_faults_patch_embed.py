"""Mistakes planted in patch_embed_gemm for a B200: each is found, or gives a wrong result.

The mutations are made in the PTX that nvcc emitted, so that the fault is just the one named.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import patch_embed
import pytest
from harness import EARLY, LATE

from warpsim import Schedule
from warpsim.launch import TensorMap

pytestmark = pytest.mark.xdist_group("patch_embed")

SCHEDULES = (LATE, Schedule(seed=1, asynchrony="late"), EARLY)
WRONG = "INCORRECT"
COPY = r"cp\.async\.bulk\.tensor\.2d\.shared"
ACQUIRE = r"mbarrier\.try_wait\.parity\.acquire\.cta\.shared::cta\.b64 done, \[%r\d+\], %r\d+;"
RELAXED = (
    r"mbarrier\.try_wait\.parity\.relaxed\.cluster\.shared::cta\.b64 done, \[(%r\d+)\], (%r\d+);"
)


def edit(text: str, pattern: str, instead: str, *, which: slice = slice(None)) -> str:
    """Replaces the chosen matches of a pattern; there must be some."""
    matches = list(re.finditer(pattern, text))[which]
    assert matches, pattern
    for match in reversed(matches):
        text = text[: match.start()] + match.expand(instead) + text[match.end() :]
    return text


def after(text: str, marker: str, pattern: str, instead: str) -> str:
    """Replaces the first match of a pattern after the first match of a marker."""
    at = re.search(marker, text)
    assert at, marker
    return text[: at.end()] + edit(text[at.end() :], pattern, instead, which=slice(1))


PATCH_EMBED: dict[str, tuple[str, Callable[[str], str]]] = {
    "no wait for the copies": (
        "staged",
        lambda text: edit(text, ACQUIRE, "setp.eq.u32 done, 0, 0;"),
    ),
    "wrong parity in the wait for the copies": (
        "staged",
        lambda text: edit(
            text,
            r"(mbarrier\.try_wait\.parity\.acquire\.cta\.shared::cta\.b64 "
            r"done, \[%r\d+\], )(%r\d+);",
            r"{ .reg .b32 x; xor.b32 x, \2, 1; \1x; }",
        ),
    ),
    "no wait for the stage to be free": (
        "staged",
        lambda text: edit(text, RELAXED, "setp.eq.u32 done, 0, 0;", which=slice(0, 6)),
    ),
    "wrong parity in the wait for a free stage": (
        "staged",
        lambda text: edit(
            text,
            RELAXED,
            r"{ .reg .b32 x; xor.b32 x, \2, 1; "
            r"mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [\1], x; }",
            which=slice(0, 6),
        ),
    ),
    "no wait for the accumulator": (
        "staged",
        lambda text: edit(text, RELAXED, "setp.eq.u32 done, 0, 0;", which=slice(-3, None)),
    ),
    "epilogue's arrivals one short": (
        "staged",
        lambda text: edit(
            text, r"mov\.b32 \t(%r\d+), 320;", "mov.b32 \\\\1, 321;".replace("\\\\", "\\")
        ),
    ),
    "epilogue's arrivals too many": (
        "staged",
        lambda text: edit(text, r"mov\.b32 \t(%r\d+), 320;", r"mov.b32 \1, 192;"),
    ),
    "transaction bytes too few": (
        "direct_v8",
        lambda text: edit(text, r"mov\.b32 \t(%r\d+), 32768;", r"mov.b32 \1, 24576;"),
    ),
    "transaction bytes too many": (
        "direct_v8",
        lambda text: edit(text, r"mov\.b32 \t(%r\d+), 32768;", r"mov.b32 \1, 65536;"),
    ),
    "instruction descriptor of N = 128": (
        "direct_v8",
        lambda text: edit(text, r"\b272629776\b", "270532624"),
    ),
    "instruction descriptor of E5M2": (
        "direct_v8",
        lambda text: edit(text, r"\b272629776\b", str(272629776 | 1 << 7)),
    ),
    "instruction descriptor of M = 128": (
        "direct_v8",
        lambda text: edit(text, r"\b272629776\b", str(272629776 - (8 << 24))),
    ),
    "no tcgen05.wait::ld": (
        "direct_v8",
        lambda text: edit(text, r"tcgen05\.wait::ld\.sync\.aligned;", ""),
    ),
    "one tcgen05.wait::ld missing": (
        "direct_v8",
        lambda text: edit(text, r"tcgen05\.wait::ld\.sync\.aligned;", "", which=slice(2, 3)),
    ),
    "no commit of a stage": (
        "direct_v8",
        lambda text: edit(text, r"tcgen05\.commit\.[^;]*;", "", which=slice(0, 1)),
    ),
    "no commit of the tile": (
        "direct_v8",
        lambda text: edit(text, r"tcgen05\.commit\.[^;]*;", "", which=slice(-1, None)),
    ),
    "commit to one CTA only": (
        "direct_v8",
        lambda text: edit(text, r"mov\.b16 \t(%rs\d+), 3;", r"mov.b16 \1, 1;"),
    ),
    "overlapping accumulators": (
        "direct_v8",
        lambda text: edit(text, r"shl\.b32 \t(%r\d+), (%r\d+), 8;", r"shl.b32 \1, \2, 7;"),
    ),
    "fewer columns allocated than used": (
        "direct_v8",
        lambda text: edit(text, r"(tcgen05\.(?:de)?alloc\.[^;]*), 512;", r"\1, 256;"),
    ),
    "tensor memory not freed": (
        "direct_v8",
        lambda text: edit(text, r"tcgen05\.dealloc\.[^;]*;", ""),
    ),
    "no __syncwarp between the staging phases": (
        "staged",
        lambda text: edit(text, r"bar\.warp\.sync[ \t]+-1;", "", which=slice(2, None)),
    ),
    "no cluster barrier after the mbarriers' init": (
        "direct_v8",
        lambda text: edit(
            text,
            r"barrier\.cluster\.(arrive\.release|wait\.acquire)\.aligned;",
            "",
            which=slice(0, 2),
        ),
    ),
    "no cluster barrier at the end": (
        "direct_v8",
        lambda text: edit(
            text,
            r"barrier\.cluster\.(arrive\.release|wait\.acquire)\.aligned;",
            "",
            which=slice(2, 4),
        ),
    ),
    "double arrival": (
        "direct_v8",
        lambda text: edit(
            text,
            r"(mbarrier\.arrive\.relaxed\.cluster\.shared::cluster\.b64 _, \[%r\d+\];)",
            r"\1 \1",
        ),
    ),
    "accumulation never starts afresh": (
        "direct_v8",
        lambda text: edit(
            text, r"setp\.ne\.b32 accumulate, %r\d+, 0;", "setp.eq.b32 accumulate, 0, 0;"
        ),
    ),
    "matrix descriptor without its constant": (
        "direct_v8",
        lambda text: re.sub(
            r"\b46117566620495380\d\d\b", lambda match: str(int(match[0]) - (1 << 46)), text
        ),
    ),
    "B taken from A's place": (
        "direct_v8",
        lambda text: edit(text, r"add\.s32 \t(%r\d+), (%r\d+), 16384;", r"add.s32 \1, \2, 0;"),
    ),
}


def caught_in_patch_embed(text: str, m: int) -> set[str]:
    """What the schedules find, up to the first that finds something."""
    for schedule in SCHEDULES:
        outcome = patch_embed.run(text, m=m, schedule=schedule)
        warned = {warning.name for warning in outcome.result.warnings} & {"early-tmem-read"}
        names = outcome.found | warned | (set() if outcome.right else {WRONG})
        if names:
            return names
    return set()


# The mutants of tests/mutations have most of these kinds too.
ORDINARY = {
    "no wait for the accumulator",
    "epilogue's arrivals one short",
    "overlapping accumulators",
    "no cluster barrier at the end",
    "B taken from A's place",
}


@pytest.mark.parametrize(
    "name",
    [
        name if name in ORDINARY else pytest.param(name, marks=pytest.mark.slow)
        for name in PATCH_EMBED
    ],
)
def test_a_fault_in_patch_embed_is_caught(name, record_property):
    store, mutate = PATCH_EMBED[name]
    right = patch_embed.ptx(store)
    wrong = mutate(right)
    assert wrong != right
    # An accumulator has to be used for the third time before too many arrivals matter.
    names = caught_in_patch_embed(wrong, 512 if name == "epilogue's arrivals too many" else 256)
    record_property("caught", sorted(names))
    print(f"{name}: {', '.join(sorted(names)) or 'NOT CAUGHT'}")
    assert names


def test_swizzle_of_a_but_not_of_b_is_wrong():
    text = patch_embed.ptx("direct_v8")
    real = patch_embed.problem().launch

    def launch(axes, size, exports):
        right = real(axes, size, exports)
        b = right.arguments[1]
        fields = {name: getattr(b, name) for name in b.__struct_fields__} | {"swizzle": "none"}
        arguments = (right.arguments[0], TensorMap(**fields), *right.arguments[2:])
        return type(right)(
            **{name: getattr(right, name) for name in right.__struct_fields__}
            | {"arguments": arguments}
        )

    patch_embed.problem().launch = launch
    try:
        assert not patch_embed.run(text).right
    finally:
        patch_embed.problem().launch = real
