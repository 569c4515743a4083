"""The names by which launches name their entries."""

from __future__ import annotations

import pytest

from kernelexp.launch import Launch, of_entry, plain_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("transpose", "transpose"),
        ("_Z5scalePKfPffi", "scale"),
        ("_Z4gemmILi64ELi8EEvPKf", "gemm"),
        ("_ZN2kx4deep4gemmILi64EEEvPKf", "gemm"),
        ("_ZN12_GLOBAL__N_15shiftEPi", "shift"),
        ("_ZL5localPf", "local"),
        ("_Zebra", "_Zebra"),
    ],
)
def test_a_mangled_name_has_the_function_s_own_in_it(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


def test_a_launch_by_the_plain_name_is_of_the_symbol() -> None:
    launch = Launch(entry="scale", grid=(1, 1, 1), block=(1, 1, 1))
    assert of_entry(launch, "_Z5scalePKfPffi").entry == "_Z5scalePKfPffi"
    assert of_entry(launch, "_Z5otherPf").entry == "scale"
