"""kernelexp adopt: a kernel from an existing source, with questions on a terminal, or a log."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from kernelexp.cli import adoption, common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_number, parse_numbers, parse_pairs, parse_whole
from kernelexp.cli.console import print_message, progress_bars
from kernelexp.cli.modes import given, refuse_all_but, refuse_other_modes
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.services.adopt.adopted import Compiled
    from kernelexp.services.adopt.launched import AdoptedLaunch
    from kernelexp.services.adopt.notation import WantedLaunch
    from kernelexp.system.toolchain import Toolchain


_STDERR = 2
_NUMBERED = re.compile(r"(?<!:):[0-9]+$")


WITH_LOG = "With --log"


@app.command()
def adopt(
    ctx: typer.Context,
    source: Annotated[
        Path | None,
        argument("[FILE]", "A CUDA source, PTX or a cubin; with --log, .md, .csv or .tsv."),
    ] = None,
    from_program: Annotated[
        str,
        option(
            "--from-program ARGS",
            "Take a launch of a program: ARGS are those of kernelexp exec, or a folder that "
            "kernelexp capture wrote.",
        ),
    ] = "",
    entry: Annotated[
        list[str] | None,
        option(
            "--entry NAME",
            "Which __global__ function: 'gemm<64, 64>'. Repeatable: launched in order, each as "
            "'scan<<<n/512, 256>>>(x, y, n)'.",
        ),
    ] = None,
    kernel: Annotated[
        str,
        option(
            "--kernel NAME",
            "The kernel's name in the project; of a program's, NAME[:N]: its N-th launch.",
        ),
    ] = "",
    replace: Annotated[
        bool,
        option("--replace", "Remove the kernel of this name, if no experiment of it has a record."),
    ] = False,
    as_: Annotated[str, option("--as NAME", "What a program's kernel is to be called.")] = "",
    arch: Annotated[str, option("--arch SM", "Architecture, as in sm_90a.")] = "",
    block: Annotated[str, option("--block X,Y,Z", "Threads per CTA: 256, 16,16 or 32*rows.")] = "",
    grid: Annotated[
        str, option("--grid X,Y,Z", "CTAs by integer parameters, rounded up: N/64,M/64.")
    ] = "",
    smem: Annotated[str, option("--smem BYTES", "Dynamic shared memory: 4096 or 4*N*64.")] = "",
    cluster: Annotated[
        str, option("--cluster X,Y,Z", "CTAs per cluster, if the source does not say: 2.")
    ] = "",
    shape: Annotated[
        list[str] | None,
        option(
            "--shape NAME=M,K", "The shape of an array, in components: 4 of an int4. Repeatable."
        ),
    ] = None,
    value: Annotated[
        list[str] | None,
        option(
            "--value NAME=NUMBER",
            "A scalar's or a size's value, or several: M=64,N=64. Repeatable.",
        ),
    ] = None,
    emulated: Annotated[
        list[str] | None,
        option(
            "--emulated NAME=NUMBER",
            "The value to emulate with, if smaller, or several: M=64,N=64. Repeatable.",
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        option("--reference NAME=EXPR", "What an output should be: 'C=A @ B'. Repeatable."),
    ] = None,
    workspace: Annotated[
        list[str] | None,
        option(
            "--workspace NAME", "The kernel's own memory, zero before the first launch. Repeatable."
        ),
    ] = None,
    zero: Annotated[
        list[str] | None,
        option(
            "--zero NAME",
            "An output that is zero before the first launch, as bins are. Repeatable.",
        ),
    ] = None,
    output_: Annotated[
        list[str] | None, option("--output NAME", "An array that the kernel writes. Repeatable.")
    ] = None,
    tensor_map: Annotated[
        list[str] | None,
        option(
            "--tensor-map NAME=TYPE:BOX:SWIZZLE",
            "A TMA descriptor: A=f16:64x128:128B, innermost first; then globalDim and "
            "globalStrides if need be: :K,M:2*K. Repeatable.",
        ),
    ] = None,
    dtype: Annotated[
        list[str] | None, option("--dtype NAME=TYPE", "What an array has: w=u8, x=f16. Repeatable.")
    ] = None,
    flag: Annotated[
        list[str] | None, option("--flag FLAG", "Argument for nvcc: --flag=-DX=4. Repeatable.")
    ] = None,
    torch: Annotated[
        bool, option("--torch", "Compile with PyTorch's headers and flags, as an extension is.")
    ] = False,
    signature: Annotated[
        str,
        option(
            "--signature TEXT", "Parameters of a .ptx or .cubin: 'const float* x, float* y, int n'."
        ),
    ] = "",
    axis: Annotated[
        list[str] | None,
        option(
            "--axis NAME=1,2",
            "A #define, a constant, a template argument, or block, is an axis. Repeatable.",
        ),
    ] = None,
    log: Annotated[
        bool,
        option("--log", "FILE is a log kept by hand: history, experiments, published results."),
    ] = False,
    log_source: Annotated[
        str, option("--source TEXT", "Where the figures are from, for records.", WITH_LOG)
    ] = "",
    column: Annotated[
        list[str] | None,
        option(
            "--column ROLE=HEADING",
            "What a column of a table is: id, title, time, tflops, registers, verdict, date or "
            "commit, if its heading does not say. Repeatable.",
            WITH_LOG,
        ),
    ] = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Add a kernel from a CUDA source, PTX or a cubin, or a log that was kept by hand.

    The source is copied and compiled without its host code, problem.py is drafted from its
    parameters and these options, and the kernel is executed on the CPU once nothing is blank. On a
    terminal you are asked for what is missing. Other lines of experiments.yaml stay as they are.

    With --from-program nothing is missing: the program is run on the CPU up to that launch, whose
    arguments, arrays and results are kept.

    A log becomes a kernel with one axis, whose values are the states that it mentions. Figures
    become published records, other words stay in an experiment's notes, and the log is copied to
    logs/imported. Each row of a table is compared with the last one before it that was kept.

    For example:
        kernelexp adopt gemm.cu --entry 'gemm<64>' --block 256
        kernelexp adopt relu.cu --block 256 --grid N/256 --reference 'y=x.relu()'
        kernelexp adopt sum.cu --entry 'parts(x, sums)' --entry 'total(sums, y)'
        kernelexp adopt --from-program 'main.cu -- 1024' --kernel relu:3
        kernelexp adopt --log notes.md --kernel gemm --column time=speed
    """
    if log:
        refuse_all_but(ctx, "--log", "log", "kernel", "arch", "log_source", "column", "project")
        if source is None:
            raise UsageError("--log: name the log, a markdown file, .csv or .tsv.")
        adoption.adopt_log(source, kernel, arch, log_source, column or (), project)
        return
    refuse_other_modes(ctx)
    from kernelexp.evidence.programs import captures
    from kernelexp.services.adopt import adopted, answers, constants, launch_axes, notation
    from kernelexp.services.adopt.expressions import parse_expressions, parse_reference
    from kernelexp.services.adopt.launched import AdoptedLaunch

    loaded = common.load(project)
    if replace:
        name = as_ or (_own_name(kernel) if from_program else kernel)
        ctx.with_resource(_replacing(loaded, name, "--as" if from_program else "--kernel"))
        loaded = common.load(project)
    tools = common.tools(loaded, nvcc)
    if from_program:
        _refuse_given(ctx, *_OF_LAUNCH)
        varied: Callable[[AdoptedLaunch], AdoptedLaunch] | None = None
        if captures.is_one(Path(from_program)):
            from kernelexp.services.adopt import captured

            _refuse_given(ctx, "axis", "grid", "value", "flag", "nvcc")
            where = (loaded, Path(from_program), as_ or kernel, signature, tools)
            begin = functools.partial(captured.adopt, *where)
        else:
            _refuse_given(ctx, "signature")
            axes = [launch_axes.parse(item) for item in axis or []]
            counts = parse_expressions(grid) if grid else ()
            sizes = {name: parse_number(text) for name, text in parse_numbers(value, "--value")}
            varied = functools.partial(adoption.vary, axes=axes, grid=counts, sizes=sizes)
            words = (from_program, kernel, as_, flag or [])
            begin = functools.partial(_adopt_launch, loaded, tools, *words)
        _finish(loaded, begin, varied, reference or [], nvcc)
    if as_:
        raise UsageError("--as is for a kernel of --from-program: --kernel names this one.")
    axes = [launch_axes.parse(item) for item in axis or []]
    if source is None:
        raise UsageError("name a source, PTX or a cubin, or a program with --from-program.")
    wanted = [notation.parse(text) for text in entry or [""]]
    usual = answers.LaunchShape(
        grid=parse_expressions(grid) if grid else (),
        smem=notation.parse_smem(smem) if smem else "",
        cluster=notation.parse_cluster(cluster) if cluster else (),
    )
    if block:
        usual = answers.completed(notation.block_shape(block), usual)
    known = answers.Answers(
        launches=tuple(answers.completed(wanted_launch.shape, usual) for wanted_launch in wanted),
        shapes={name: parse_expressions(text) for name, text in parse_pairs(shape, "--shape")},
        workspaces=tuple(workspace or ()),
        zeros=tuple(zero or ()),
        values={name: parse_number(text) for name, text in parse_numbers(value, "--value")},
        emulated={name: parse_whole(text) for name, text in parse_numbers(emulated, "--emulated")},
        references={
            name: parse_reference(text) for name, text in parse_pairs(reference, "--reference")
        },
        maps={
            name: adopted.parse_map(name, text)
            for name, text in parse_pairs(tensor_map, "--tensor-map")
        },
    )
    dtypes = {name: adopted.parse_dtype(name, text) for name, text in parse_pairs(dtype, "--dtype")}
    flags = tuple(flag or ())
    before = adopted.configuration(loaded.root)
    compiled, flags = _compile(
        *(loaded, source, tools, wanted, kernel, arch, signature, flags, torch),
        {name: values[0] for name, values in axes},
    )
    undo: Callable[[], None] | None = functools.partial(adopted.discard, compiled, before)
    names = {word for name, _ in axes for word in (name, name.lower(), name.upper())}
    try:
        compiled, known = adopted.described(compiled, output_ or (), known, dtypes)
        adoption.tell(compiled, known)
        if sys.stdin.isatty():
            from kernelexp.cli import questions

            typed = questions.complete(compiled, known, names)
            undo = None if typed != known else undo
            known = typed
        numbers = constants.find(loaded.root, compiled, known, names, flags, tools)
        known = adopted.assumed(compiled, known, numbers, names)
        adoption.tell_numbers(numbers, names)
        adoption.tell_clusters(compiled, known)
        compiled, known = constants.insert(compiled, known, numbers)
        launch = AdoptedLaunch(compiled=compiled, answers=known, flags=flags)
        launch = adoption.vary(launch, axes, usual.block)
        text = adopted.finish(loaded, launch.compiled, launch.answers, launch.flags)
        added = adoption.add_experiments(loaded, launch)
    except BaseException:
        adopted.discard(compiled, before)
        raise
    raise typer.Exit(adoption.conclude(loaded, launch, text, added, undo, nvcc))


def _own_name(choice: str) -> str:
    """What --kernel 'sums::row<2>:3' of a program's launch calls its kernel."""
    return _NUMBERED.sub("", choice).partition("<")[0].rpartition("::")[2]


@contextlib.contextmanager
def _replacing(loaded: Project, kernel: str, option: str) -> Iterator[None]:
    """Makes room for a kernel of that name; says what becomes of the one that has it."""
    from kernelexp.services.adopt import adopted

    if not kernel:
        raise UsageError(f"--replace: say which with {option} NAME.")
    if kernel not in loaded.kernels:
        yield
        return
    kept, was_there = "", (loaded.root / "variants" / kernel).is_dir()
    try:
        with adopted.replacing(loaded, kernel, option) as kept:
            typer.echo(f"replaced: the old {kernel} is in {kept}")
            yield
    finally:
        if kept and was_there and not (loaded.root / kept).exists():
            print_message(f"note: nothing replaced the old {kernel}: it is back")


_OF_LAUNCH = (
    *("source", "entry", "arch", "block", "smem", "cluster", "shape", "emulated", "workspace"),
    *("zero", "output_", "tensor_map", "dtype", "torch"),
)
"""Parameters that say what a program's launch says by itself."""


def _refuse_given(ctx: typer.Context, *names: str) -> None:
    """UsageError for what a launch says by itself."""
    parameters: dict[str, Any] = {item.name: item for item in ctx.command.params if item.name}
    for name in names:
        if name in given(ctx):
            spelled = "FILE" if name == "source" else parameters[name].opts[0]
            raise UsageError(f"--from-program: leave out {spelled}, which the launch says.")


def _adopt_launch(
    loaded: Project, tools: Toolchain, text: str, kernel: str, name: str, flags: list[str]
) -> AdoptedLaunch:
    """Runs a program up to the launch that --kernel names."""
    from kernelexp.cli import exec as exec_
    from kernelexp.services.adopt import launched
    from warpsim.runtime.capturing import LaunchChoice

    plain, _, number = kernel.rpartition(":") if _NUMBERED.search(kernel) else (kernel, "", "1")
    if not plain or number == "0":
        raise UsageError("say which launch: --kernel NAME, or NAME:3 for its third.")
    choice = LaunchChoice(kernel=plain, number=int(number))
    # What the program prints is not what this command prints.
    return launched.adopt(loaded, exec_.parse(text), choice, name, tools, flags, _STDERR)


def _finish(
    loaded: Project,
    begin: Callable[[], AdoptedLaunch],
    varied: Callable[[AdoptedLaunch], AdoptedLaunch] | None,
    references: list[str],
    nvcc: str | None,
) -> NoReturn:
    """Completes the adoption of a known launch: problem.py, experiments, the first emulation."""
    from kernelexp.services.adopt import adopted
    from kernelexp.services.adopt.expressions import parse_reference

    before = adopted.configuration(loaded.root)
    launch = begin()
    wanted = {key: parse_reference(item) for key, item in parse_pairs(references, "--reference")}
    undo = functools.partial(adopted.discard, launch.compiled, before)
    try:
        adoption.tell(launch.compiled, launch.answers)
        launch = varied(launch) if varied else launch
        after = {key: file for key, file in launch.answers.after.items() if key not in wanted}
        known = msgspec.structs.replace(launch.answers, references=wanted, after=after)
        problem = adopted.finish(loaded, launch.compiled, known, launch.flags)
        added = adoption.add_experiments(loaded, launch)
    except BaseException:
        undo()
        raise
    raise typer.Exit(adoption.conclude(loaded, launch, problem, added, undo, nvcc))


def _compile(
    loaded: Project,
    source: Path,
    tools: Toolchain,
    wanted: Sequence[WantedLaunch],
    kernel: str,
    arch: str,
    signature: str,
    flags: tuple[str, ...],
    torch: bool,
    axes: Mapping[str, int],
) -> tuple[Compiled, tuple[str, ...]]:
    """Whatever compiler its source is for, or was compiled by; with flags as they are kept."""
    from kernelexp.services.adopt import precompiled, service

    if source.suffix in precompiled.SUFFIXES:
        binary = precompiled.read(source)
        made = precompiled.adopt(loaded, binary, wanted, kernel, arch, signature, tools, flags)
        return made, flags
    if signature:
        raise UsageError("--signature is for .ptx and .cubin: a source has its own.")
    chosen = service.choose(loaded, source, wanted, kernel, flags, axes)
    wanted_arch = arch or _usual_arch(loaded)
    with progress_bars(loaded.root) as bars:
        made = service.compile_any(
            loaded, chosen, wanted_arch, tools, torch=torch, on_progress=bars
        )
    return made, chosen.flags


def _usual_arch(loaded: Project) -> str:
    """The architecture that the project's kernels are for, or the first of several."""
    targets = (arch for kernel in loaded.kernels.values() for arch in kernel.targets)
    return next(targets, "sm_90a")
