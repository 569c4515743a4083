"""Which class of ncu's an opcode counts in."""

from __future__ import annotations

import functools
import re

_CLASSES: tuple[tuple[str, str], ...] = (
    (r"ld\.(volatile\.|relaxed\.\w+\.|acquire\.\w+\.|weak\.)?shared.*", "shared load"),
    (r"ldu\..*", "global load"),
    (r"ld\.(volatile\.)?local.*", "local load"),
    (r"ld\.(param|const).*", "constant load"),
    (r"ld\..*", "global load"),
    (r"st\.(volatile\.)?(weak\.|relaxed\.\w+\.|release\.\w+\.)?shared.*", "shared store"),
    (r"st\.(volatile\.)?local.*", "local store"),
    (r"st\.param.*", "constant load"),
    (r"st\.async.*", "shared store"),
    (r"st\..*", "global store"),
    (r"(atom|red)\..*", "atomic"),
    (r"ldmatrix.*|wmma\.load.*", "matrix load"),
    (r"stmatrix.*|wmma\.store.*", "matrix store"),
    (r"(mma|wmma\.mma).*", "mma"),
    (r"wgmma\.mma_async.*", "wgmma"),
    (r"tcgen05\.mma.*", "utcmma"),
    (r"tcgen05\.ld.*", "tmem load"),
    (r"tcgen05\.st.*", "tmem store"),
    (r"tcgen05.*", "tmem other"),
    (r"cp\.async\.bulk\.(tensor|prefetch).*\.global(\.tile)?\.mbarrier.*", "tma load"),
    (r"cp\.async\.bulk\.shared::\w+\.shared.*", "dshared copy"),
    (r"cp\.async\.bulk\.shared.*", "tma load"),
    (r"cp\.async\.bulk\.(tensor\.\dd\.)?global.*", "tma store"),
    (r"cp\.reduce\.async\.bulk\.(tensor\.\dd\.)?global.*", "tma reduction"),
    (r"cp\.async\.(ca|cg)\..*", "cp.async"),
    (r"mbarrier\.(try|test)_wait.*", "mbarrier wait"),
    (r"mbarrier.*", "mbarrier"),
    (r"bar\.warp\.sync", "warp barrier"),
    (r"(bar|barrier)\..*", "barrier"),
    (r"shfl.*", "shuffle"),
    (r"(bra|brx|ret|exit|call).*", "branch"),
    (r"setp.*|.*\.pred", "predicate"),
    (r"(ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt)\.approx.*", "special function"),
    (r"(fma|add|sub|mul|min|max|neg|abs|div|rcp|sqrt)\..*(f16|bf16)(x2)?", "half"),
    (r"(fma|add|sub|mul|min|max|neg|abs|div|rcp|sqrt)\..*f(32|64)(x2)?", "floating"),
    (r"cvt.*", "conversion"),
    (r"(vote|match|redux|elect|activemask|fence|membar|cp|wgmma).*", "other"),
)
_COMPILED = tuple((re.compile(pattern + "$"), name) for pattern, name in _CLASSES)


@functools.cache
def classify(opcode: str) -> str:
    """The class of an opcode: classify("ld.global.nc.v4.u32") is "global load"."""
    for pattern, name in _COMPILED:
        if pattern.match(opcode):
            return name
    return "integer"
