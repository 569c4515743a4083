"""A Triton kernel, compiled for a card that need not be here: PTX for one warp and for four."""

from __future__ import annotations

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, powers / tl.sum(powers, axis=0), mask=inside)


def main() -> None:
    source = ASTSource(
        fn=softmax,
        signature={"x": "*fp32", "y": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 512},
    )
    for num_warps in (1, 4):
        # ptxas 13.0 reads PTX up to version 9.0.
        options = {"num_warps": num_warps, "ptx_version": 90}
        kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        Path(f"softmax-{num_warps}.ptx").write_text(kernel.asm["ptx"])
        print(f"num_warps={num_warps}: {kernel.metadata.shared} bytes of dynamic shared memory")


if __name__ == "__main__":
    main()
