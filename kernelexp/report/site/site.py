"""All pages of a project: their paths, and each as bytes on request."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kernelexp.dossier import standing
from kernelexp.dossier.standing import StandingProfile
from kernelexp.dossier.tree import Tree
from kernelexp.evidence import build
from kernelexp.judge import modelled_pairs
from kernelexp.logs import profiles, records, sources
from kernelexp.logs.records import Unreadable
from kernelexp.model.experiment import spell_point
from kernelexp.model.record import Profile, Record
from kernelexp.project import Project
from kernelexp.project.sections import NAMES, builtin
from kernelexp.project.sections.evaluate import evaluate
from kernelexp.project.sections.given import Run
from kernelexp.report import outputs
from kernelexp.report.charts import changes, ncu
from kernelexp.report.charts.chart import Bars
from kernelexp.report.document import figures
from kernelexp.report.document.document import Table
from kernelexp.report.log import listing as log_listing
from kernelexp.report.log import logbook, pending
from kernelexp.report.log.pending import PendingArm
from kernelexp.report.runs import page, sweep_map, sweep_parts
from kernelexp.report.runs import sizes as sizes_report
from kernelexp.report.runs import sweep as sweep_report
from kernelexp.report.site import answer, code, diffs, listing, timelines
from kernelexp.report.site.diffs import Texts, page_of, split
from kernelexp.report.site.front import index
from kernelexp.report.site.front.overview import guess, overview
from kernelexp.report.site.inputs import Inputs
from kernelexp.report.site.profiled import KeptProfiles
from kernelexp.report.site.rendering import render
from kernelexp.report.variants import memory_picture
from kernelexp.report.variants import profiles as profile_report
from kernelexp.report.variants import sections as section_report
from kernelexp.services import kernel_logs, memory_pictures, modelling
from kernelexp.services.lines import service as lines_service
from kernelexp.services.memory_pictures import MemoryPicture
from kernelexp.services.modelling import KeptModelled

RECORDS_SHOWN = log_listing.RECORDS_SHOWN
MEMORY_SHOWN = 5
"""Accesses of a variant that are drawn."""
ARMS_LISTED = 4
"""Variants of a record whose code is listed side by side."""
INDEX, LOG = "index.html", "log.json"
_LINKED = re.compile(rb"sources/([0-9a-f]{16})\.html")
FOLDERS = frozenset({"experiments", "sweeps", "profiles", "sources", "code", "timelines"})
"""Of the other pages."""


class ProjectSite:
    """The pages of a project as it is at one moment; nothing of it runs the project's Python."""

    def __init__(self, project: Project, live: bool = False, listings: bool = True) -> None:
        """listings: whether pages of whole sources beside their SASS belong to it, MBs in all."""
        self._project, self._live, self._listings = project, live, listings
        self.tree, self._inputs = Tree(project.root), Inputs(project.root)
        self._texts, self._codes = Texts(project.root), diffs.Codes(project.root)
        self.logs = kernel_logs.assemble(project, self.tree)
        kept, unreadable = profiles.read_all(project.root)
        self._sweeps = {record.run: record for one in self.logs for record in one.sweeps}
        self._standings = {
            name: (own, entry) for own in self.logs for name, entry in own.standings.items()
        }
        standings = {name: entry for name, (_, entry) in self._standings.items()}
        self._profiles = KeptProfiles(project, kept, standings, self.tree)
        names = ["", *self._standings, ""]
        self._neighbours = {
            name: (before, after)
            for before, name, after in zip(names, names[1:], names[2:], strict=False)
        }
        self._linked: dict[str, None] = {}
        self._timed_of: dict[str, list[Record]] = {}
        self.unreadable: tuple[Unreadable, ...] = (
            *(item for one in self.logs for item in one.unreadable),
            *unreadable,
        )

    def paths(self) -> Iterator[str]:
        """The site's files; those of sources are known once the pages before them are rendered."""
        yield from (INDEX, LOG)
        yield from (f"experiments/{name}.html" for name in self._standings)
        yield from (f"sweeps/{run}.html" for run in self._sweeps)
        yield from (f"profiles/{run}.html" for run in self._profiles.by_run)
        yield from (f"sources/{digest}.html" for digest in list(self._linked))
        yield from (f"code/{run}.html" for run in self._codes_of)
        yield from (f"timelines/{name}.html" for name in self._timelines)

    def render(self, path: str) -> bytes | None:
        """A file of the site; None where it has none of this name."""
        if path == INDEX:
            return self._index()
        if path == LOG:
            return outputs.encode("log", [one.logged() for one in self.logs])
        folder, _, name = path.partition("/")
        known: dict[str, tuple[dict[str, Any], Callable[[str], bytes | None]]] = {
            "experiments": (self._standings, self._experiment),
            "sweeps": (self._sweeps, self._sweep),
            "profiles": (self._profiles.by_run, self._profile),
            "sources": (self._sources, self._source),
            "code": (self._codes_of, self._code),
            "timelines": (self._timelines, self._timeline),
        }
        assert known.keys() == FOLDERS
        pages, make = known.get(folder, ({}, self._source))
        key = name.removesuffix(".html")
        return make(key) if name.endswith(".html") and key in pages else None

    def inputs(self, path: str) -> str:
        """A digest of all that an experiment's page or listing is made from; empty where that is
        not known, and for other pages."""
        folder, _, name = path.removesuffix(".html").partition("/")
        if folder == "code" and name in self._codes_of:
            name = self._codes_of[name][0]
        elif folder != "experiments":
            return ""
        # A roofline takes the times of others, and files elsewhere change unseen.
        if (
            name not in self._standings
            or self._profiles.of_experiment(name)
            or self.tree.leaves_root
        ):
            return ""
        own, entry = self._standings[name]
        values = (
            (own.kernel, own.arch, own.title, own.problem),
            (self._live, self._listings, self._neighbours[name], entry.records, entry.former),
            entry.experiment,
            [
                (one.variant, one.changed, one.doubted, one.decisions, one.verdict)
                for one in entry.candidates
            ],
            (self._pending.get(name), self._found_wrong.get(name)),
        )
        return self._inputs.of_experiment(name, entry.by_run.values(), values)

    def link(self, page: bytes) -> None:
        """Notes the sources that a page leads to which is not rendered again."""
        found = _LINKED.findall(page)
        self._linked.update({digest.decode(): None for digest in found})

    def _page(self, template: str, title: str, **values: Any) -> bytes:
        """Renders a template; what is yielded for it becomes a list."""
        root = "" if template == INDEX else "../"
        known = {k: list(v) if isinstance(v, Iterator) else v for k, v in values.items()}
        return render(template, self._live, root=root, title=title, **known)

    @property
    def title(self) -> str:
        """Named by the project's folder, which is what a tab among others shows."""
        return f"{self._project.root.name}: kernel experiments"

    def _index(self) -> bytes:
        values = msgspec.to_builtins([one.logged() for one in self.logs])
        rows = list(index.rows(values))
        without = self._idle()
        return self._page(
            INDEX,
            self.title,
            plots=changes.of_history(self.logs),
            rooflines=((name, plots) for name, plots in self._profiles.rooflines() if plots),
            overview=overview(
                self.logs,
                self._profiles.latest,
                self._timed_records,
                self._texts.now,
                self._pending,
            ),
            idle=without,
            with_axes=next((one.kernel for one in without if self._has_axes(one.kernel)), ""),
            rows=rows,
            headers=index.used(rows),
            shown=index.ROWS_SHOWN,
            sweeps=(
                (record, figures.held(record, own.defaults), logbook.fastest(record))
                for own in self.logs
                for record in own.sweeps
            ),
            profiles=reversed(self._profiles.by_run.values()),
        )

    def _timed_records(self, name: str) -> list[Record]:
        if name not in self._timed_of:
            root, known = self._project.root, self._standings[name][1].by_run
            self._timed_of[name] = records.last_timed(root, name, RECORDS_SHOWN, known)
        return self._timed_of[name]

    def _idle(self) -> list[index.Idle]:
        """Kernels that no experiment is about, each with its first architecture."""
        logged = {one.kernel for one in self.logs}
        return [
            index.of_kernel(self._project, name, next(iter(kernel.targets)), self.tree)
            for name, kernel in self._project.kernels.items()
            if name not in logged
        ]

    def _has_axes(self, kernel: str) -> bool:
        name, _, arch = kernel.partition("@")
        return bool(self._project.kernels[name].targets[arch].axes)

    def _experiment(self, name: str) -> bytes:
        own, standings = self._standings[name]
        experiment, runs = standings.experiment, standings.by_run
        result = records.last(self._project.root, name, RECORDS_SHOWN, runs)
        changed = [word for one in standings.candidates if one.record for word in one.changed]
        profiled = self._profiles.of_experiment(name)
        known = _unchanged(profiled)
        before, after = self._neighbours[name]
        by_size = [plot for record in runs.values() for plot in changes.of_sizes(record)]
        shown = [
            self._run(record, experiment.hypothesis, changed, known) for record in runs.values()
        ]
        open_ends = self._pending.get(name, ()), self._found_wrong.get(name, "")
        drafted = guess(own.kernel, self._texts.now)
        return self._page(
            "experiment.html",
            f"{name}: {experiment.title}",
            name=name,
            log=own,
            before=before,
            after=after,
            earlier=max(0, standings.records - len(result)),
            answers=answer.answers(name, standings),
            sizes=_unusual_sizes(runs.values()),
            by_card=kernel_logs.by_card(standings, self._timed_records(name)).items(),
            basis=answer.basis(standings, self.tree.sample_doubts, drafted),
            next_steps=pending.sentences(name, standings, *open_ends),
            plots=by_size,
            forest=None if by_size else answer.forest(name, standings),
            limits=answer.limits(standings, known),
            experiment=experiment,
            document=log_listing.experiment(name, standings, result, self.tree),
            runs=shown,
            missing=_missing(name, shown, self._listings),
            profiles=profiled,
            mentioned=profile_report.mentioned(profiled),
            stalls=_stalls(profiled),
            rooflines=self._profiles.roofline_of(profiled),
        )

    @functools.cached_property
    def _found_wrong(self) -> dict[str, str]:
        """The wrong baselines of every kernel."""
        found = [pending.found_wrong(one.standings) for one in self.logs]
        return {name: other for one in found for name, other in one.items()}

    @functools.cached_property
    def _pending(self) -> dict[str, tuple[PendingArm, ...]]:
        """What every experiment waits for: its page and the first page say the same."""
        every = [pending.of_log(one, self._timed_records) for one in self.logs]
        return {name: own for one in every for name, own in one.items()}

    def _run(
        self, record: Record, hypothesis: str, changed: list[str], profiled: Mapping[str, Profile]
    ) -> dict[str, Any]:
        """Returns the contents of an experiment's page for one of its records; `profiled` are the
        profiles of arms by name."""
        root, record = self._project.root, build.with_builds_here(self._project.root, record)
        modelled = modelling.kept(root, record)
        excerpts = list(code.excerpts(record, profiled, self._texts, self._codes))
        self._linked.update({excerpt.digest: None for excerpt in excerpts if excerpt.digest})
        doubts = self.tree.sample_doubts
        return {
            "record": record,
            "edited": record.hypothesis.split() != hypothesis.split(),
            "document": list(page.render(record, option="", charts=False, doubts=doubts))[1:],
            "plots": list(changes.of_pairs(record)),
            "excerpts": excerpts,
            "isa": code.isa_of(record).upper(),
            "has_code": record.run in self._codes_of,
            "modelled": list(timelines.rows(modelled)),
            "worth": modelled_pairs.spelled_worth(modelled[0].run.time.chip) if modelled else "",
            "memory": list(memory_picture.render(self._pictures(record), MEMORY_SHOWN)),
            "differences": [
                *diffs.compiled(record),
                *diffs.seen_by_variants(record, self._texts, self._codes),
                *diffs.sass(record, self._codes),
                *diffs.since(record, dict.fromkeys(changed), self._texts),
            ],
        }

    def _pictures(self, record: Record) -> list[MemoryPicture]:
        """Returns the pictures of the arms whose accesses `inspect --memory` has noted."""
        root, arms = self._project.root, record.by_name.items()
        return [one for name, arm in arms if (one := memory_pictures.kept(root, name, arm))]

    def _sweep(self, run: str) -> bytes:
        record = self._sweeps[run]
        document = list(sweep_report.render(record, maps=False))[1:]
        first = next((n for n, block in enumerate(document) if isinstance(block, Table)), 0)
        return self._page(
            "sweep.html",
            sweep_parts.heading(record),
            record=record,
            by_size=list(sizes_report.render(record, charts=False)),
            plots=changes.of_sizes(record),
            lead=document[:first],
            changed=standing.of_sweep(self._project, record, self.tree),
            next_step=sweep_report.next_step(record),
            document=document[first:],
            maps=sweep_map.charts(record),
        )

    def _profile(self, run: str) -> bytes:
        profile = self._profiles.by_run[run]
        evidence = profile.arm.profiled
        assert evidence is not None, "read_file() refuses others"
        readings = [(name, evaluate(builtin(name), evidence, Run())) for name in NAMES]
        return self._page(
            "profile.html",
            f"{profile.arm.kernel}@{profile.arm.arch}: profile {run}",
            profile=profile,
            experiments=self._profiles.experiments.get(run, []),
            conditions=profile_report.conditions(profile),
            stalls=ncu.stalls([("this profile", evidence)]) if ncu.has_stalls(evidence) else None,
            readings=[(name, list(section_report.document(reading))) for name, reading in readings],
        )

    @functools.cached_property
    def _shown(self) -> list[tuple[str, Record]]:
        """The standing record of each candidate, with the experiment's name."""
        return [
            (name, candidate.record)
            for name, (_, standings) in self._standings.items()
            for candidate in standings.candidates
            if candidate.record
        ]

    @functools.cached_property
    def _sources(self) -> dict[str, tuple[Record, str]]:
        """Every file of the records that are shown, by the name of its page."""
        return {
            page_of(digest): (record, file)
            for _, record in self._shown
            for file, digest in sources.of_record(record).items()
        }

    @functools.cached_property
    def _timelines(self) -> dict[str, tuple[str, KeptModelled]]:
        """The timelines of variants that `inspect --modelled` has modelled, by the names of their
        pages."""
        return {
            timelines.page_of(kept): (record.experiment, kept)
            for _, record in self._shown
            for kept in modelling.kept(self._project.root, record)
            if kept.run.timeline
        }

    def _timeline(self, name: str) -> bytes:
        experiment, kept = self._timelines[name]
        assert kept.run.timeline is not None, "page_of() names no page without one"
        return self._page(
            "timeline.html",
            f"{kept.arm.kernel}@{kept.arm.arch}: modelled time line of a CTA",
            experiment=experiment,
            variant=spell_point(kept.arm.axes),
            kept=kept,
            drawn=timelines.draw(kept.run.timeline),
            kinds=timelines.KINDS,
            size=(timelines.WIDTH, timelines.ROW),
            worth=modelled_pairs.spelled_worth(kept.run.time.chip),
        )

    @functools.cached_property
    def _codes_of(self) -> dict[str, tuple[str, Record]]:
        """Records all of whose builds are kept, by run, with their experiments."""
        shown = {record.run: (name, record) for name, record in self._shown if self._listings}
        here = {
            run: (name, build.with_builds_here(self._project.root, record))
            for run, (name, record) in shown.items()
        }
        return {run: own for run, own in here.items() if self._codes.has(own[1].arms)}

    def _code(self, run: str) -> bytes:
        """The sources of a record as they were, beside the SASS and PTX of its variants."""
        name, record = self._codes_of[run]
        root, arms = self._project.root, record.arms[:ARMS_LISTED]
        isa = lines_service.kept_isa(root, arms)
        texts = self._texts.numbered(record)
        profiled = _unchanged(self._profiles.of_experiment(name))
        modelled = {one.name: one.run for one in modelling.kept(root, record)}
        differing, listings = page.differing_axes(record), []
        for called, arm in zip(record.names, arms, strict=False):
            own = {axis: value for axis, value in arm.axes.items() if axis in differing}
            label = f"{called}, {spell_point(own)}"
            code = self._codes.of(arm).code
            lines = lines_service.kept(root, label, arm, isa, code, texts, profiled.get(called))
            listings.append(listing.listed(root, called, lines, modelled.get(called)))
        return listing.page(listings, f"{name}: source and SASS", self._live, "../", name)

    def _source(self, name: str) -> bytes | None:
        record, file = self._sources[name]
        text = self._texts.of(record, file)
        if text is None:
            return None
        return self._page(
            "source.html",
            file,
            lines=split(text),
            run=record,
            is_shown=record.experiment in self._standings,
            has_code=record.run in self._codes_of,
        )


def _missing(
    name: str, runs: Sequence[Mapping[str, Any]], listings: bool
) -> Iterator[tuple[str, str]]:
    """Views of an experiment that were not made yet, with the commands that make them."""
    for view, has, option in (
        ("source beside SASS", "has_code", "--build"),
        ("time line of a CTA's warps", "modelled", "--modelled"),
        ("lanes that conflict in memory", "memory", "--memory"),
    ):
        if not any(run[has] for run in runs) and (listings or has != "has_code"):
            yield view, f"kernelexp inspect {name} {option}"


def _unusual_sizes(standing_records: Iterable[Record]) -> str:
    """Those that the records were timed at, where one is not the usual."""
    timed = (record for record in standing_records if record.measurement)
    known = dict.fromkeys(
        size for record in timed for size in ([s.size for s in record.sizes] or [record.size])
    )
    return ", ".join(filter(None, known)) if known.keys() - {"full", ""} else ""


def _unchanged(profiled: Iterable[StandingProfile]) -> dict[str, Profile]:
    """The profiles of variants that are as they were, by their arms' names."""
    return {one.name: one.profile for one in profiled if not one.changed}


def _stalls(profiled: tuple[StandingProfile, ...]) -> Bars | None:
    """Those of the variants that have any."""
    result = [
        (one.name, one.profile.arm.profiled)
        for one in profiled
        if one.profile.arm.profiled and ncu.has_stalls(one.profile.arm.profiled)
    ]
    return ncu.stalls(result) if result else None
