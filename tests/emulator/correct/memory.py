"""Loads, stores, copies and atomics in the forms that few kernels use."""

from __future__ import annotations

import struct

from correct.kernel import MASK, Kernel, always, each


def _bytes(x: list[int]) -> bytes:
    return struct.pack(f"<{len(x)}I", *x)


def _fifty(t: int, x: list[int]) -> int:
    return sum(x[:50])


def _two_types(t: int, x: list[int]) -> int:
    word = x[63 - t]
    return (word >> 8 & 0xFF) + (word >> 16) & 0xFFFF


def _dynamic(t: int, x: list[int]) -> int:
    own = [0] * 16
    for i in range(16):
        own[(i * 5 + t) % 16] = x[16 * (t % 8) + i]
    at, total = x[t] % 16, 0
    for _ in range(8):
        total = (total * 3 + own[at]) & MASK
        own[at] ^= total
        at = total % 16
    return total


def _pointer(t: int, x: list[int]) -> int:
    a, b = x[t], x[t] + 1
    a, b = (a + 5, b) if a % 2 else (a, b + 5)
    return a * 2 + b


def _generic(t: int, x: list[int]) -> int:
    which = x[t] % 3
    values = (x[t], x[63 - t] + 1, x[t])
    return values[which] + (2, 1, 4)[which]


def _read_only(x: list[int]) -> list[int]:
    sums = [x[4 * t] + x[4 * t + 1] + 5 * x[t] - x[t] for t in range(64)]
    return [*sums, *(x[4 * t + 2] for t in range(64)), *(x[4 * t + 3] for t in range(64))]


def _widths(t: int, x: list[int]) -> int:
    d = x[4 * t + 2] | x[4 * t + 3] << 32
    return (x[t] & 0xFF) + (x[t] >> 24) + (x[t] >> 16) + (d >> 40) + 2 * t


def _sixteen(x: list[int]) -> list[int]:
    pair = 0x5400_0000 | 0x5400  # 64 and 64
    return [0x5400, 0x5800 << 16 | (pair & 0xFFFF), 0x4300 << 16 | 0x4280, 192 << 16]


def _vectors(x: list[int]) -> list[int]:
    one, two, half = 0x42800000, 0x43000000, 0x42000000
    bf16 = 0x42804280
    top = 0x3C003C00 + 63
    return [one, one, two, two, half, half, 0, 0, one, one, 0, 0, *[bf16] * 4, top, top]


def _filled(t: int, x: list[int]) -> int:
    at = 63 - t
    return x[at] if at < 42 else 0


def _stages(t: int, x: list[int]) -> int:
    total = 0
    for step in range(8):
        total = total * 3 + x[64 * step + 63 - t]
    return total


def _matrices(t: int, x: list[int]) -> int:
    a = [word & 0xFFFF for word in x[:64]]
    row, column = t // 4, t % 4 * 2
    loaded = a[column * 8 + row]
    # Transposed by the load, by movmatrix and by the store: transposed once.
    stored = a[t % 8 * 8 + t // 8]
    return stored << 16 | loaded


def _stack(t: int, x: list[int]) -> int:
    n, total = x[t] % 7 + 1, 0
    for i in reversed(range(n)):
        total = total * 5 + x[t + i]
    return total


KERNELS = (
    Kernel(
        "struct_with_holes_through_shared_memory",
        "A struct with padding goes through shared memory, and is read in vectors.",
        each(lambda t, x: x[31 - t] % 100 + 5 * (31 - t) + 1, 32),
        threads=32,
    ),
    Kernel(
        "struct_with_holes_copied_in_global_memory",
        "A struct is copied with its padding, which nobody wrote.",
        each(lambda t, x: t + 2),
    ),
    Kernel(
        "read_past_the_logical_end",
        "Vector loads read shared memory that nobody wrote; the sum leaves it out.",
        each(_fifty),
    ),
    Kernel(
        "shared_rows_with_padding",
        "A transpose through rows with a word between them.",
        each(lambda t, x: x[t % 16 * 16 + t // 16], 256),
    ),
    Kernel(
        "one_buffer_of_two_types",
        "Shared memory written as words, read as bytes and halves, and written as halves.",
        each(lambda t, x: _two_types(t // 2 * 2 + t % 2, x)),
    ),
    Kernel(
        "bytes_of_one_word_by_several_warps",
        "Threads of eight warps write the bytes of words.",
        each(lambda t, x: x[(t * 4 + t // 64) % 256] & 0xFF, 256),
        threads=256,
    ),
    Kernel(
        "local_array_with_a_dynamic_index",
        "An array of each thread, indexed by data.",
        each(_dynamic),
    ),
    Kernel(
        "pointer_to_a_local_variable", "A pointer to a pointer to a local variable.", each(_pointer)
    ),
    Kernel(
        "constants_and_module_variables",
        "`__constant__`, and a `__device__` pointer to a variable.",
        each(lambda t, x: (3, 1, 4, 1, 5, 9, 2, 6)[x[t] % 8] + 17),
    ),
    Kernel(
        "generic_pointers_to_any_memory",
        "One load whose lanes read local, shared and global memory.",
        each(_generic),
    ),
    Kernel(
        "loads_through_the_read_only_cache",
        "`__ldg` and every cache operator.",
        _read_only,
    ),
    Kernel(
        "cache_policies_and_hints",
        "`createpolicy`, cache hints, prefetches, `applypriority`.",
        each(lambda t, x: x[t] + x[64 + t] + x[128 + t]),
    ),
    Kernel(
        "discarded_lines_written_again",
        "`discard.L2`, then the line is written anew.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "vectors_of_every_width", "Loads of 4 to 16 bytes per lane of every type.", each(_widths)
    ),
    Kernel(
        "atomics_of_16_bits",
        "`atom.cas.b16`, and sums in f16, f16x2 and bf16x2.",
        _sixteen,
    ),
    Kernel(
        "atomics_of_64_bits_and_doubles",
        "64-bit and double-precision atomics.",
        lambda x: [1008, 128, 53, MASK],
    ),
    Kernel(
        "atomics_of_vectors",
        "`red` and `atom` of vectors of f32, bf16x2 and f16x2 (sm_90).",
        _vectors,
    ),
    Kernel(
        "atomics_of_128_bits",
        "`atom.cas.b128` and `atom.exch.b128` (sm_90).",
        always(1, 1),
    ),
    Kernel(
        "atomics_that_wrap",
        "`atomicInc`, `atomicDec` and `atomicSub` past their limits.",
        lambda x: [8, (-(128 - 1)) % 21 and 19, MASK - 127, *[1] * 125],
        ctas=2,
    ),
    Kernel(
        "histogram_in_shared_then_in_global",
        "Bins of each CTA, added to those of the grid.",
        lambda x: [sum(word % 64 == bin_ for word in x[:1024]) for bin_ in range(64)],
        ctas=4,
    ),
    Kernel(
        "cp_async_that_fills_with_zeros",
        "`cp.async` with a source size of 8 and of 0 bytes.",
        each(_filled),
    ),
    Kernel(
        "cp_async_that_ignores_its_source",
        "`cp.async` with the predicate `ignore-src`.",
        each(lambda t, x: x[63 - t] if 63 - t <= 40 else 0),
    ),
    Kernel(
        "cp_async_pipeline_of_three_stages",
        "Three buffers filled by `cp.async`; the last groups are empty.",
        each(_stages),
    ),
    Kernel(
        "cp_async_that_arrives_at_an_mbarrier",
        "`cp.async.mbarrier.arrive.noinc`.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "matrices_loaded_stored_and_transposed",
        "`ldmatrix.trans`, `movmatrix`, `stmatrix.trans`.",
        each(_matrices, 32),
        threads=32,
    ),
    Kernel("dynamic_stack", "`alloca` of a size that each thread computes.", each(_stack)),
    Kernel(
        "heap_blocks_handed_between_threads",
        "A block of `malloc()` that all threads use and another one frees.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "memcpy_and_memset_of_the_device",
        "`memcpy` and `memset` in device code.",
        each(lambda t, x: x[5 * t + t % 5] + 0x11111111),
    ),
    Kernel(
        "unaligned_pieces_put_together",
        "Words read byte by byte from odd addresses.",
        each(lambda t, x: int.from_bytes(_bytes(x)[3 * t + 1 : 3 * t + 5], "little")),
    ),
    Kernel(
        "window_of_a_pointer_before_its_array",
        "A pointer outside its array, used inside only.",
        each(lambda t, x: x[t]),
    ),
)
