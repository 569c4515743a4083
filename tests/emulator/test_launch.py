"""The names by which launches name their entries."""

from __future__ import annotations

import pytest

from warpsim.launch import Launch, of_entries, plain_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("transpose", "transpose"),
        ("_Z5scalePKfPffi", "scale"),
        ("_Z4gemmILi64ELi8EEvPKf", "gemm"),
        ("_ZN2kx4deep4gemmILi64EEEvPKf", "gemm"),
        ("_ZN12_GLOBAL__N_15shiftEPi", "shift"),
        ("_ZL5localPf", "local"),
        ("_Z5twice6Params", "twice"),
        ("_ZN2kxL5twiceE6Params", "twice"),
        ("_Zebra", "_Zebra"),
    ],
)
def test_a_mangled_name_has_the_function_s_own_in_it(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


def test_a_launch_by_the_plain_name_is_of_the_symbol() -> None:
    launch = Launch(entry="scale", grid=(1, 1, 1), block=(1, 1, 1))
    symbols = ("_Z5otherPf", "_Z5scalePKfPffi")
    assert of_entries(launch, symbols).entry == "_Z5scalePKfPffi"
    assert of_entries(launch, symbols[:1]).entry == "scale"


def test_a_plain_name_of_two_instances_is_of_neither() -> None:
    launch = Launch(entry="gemm", grid=(1, 1, 1), block=(1, 1, 1))
    assert of_entries(launch, ("_Z4gemmILi64EEvPKf", "_Z4gemmILi8EEvPKf")).entry == "gemm"
