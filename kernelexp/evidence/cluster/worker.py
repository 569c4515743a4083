"""The work of a Dask worker: one order in, one reply out; compilers and kernels in processes."""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path

import msgspec

from kernelexp.evidence import build, native
from kernelexp.evidence.build import planning, transfer
from kernelexp.evidence.build.transfer import Shipped
from kernelexp.evidence.cluster import messages
from kernelexp.evidence.cluster.messages import BuildTask, EmulateTask, MeasureTask
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.job import Emulated
from kernelexp.evidence.measure import measured
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.model.measurement import Measurement
from kernelexp.system import device as devices
from kernelexp.system import toolchain


def work(sealed: bytes) -> bytes:
    """Carries out an order; what is wrong with the project or this machine is a Fault."""
    from distributed import get_worker

    from kernelexp.evidence.cluster import sources

    try:
        order = messages.read_order(sealed)
        if order.code != messages.code():
            raise EnvironmentFault(
                f"worker {platform.node()} has another version of kernelexp: install the same "
                "there, and start it again."
            )
        root = sources.folder(get_worker().local_directory, order.sources)
        if not root.is_dir():
            raise EnvironmentFault(f"worker {platform.node()} did not get the project's files.")
        return messages.seal_answer(_do(order.task, root))
    except KernelexpError as error:
        return messages.seal_fault(str(error), error.exit_code)
    except OSError as error:
        sentence = f"worker {platform.node()}: {error}."
        return messages.seal_fault(sentence, EnvironmentFault.exit_code)


def gpu() -> bytes:
    """The GPU that this worker measures on: the first that CUDA_VISIBLE_DEVICES shows."""
    try:
        return messages.seal_answer(devices.find())
    except KernelexpError as error:
        return messages.seal_fault(str(error), error.exit_code)


def _do(
    task: BuildTask | EmulateTask | MeasureTask, root: Path
) -> Shipped | Emulated | Measurement:
    if isinstance(task, BuildTask):
        return transfer.ship(_plan(task, root))
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as name:
        if isinstance(task, EmulateTask):
            return _emulate(task, root, Path(name))
        return _measure(task, root, Path(name))


def _plan(task: BuildTask, root: Path) -> planning.Plan:
    tools = toolchain.find(None, root / build.CACHE)
    (plan,) = build.make_plans(root, [task.variant], tools, timeout_s=task.timeout_s)
    if plan.key != task.key:
        raise EnvironmentFault(
            f"worker {platform.node()} would build {plan.label} with another compiler (nvcc "
            f"{tools.version}), host compiler or environment than this machine: give both the "
            "same, or name the worker's with KERNELEXP_NVCC."
        )
    return plan


def _emulate(task: EmulateTask, root: Path, folder: Path) -> Emulated:
    for name, content in task.files.items():
        (folder / name).write_bytes(content)
    paths = {name: str(folder / name) for name in task.files}
    job = msgspec.structs.replace(task.job, root=str(root), native=native.library(root), **paths)
    return emulated.execute(job)


def _measure(task: MeasureTask, root: Path, folder: Path) -> Measurement:
    paths = {}
    for number, (path, content) in enumerate(task.cubins.items()):
        paths[path] = folder / f"{number}.cubin"
        paths[path].write_bytes(content)
    job = task.question.job
    arms = tuple(
        msgspec.structs.replace(arm, cubin=str(paths[arm.cubin])) if arm.cubin else arm
        for arm in job.arms
    )
    job = msgspec.structs.replace(job, problem=str(root / job.name), arms=arms)
    return measured.answer_on(None, msgspec.structs.replace(task.question, job=job))
