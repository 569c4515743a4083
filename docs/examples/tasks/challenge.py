import ctypes
import torch
from core.challenge_base import ChallengeBase


class Challenge(ChallengeBase):
    def __init__(self):
        super().__init__(name="Scale", atol=1e-5, rtol=1e-5, num_gpus=1, access_tier="free")

    def reference_impl(self, x, y, factor, n):
        torch.mul(x, factor, out=y)

    def get_solve_signature(self):
        return {
            "x": (ctypes.POINTER(ctypes.c_float), "in"),
            "y": (ctypes.POINTER(ctypes.c_float), "out"),
            "factor": (ctypes.c_float, "in"),
            "n": (ctypes.c_size_t, "in"),
        }

    def _test(self, n):
        x = torch.empty(n, device="cuda").uniform_(-1.0, 1.0)
        return {"x": x, "y": torch.empty(n, device="cuda"), "factor": 2.5, "n": n}

    def generate_example_test(self):
        return self._test(4)

    def generate_functional_test(self):
        return [self._test(n) for n in (1, 30, 1000, 1 << 20)]

    def generate_performance_test(self):
        return self._test(1 << 25)
