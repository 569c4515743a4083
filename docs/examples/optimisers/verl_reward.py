"""A reward for verl: `custom_reward_function.path=verl_reward.py`; the ground truth of a sample is
the path of its problem."""

import re
import tempfile
from pathlib import Path

from kernelexp import api


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    blocks = re.findall(r"```(?:python|cuda|cpp)?\n(.*?)```", solution_str, re.S)
    if not blocks:
        return 0.0
    suffix = ".cu" if 'extern "C"' in blocks[-1] and "import torch" not in blocks[-1] else ".py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"solution{suffix}"
        path.write_text(blocks[-1])
        return api.reward(api.assess(ground_truth, path))
