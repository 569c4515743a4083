"""What is covered: the opcodes that nvcc was seen to emit are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsim import coverage
from warpsim.front.ptx.registry import TABLE, find
from warpsim.machine.core.findings import NAMES

MANUAL = Path(__file__).parents[2] / "warpsim" / "docs" / "emulator.md"

# One of each kind of what nvcc 13.0 emits for GEMM, attention and small kernels.
SEEN = """
abs.f32 activemask.b32 add.bf16x2 add.ftz.f32 add.rn.bf16x2 add.s16 add.s64 and.pred
atom.global.add.u64 atom.relaxed.global.cas.b32 atom.shared.add.f32 bar.red.or.pred
bar.red.popc.u32 bar.sync bar.warp.sync barrier.cluster.arrive.relaxed.aligned
barrier.cluster.wait.acquire.aligned barrier.cluster.wait.aligned bfi.b64 bfind.shiftamt.u32
brev.b32 clz.b32 copysign.f32 cp.async.bulk.commit_group
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
cp.async.bulk.wait_group cp.async.bulk.wait_group.read cp.async.cg.shared.global
cp.async.commit_group cp.async.wait_group
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group cvt.f32.bf16 cvt.f64.f32
cvt.rmi.s32.f32 cvt.rn.bf16x2.f32 cvt.rn.f16x2.e4m3x2 cvt.rn.satfinite.e4m3x2.f32 cvt.rni.f32.f32
cvt.sat.f32.f32 cvt.u64.u32 cvta.param.u64 cvta.to.shared.u64 div.approx.ftz.f32 div.rn.f32 div.u16
dp4a.s32.s32 elect.sync ex2.approx.ftz.f32 fence.mbarrier_init.release.cluster
fence.proxy.async.shared::cta fma.rm.f32 fma.rn.bf16x2 fma.rn.f64 griddepcontrol.wait
ld.global.L2::128B.f32 ld.global.cg.s32 ld.global.nc.v4.u32 ld.local.u32 ld.param.u64
ld.shared.v4.b32 ld.volatile.global.u32 ld.volatile.shared.b32
ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 lop3.b32 mad.wide.u32 mapa.shared::cluster.u32
match.any.sync.b32 max.bf16x2 mbarrier.arrive.expect_tx.release.cta.shared::cluster.b64
mbarrier.arrive.release.cta.shared::cta.b64 mbarrier.init.shared::cta.b64
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 membar.gl
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 mov.pred mul.hi.s64 nanosleep.u32 neg.s32
popc.b32 prefetch.tensormap prmt.b32 rcp.approx.ftz.f32 redux.sync.add.s32 rsqrt.approx.f32
selp.f32 setmaxnreg.dec.sync.aligned.u32 setp.eq.ftz.f32 setp.num.f32 shf.l.wrap.b32
shfl.sync.bfly.b32 sqrt.rn.f32 st.global.cs.v8.b32 st.global.v8.b32 st.local.v2.u32 st.shared.u8
st.shared.v4.u32 stmatrix.sync.aligned.x2.m8n8.shared.b16 sub.ftz.f32
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
tcgen05.dealloc.cta_group::2.sync.aligned.b32 tcgen05.fence::after_thread_sync
tcgen05.ld.sync.aligned.32x32b.x8.b32 tcgen05.ld.sync.aligned.32x32b.x128.b32
tcgen05.mma.cta_group::1.kind::f8f6f4 tcgen05.mma.cta_group::2.kind::f16
tcgen05.wait::ld.sync.aligned trap vadd.s32.s32.s32 vote.sync.ballot.b32
wgmma.commit_group.sync.aligned wgmma.fence.sync.aligned
wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 wgmma.wait_group.sync.aligned
wmma.load.b.sync.aligned.col.m8n32k16.shared.s8 wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32
wmma.store.d.sync.aligned.row.m8n32k16.shared.s32 xor.pred
""".split()


@pytest.mark.parametrize("opcode", SEEN)
def test_an_opcode_that_nvcc_emits_is_covered(opcode):
    assert find(opcode) is not None


@pytest.mark.parametrize(
    "opcode",
    [
        "tcgen05.mma.sp.cta_group::1.kind::f16",
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::2X",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale",
        "tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale",
        "tcgen05.cp.cta_group::2.32x128b",
        "tld4.r.2d.v4.f32.f32",
        "add.f128",
        "ld.global.v3.b32",
    ],
)
def test_what_is_not_modelled_is_not_covered(opcode):
    assert find(opcode) is None


def test_the_page_has_every_pattern_of_the_table():
    listed = coverage.ptx()
    opcodes = {line[3:-1] for line in listed.splitlines() if line.startswith("- `")}
    spelled = {coverage.spelled(row.text) for row in TABLE.rows if not row.text.startswith("@")}
    assert opcodes == spelled
    assert "activemask.b32" in spelled


def test_the_manual_names_every_finding():
    manual = MANUAL.read_text()
    assert [name for name in NAMES if f"`{name}`" not in manual] == []
