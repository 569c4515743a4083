"""Modes of `inspect`: instructions, --build, --lines and --source, --memory, --modelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.cli import common
from kernelexp.cli.common import parse_isas, parse_variants
from kernelexp.cli.console import print_message
from kernelexp.model import errors
from kernelexp.model.arm import faults, without_fault
from kernelexp.model.errors import OK, REGRESSION, UsageError

if TYPE_CHECKING:
    from kernelexp.dossier.session import Session
    from kernelexp.judge.expectations import JudgedInstructions
    from kernelexp.model.errors import KernelexpError
    from kernelexp.model.experiment import Variant
    from kernelexp.project import Project
    from kernelexp.services.inspection import Inspection
    from kernelexp.services.lines.service import Lines


class VariantInspection:
    """The variants of one command; each mode prints its page or JSON and returns an exit code."""

    def __init__(
        self,
        loaded: Project,
        wanted: list[Variant],
        session: Callable[[], AbstractContextManager[Session]],
        output: Callable[..., None],
    ) -> None:
        """output: of a kind, its values and its document."""
        self._loaded, self._wanted = loaded, wanted
        self._session, self._output = session, output

    def instructions(self, texts: list[str], top: int, emulate: bool) -> int:
        """What the compiler made, with the conditions of --expect judged."""
        import msgspec

        from kernelexp.dossier import emulations
        from kernelexp.report.variants import inspection_page
        from kernelexp.services import inspected, inspection

        _require_conditions(texts, several=len(self._wanted) > 1)
        with self._session() as session:
            inspections, faults = inspection.look(self._loaded, self._wanted, session)
        _print_faults(faults)
        judged = _judge(inspections, texts)
        document = inspection_page.render(inspections, judged, top)
        self._output("inspect", inspected.variants(inspections, judged, top), document)
        missed = any(expectation.result == "missed" for _, expectation in judged)
        arms = [inspection.arm for inspection in inspections]
        if not emulate:  # nobody wants to know what an earlier emulation did not cover
            arms = [msgspec.structs.replace(arm, emulated=None, emulated_sass=None) for arm in arms]
        return emulations.exit_code(arms, faults) or (REGRESSION if missed else OK)

    def lines(
        self,
        by: str | None,
        top: int,
        role: str | None,
        sass: bool,
        size: str,
        isa: str,
        page: str,
        markdown: bool,
    ) -> int:
        """Cost of each source line, and of each role of the warps, ranked by a metric."""
        from kernelexp.dossier import emulations
        from kernelexp.report.variants import lines as report
        from kernelexp.services.lines import service

        with self._session() as session:
            isas = parse_isas(isa)
            costs, faults = service.look(self._loaded, self._wanted, session, size=size, isas=isas)
        _print_faults(faults)
        if page:
            _write_page(page, self._loaded, costs)
        values = [service.costed(cost, by, top, role, sass) for cost in costs]
        self._output("lines", values, report.render(costs, by, top, role, sass, markdown))
        return emulations.exit_code([cost.arm for cost in costs], faults)

    def memory(self, top: int, size: str) -> int:
        """Which lanes touch which banks and sectors, where that costs more than it needs."""
        from kernelexp.dossier import emulations
        from kernelexp.report.variants import memory_picture as report
        from kernelexp.services import memory_pictures

        with self._session() as session:
            pictures, faults = memory_pictures.look(self._loaded, self._wanted, session, size)
        _print_faults(faults)
        values = [picture.pictured for picture in pictures]
        self._output("memory", values, report.render(pictures, top))
        return emulations.exit_code([picture.arm for picture in pictures], faults)

    def modelled(self, top: int, size: str, trace: str) -> int:
        """Modelled times, against the first variant's."""
        from kernelexp.report.variants import modelled as report
        from kernelexp.services import modelling

        if trace and len(self._wanted) > 1:
            raise UsageError(
                f"--trace is of one variant, and these are {len(self._wanted)}: name one."
            )
        path = str(Path(trace).absolute()) if trace else ""
        with self._session() as session:
            result, faults = modelling.look(self._loaded, self._wanted, session, size, path)
        _print_faults(faults)
        if trace and result and not result[0].modelled.refused:
            print_message(f"wrote {trace}: open it at https://ui.perfetto.dev")
        if result:
            values = [report.shorten(variant, top) for variant in result]
            self._output("modelled", values, report.render(result, top))
        return next((fault.exit_code for fault in faults), OK)


def _print_faults(faults: Sequence[KernelexpError]) -> None:
    for fault in faults:
        print_message(f"error: {fault}")


def _require_conditions(texts: Sequence[str], several: bool) -> None:
    """UsageError for a text that is not a condition, before anything is built."""
    from kernelexp.judge.expectations import InstructionCounts, instruction_expectations

    nothing = InstructionCounts(every={}, in_loops={})
    try:
        instruction_expectations(nothing, texts, nothing if several else None)
    except ValueError as error:
        raise UsageError(f"--expect {error}") from None


def _judge(
    inspections: Sequence[Inspection], texts: Sequence[str]
) -> list[tuple[str, JudgedInstructions]]:
    """Numbers are judged of every variant, changes of all but the first, by their labels."""
    from kernelexp.facts import condition
    from kernelexp.judge.expectations import instruction_expectations

    built = [inspection for inspection in inspections if inspection.arm.build]
    judged = []
    for number, inspection in enumerate(built):
        before = built[0].counts() if number else None
        own = [
            text for text in texts if number or condition.parse(text).expectation.basis == "value"
        ]
        judged += [
            (inspection.label, one)
            for one in instruction_expectations(inspection.counts(), own, before)
        ]
    return judged


def _write_page(page: str, loaded: Project, costs: Sequence[Lines]) -> None:
    from kernelexp.report.site import listing
    from kernelexp.services import modelling

    built = [cost for cost in costs if cost.pieces]
    if not built:
        return
    names = [str(number) for number in range(1, len(built) + 1)] if len(built) > 1 else [""]
    listings = [
        listing.listed(loaded.root, name, cost, modelling.kept_run(loaded.root, cost.arm))
        for name, cost in zip(names, built, strict=True)
    ]
    title = " and ".join(cost.lines.label for cost in listings)
    try:
        common.write_report(Path(page), listing.page(listings, title))
    except OSError as error:
        raise UsageError(f"--page {page} can't be written: {error.strerror}.") from None
    print_message(f"wrote {page}")


def show_builds(
    variants: list[str] | None,
    sets: list[str] | None,
    run: str | None,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
    verbose: bool,
    output: Callable[..., None],
) -> int:
    """Builds these variants, or those of a recorded run from its own sources; the exit code, 3 if
    one does not build."""
    from kernelexp.dossier import prepare
    from kernelexp.report.variants import builds
    from kernelexp.services.run import runner

    loaded = common.load(start, sources=not run)
    if bool(variants) == bool(run):
        raise UsageError("name the variants to build, or a run with --record.")
    home = loaded
    if run:
        loaded, experiment = runner.restore(loaded, run)
        variants = [experiment]
    wanted = parse_variants(loaded, variants or [], sets)
    with common.session(home, nvcc, limit) as session:
        built = prepare.built(loaded, wanted, session)
    arms = {loaded.label(arm): arm for arm in without_fault(built)}
    found = faults(built)
    for error in dict.fromkeys(map(str, found)):
        print_message(f"error: {error}")
    output("build", arms, builds.render(arms, verbose))
    refused = any(arm.refused for arm in arms.values())
    code = errors.BUILD if refused else errors.OK
    return found[0].exit_code if found else code


def write_ninja(
    folder: Path,
    texts: list[str] | None,
    sets: list[str] | None,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
) -> None:
    """The steps of these variants, or of all that are named; those IMPOSSIBLE have none."""
    from kernelexp.dossier import prepare
    from kernelexp.evidence.build import make_plans, ninjafile
    from kernelexp.services.check import gates

    loaded = common.load(start)
    wanted = parse_variants(loaded, texts or [], sets)
    wanted = wanted or list(gates.named_variants(loaded).values())
    with common.session(loaded, nvcc, limit) as session:
        possible = prepare.possible(loaded, wanted, session.limits)
        plans = make_plans(loaded.root, possible, session.tools)
    file = folder / ninjafile.NAME
    try:
        ninjafile.write(folder, {loaded.label(plan.variant): plan for plan in plans})
    except OSError as error:
        raise UsageError(f"--ninja {folder}: {error.strerror}.") from None
    print_message(f"{file}: {len(plans)} variants; build them with: ninja -f {file}")
