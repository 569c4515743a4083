"""Types of elements and of scalars: their names here, in PyTorch and in NumPy."""

from __future__ import annotations

from typing import Literal, TypeAlias

Integer: TypeAlias = Literal["bool", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
ScalarType: TypeAlias = Integer | Literal["f16", "bf16", "f32", "f64"]
DType: TypeAlias = ScalarType | Literal["e4m3", "e5m2", "c64", "c128"]
"""c64 and c128 are complex numbers: two f32, two f64."""

TORCH_NAMES: dict[DType, str] = {
    "bool": "bool",
    "u8": "uint8",
    "s8": "int8",
    "u16": "uint16",
    "s16": "int16",
    "u32": "uint32",
    "s32": "int32",
    "u64": "uint64",
    "s64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "c64": "complex64",
    "c128": "complex128",
}
INTEGERS: tuple[Integer, ...] = ("bool", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
SCALARS: tuple[ScalarType, ...] = (*INTEGERS, "f16", "bf16", "f32", "f64")
SIZES: dict[DType, int] = {
    **dict.fromkeys(("bool", "u8", "s8", "e4m3", "e5m2"), 1),
    **dict.fromkeys(("u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("u32", "s32", "f32"), 4),
    **dict.fromkeys(("u64", "s64", "f64", "c64"), 8),
    "c128": 16,
}
"""In bytes."""
_OWN_NAMES = {name: own for own, name in TORCH_NAMES.items()}


def own_name(name: object) -> str:
    """f32 for float32, torch.float32 and numpy.float32, as text or as themselves; what is not a
    name of a type stays as it is."""
    text = name if isinstance(name, str) else getattr(name, "__name__", str(name))
    last = text.rpartition(".")[2]
    return _OWN_NAMES.get(last, text)
