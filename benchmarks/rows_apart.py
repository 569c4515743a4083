"""The row-scaling problem of the GPU tests with inputs of their own for each arm.

Arms of one kernel normally share their buffers. Here up to four of them read copies at addresses
of their own (`arrange` gives each another type for the same bits, so that the copies stay apart),
which shows what placement of data adds.
"""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "row_scale_problem", Path(__file__).parents[1] / "tests/gpu/kernels/problem.py"
)
_rows = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_rows)
SIZES, launch, budget = _rows.SIZES, _rows.launch, _rows.budget
inputs, outputs, reference, tolerance = (
    _rows.inputs,
    _rows.outputs,
    _rows.reference,
    _rows.tolerance,
)


def arrange(inputs, axes):
    import torch

    types = (torch.float32, torch.int32, torch.int16, torch.uint8, torch.int64)
    copy = int(axes.get("copy", 0))
    return {"x": inputs["x"].view(types[copy]).clone()} if copy else {}
