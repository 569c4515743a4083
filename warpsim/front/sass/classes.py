"""Which class of ncu's an opcode counts in."""

from __future__ import annotations

_CLASSES = {
    "global load": "LDG LD",
    "global store": "STG ST",
    "shared load": "LDS",
    "shared store": "STS",
    "local load": "LDL",
    "local store": "STL",
    "constant load": "LDC ULDC LDCU",
    "matrix load": "LDSM",
    "matrix store": "STSM",
    "atomic": "ATOM ATOMG ATOMS RED REDG",
    "cp.async": "LDGSTS",
    "mma": "HMMA IMMA DMMA QMMA OMMA BMMA",
    "wgmma": "HGMMA QGMMA IGMMA BGMMA",
    "utcmma": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
    "tmem load": "LDTM",
    "tmem store": "STTM",
    "tma load": "UTMALDG UBLKCP.S.G",
    "tma store": "UTMASTG UBLKCP.G.S",
    "tma reduction": "UTMAREDG UBLKRED.G.S",
    "dshared copy": "UBLKCP.S.S",
    "dshared store": "STAS REDAS",
    "mbarrier": "SYNCS",
    "mbarrier wait": "SYNCS.PHASECHK",
    "warp barrier": "WARPSYNC",
    "barrier": "BAR UCGABAR_ARV UCGABAR_WAIT",
    "shuffle": "SHFL",
    "branch": "BRA BRX JMP CALL RET EXIT BSSY BSYNC BREAK",
    "predicate": "ISETP FSETP PLOP3 UISETP HSETP2 DSETP",
    "special function": "MUFU",
    "half": "HADD2 HFMA2 HMUL2 HMNMX2",
    "floating": "FADD FMUL FFMA FMNMX DADD DMUL DFMA FADD2 FMUL2 FFMA2",
    "conversion": "F2F F2I I2F F2FP I2FP FRND",
}
_CLASS_OF = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes.split()}


def classify(opcode: str) -> str:
    """The class of an opcode: classify("LDG.E.128") is "global load"."""
    names = opcode.split(".")
    for count in (3, 2, 1):
        kind = _CLASS_OF.get(".".join(names[:count]))
        if kind is not None:
            return kind
    return "integer"
