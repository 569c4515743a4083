"""Jobs of the kernels of tests/gpu/kernels, compiled once a session."""

import pytest
from gpu_kernels import ARCH, HONEST, KERNELS, compile_kernels

from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.model.measurement import TimedArm
from kernelexp.project.problem.loader import load_file

# These compute in this process, whose context stays on the GPU: to a measurement after them it
# is another process that computes there, which makes the measurement INVALID. They come last.
IN_THIS_PROCESS = {"test_checked_kernels.py", "test_read_and_written.py"}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name in IN_THIS_PROCESS)


@pytest.fixture(scope="session")
def cubins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cubins")
    return {name: compile_kernels(name, ARCH, folder) for name in ("honest", "cheating")}


@pytest.fixture(scope="session")
def problem():
    return load_file(KERNELS / "problem.py")


@pytest.fixture
def make_job(cubins, problem):
    """A job of the honest kernel `plain` against one other entry, at a named size."""

    def make(entry, size="full", axes=None):
        chosen = problem.sizes[size]

        def arm(name, role, point):
            source = "cheating" if point["entry"] not in HONEST else "honest"
            return ArmJob(
                arm=TimedArm(name=name, role=role, identity=point["entry"]),
                cubin=str(cubins[source]),
                arch=ARCH,
                launches=problem.launches(point, chosen, {}),
                axes=point,
            )

        return Job(
            problem=str(KERNELS / "problem.py"),
            size=dict(chosen),
            arms=(
                arm("candidate", "candidate", {"entry": entry, **(axes or {})}),
                arm("baseline", "baseline", {"entry": "plain"}),
                arm("placebo", "placebo", {"entry": "plain"}),
            ),
        )

    return make
