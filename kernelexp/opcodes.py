"""SASS opcodes by the pipe that executes them.

Source: Nsight Compute documentation, "Metrics Decoder", pipelines (ALU, FMA, XU, LSU, ADU, CBU,
TMA, uniform), with the opcode groups of the CUDA Binary Utilities' instruction set reference for
Hopper and Blackwell.
"""

from __future__ import annotations

PADDING = frozenset({"NOP"})
"""Opcodes that only pad the code to its alignment after the last branch."""

_PIPES: dict[str, str] = {
    "tensor": """HMMA IMMA DMMA BMMA QMMA OMMA HGMMA QGMMA IGMMA BGMMA WARPGROUP WARPGROUPSET
        UTCQMMA UTCHMMA UTCIMMA UTCOMMA UTCMMA UTCBAR UTCCP UTCSHIFT UTCATOMSWS""",
    "TMA": """UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF""",
    "TMEM": "LDTM STTM",
    "FMA": """FADD FMUL FFMA FFMA32I FADD32I FMUL32I FADD2 FMUL2 FFMA2 FSWZADD IMAD IMUL IDP IDP4A
        HADD2 HADD2_32 HFMA2 HMUL2 HFMA2_MMA""",
    "ALU": """IADD3 IADD IADD32I VIADD IABS LOP3 LOP PLOP3 SHF SHL SHR LEA ISETP FSETP HSETP2 ICMP
        SEL FSEL FSET HSET2 FMNMX FMNMX3 IMNMX VIMNMX VIMNMX3 VIADDMNMX HMNMX2 VHMNMX FCHK F2FP
        PRMT MOV MOV32I SGXT BMSK BREV FLO POPC P2R R2P CS2R LEPC ISCADD VABSDIFF VABSDIFF4 I2IP
        F2IP I2FP F2FP32 CSMTEST""",
    "XU": "MUFU F2I I2F F2F FRND I2I",
    "FP64": "DADD DMUL DFMA DSETP DMNMX",
    "LSU": """LD LDG LDL LDS LDSM ST STG STL STS STSM STAS ATOM ATOMG ATOMS RED REDAS REDG CCTL
        CCTLL LDGSTS LDGDEPBAR LDGMC SHFL MATCH REDUX CREDUX ERRBAR MEMBAR FENCE QSPC ARRIVES SYNCS
        LDC LDCU S2R S2UR R2UR UR2R""",
    "control": """BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BSSY BSYNC BREAK BMOV WARPSYNC YIELD BAR
        DEPBAR BPT KILL NANOSLEEP VOTE VOTEU NOP RPCMOV PMTRIG ELECT USETMAXREG ACQBULK ACQSHMINIT
        UCGABAR_ARV UCGABAR_WAIT CGABAR CGAERRBAR PREEXIT ENDCOLLECTIVE B2R R2B SETCTAID SETLMEMBASE
        GETLMEMBASE DEPBAR_LE CCTLT WARPGROUPDEPBAR""",
}
_PIPE_OF = {opcode: pipe for pipe, opcodes in _PIPES.items() for opcode in opcodes.split()}
_UNIFORM = "uniform"
_OTHER = "other"

PIPES = (*_PIPES, _UNIFORM, _OTHER)
"""The names of the groups, in the order in which they are shown."""


def pipe_of(opcode: str) -> str:
    """The pipe of a SASS opcode without its modifiers; "other" where it is not known."""
    if opcode in _PIPE_OF:
        return _PIPE_OF[opcode]
    # The uniform datapath's opcodes are the others' with a U before them: UIADD3, ULEA, UISETP.
    return _UNIFORM if opcode.startswith("U") else _OTHER


def known() -> tuple[str, ...]:
    """Every opcode with a pipe."""
    return tuple(_PIPE_OF)
