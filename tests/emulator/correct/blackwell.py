"""What sm_100a adds."""

from __future__ import annotations

from correct.kernel import Kernel, each, warp_of


def _pairs(t: int, x: list[int]) -> int:
    a, b = (x[t] % 100, t), (2, x[t] % 7)
    first, second = (p * q + p + q * q for p, q in zip(a, b, strict=True))
    return first + 10000 * second


def _four_bits(t: int, x: list[int]) -> int:
    doubled = (0, 1, 2, 3, 4, 6, 8, 12)
    low, high = t % 8, x[t] % 8
    return (high | 8) << 4 | low | doubled[low] << 8 | doubled[high] << 16


def _six_bits(t: int, x: list[int]) -> int:
    y = 4 + x[t] % 4
    return t % 8 + 100 * y + 10000 * 4 + 100000 * y


def _scales(t: int, x: list[int]) -> int:
    number = 1 + x[t] % 100
    exponent = number.bit_length() - 1  # the one above 1 / number is the negative one
    pair = 0xA0 | (0, 2, 4, 5, 6, 6, 7)[x[t] % 7]  # of 4 and 6, 4 has the even code
    return 127 + exponent | 127 - exponent << 8 | pair << 16 | 1 << 24 + exponent


def _greatest(t: int, x: list[int]) -> int:
    values = [x[i] % 1000 - 500 for i in warp_of(t)]
    return max(values) + 500 + 1000 * min(abs(value) for value in values)


def _three(t: int, x: list[int]) -> int:
    values = (x[t] % 100, x[64 + t] % 100, t)
    return min(values) + 1000 * max(values)


KERNELS = (
    Kernel("single_precision_in_pairs", "`fma.rn.f32x2` and its like.", each(_pairs)),
    Kernel(
        "loads_and_stores_of_32_bytes",
        "`ld.global.v8.b32` with an eviction priority.",
        each(lambda t, x: x[t // 8 * 8 + 7 - t % 8], 512),
    ),
    Kernel("four_bit_floats_there_and_back", "E2M1 in pairs.", each(_four_bits)),
    Kernel("six_bit_floats_there_and_back", "E2M3 and E3M2 in pairs.", each(_six_bits)),
    Kernel(
        "scale_factors_there_and_back",
        "UE8M0, rounded down and up, and E2M1 from a pair of halves.",
        each(_scales),
    ),
    Kernel(
        "work_of_clusters_that_are_not_launched",
        "`clusterlaunchcontrol`: CTAs take tiles whose launches they cancel.",
        lambda x: [x[at % 64] + at // 64 + 1 for at in range(6 * 64)],
        ctas=6,
    ),
    Kernel(
        "shared_memory_cleared_in_bulk",
        "`st.bulk`.",
        each(lambda t, x: 0 if 63 - t < 32 else x[63 - t]),
    ),
    Kernel("maximum_of_floats_of_a_warp", "`redux.sync` of f32, with `.abs`.", each(_greatest)),
    Kernel("minimum_of_three", "`min` and `max` of three f32.", each(_three)),
    Kernel(
        "tensor_memory_as_scratch",
        "Warps keep registers in tensor memory, with no MMA.",
        each(lambda t, x: x[t] + t, 128),
        threads=128,
    ),
    Kernel(
        "tensor_memory_in_shapes_of_64_bits",
        "`tcgen05.st` and `tcgen05.ld` of shape 16x64b.",
        each(lambda t, x: x[t], 128),
        threads=128,
    ),
)
