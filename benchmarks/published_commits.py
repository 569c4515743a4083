"""Models the published commits of the B200 kernel themselves, beside the times of their author.

    python benchmarks/published_commits.py CHECKOUT [NAME ...]

CHECKOUT is one of stephendliang/siglip, of which each step's megakernel.cu is compiled with nvcc
and launched as its main() does; the CTAs of the first cluster are executed, all of their tiles.
Names are steps of the history, or F1, F2, F3 and F6. The last two are a step with another figure
in its source. The sources of F1 and F2 were not published: they are d882aba's, changed as their
author describes it; ptxas gives them the registers that were published, 213 and 246.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import public_times
import published_history

import warpsim as emulator
from kernelexp.evidence import native
from kernelexp.system import toolchain
from warpsim.launch import Argument, Launch, Pointer, TensorMap
from warpsim.machine.core.arrays import Array
from warpsim.timing import chips, model
from warpsim.timing.errors import NotModelled
from warpsim.timing.recording import record

CHIP, ARCH, CTAS = "B200", "sm_100a", 148
M, N, K, PERIOD = 928_256, 768, 768, 196
COLUMNS = 16
"""That the smaller load of tensor memory has."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A published step: its commit, or one with other figures in its source."""

    name: str
    commit: str
    before: str
    """The step that its change is of."""
    figures: Mapping[str, int] = {}
    rebuilt: Literal["", "split", "prestage"] = ""
    """How a source that was not published differs from the commit's."""


COMMITS = {
    "4760f3b": "4760f3b",
    "892766c": "892766c",
    "fca9178": "fca9178",
    "9557e0b": "9d1352a",
    "abf04a5": "ce4e8d0",
    "6319928": "6319928",
    "521ad55": "521ad55",
    "cefc59d": "cefc59d",
    "c32ab7a": "c32ab7a",
    "d882aba": "d882aba",
    "9bf658a": "9bf658a",
}
"""By the names of the log, of which two are hashes that the repository does not have."""
STEPS = (
    Step(name="6c327fe", commit="6c327fe", before=""),
    Step(name="c5f6c8b", commit="c5f6c8b", before="6c327fe"),
    Step(name="4ff9644", commit="4ff9644", before="c5f6c8b"),
    Step(name="4760f3b", commit="4760f3b", before="4ff9644"),
    *(
        Step(name=name, commit=COMMITS[name], before=before)
        for before, name in itertools.pairwise(COMMITS)
    ),
    Step(name="F6", commit="cefc59d", before="521ad55", figures={"N_STAGES": 5}),
    Step(name="F1", commit="d882aba", before="d882aba", rebuilt="split"),
    Step(name="F2", commit="d882aba", before="d882aba", rebuilt="prestage"),
    Step(name="F3", commit="521ad55", before="521ad55", figures={"NUM_EPI_WARPS": 6}),
)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A step's source, with the figures that it is compiled with."""

    text: str

    def figure(self, name: str) -> int:
        """A macro's value, which may name others."""
        found = re.search(rf"#define {name}\s+(.+?)\s*(?://.*)?$", self.text, re.M)
        assert found, name
        spelled = re.sub(r"[A-Z_]{2,}", lambda x: str(self.figure(x.group())), found.group(1))
        return int(eval(spelled.replace("U", ""), {}))

    def with_figure(self, name: str, value: int) -> Source:
        line = re.compile(rf"(#define {name}\s+)\S+")
        return Source(text=line.sub(rf"\g<1>{value}", self.text))

    @property
    def cluster(self) -> int:
        return 2 if "__cluster_dims__(2" in self.text else 1

    def arrays(self, rows: int) -> dict[str, Array]:
        """What a launch on so many rows is given, as far as it is followed."""
        given = {
            "a": np.full((rows, K), 0x3C, np.uint8),
            "b": np.full((N, K), 0x3C, np.uint8),
            "out": np.zeros((rows, N), np.uint16),
        }
        if "combined" in self.text:
            padded = 224 if "COMB_PADDED_ROWS" in self.text else PERIOD
            return given | {"combined": np.zeros((padded, N), np.uint16)}
        zeros = {"bias": np.zeros(N, np.float32), "pos": np.zeros((PERIOD, N), np.float32)}
        return given | zeros

    def arguments(self, arrays: Mapping[str, Array]) -> tuple[Argument, ...]:
        columns = self.figure("TN") // self.cluster
        maps = [_map("a", arrays, 128, 128), _map("b", arrays, columns, 128)]
        if "tma_c" in self.text:
            maps.append(_map("out", arrays, 32, 16))
        tables = [Pointer(array=name) for name in ("combined", "bias", "pos") if name in arrays]
        return (*maps, *tables, Pointer(array="out"))


def _map(name: str, arrays: Mapping[str, Array], rows: int, columns: int) -> TensorMap:
    array = arrays[name]
    return TensorMap(
        array=name,
        element="u8" if array.itemsize == 1 else "bf16",
        shape=array.shape[::-1],
        strides_bytes=(array.strides[0],),
        box=(columns, rows),
        swizzle="128B" if array.itemsize == 1 else "none",
    )


def split(text: str) -> str:
    """F1: two loads of 16 columns for each of 32, the first as soon as its registers are free."""
    first, second = (
        ",".join(f"a{at}" for at in range(begin, begin + COLUMNS)) for begin in (0, COLUMNS)
    )
    loads = list(re.finditer(r"TMEM_LOAD_X32\([^;]*?,\s*(taddr_base[^,)]*)\);", text))
    stored = re.search(rf"CVT_STS\({first}, saddr\);", text)
    assert len(loads) == 2
    assert stored
    begin, again = loads
    return (
        text[: begin.start()]
        + f"TMEM_LOAD({first}, {begin[1]}); TMEM_LOAD({second}, {begin[1]} + {COLUMNS});"
        + text[begin.end() : stored.end()]
        + f"if (nc + 32 < NC_END) TMEM_LOAD({first}, {again[1]});"
        + text[stored.end() : again.start()]
        + f"TMEM_LOAD({second}, {again[1]} + {COLUMNS});"
        + text[again.end() :]
    )


def prestage(text: str) -> str:
    """F2: the warp's rows of the table are copied to its buffer first, and read there."""
    copied = """
    #pragma unroll
    for (int row = 0; row < 32; row++) {
        constexpr int own = (NC_END - NC_START) / 32;
        const __nv_bfloat16* from = combined + (long long)((gm_base + row) % SEQ_LEN) * N_DIM
            + n_start + NC_START + lane * own;
        const uint32_t to = staging_saddr + row * STAGING_ROW_BYTES + lane * own * 2;
        if (own == 8) {
            uint4 words = *reinterpret_cast<const uint4*>(from);
            asm volatile("st.shared.v4.b32 [%4], {%0,%1,%2,%3};" :: "r"(words.x), "r"(words.y),
                         "r"(words.z), "r"(words.w), "r"(to) : "memory");
        } else {
            uint2 words = *reinterpret_cast<const uint2*>(from);
            asm volatile("st.shared.v2.b32 [%2], {%0,%1};" :: "r"(words.x), "r"(words.y),
                         "r"(to) : "memory");
        }
    }
    __syncwarp();
    """
    load = re.compile(
        r"(uint4 )?(craw\d) = \*reinterpret_cast<const uint4\*>\(comb_row \+ (.*?)\);"
    )
    read = r"""\1\2; asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(\2.x), "=r"(\2.y),
        "=r"(\2.z), "=r"(\2.w)
        : "r"(staging_saddr + lane * STAGING_ROW_BYTES + (\3 - NC_START) * 2));"""
    text, count = load.subn(read, text)
    begin = re.search(r"TMEM_LOAD_X32\(a0[^;]*NC_START\);", text)
    assert count == 4
    assert begin
    return text[: begin.start()] + copied + text[begin.start() :]


REBUILT = {"split": split, "prestage": prestage}


def sample(source: Source) -> model.Sample:
    """Executes the CTAs of the first cluster."""
    groups = CTAS // source.cluster
    tiles = source.figure("TOTAL_TILES") // groups
    rows = 128 * source.cluster * (1 + tiles // (N // source.figure("TN")))
    arrays = source.arrays(rows)
    with tempfile.TemporaryDirectory() as place:
        cubin, listing, symbol = _compiled(source, Path(place))
    launch = Launch(
        entry=symbol,
        grid=(CTAS, 1, 1),
        block=(source.figure("THREADS"), 1, 1),
        cluster=(source.cluster, 1, 1),
        dynamic_smem_bytes=source.figure("SMEM_BYTES"),
        arguments=source.arguments(arrays),
    )
    placement = model.place(launch, 1, chips.find(CHIP))
    followed = tuple(range(source.cluster))
    placement = msgspec.structs.replace(placement, followed=followed)
    recording = record(cubin, listing, launch, arrays, followed)
    return model.Sample(recording=recording, placement=placement)


def _compiled(source: Source, folder: Path) -> tuple[bytes, str, str]:
    """The code, its listing and the kernel's symbol."""
    tools = toolchain.find(None, public_times.CACHE)
    code, cubin = folder / "kernel.cu", folder / "kernel.cubin"
    code.write_text(source.text.replace("#include <curand.h>", ""))
    flags = ["-cubin", f"-arch={ARCH}", "-O3", "-std=c++17"]
    subprocess.run([tools.nvcc, *flags, "-o", cubin, code], check=True, capture_output=True)
    show = functools.partial(subprocess.run, check=True, capture_output=True, text=True)
    symbols = show([tools.cuobjdump, "-res-usage", cubin]).stdout
    (symbol,) = re.findall(r"Function (\w*patch_embed_gemm\w*):", symbols)
    listing = show([tools.cuobjdump, "-sass", "-res-usage", "-fun", symbol, cubin]).stdout
    return cubin.read_bytes(), listing, symbol


def model_step(step: Step, checkout: Path) -> float | str:
    """The modelled time in milliseconds, or why there is none."""
    emulator.load_compiled(Path(native.library(published_history.ROOT)))
    argv = ["git", "-C", str(checkout), "show", f"{step.commit}:megakernel.cu"]
    source = Source(text=subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    for name, value in step.figures.items():
        source = source.with_figure(name, value)
    if step.rebuilt:
        source = Source(text=REBUILT[step.rebuilt](source.text))
    try:
        followed = sample(source)
    except NotModelled as fault:
        return str(fault)
    sizes = {name: array.nbytes for name, array in source.arrays(0).items()}
    launch = model.WholeLaunch(
        placement=followed.placement, array_bytes=sizes | {"a": M * K, "out": 2 * M * N}
    )
    return 1e3 * model.model([followed], launch, chips.find(CHIP)).seconds


def main() -> None:
    checkout, names = Path(sys.argv[1]), sys.argv[2:]
    chosen = [step for step in STEPS if not names or step.name in names]
    needed = {step.name for step in chosen} | {step.before for step in chosen}
    steps = [step for step in STEPS if step.name in needed]
    native.library(published_history.ROOT)
    with multiprocessing.get_context("spawn").Pool() as pool:
        times = pool.starmap(model_step, [(step, checkout) for step in steps], chunksize=1)
    modelled = dict(zip((step.name for step in steps), times, strict=True))
    published_history.compare(
        published_history.ComparedStep(
            step.name,
            (published_history.published(step.before), published_history.published(step.name)),
            (modelled[step.before], modelled[step.name]),
        )
        for step in chosen
        if step.before
    )


if __name__ == "__main__":
    main()
