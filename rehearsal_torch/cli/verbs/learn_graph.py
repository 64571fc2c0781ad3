"""The verb learn-graph: learns rehearsal graphs from a table and from bootstrap resamples of it.

Graphs, edge probabilities and drawings are written to a folder (`reporting.figures.graph_uncertainty`).

Source: Qin et al. (2023), App. A.3 and Eq. 7.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.command_words import spoken
from rehearsal_torch.cli.errors import check_output
from rehearsal_torch.data.tables.reader import number_columns, read_table
from rehearsal_torch.files.bounded_yaml import read_yaml
from rehearsal_torch.files.lock import locked
from rehearsal_torch.graphs.equivalence import Background
from rehearsal_torch.graphs.graph_learning import GraphPosterior, bootstrap, learn
from rehearsal_torch.progress import Progress
from rehearsal_torch.reporting.figures.graph_uncertainty import write_learnt
from rehearsal_torch.spaces.box import as_tensor
from rehearsal_torch.user_error import UserError, as_user_error

_EDGES_PRINTED = 5


def learn_graph(options: Mapping[str, str]) -> int:
    """Learns graphs from the table and from resamples, writes and draws them, and prints a summary."""
    resamples, max_graphs, seed = (int(options[key]) for key in ("resamples", "max_graphs", "seed"))
    try:
        level = float(options["level"])
    except ValueError:
        raise UserError("expected a number", f"level={options['level']}") from None
    out = _folder(options.get("out"))
    with as_user_error("learn_graph"):
        table = read_table(options["data"], "data")
        for note in table.notes:
            print(f"note: {note}")
        names = _names(options.get("columns")) or [str(name) for name in table.frame.columns]
        parts = {part: _names(options.get(part)) for part in ("context", "alterable", "outcomes")}
        for part, part_names in parts.items():
            if unknown := [name for name in part_names if name not in names]:
                raise UserError(f"no column {unknown[0]!r}", part, f"There are {', '.join(names)}")
        values = as_tensor(number_columns(table.frame, names, options["data"], min_rows=5, varying=True))
        background = _background(options.get("background"), names, parts)
        test, bidirected = options["test"], options["bidirected"] == "true"
        learnt = learn(values, names, test, level, background, bidirected, max_graphs)
        print(
            f"{len(values)} rows, {len(names)} variables: {len(learnt.pattern.directed)} directed edges are "
            f"shared by all graphs, {len(learnt.pattern.undirected)} have no direction yet"
        )
        dags, graphs = len(learnt.dags), len(learnt.graphs)
        print(
            f"{dags} directed "
            f"graph{'s are Markov equivalent; they represent' if dags > 1 else ' represents'} "
            f"{graphs} rehearsal graph{'s' if graphs > 1 else ''}"
        )
        for note in learnt.notes:
            print(f"  note: {note}")
        # Without resamples, the graphs of the equivalence class of the whole table are equally probable.
        shares = (1 / graphs,) * graphs
        posterior = GraphPosterior(tuple(learnt.graphs), shares, shares, 0, {})
        if resamples:
            settings = (options["weights"], test, level, background, bidirected, max_graphs)
            with Progress("resampling", resamples) as line:
                posterior = bootstrap(values, names, resamples, seed, *settings, line.at)
        with locked(out):
            files = write_learnt(out, options, learnt, posterior, parts)
    _print_posterior(posterior, resamples)
    print(f"Written to {out}: {', '.join(files)}")
    following = f"{spoken('decide')} +experiment=own_table path={options['data']} dataset.task=task.yaml"
    print(
        f"Next: put {out / 'graph.yaml'} into task.yaml (docs/rehearsal.md says what else it holds), then "
        f"{following}"
    )
    print(f"With graphs={out / 'graphs.yaml'} it says under which of these graphs a decision stands")
    return 0


def _print_posterior(posterior: GraphPosterior, resamples: int) -> None:
    if resamples:
        useful = resamples - sum(posterior.failures.values())
        print(
            f"{useful} of {resamples} resamples gave {len(posterior.graphs)} rehearsal graphs"
            + "".join(f"; {reason}: {count}" for reason, count in posterior.failures.items())
        )
    edges = list(posterior.edges().items())
    print(
        f"the {min(_EDGES_PRINTED, len(edges))} most probable edges of {len(edges)}:"
        if edges
        else "no edge was found: no variable depends on another one"
    )
    for (first, line, second), share in edges[:_EDGES_PRINTED]:
        print(f"  {first} {line} {second}: {share:.2f}")


def _background(path: str | None, names: Sequence[str], parts: Mapping[str, list[str]]) -> Background:
    """Background knowledge: the roles in options, and a file with tiers, forbidden and required edges."""
    content: Any = {}
    if path is not None:
        if not Path(path).is_file():
            fault = "there is no such file"
            raise UserError(fault, path, "Give a YAML file with any of tiers, forbidden and required")
        content = read_yaml(path) or {}
    if (
        not isinstance(content, dict)
        or set(content) - {"tiers", "forbidden", "required"}
        or not all(isinstance(entry, list) for entry in content.values())
    ):
        fault = "expected lists under tiers, forbidden and required"
        raise UserError(fault, str(path), "For example: forbidden: [[rating, weather]]")
    if "tiers" in content and (parts["context"] or parts["outcomes"]):
        raise UserError("tiers are given twice", str(path), "Leave out tiers, or context= and outcomes=")
    edges = [tuple(content.get(kind, [])) for kind in ("forbidden", "required")]
    if "tiers" in content:
        background = Background(tuple(content["tiers"]), *edges)
        background.check(names)
        return background
    return Background.roles(names, parts["context"], parts["outcomes"], *edges)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.strip("[]").split(",") if name.strip()] if text else []


def _folder(typed: str | None) -> Path:
    """The output folder: the typed one, or a new one."""
    if typed is None:
        return Path("runs/learn_graph") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    check_output(
        Path(typed),
        ("graphs.yaml", "edges.csv", "graph.yaml", "graph.dagitty", "graph.graphml", "figures"),
        "graphs.yaml",
        "options:\n",
    )
    return Path(typed)
