"""A reward for verl: `custom_reward_function.path=verl_reward.py`; the ground truth of a sample is
the path of its problem.

0.1 for a text that builds, 0.3 more for a right result, and all of it only for a solution with a
kernel of its own. Times are not in it: what was not measured is no reward.
"""

import re
import tempfile
from pathlib import Path

from kernelexp import api

BUILDS, RIGHT = 0.1, 0.3


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    blocks = re.findall(r"```(?:python|cuda|cpp)?\n(.*?)```", solution_str, re.S)
    if not blocks:
        return 0.0
    suffix = ".cu" if 'extern "C"' in blocks[-1] and "import torch" not in blocks[-1] else ".py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"solution{suffix}"
        path.write_text(blocks[-1])
        assessed = api.assess(ground_truth, path, schedules=1)
    passed = {stage.name for stage in assessed.stages if stage.outcome == "passed"}
    right = RIGHT * assessed.score if assessed.kernels else 0.0
    return BUILDS * ("build" in passed) + right
