"""The FP8 GEMM of patch_embed_gemm (928,256 x 768 x 768) by cuBLAS through torch, as a problem.

It has peers only: arms of it are the same cuBLAS kernel, so what differs between them is noise. At
1 ms, and held back by the card's power limit, it is the hardest kernel here to time.
"""

from kernelexp.model.problem import Tolerance

SIZES = {"full": {"m": 928_256, "n": 768, "k": 768}}
OUTPUT_SCALE = 768**-0.5


def outputs(size):
    return {}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)

    def draw(rows):
        result = torch.empty(rows, size["k"], dtype=torch.float8_e4m3fn, device=device)
        for first in range(0, rows, 65_536):
            piece = result[first : first + 65_536]
            piece.copy_(torch.randn(piece.shape, generator=generator, device=device))
        return result

    return {"a": draw(size["m"]), "b": draw(size["n"])}


def reference(inputs, size):
    return iter(())


def tolerance(size, arch):
    return Tolerance(rtol=0.0, atol=0.0, why="nothing is checked: cuBLAS is what is timed")


def peers(inputs, size):
    import torch

    scale_a = torch.tensor(OUTPUT_SCALE, device="cuda")
    scale_b = torch.ones((), device="cuda")
    out = torch.empty(size["m"], size["n"], dtype=torch.bfloat16, device="cuda")

    def cublas():
        torch._scaled_mm(
            inputs["a"],
            inputs["b"].t(),
            scale_a,
            scale_b,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
            out=out,
        )

    return {"cublas": cublas}
