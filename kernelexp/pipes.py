"""Executed SASS by the counters that ncu has for pipes: sm__inst_executed_pipe_alu and its kind.

Sources: seven profiles of an H200 in logs/profiles, whose source pages have the executed
instructions and whose counters the sums by pipe: for the opcodes that are in them, fma, uniform,
xu, tensor and tma are these to the instruction, lsu to 0.003%, alu but for the polling that
differs between ncu's passes (tests/test_pipes.py). The other opcodes are where the documentation of
Nsight Compute ("Metrics Decoder", pipelines) and the scheduling tables of nvdisasm have their kind.

CBU and ADU are left out: the profiles do not tell which of branches, barriers and constants each of
them counts. So is how FADD, FMUL and FFMA divide between fmaheavy and fmalite: the hardware decides
that as it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

PREFIX = "sm__inst_executed_pipe_"

_OPCODES: dict[str, str] = {
    "fma": "FADD FMUL FFMA FADD2 FMUL2 FFMA2 FSWZADD FHADD FHFMA IMAD IMUL IDP VIADD",
    "alu": """IADD3 IADD IABS LOP3 PLOP3 SHF LEA ISETP FSETP SEL FSEL FSET FMNMX FMNMX3 IMNMX VIMNMX
        VIMNMX3 VIADDMNMX F2FP F2IP I2FP I2I I2IP PRMT MOV SGXT BMSK P2R R2P R2UR VABSDIFF
        VABSDIFF4""",
    "lsu": """LD LDG LDL LDS LDSM LDC LDGSTS ST STG STL STS STSM STAS ATOM ATOMG ATOMS RED REDG
        REDAS SHFL MEMBAR FENCE CCTL""",
    "uniform": """UIADD3 UVIADD UIMAD ULEA ULOP3 UPLOP3 USHF UISETP USEL UPRMT UVIMNMX UFLO UPOPC
        UBREV UBMSK USGXT""",
    "xu": "MUFU F2F F2I I2F FRND POPC FLO BREV",
    "fp64": "DADD DMUL DFMA DSETP",
    "tensor": """HMMA IMMA BMMA QMMA DMMA HGMMA QGMMA IGMMA BGMMA UTCHMMA UTCQMMA UTCIMMA
        UTCOMMA""",
    "tc": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCBAR UTCCP UTCSHIFT UTCATOMSWS",
    "tmem": "LDTM STTM",
    "tma": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF",
}
_HALVES = "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2"
PIPES = (*_OPCODES, "fp16")
"""In the order in which tables show them."""


def _pipes_of(arch: str) -> dict[str, tuple[str, ...]]:
    """By opcode; on Blackwell an MMA counts as tensor and as tc."""
    # Of A100 alone ncu has a counter of the FP16 pipe; later chips have it in FMA.
    halves = "fp16" if arch == "sm_80" else "fma"
    found: dict[str, tuple[str, ...]] = {}
    for pipe, opcodes in (*_OPCODES.items(), (halves, _HALVES)):
        for opcode in opcodes.split():
            found[opcode] = (*found.get(opcode, ()), pipe)
    return found


def counters(arch: str, opcodes: Mapping[str, int]) -> dict[str, int]:
    """Executed warp instructions by ncu's counter; those that are 0 are left out.

    opcodes: executed warp instructions by opcode without modifiers.
    """
    pipes = _pipes_of(arch)
    found: Counter[str] = Counter()
    for opcode, count in opcodes.items():
        for pipe in pipes.get(opcode, ()):
            found[pipe] += count
    return {f"{PREFIX}{pipe}": found[pipe] for pipe in PIPES if found[pipe]}


def rest(arch: str, opcodes: Mapping[str, int]) -> int:
    """Executed warp instructions that no counter of `counters` has: branches, barriers, uniform
    moves and constants, special registers."""
    pipes = _pipes_of(arch)
    return sum(count for opcode, count in opcodes.items() if opcode not in pipes)
