"""One variant through nvcc, ptxas and cuobjdump, each started directly and its answer doubted."""

from __future__ import annotations

import hashlib
import os
import re
import resource
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelexp.evidence.build import combined, diagnosis, store
from kernelexp.evidence.build.combined import CubinFunction
from kernelexp.evidence.build.planning import PTXAS_FLAGS, Plan
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import confined, toolchain
from kernelexp.system.process import processes
from kernelexp.system.process.processes import Completed, TimedOut

DEPENDENCIES = "kernel.d"
_REPORTED = re.compile(r"ptxas info\s*:|\s+\d+ bytes (?:stack frame|cumulative stack)")
PROBE_BYTES = 1 << 20
"""What a disk must still take for a failure not to be the disk's."""


class DoesNotBuild(Exception):
    """The compiler refused the source, in its own words."""


def compile_to_ptx(plan: Plan, folder: Path) -> str:
    """Leaves PTX and dependencies in `folder`; what nvcc said, which are warnings."""
    ptx, read = folder / store.PTX, folder / DEPENDENCIES
    # By the one preprocessing that PTX is made from: nvcc's own -MD preprocesses for the host too.
    listing = f"-MD,-MT,{store.PTX},-MF,{_relative(plan, read)}"
    argv = [*plan.command, "-ptx", "-o", _relative(plan, ptx), "-Xcompiler", listing]

    def fault(_done: Completed) -> str:
        text = ptx.read_text("utf-8", "replace") if ptx.is_file() else ""
        if not (".version" in text and text.endswith("\n")):
            return "left no whole PTX"
        return _fault_of_list(read)

    done = _run(plan, folder, "nvcc", argv, fault)
    _forget_root(ptx, plan.root)
    return _clean(plan, folder, done.stdout + done.stderr)


def _fault_of_list(read: Path) -> str:
    listed = read.read_text("utf-8", "replace") if read.is_file() else ""
    return "" if store.parse(listed) else "left no whole list of the files it read"


def take(plan: Plan, folder: Path) -> None:
    """Leaves the PTX or the cubin that another compiler made in `folder`."""
    content = (plan.root / plan.variant.source).read_bytes()
    if plan.variant.form == "ptx":
        if b".version" not in content:
            raise DoesNotBuild(
                f"{plan.variant.source}: error: this is not PTX: it has no .version."
            )
        (folder / store.PTX).write_bytes(content)
        _forget_root(folder / store.PTX, plan.root)
        return
    if not combined.is_whole(content):
        raise DoesNotBuild(f"{plan.variant.source}: error: this is not a cubin, or not all of one.")
    (folder / store.CUBIN).write_bytes(content)


def assemble(plan: Plan, folder: Path) -> str:
    """Leaves the cubin in `folder`; ptxas's report."""
    ptx, cubin = folder / store.PTX, folder / store.CUBIN
    flags = plan.flags if plan.variant.form == "ptx" else PTXAS_FLAGS
    arch = () if plan.variant.form == "ptx" else (f"-arch={plan.variant.arch}",)
    argv = [plan.tools.ptxas, *flags, *arch, _relative(plan, ptx)]
    argv += ["-o", _relative(plan, cubin)]

    def fault(_done: Completed) -> str:
        whole = cubin.is_file() and combined.is_whole(cubin.read_bytes())
        return "" if whole else "left no whole cubin"

    done = _run(plan, folder, "ptxas", argv, fault)
    return _clean(plan, folder, done.stdout + done.stderr)


def link_program(plan: Plan, folder: Path) -> tuple[str, str]:
    """Leaves an executable and its dependencies in `folder`; nvcc's warnings, ptxas's report."""
    program, read = folder / store.PROGRAM, folder / DEPENDENCIES
    argv = [*plan.command, "-Xptxas=-v", "-o", _relative(plan, program)]
    argv += ["-MD", "-MF", _relative(plan, read)]

    def fault(_done: Completed) -> str:
        if not (program.is_file() and combined.is_whole(program.read_bytes())):
            return "left no whole program"
        return _fault_of_list(read)

    done = _run(plan, folder, "nvcc", argv, fault)
    output = _clean(plan, folder, done.stdout + done.stderr)
    return _without_report(output), output


def disassemble_program(plan: Plan, folder: Path) -> str:
    """Resource usage and SASS of the program in `folder`; it may have no kernel of its own."""
    argv = [plan.tools.cuobjdump, "-res-usage", "-sass", _relative(plan, folder / store.PROGRAM)]
    return _disassembled(plan, folder, argv, lambda _done: "")


def _without_report(words: str) -> str:
    """Removes from nvcc's output what `ptxas -v` reports of every kernel."""
    return "\n".join(line for line in words.splitlines() if not _REPORTED.match(line)).strip()


def disassemble(plan: Plan, folder: Path) -> str:
    """Resource usage and SASS of the cubin in `folder`."""
    cubin = _relative(plan, folder / store.CUBIN)
    argv = [plan.tools.cuobjdump, "-res-usage", "-sass", cubin]

    def fault(done: Completed) -> str:
        # Of a cubin of an older ptxas, as Triton's is, that of 13.0 warns that it keeps its form.
        complaints = [line for line in done.stderr.splitlines() if "nvdisasm warning" not in line]
        return "" if "Function : " in done.stdout and not complaints else "printed no SASS"

    if plan.variant.form == "cubin":
        listing = _run(plan, folder, "cuobjdump", argv, fault).stdout
        require_arch(plan, listing)
        return listing
    if b".entry" not in (folder / store.PTX).read_bytes():
        raise DoesNotBuild("nvcc: error: the source has no __global__ function.")
    return _disassembled(plan, folder, argv, fault)


def _disassembled(
    plan: Plan, folder: Path, argv: Sequence[str], fault: Callable[[Completed], str]
) -> str:
    try:
        return _run(plan, folder, "cuobjdump", argv, fault).stdout
    except DoesNotBuild as refused:  # it reads what ptxas or nvcc has accepted
        raise EnvironmentFault(f"{plan.label}: {diagnosis.quote(str(refused))}") from None


def disassemble_together(
    plan: Plan, folder: Path, codes: Sequence[CubinFunction]
) -> list[str] | None:
    """SASS as `cuobjdump -sass` prints it of each cubin that one of these is the code of.

    In the folder of one of their builds. None where one process could not do it for all.
    """
    whole = folder / "together.cubin"
    argv = [plan.tools.cuobjdump, "-sass", _relative(plan, whole)]
    env = {"LC_ALL": "C", "TMPDIR": _relative(plan, folder)}
    try:
        whole.write_bytes(combined.combine(codes))
        done = processes.run(argv, cwd=plan.root, env=env, timeout_s=plan.timeout_s)
    except (OSError, EnvironmentFault):
        return None
    is_whole = done.returncode == 0 and not done.stderr
    return combined.separate(done.stdout, codes) if is_whole else None


def print_usage(plan: Plan, folder: Path) -> str:
    """Resource usage of the cubin in `folder`: what disassemble() prints first."""
    argv = [plan.tools.cuobjdump, "-res-usage", _relative(plan, folder / store.CUBIN)]

    def fault(done: Completed) -> str:
        return "" if " Function " in done.stdout and not done.stderr else "printed no usage"

    return _disassembled(plan, folder, argv, fault)


def require_arch(plan: Plan, listing: str) -> None:
    """DoesNotBuild for a cubin that the target's cards do not load.

    They load those of the same major version and of no later minor one; of sm_90a only such cards'.
    """
    match = re.search(r"code for (sm_(\d+)(\d)([af]?))$", listing, re.M)
    arch = plan.variant.arch
    major, minor = arch.removeprefix("sm_").rstrip("af")[:-1], int(arch.rstrip("af")[-1])
    if match and (match[2], match[4]) in ((major, ""), (major, "f")) and int(match[3]) <= minor:
        return
    if match is None or match[1] != arch:
        result = match[1] if match else "no architecture"
        raise DoesNotBuild(f"{plan.variant.source}: error: this cubin is for {result}, not {arch}.")


def preprocess(plan: Plan, folder: Path) -> str:
    """Hash of the preprocessed text, for sources that ask for more than files' contents."""
    argv = [*plan.command, "-E", "-Xcompiler", "-P"]
    done = _run(
        plan, folder, "nvcc -E", argv, lambda done: "" if done.stdout else "printed nothing"
    )
    return hashlib.sha256(done.stdout.encode()).hexdigest()


def _run(
    plan: Plan, folder: Path, tool: str, argv: Sequence[str], fault: Callable[[Completed], str]
) -> Completed:
    """Runs a step; a crash is given one more try. `fault` says what is wrong with what it left.

    Raises DoesNotBuild where the compiler refuses the source, EnvironmentFault where the machine
    failed, TimedOut past the limit.
    """
    if plan.tools.confined_to:
        return _run_confined(plan, folder, tool, argv, fault)
    env = {"LC_ALL": "C", "TMPDIR": _relative(plan, folder)}
    for last in (False, True):
        try:
            done = processes.run(argv, cwd=plan.root, env=env, timeout_s=plan.timeout_s)
        except TimedOut:
            raise TimedOut(
                f"{plan.label}: {tool} ran past the limit of {plan.timeout_s:g} s for a step of a "
                "build: give it more with --limit build=20m."
            ) from None
        left = fault(done) if done.returncode == 0 else ""
        if done.returncode == 0 and not left:
            return done
        words = _clean(plan, folder, done.stderr + done.stdout)
        cause = diagnosis.find_cause(done, words)
        _require_space(plan, folder, tool)
        if cause == "source":
            raise DoesNotBuild(f"{tool}:\n{_without_report(words)}")
        how = left or _ending(done)
        if cause == "machine" or _is_memory_limited():
            raise EnvironmentFault(f"{plan.label}: {tool} {how}: {diagnosis.quote(words)}")
        if last:
            raise DoesNotBuild(f"{tool}: the compiler crashed twice; it {how}.\n{words}".rstrip())
    raise AssertionError("unreachable")


def _run_confined(
    plan: Plan, folder: Path, tool: str, argv: Sequence[str], fault: Callable[[Completed], str]
) -> Completed:
    """Runs a tool within limits: what a source makes a compiler do is the source's fault."""
    env = {"LC_ALL": "C", "TMPDIR": _relative(plan, folder)}
    try:
        done = confined.run(
            argv, plan.tools, folder, cwd=plan.root, env=env, timeout_s=plan.timeout_s
        )
    except TimedOut:
        limit = f"the limit of {plan.timeout_s:g} s for a step of a build"
        raise DoesNotBuild(f"{tool}: error: it ran past {limit}.") from None
    left = fault(done) if done.returncode == 0 else ""
    if done.returncode == 0 and not left:
        return done
    _require_space(plan, folder, tool)
    words = _clean(plan, folder, done.stderr + done.stdout)[: confined.LONGEST_LOG]
    if done.returncode == confined.CANNOT:
        raise EnvironmentFault(f"{plan.label}: {words}.")
    if diagnosis.find_cause(done, words) == "source":
        raise DoesNotBuild(f"{tool}:\n{words}")
    raise DoesNotBuild(
        f"{tool}: error: under the limits of a hostile source it {left or _ending(done)}.\n{words}"
    )


def _ending(done: Completed) -> str:
    if done.killed_by:
        return f"was ended by {signal.Signals(done.killed_by).name}"
    return f"ended with code {done.returncode}"


def _require_space(plan: Plan, folder: Path, tool: str) -> None:
    """EnvironmentFault if the disk is full: cicc then crashes, and others leave half of a file."""
    probe = folder / "probe"
    try:
        with probe.open("wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EnvironmentFault(
            f"{plan.label}: {tool} failed, and {store.CACHE} can't be written: {error.strerror}."
        ) from None
    finally:
        probe.unlink(missing_ok=True)


def _is_memory_limited() -> bool:
    """Whether a crash may be for want of memory: cicc does not report a limit that it meets."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _relative(plan: Plan, path: Path) -> str:
    """Paths are relative to the root, so that its own name may hold any character."""
    return path.relative_to(plan.root).as_posix()


def _clean(plan: Plan, folder: Path, words: str) -> str:
    """A tool's words without the names of temporary files."""
    return words.replace(f"{folder}/", "").replace(f"{_relative(plan, folder)}/", "").strip()


def _forget_root(ptx: Path, root: Path) -> None:
    """Names the sources from the root, so that a project can be moved with its builds, and the
    package's headers from the package."""
    headers = toolchain.HEADERS
    named = []
    for line in ptx.read_text("utf-8", "surrogateescape").splitlines(keepends=True):
        if line.startswith("\t.file\t"):
            line = line.replace(f'"{root}/', '"')
            for folder in (headers, headers.resolve()):
                line = line.replace(f'"{folder}/', f'"kernelexp/{headers.name}/')
        named.append(line)
    ptx.write_text("".join(named), "utf-8", "surrogateescape")
