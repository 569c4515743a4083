"""An evaluator for OpenEvolve: a program is a solution of the problem that KX_PROBLEM names.

Stage 1 looks at the sizes once; stage 2 tries other schedules too. What kernelexp says of the
source's lines goes into the next prompt.
"""

import os

from openevolve.evaluation_result import EvaluationResult

from kernelexp import api

PROBLEM = os.environ["KX_PROBLEM"]


def evaluate(program_path: str) -> EvaluationResult:
    return _evaluated(program_path, schedules=2)


def evaluate_stage1(program_path: str) -> EvaluationResult:
    return _evaluated(program_path, schedules=0)


def evaluate_stage2(program_path: str) -> EvaluationResult:
    return _evaluated(program_path, schedules=4)


def _evaluated(program_path: str, schedules: int) -> EvaluationResult:
    assessed = api.assess(PROBLEM, program_path, schedules=schedules)
    passed = sum(stage.outcome == "passed" for stage in assessed.stages)
    own = 1.0 if assessed.kernels else 0.0
    return EvaluationResult(
        metrics={"combined_score": own * assessed.score, "right": assessed.score, "stages": passed},
        artifacts={
            "verdict": f"{assessed.status}: {assessed.sentence}",
            "feedback": "\n".join(f"{f.file}:{f.line}: {f.sentence}" for f in assessed.feedback),
        },
    )
