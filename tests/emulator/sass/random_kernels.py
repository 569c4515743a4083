"""Random small kernels of PTX: straight code, guarded parts, loops and switches over a few
registers, with memory that threads have to themselves, and what warps and CTAs do together."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS, FLOATS, PAIRS, PREDICATES = 6, 4, 3, 3
THREADS = 64
OWN = 64
"""Bytes of shared and of local memory that a thread has to itself."""

# {r} {s} {t} and so on are drawn registers: words, floats (f g h), pairs (d e), predicates (o p q).
# `xor.pred {p}, {p}, {q}` is missing: ptxas moves it out of loops before which {p} is known to be
# false (warpsim/docs/sass.md).
# ~ stands for what an architecture before Hopper does not have.
_INTEGER = """
add.u32 {r}, {s}, {t}; | sub.s32 {r}, {s}, {t}; | mul.lo.u32 {r}, {s}, {t};
mul.hi.u32 {r}, {s}, {t}; | mul.hi.s32 {r}, {s}, {t}; | mad.lo.s32 {r}, {s}, {t}, {u};
mad.hi.u32 {r}, {s}, {t}, {u}; | mul24.lo.s32 {r}, {s}, {t}; | sad.s32 {r}, {s}, {t}, {u};
and.b32 {r}, {s}, {t}; | or.b32 {r}, {s}, {t}; | xor.b32 {r}, {s}, {t}; | not.b32 {r}, {s};
cnot.b32 {r}, {s}; | shl.b32 {r}, {s}, {t}; | shr.u32 {r}, {s}, {t}; | shr.s32 {r}, {s}, {t};
shf.l.wrap.b32 {r}, {s}, {t}, {u}; | shf.r.clamp.b32 {r}, {s}, {t}, {u};
lop3.b32 {r}, {s}, {t}, {u}, 0x6a; | lop3.b32 {r}, {s}, {t}, {u}, 0x1e;
prmt.b32 {r}, {s}, {t}, {u}; | prmt.b32.f4e {r}, {s}, {t}, {u}; | prmt.b32.rc16 {r}, {s}, {t}, {u};
bfe.u32 {r}, {s}, {t}, {u}; | bfe.s32 {r}, {s}, {t}, {u}; | bfi.b32 {r}, {s}, {t}, {u}, {v};
bmsk.clamp.b32 {r}, {s}, {t}; | bmsk.wrap.b32 {r}, {s}, {t}; | szext.clamp.s32 {r}, {s}, {t};
min.s32 {r}, {s}, {t}; | max.u32 {r}, {s}, {t}; | abs.s32 {r}, {s}; | popc.b32 {r}, {s};
clz.b32 {r}, {s}; | brev.b32 {r}, {s}; | add.u32 {r}, {s}, {n}; | and.b32 {r}, {s}, {n};
min.s32 {r}, {s}, {t}; min.s32 {r}, {r}, {u}; | add.sat.s32 {r}, {s}, {t};
sub.sat.s32 {r}, {s}, {t};
selp.b32 {r}, {s}, {t}, {p}; | slct.u32.s32 {r}, {s}, {t}, {u}; | dp4a.s32.u32 {r}, {s}, {t}, {u};
dp2a.hi.u32.s32 {r}, {s}, {t}, {u}; | bfind.u32 {r}, {s}; | bfind.shiftamt.s32 {r}, {s};
vabsdiff4.u32.u32.u32 {r}, {s}, {t}, {u}; | vabsdiff4.s32.s32.s32.add {r}, {s}, {t}, {u};
cvt.pack.sat.u8.s32.b32 {r}, {s}, {t}, {u};
cvt.s32.s8 {r}, {s}; | cvt.u32.u16 {r}, {s}; | cvt.sat.s16.s32 {r}, {s}; | cvt.sat.u8.s32 {r}, {s};
setp.lt.s32 {p}, {r}, {s}; | setp.ge.u32 {p}, {r}, {s}; | setp.eq.and.s32 {p}, {r}, {s}, {q};
setp.ne.xor.u32 {p}, {r}, {s}, !{q}; | set.gt.u32.s32 {r}, {s}, {t}; | xor.pred {p}, {q}, {o};
or.b32 {t}, {t}, 1; div.u32 {r}, {s}, {t}; | or.b32 {t}, {t}, 1; rem.s32 {r}, {s}, {t};
add.cc.u32 {r}, {r}, {s}; addc.u32 {t}, {t}, {u};
sub.cc.u32 {r}, {r}, {s}; subc.u32 {t}, {t}, {u};
mad.lo.cc.u32 {r}, {s}, {t}, {u}; madc.hi.u32 {v}, {s}, {t}, {v};
add.u16x2 {r}, {s}, {t}; ~ | min.s16x2 {r}, {s}, {t}; ~ | max.relu.s16x2 {r}, {s}, {t}; ~
""".replace("\n", "|")
_WIDE = """
mul.wide.u32 {d}, {r}, {s}; | mad.wide.s32 {d}, {r}, {s}, {e}; | add.s64 {d}, {d}, {e};
sub.s64 {d}, {d}, {e}; | mul.lo.u64 {d}, {d}, {e}; | mul.hi.u64 {d}, {d}, {e};
mul.hi.s64 {d}, {d}, {e}; | mad.lo.s64 {d}, {d}, {e}, {e}; | abs.s64 {d}, {e}; | neg.s64 {d}, {e};
shl.b64 {d}, {e}, {r}; | shr.u64 {d}, {e}, {r}; | shr.s64 {d}, {e}, {r}; | xor.b64 {d}, {d}, {e};
cvt.u32.u64 {r}, {d}; | cvt.s64.s32 {d}, {r}; | min.s64 {d}, {d}, {e}; | setp.gt.s64 {p}, {d}, {e};
max.u64 {d}, {d}, {e}; | bfe.s64 {d}, {e}, {r}, {s}; | bfi.b64 {d}, {e}, {d}, {r}, {s};
brev.b64 {d}, {e}; | clz.b64 {r}, {d}; | bfind.u64 {r}, {d}; | not.b64 {d}, {e};
setp.le.u64 {p}, {d}, {e}; | selp.b64 {d}, {d}, {e}, {p}; | popc.b64 {r}, {d};
or.b64 {e}, {e}, 1; div.u64 {d}, {d}, {e}; | or.b64 {e}, {e}, 1; rem.s64 {d}, {d}, {e};
mov.b64 {{{r}, {s}}}, {d}; | mov.b64 {d}, {{{r}, {s}}};
""".replace("\n", "|")
_FLOAT = """
add.rn.f32 {f}, {g}, {h}; | sub.rn.f32 {f}, {g}, {h}; | mul.rn.f32 {f}, {g}, {h};
fma.rn.f32 {f}, {g}, {h}, {f}; | fma.rz.f32 {f}, {g}, {h}, {f}; | add.rp.f32 {f}, {g}, {h};
mul.rn.ftz.f32 {f}, {g}, {h}; | min.f32 {f}, {g}, {h}; | max.NaN.f32 {f}, {g}, {h};
fma.rn.sat.f32 {f}, {g}, {h}, {f}; | mul.rm.ftz.sat.f32 {f}, {g}, {h}; | copysign.f32 {f}, {g}, {h};
neg.f32 {f}, {g}; | abs.f32 {f}, {g}; | setp.lt.f32 {p}, {f}, {g}; | setp.geu.f32 {p}, {f}, {g};
setp.num.or.f32 {p}, {f}, {g}, {q}; | testp.subnormal.f32 {p}, {f}; | set.le.f32.f32 {f}, {g}, {h};
slct.f32.s32 {f}, {g}, {h}, {r}; | max.f32 {f}, {g}, {h}; max.f32 {f}, {f}, {g};
selp.f32 {f}, {g}, {h}, {p}; | cvt.rzi.s32.f32 {r}, {f}; | cvt.rn.f32.s32 {f}, {r};
cvt.rn.f32.u32 {f}, {r}; | cvt.rni.u32.f32 {r}, {f}; | cvt.rmi.f32.f32 {f}, {g};
cvt.rzi.s64.f32 {d}, {f}; | cvt.rn.f32.u64 {f}, {d}; | cvt.rzi.u8.f32 {r}, {f};
cvt.rna.tf32.f32 {r}, {f};
div.rn.f32 {f}, {g}, {h}; | sqrt.rn.f32 {f}, {g}; | rcp.rn.f32 {f}, {g}; | sqrt.rz.f32 {f}, {g};
ex2.approx.ftz.f32 {f}, {g}; | rsqrt.approx.ftz.f32 {f}, {g};
lg2.approx.ftz.f32 {f}, {g}; | tanh.approx.f32 {f}, {g}; | mov.b32 {f}, {r}; | mov.b32 {r}, {f};
cvt.rn.f16x2.f32 {r}, {f}, {g}; | cvt.rz.relu.bf16x2.f32 {r}, {f}, {g};
cvt.rn.satfinite.e4m3x2.f32 %h0, {f}, {g}; cvt.u32.u16 {r}, %h0; ~
cvt.u16.u32 %h0, {s}; cvt.rn.f16x2.e5m2x2 {r}, %h0; ~
""".replace("\n", "|")
_DOUBLE = """
add.rn.f64 {d}, {d}, {e}; | mul.rn.f64 {d}, {d}, {e}; | fma.rn.f64 {d}, {d}, {e}, {e};
fma.rz.f64 {d}, {d}, {e}, {d}; | min.f64 {d}, {d}, {e}; | setp.lt.f64 {p}, {d}, {e};
neg.f64 {d}, {e};
cvt.rn.f32.f64 {f}, {d}; | cvt.f64.f32 {d}, {f}; | cvt.rzi.s32.f64 {r}, {d};
cvt.rn.f64.u32 {d}, {r};
cvt.rni.f64.f64 {d}, {e}; | cvt.rzi.u64.f64 {d}, {e}; | div.rn.f64 {d}, {d}, {e};
sqrt.rn.f64 {d}, {e};
""".replace("\n", "|")
_HALF = """
fma.rn.f16x2 {r}, {s}, {t}, {u}; | add.rn.f16x2 {r}, {s}, {t}; | mul.rn.ftz.f16x2 {r}, {s}, {t};
sub.rn.sat.f16x2 {r}, {s}, {t}; | fma.rn.relu.f16x2 {r}, {s}, {t}, {u};
min.NaN.f16x2 {r}, {s}, {t};
max.f16x2 {r}, {s}, {t}; | neg.f16x2 {r}, {s}; | abs.f16x2 {r}, {s};
fma.rn.bf16x2 {r}, {s}, {t}, {u};
fma.rn.relu.bf16x2 {r}, {s}, {t}, {u}; | max.NaN.bf16x2 {r}, {s}, {t}; | abs.bf16x2 {r}, {s};
add.rn.bf16x2 {r}, {s}, {t}; ~ | mul.rn.bf16x2 {r}, {s}, {t}; ~ | sub.rn.bf16x2 {r}, {s}, {t}; ~
ex2.approx.f16x2 {r}, {s}; | tanh.approx.bf16x2 {r}, {s}; ~ | set.lt.f16x2.f16x2 {r}, {s}, {t};
mov.b32 {{%h0, %h1}}, {s}; cvt.f32.f16 {f}, %h1;
mov.b32 {{%h0, %h1}}, {s}; cvt.rni.s32.f16 {r}, %h0;
mov.b32 {{%h0, %h1}}, {s}; add.rn.f16 %h0, %h0, %h1; mov.b32 {r}, {{%h1, %h0}};
mov.b32 {{%h0, %h1}}, {s}; setp.gt.f16 {p}, %h0, %h1;
cvt.rn.f16.f32 %h2, {f}; cvt.u32.u16 {r}, %h2;
""".replace("\n", "|")
# A thread's own memory, with places that depend on the data.
_OWN = """
and.b32 %i, {s}, 60; add.u32 %i, %i, %own; st.shared.u32 [%i], {r}; |
and.b32 %i, {s}, 60; add.u32 %i, %i, %own; ld.shared.u32 {r}, [%i]; |
and.b32 %i, {s}, 63; add.u32 %i, %i, %own; st.shared.u8 [%i], {r}; |
and.b32 %i, {s}, 62; add.u32 %i, %i, %own; ld.shared.s16 {r}, [%i]; |
st.shared.v4.u32 [%own+16], {{%r0, %r1, %r2, %r3}}; | ld.shared.v2.u32 {{%r1, %r2}}, [%own+24]; |
ld.shared.u64 {d}, [%own+8]; | st.shared.v2.f32 [%own+32], {{{f}, {g}}}; |
and.b32 %i, {s}, 12; add.u32 %i, %i, %own; red.shared.add.u32 [%i], {r}; |
and.b32 %i, {s}, 12; add.u32 %i, %i, %own; atom.shared.cas.b32 {r}, [%i], {t}, {u}; |
and.b32 %i, {s}, 12; add.u32 %i, %i, %own; atom.shared.max.s32 {r}, [%i], {t}; |
atom.shared.add.f32 {f}, [%own+20], {g}; | atom.shared.add.u64 {d}, [%own+8], {e}; |
and.b32 %i, {s}, 60; add.u32 %i, %i, %local; st.local.u32 [%i], {r}; |
and.b32 %i, {s}, 60; add.u32 %i, %i, %local; ld.local.u32 {r}, [%i]; |
ld.local.v2.u32 {{%r3, %r4}}, [%local+8]; | st.local.u16 [%local+6], {r}; |
and.b32 %i, {s}, 255; mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %a; ld.global.nc.u32 {r}, [%at]; |
and.b32 %i, {s}, 255; mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %a; ld.global.s8 {r}, [%at+1]; |
ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%a+32];
""".replace("\n", " ")
_WARP = """
shfl.sync.bfly.b32 {r}|{p}, {s}, {m}, 0x1f, -1; / shfl.sync.idx.b32 {r}, {s}, {t}, 0x181f, -1;
/ shfl.sync.up.b32 {r}|{p}, {s}, {m}, 0, -1; / shfl.sync.down.b32 {r}, {s}, {m}, 0x1c1f, -1;
/ vote.sync.ballot.b32 {r}, {p}, -1; / vote.sync.any.pred {p}, {q}, -1;
/ vote.sync.all.pred {p}, !{q}, -1; / vote.sync.uni.pred {p}, {q}, -1;
/ match.any.sync.b32 {r}, {s}, -1; / and.b32 {s}, {s}, 3; match.any.sync.b32 {r}, {s}, -1;
/ match.all.sync.b32 {r}|{p}, {s}, -1; / redux.sync.add.s32 {r}, {s}, -1;
/ redux.sync.min.s32 {r}, {s}, -1; / redux.sync.max.u32 {r}, {s}, -1; / redux.sync.xor.b32 {r},
{s}, -1;
/ movmatrix.sync.aligned.m8n8.trans.b16 {r}, {s};
/ mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0, %f1, %f2, %f3}},
{{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};
/ mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f0, %f1, %f2, %f3}},
{{%r0, %r1}}, {{%r4}}, {{%f0, %f1, %f2, %f3}};
/ mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%r0, %r1}},
{{%r2, %r3, %r4, %r5}}, {{%r4, %r5}}, {{%r0, %r1}};
/ mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {{%r0, %r1, %r2, %r3}},
{{%r2, %r3, %r4, %r5}}, {{%r4, %r5}}, {{%r0, %r1, %r2, %r3}};
""".replace("\n", " ")
# Between two barriers of the CTA: `tile` is 4 KB of shared memory that all its threads use.
_CTA = """
st.shared.u32 [%mine], {r}; bar.sync 0; xor.b32 %i, %t, {m}; shl.b32 %i, %i, 2;
add.u32 %i, %i, %tile; ld.shared.u32 {s}, [%i];
/ and.b32 %i, {s}, 124; add.u32 %i, %i, %tile; red.shared.add.u32 [%i], {r};
bar.sync 0; ld.shared.u32 {t}, [%mine];
/ and.b32 %i, {s}, 60; add.u32 %i, %i, %tile; red.shared.min.s32 [%i], {r};
bar.sync 0; ld.shared.u32 {t}, [%mine];
/ and.b32 %i, {s}, 60; add.u32 %i, %i, %tile; @{p} red.shared.xor.b32 [%i], {r};
bar.sync 0; ld.shared.u32 {t}, [%mine];
/ red.shared.inc.u32 [%tile+8], {n}; bar.sync 0; ld.shared.u32 {t}, [%tile+8];
/ and.b32 %i, {s}, 127; mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %a;
cp.async.ca.shared.global [%mine], [%at], 4; cp.async.commit_group; cp.async.wait_group 0;
bar.sync 0; xor.b32 %i, %t, {m}; shl.b32 %i, %i, 2; add.u32 %i, %i, %tile; ld.shared.u32 {r}, [%i];
/ shl.b32 %i, %t, 4; add.u32 %i, %i, %tile; st.shared.v4.u32 [%i], {{%r0, %r1, %r2, %r3}};
bar.sync 0;
and.b32 %i, %t, 31; shl.b32 %i, %i, 4; add.u32 %i, %i, %tile;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%i];
/ shl.b32 %i, %t, 4; add.u32 %i, %i, %tile; st.shared.v4.u32 [%i], {{%r2, %r3, %r4, %r5}};
bar.sync 0;
and.b32 %i, %t, 31; shl.b32 %i, %i, 4; add.u32 %i, %i, %tile;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r4, %r5}}, [%i];
/ shl.b32 %i, %t, 4; add.u32 %i, %i, %tile;
stmatrix.sync.aligned.m8n8.x2.shared.b16 [%i], {{%r0, %r1}}; bar.sync 0;
and.b32 %i, %t, 31; shl.b32 %i, %i, 4; add.u32 %i, %i, %tile; ld.shared.u32 {r}, [%i+8]; ~
/ bar.red.popc.u32 {r}, 1, {p}; / bar.red.or.pred {p}, 1, !{q};
""".replace("\n", " ")


def _split(text: str, by: str) -> list[str]:
    return [part.strip() for part in text.split(by) if part.strip()]


_CALL = """
{{ .param .b32 one; .param .b32 other; .param .b32 result; st.param.b32 [one], {s};
st.param.b32 [other], {t}; call (result), helper, (one, other); ld.param.b32 {r}, [result]; }}
"""
# Which of two NaNs a double's result is depends on their order, which ptxas changes.
_SAME_NAN = " setp.nan.f64 %nan, {d}, {d}; selp.b64 {d}, %quiet, {d}, %nan;"
EVERYWHERE = [
    template + (_SAME_NAN if group is _DOUBLE else "")
    for group in (_INTEGER, _WIDE, _FLOAT, _DOUBLE, _HALF, _OWN)
    for template in _split(group, "|")
] + [_CALL]
TOGETHER = _split(_WARP.replace("\n", " "), "/")
OF_CTA = [f"bar.sync 0; {template}" for template in _split(_CTA, "/")]
HELPER = """
.func (.param .b32 result) helper(.param .b32 one, .param .b32 other) {
.reg .pred %big; .reg .b32 %x, %y;
ld.param.b32 %x, [one]; ld.param.b32 %y, [other]; setp.gt.u32 %big, %x, %y;
mul.lo.u32 %y, %x, %y; @%big xor.b32 %y, %y, %x; st.param.b32 [result], %y; ret;
}
"""
SHARED = f".shared .align 16 .b8 tile[4096]; .shared .align 16 .b8 own[{OWN * THREADS}];"


def _allowed(templates: list[str], target: str) -> list[str]:
    """Those that an architecture has, without their marks."""
    early = int(target[3:5]) < 90 and not target.startswith("sm_100")
    return [item.rstrip("~ ") for item in templates if not (early and item.endswith("~"))]


def _instruction(templates: list[str]) -> st.SearchStrategy[str]:
    def one(kind: str, count: int) -> st.SearchStrategy[str]:
        return st.integers(0, count - 1).map(lambda index: f"%{kind}{index}")

    def several(names: str, kind: str, count: int) -> st.SearchStrategy[dict[str, str]]:
        # Of the same number twice ptxas makes a copy, which keeps the bits of a NaN.
        return st.permutations(range(count)).map(
            lambda order: {name: f"%{kind}{order[i]}" for i, name in enumerate(names)}
        )

    def fill(template: str, results: dict[str, str], *sources: dict[str, str]) -> str:
        chosen = {name: register for source in sources for name, register in source.items()}
        # Results of one instruction may not be the same register.
        return template.format(**(chosen if _apart(template) else chosen | results))

    literals = {
        "n": st.integers(-(1 << 31), (1 << 31) - 1).map(str),
        "m": st.integers(1, 31).map(str),
    }
    return st.builds(
        fill,
        st.sampled_from(templates),
        st.fixed_dictionaries({"r": one("r", WORDS), "f": one("f", FLOATS)}),
        several("rstuv", "r", WORDS),
        several("fgh", "f", FLOATS),
        several("de", "d", PAIRS),
        several("opq", "p", PREDICATES),
        st.fixed_dictionaries(literals),
    )


def _apart(template: str) -> bool:
    """Whether an instruction has several results, or is one of several."""
    return template.count(";") > 1 or "{{{r}" in template


def _part(depth: int, target: str) -> st.SearchStrategy[str]:
    """A few instructions, some of them guarded or repeated; at the outermost, of whole warps."""
    everywhere, together, of_cta = (
        _allowed(item, target) for item in (EVERYWHERE, TOGETHER, OF_CTA)
    )
    plain = _instruction(everywhere)
    if depth == 2:
        return plain
    inner = st.lists(_part(depth + 1, target), min_size=1, max_size=4).map("\n".join)
    guarded = st.builds(
        lambda body, p, no: f"{{ @{no}%p{p} bra OVER;\n{body}\nOVER: }}",
        inner,
        st.integers(0, PREDICATES - 1),
        st.sampled_from(["", "!"]),
    )
    either = st.builds(
        lambda one, other, p: f"{{ @%p{p} bra ELSE;\n{one}\nbra JOIN;\nELSE:\n{other}\nJOIN: }}",
        inner,
        inner,
        st.integers(0, PREDICATES - 1),
    )
    loop = st.builds(
        lambda body, r: (
            "{ .reg .u32 %n; .reg .pred %more;\n"
            f"and.b32 %n, %r{r}, 3;\nAGAIN:\n{body}\nsub.u32 %n, %n, 1;\n"
            "setp.lt.s32 %more, %n, 0;\n@!%more bra AGAIN; }"
        ),
        inner,
        st.integers(0, WORDS - 1),
    )
    switch = st.builds(
        lambda bodies, r: (
            "{ .reg .u32 %n; TO: .branchtargets L0, L1, L2, L3;\n"
            f"and.b32 %n, %r{r}, 3;\nbrx.idx %n, TO;\n"
            + "\n".join(f"L{i}:\n{body}\nbra END;" for i, body in enumerate(bodies))
            + "\nEND: }"
        ),
        st.tuples(inner, inner, inner, inner),
        st.integers(0, WORDS - 1),
    )
    if depth == 1:
        return st.one_of(plain, plain, plain, guarded, loop)
    return st.one_of(
        plain, plain, _instruction(together), _instruction(of_cta), guarded, either, loop, switch
    )


def kernels(size: int, target: str = "sm_80") -> st.SearchStrategy[str]:
    """Bodies for harness.ptx, with SHARED and HELPER: they read array `a`, and write all their
    registers to `out`."""
    return st.lists(_part(0, target), min_size=size // 2, max_size=size).map(
        lambda parts: "\n".join([_begin(), *parts, _end()])
    )


def _begin() -> str:
    lines = [f"mad.wide.u32 %d50, %t, {4 * WORDS}, %a;"]
    lines += [f"ld.global.u32 %r{i}, [%d50+{4 * i}];" for i in range(WORDS)]
    lines += [f"mov.b32 %f{i}, %r{i};" for i in range(FLOATS)]
    lines += [f"mov.b64 %d{i}, {{%r{i}, %r{i + 1}}};" for i in range(PAIRS)]
    lines += [f"setp.lt.s32 %p{i}, %r{i}, %r{i + 1};" for i in range(PREDICATES)]
    lines += [f"mov.u32 %own, own; mad.lo.u32 %own, %t, {OWN}, %own; mov.u32 %local, local;"]
    lines += ["mov.u32 %tile, tile; shl.b32 %mine, %t, 2; add.u32 %mine, %mine, %tile;"]
    for i in range(OWN // 16):
        four = ", ".join(f"%r{(i + k) % WORDS}" for k in range(4))
        lines += [f"st.shared.v4.u32 [%own+{16 * i}], {{{four}}};"]
        lines += [f"st.local.v4.u32 [%local+{16 * i}], {{{four}}};"]
        lines += [f"mad.lo.u32 %i, %t, 16, %tile; st.shared.v4.u32 [%i+{1024 * i}], {{{four}}};"]
    registers = ".reg .b32 %own, %local, %tile, %mine, %i; .reg .b64 %at, %quiet;"
    registers += " .reg .pred %nan; mov.b64 %quiet, 0x7ff8000000000000;"
    local = f".local .align 16 .b8 local[{OWN}];"
    return "\n".join([f".reg .f32 %f<{FLOATS}>;", registers, local, *lines])


def _end() -> str:
    """ptxas keeps only what is stored."""
    lines = [f"mad.wide.u32 %d50, %t, {4 * OUTPUTS}, %out;"]
    lines += [f"st.global.u32 [%d50+{4 * i}], %r{i};" for i in range(WORDS)]
    lines += [f"st.global.f32 [%d50+{4 * (WORDS + i)}], %f{i};" for i in range(FLOATS)]
    for i in range(PAIRS):
        at = 4 * (WORDS + FLOATS + 2 * i)
        lines += [f"mov.b64 {{%r40, %r41}}, %d{i};", f"st.global.u32 [%d50+{at}], %r40;"]
        lines += [f"st.global.u32 [%d50+{at + 4}], %r41;"]
    for i in range(PREDICATES):
        at = 4 * (WORDS + FLOATS + 2 * PAIRS + i)
        lines += [f"selp.b32 %r40, 1, 0, %p{i};", f"st.global.u32 [%d50+{at}], %r40;"]
    return "\n".join(lines)


OUTPUTS = WORDS + FLOATS + 2 * PAIRS + PREDICATES
