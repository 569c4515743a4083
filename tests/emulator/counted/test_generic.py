"""Generic loads, stores and atomics: counted by where they lead, as ncu counted on an H200."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from harness import assemble

import warpsim as emulator
from warpsim.launch import Launch, Pointer

from .program import TARGET

_RECORDED = Path(__file__).with_name("generic.csv")
_GLOBAL, _OWN, _OTHER, _LOCAL, _OWN_BY_CLUSTER = range(5)
_PLACES = {
    "global": (_GLOBAL,),
    "own": (_OWN,),
    "other": (_OTHER,),
    "local": (_LOCAL,),
    "own by cluster": (_OWN_BY_CLUSTER,),
    "global own": (_GLOBAL, _OWN),
    "own other": (_OWN, _OTHER),
    "global other": (_GLOBAL, _OTHER),
    "global local": (_GLOBAL, _LOCAL),
    "all": (_GLOBAL, _OWN, _OTHER, _LOCAL),
    "halves": (_GLOBAL,) * 16 + (_OWN,) * 16,
}
"""Where the lanes' addresses lead: in turn, lane by lane."""
_BODIES = {
    "ld_4": "ld.volatile.u32 %r0, [%a];",
    "ld_16": "ld.volatile.v4.u32 {%r0, %r1, %r2, %r3}, [%a];",
    "st_4": "st.volatile.u32 [%a], %r0;",
    "st_16": "st.volatile.v4.u32 [%a], {%r0, %r1, %r2, %r3};",
    "red_4": "atom.add.u32 %r0, [%a], %r1;",
}
_HEAD = f"""
.version 8.7
.target {TARGET}
.address_size 64
.extern .shared .align 1024 .b8 smem[];
"""


def _entry(name: str, body: str) -> str:
    """Two CTAs of a warp: each lane makes its address from an entry of `table`, which is an offset
    in global memory, one in shared memory, and the place."""
    return f"""
.visible .entry generic_{name}(.param .u64 data, .param .u64 table, .param .u64 out) {{
.local .align 16 .b8 mine[64];
.reg .pred %p, %q; .reg .b32 %r<8>; .reg .b32 %go, %so, %n, %x, %s, %base, %l, %c;
.reg .b64 %g, %a, %b, %data, %t, %o, %d;
ld.param.u64 %data, [data]; ld.param.u64 %t, [table]; ld.param.u64 %o, [out];
cvta.to.global.u64 %t, %t; cvta.to.global.u64 %o, %o;
mov.u32 %l, %tid.x; mul.wide.u32 %d, %l, 16; add.u64 %t, %t, %d; mov.u32 %base, smem;
mov.u32 %c, %cluster_ctarank;
ld.global.v4.u32 {{%go, %so, %n, %x}}, [%t];
mov.u64 %b, mine; cvta.local.u64 %b, %b; st.local.u32 [mine], %go;
cvt.u64.u32 %g, %go;
add.u64 %a, %g, %data;
setp.eq.u32 %q, %n, {_OWN}; add.u32 %s, %so, %base; cvt.u64.u32 %d, %s; cvta.shared.u64 %d, %d;
@%q mov.u64 %a, %d;
setp.eq.u32 %q, %n, {_OTHER}; xor.b32 %c, %c, 1; mapa.u64 %d, %d, %c; @%q mov.u64 %a, %d;
setp.eq.u32 %q, %n, {_LOCAL}; @%q mov.u64 %a, %b;
xor.b32 %c, %c, 1; setp.eq.u32 %q, %n, {_OWN_BY_CLUSTER}; mapa.u64 %d, %d, %c;
@%q mov.u64 %a, %d;
barrier.cluster.arrive; barrier.cluster.wait;
setp.ne.u32 %p, %x, 0;
mov.u32 %r0, %l; mov.u32 %r1, %l; mov.u32 %r2, %l; mov.u32 %r3, %l;
@%p {body}
barrier.cluster.arrive; barrier.cluster.wait;
mul.wide.u32 %d, %l, 16; add.u64 %o, %o, %d; st.global.v4.u32 [%o], {{%r0, %r1, %r2, %r3}};
ret;
}}"""


@pytest.mark.slow
def test_generic_accesses_are_counted_where_they_lead() -> None:
    source = _HEAD + "".join(_entry(name, body) for name, body in _BODIES.items())
    module = emulator.load_cubin(*assemble(source, TARGET))
    with _RECORDED.open(newline="") as file:
        launches = list(csv.DictReader(file))
    other = {}
    for launch in launches:
        entry, lanes, pitch = (launch.pop(key) for key in ("entry", "lanes", "pitch"))
        counted = _counters(module, entry, _PLACES[lanes], int(pitch))
        for metric, text in _comparable(launch, lanes):
            if counted[metric] != int(text):
                other[entry, lanes, pitch, metric] = (counted[metric], int(text))
    assert len(launches) == 64
    assert other == {}


def _comparable(launch: dict[str, str], lanes: str) -> list[tuple[str, str]]:
    """Of a warp that is in local and in global memory at once, the L1 counts requests and sectors
    under one or the other, not always the same."""
    mixed = lanes in ("global local", "all")
    return [(name, text) for name, text in launch.items() if not (mixed and "l1tex__t_" in name)]


def _counters(
    module: emulator.Module, entry: str, places: tuple[int, ...], pitch: int
) -> dict[str, int]:
    lane = np.arange(32, dtype=np.uint32)
    place = np.resize(np.array(places, np.uint32), 32)
    arrays = {
        "data": np.zeros(8192, np.uint32),
        "table": np.stack([pitch * lane, pitch * lane, place, np.ones_like(lane)], 1).ravel(),
        "out": np.zeros(128, np.uint32),
    }
    launch = Launch(
        entry=f"generic_{entry}",
        grid=(2, 1, 1),
        block=(32, 1, 1),
        cluster=(2, 1, 1),
        dynamic_smem_bytes=16384,
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    return emulator.run(module, launch, arrays).counters.kernel
