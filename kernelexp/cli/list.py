"""kernelexp list: kernels with their axes, and experiments."""

from __future__ import annotations

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, ProjectOption


@app.command("list")
def list_(json: JsonOption = False, project: ProjectOption = HERE) -> None:
    """List kernels, axes, experiments and verdicts."""
    from kernelexp.dossier import standing
    from kernelexp.report.log import listing

    loaded = common.load(project, sources=False)
    tree = standing.Tree(loaded.root)
    standings = {name: standing.of_experiment(loaded, name, tree) for name in loaded.experiments}
    common.warn(
        loaded.root, (unreadable for one in standings.values() for unreadable in one.unreadable)
    )
    decided, _ = tree.decided
    values = listing.to_values(loaded, standings, decided)
    output("list", values, listing.render(loaded, standings, decided), json)
