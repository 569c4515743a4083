"""Random small kernels of PTX: straight code, guarded parts and loops over a few registers."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS, FLOATS, PAIRS, PREDICATES = 6, 4, 3, 3
THREADS = 64

# {r} {s} {t} and so on are drawn registers: words, floats (f g h), pairs (d e), predicates (p q).
_INTEGER = """
add.u32 {r}, {s}, {t}; | sub.s32 {r}, {s}, {t}; | mul.lo.u32 {r}, {s}, {t};
mul.hi.u32 {r}, {s}, {t}; | mul.hi.s32 {r}, {s}, {t}; | mad.lo.s32 {r}, {s}, {t}, {u};
and.b32 {r}, {s}, {t}; | or.b32 {r}, {s}, {t}; | xor.b32 {r}, {s}, {t}; | not.b32 {r}, {s};
shl.b32 {r}, {s}, {t}; | shr.u32 {r}, {s}, {t}; | shr.s32 {r}, {s}, {t};
shf.l.wrap.b32 {r}, {s}, {t}, {u}; | shf.r.clamp.b32 {r}, {s}, {t}, {u};
lop3.b32 {r}, {s}, {t}, {u}, 0x6a; | prmt.b32 {r}, {s}, {t}, {u};
bfe.u32 {r}, {s}, {t}, {u}; | bfe.s32 {r}, {s}, {t}, {u}; | bfi.b32 {r}, {s}, {t}, {u}, {v};
min.s32 {r}, {s}, {t}; | max.u32 {r}, {s}, {t}; | abs.s32 {r}, {s}; | popc.b32 {r}, {s};
clz.b32 {r}, {s}; | brev.b32 {r}, {s}; | add.u32 {r}, {s}, {n}; | and.b32 {r}, {s}, {n};
selp.b32 {r}, {s}, {t}, {p}; | dp4a.s32.u32 {r}, {s}, {t}, {u}; | bfind.u32 {r}, {s};
setp.lt.s32 {p}, {r}, {s}; | setp.ge.u32 {p}, {r}, {s}; | setp.eq.and.s32 {p}, {r}, {s}, {q};
or.b32 {t}, {t}, 1; div.u32 {r}, {s}, {t}; | or.b32 {t}, {t}, 1; rem.s32 {r}, {s}, {t};
""".replace("\n", "|")
_WIDE = """
mul.wide.u32 {d}, {r}, {s}; | mad.wide.s32 {d}, {r}, {s}, {e}; | add.s64 {d}, {d}, {e};
sub.s64 {d}, {d}, {e}; | mul.lo.u64 {d}, {d}, {e}; | mul.hi.u64 {d}, {d}, {e};
shl.b64 {d}, {e}, {r}; | shr.u64 {d}, {e}, {r}; | shr.s64 {d}, {e}, {r}; | xor.b64 {d}, {d}, {e};
cvt.u32.u64 {r}, {d}; | cvt.s64.s32 {d}, {r}; | min.s64 {d}, {d}, {e}; | setp.gt.s64 {p}, {d}, {e};
setp.le.u64 {p}, {d}, {e}; | selp.b64 {d}, {d}, {e}, {p}; | popc.b64 {r}, {d};
""".replace("\n", "|")
_FLOAT = """
add.rn.f32 {f}, {g}, {h}; | sub.rn.f32 {f}, {g}, {h}; | mul.rn.f32 {f}, {g}, {h};
fma.rn.f32 {f}, {g}, {h}, {f}; | fma.rz.f32 {f}, {g}, {h}, {f}; | add.rp.f32 {f}, {g}, {h};
mul.rn.ftz.f32 {f}, {g}, {h}; | min.f32 {f}, {g}, {h}; | max.NaN.f32 {f}, {g}, {h};
neg.f32 {f}, {g}; | abs.f32 {f}, {g}; | setp.lt.f32 {p}, {f}, {g}; | setp.geu.f32 {p}, {f}, {g};
selp.f32 {f}, {g}, {h}, {p}; | cvt.rzi.s32.f32 {r}, {f}; | cvt.rn.f32.s32 {f}, {r};
cvt.rn.f32.u32 {f}, {r}; | cvt.rni.u32.f32 {r}, {f}; | cvt.rmi.f32.f32 {f}, {g};
div.rn.f32 {f}, {g}, {h}; | sqrt.rn.f32 {f}, {g}; | rcp.rn.f32 {f}, {g};
ex2.approx.ftz.f32 {f}, {g}; | rcp.approx.ftz.f32 {f}, {g}; | mov.b32 {f}, {r};
cvt.rn.f16x2.f32 {r}, {f}, {g}; | fma.rn.f16x2 {r}, {s}, {t}, {u}; | add.rn.f32.f32 {f}, {g}, {h};
""".replace("add.rn.f32.f32", "add.rn.f32").replace("\n", "|")
_WARP = """
shfl.sync.bfly.b32 {r}|{p}, {s}, {m}, 0x1f, -1; / shfl.sync.idx.b32 {r}, {s}, {t}, 0x181f, -1;
/ vote.sync.ballot.b32 {r}, {p}, -1; / vote.sync.any.pred {p}, {q}, -1;
""".replace("\n", " ")


def _split(text: str, by: str) -> list[str]:
    return [each.strip() for each in text.split(by) if each.strip()]


EVERYWHERE = [*_split(_INTEGER, "|"), *_split(_WIDE, "|"), *_split(_FLOAT, "|")]
TOGETHER = _split(_WARP, "/")


def _instruction(templates: list[str]) -> st.SearchStrategy[str]:
    def one(kind: str, count: int) -> st.SearchStrategy[str]:
        return st.integers(0, count - 1).map(lambda index: f"%{kind}{index}")

    names = {
        **dict.fromkeys("rstuv", one("r", WORDS)),
        **dict.fromkeys("fgh", one("f", FLOATS)),
        **dict.fromkeys("de", one("d", PAIRS)),
        **dict.fromkeys("pq", one("p", PREDICATES)),
        "n": st.integers(-(1 << 31), (1 << 31) - 1).map(str),
        "m": st.integers(1, 31).map(str),
    }
    return st.builds(
        lambda template, **chosen: template.format(**chosen), st.sampled_from(templates), **names
    )


def _part(depth: int) -> st.SearchStrategy[str]:
    """A few instructions, some of them guarded or repeated; at the outermost, of whole warps."""
    plain = _instruction(EVERYWHERE + TOGETHER if depth == 0 else EVERYWHERE)
    if depth == 2:
        return plain
    inner = st.lists(_part(depth + 1), min_size=1, max_size=4).map("\n".join)
    guarded = st.builds(
        lambda body, p, no: f"{{ @{no}%p{p} bra OVER;\n{body}\nOVER: }}",
        inner,
        st.integers(0, PREDICATES - 1),
        st.sampled_from(["", "!"]),
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
    return st.one_of(plain, plain, plain, guarded, loop)


def kernels(size: int) -> st.SearchStrategy[str]:
    """Bodies for harness.ptx: they read array `a`, and write all their registers to `out`."""
    return st.lists(_part(0), min_size=size // 2, max_size=size).map(
        lambda parts: "\n".join([_begin(), *parts, _end()])
    )


def _begin() -> str:
    lines = [f"mad.wide.u32 %d50, %t, {4 * WORDS}, %a;"]
    lines += [f"ld.global.u32 %r{i}, [%d50+{4 * i}];" for i in range(WORDS)]
    lines += [f"mov.b32 %f{i}, %r{i};" for i in range(FLOATS)]
    lines += [f"mov.b64 %d{i}, {{%r{i}, %r{i + 1}}};" for i in range(PAIRS)]
    lines += [f"setp.lt.s32 %p{i}, %r{i}, %r{i + 1};" for i in range(PREDICATES)]
    return "\n".join([f".reg .f32 %f<{FLOATS}>;", *lines])


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
