"""The verb learn-graph: learns rehearsal graphs from a table and from bootstrap resamples of it.

Graphs, edge probabilities and drawings are written to a folder (see `reporting.figures.graph_uncertainty`).

Exit codes: 0 success; 2 an error in the arguments; 130 interrupted.

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

_LISTED = 5


def learn_graph(options: Mapping[str, str]) -> int:
    """Learns graphs from the whole table and from resamples, writes and draws them, and prints a summary."""
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
        for part, listed in parts.items():
            if unknown := [name for name in listed if name not in names]:
                raise UserError(f"no column {unknown[0]!r}", part, f"There are {', '.join(names)}")
        values = as_tensor(number_columns(table.frame, names, options["data"], min_rows=5, varying=True))
        known = _background(options.get("background"), names, parts)
        test, bidirected = options["test"], options["bidirected"] == "true"
        whole = learn(values, names, test, level, known, bidirected, max_graphs)
        print(
            f"{len(values)} rows, {len(names)} variables: {len(whole.pattern.directed)} directed edges are "
            f"shared by all graphs, {len(whole.pattern.undirected)} have no direction yet"
        )
        dags, graphs = len(whole.dags), len(whole.graphs)
        print(
            f"{dags} directed "
            f"graph{'s are Markov equivalent; they represent' if dags > 1 else ' represents'} "
            f"{graphs} rehearsal graph{'s' if graphs > 1 else ''}"
        )
        for note in whole.notes:
            print(f"  note: {note}")
        # Without resamples, the graphs of the equivalence class of the whole table are equally probable.
        shares = (1 / graphs,) * graphs
        posterior = GraphPosterior(tuple(whole.graphs), shares, shares, 0, {})
        if resamples:
            how = (options["weights"], test, level, known, bidirected, max_graphs)
            with Progress("resampling", resamples) as line:
                posterior = bootstrap(values, names, resamples, seed, *how, line.at)
        with locked(out):
            written = write_learnt(out, options, whole, posterior, parts)
    _tell(posterior, resamples)
    print(f"Written to {out}: {', '.join(written)}")
    following = f"{spoken('decide')} +experiment=own_table path={options['data']} dataset.task=task.yaml"
    print(
        f"Next: put {out / 'graph.yaml'} into task.yaml (docs/rehearsal.md says what else it holds), then "
        f"{following}"
    )
    print(f"With graphs={out / 'graphs.yaml'} it says under which of these graphs a decision stands")
    return 0


def _tell(posterior: GraphPosterior, resamples: int) -> None:
    if resamples:
        useful = resamples - sum(posterior.failures.values())
        print(
            f"{useful} of {resamples} resamples gave {len(posterior.graphs)} rehearsal graphs"
            + "".join(f"; {why}: {n}" for why, n in posterior.failures.items())
        )
    shown = list(posterior.edges().items())
    print(
        f"the {min(_LISTED, len(shown))} most probable edges of {len(shown)}:"
        if shown
        else "no edge was found: no variable depends on another one"
    )
    for (one, line, other), share in shown[:_LISTED]:
        print(f"  {one} {line} {other}: {share:.2f}")


def _background(path: str | None, names: Sequence[str], parts: Mapping[str, list[str]]) -> Background:
    """Background knowledge: the roles given as options, and a file with tiers, forbidden and required
    edges.
    """
    plain: Any = {}
    if path is not None:
        if not Path(path).is_file():
            raise UserError(
                "there is no such file", path, "Give a YAML file with any of tiers, forbidden and required"
            )
        plain = read_yaml(path) or {}
    if (
        not isinstance(plain, dict)
        or set(plain) - {"tiers", "forbidden", "required"}
        or not all(isinstance(each, list) for each in plain.values())
    ):
        raise UserError(
            "expected lists under tiers, forbidden and required",
            str(path),
            "For example: forbidden: [[rating, weather]]",
        )
    if "tiers" in plain and (parts["context"] or parts["outcomes"]):
        raise UserError("tiers are given twice", str(path), "Leave out tiers, or context= and outcomes=")
    edges = [tuple(plain.get(kind, [])) for kind in ("forbidden", "required")]
    if "tiers" in plain:
        background = Background(tuple(plain["tiers"]), *edges)
        background.check(names)
        return background
    return Background.roles(names, parts["context"], parts["outcomes"], *edges)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.strip("[]").split(",") if name.strip()] if text else []


def _folder(typed: str | None) -> Path:
    """The output folder: a new one for every run, unless one is given."""
    if typed is None:
        return Path("runs/learn_graph") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    check_output(
        Path(typed),
        ("graphs.yaml", "edges.csv", "graph.yaml", "graph.dagitty", "graph.graphml", "figures"),
        "graphs.yaml",
        "options:\n",
    )
    return Path(typed)
