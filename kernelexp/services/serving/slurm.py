"""Workers as an array of Slurm's, by submitit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelexp.model.errors import EnvironmentFault, UsageError

NEEDED = "--slurm needs its extra: pip install 'kernelexp[slurm]'."
CLUSTER = "cluster"
"""The option that is submitit's own: local tries the same without Slurm."""


def parse(text: str) -> dict[str, str | int]:
    """Options of sbatch by name, with underscores, as in partition=gpu,gpus_per_node=1,time=60."""
    options: dict[str, str | int] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not name.isidentifier() or not equals or not value:
            raise UsageError(
                f"--slurm {text!r} should have options of sbatch, such as partition=gpu,time=60."
            )
        options[name] = int(value) if value.isdigit() else value
    return options


def submit(
    argv: Sequence[str], folder: Path, options: Mapping[str, str | int], count: int
) -> list[str]:
    """Ids of jobs that run the command, `count` times; what they print is kept in the folder."""
    try:
        import submitit
        from submitit.helpers import CommandFunction
    except ImportError:
        raise EnvironmentFault(NEEDED) from None
    cluster = options.get(CLUSTER, "slurm")
    rest = {name: value for name, value in options.items() if name != CLUSTER}
    try:
        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        executor.update_parameters(**{f"slurm_{name}": value for name, value in rest.items()})
        with executor.batch():
            jobs = [executor.submit(CommandFunction(list(argv))) for _ in range(count)]
    except (RuntimeError, ValueError, NameError, submitit.core.utils.FailedJobError) as error:
        raise EnvironmentFault(f"Slurm does not take the workers: {error}") from None
    return [job.job_id for job in jobs]
