"""An evaluator for OpenEvolve: a program is a solution of the problem that KX_PROBLEM names.

Stage 1 executes it once, stage 2 under other schedules, stage 3 times it where there is a GPU.
What kernelexp says of the source's lines goes into the next prompt.
"""

import os

from openevolve.evaluation_result import EvaluationResult

from kernelexp import api


def evaluate_stage1(program_path):
    return _evaluated(program_path, schedules=0, gpu=False)


def evaluate_stage2(program_path):
    return _evaluated(program_path, schedules=4, gpu=False)


def evaluate_stage3(program_path):
    return _evaluated(program_path, schedules=4, gpu=True)


evaluate = evaluate_stage3


def _evaluated(program_path, **options):
    assessed = api.assess(os.environ["KX_PROBLEM"], program_path, **options)
    feedback = [f"{f.file}:{f.line}: {f.sentence}" for f in assessed.feedback]
    metrics = {"combined_score": api.reward(assessed), "right": assessed.score}
    verdict = f"{assessed.status}: {assessed.sentence}"
    return EvaluationResult(metrics, {"verdict": verdict, "feedback": "\n".join(feedback)})
