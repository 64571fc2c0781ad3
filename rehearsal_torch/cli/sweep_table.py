"""Cross tables of sweeps over worlds, methods and seeds, as text, CSV, Markdown and figure.

The rows are those of every successful job whose decisions were scored by a world. A method is named by its
decision and the other overrides that differ between the jobs; a world by its dataset and the overrides of it
that differ.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.run_folder import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.evaluation.recorded_run import Recorded

_APART = (
    "seed=",
    "shard=",
    "shards=",
    "workers=",
    "dataset=",
    "decision=",
    "+experiment=",
    "out=",
    "resume=",
    "limit=",
)


def crossed(out: Path, jobs: Sequence[dict[str, Any]]) -> str:
    """Writes ``table1.csv``, ``table1.md`` and ``figures/table1.*`` into a sweep's folder.

    Args:
        out: The sweep's folder.
        jobs: Each job's state, folder and overrides.

    Returns:
        The table, for a terminal; empty, without any files, if no world scored any decision.
    """
    if not any((Path(job["folder"]) / "decisions.jsonl").is_file() for job in jobs if job["state"] == "ok"):
        return ""
    from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS, with_truth, written
    from rehearsal_torch.reporting import cross_table
    from rehearsal_torch.reporting.style import drawing, save

    rows = judged_rows(jobs)
    if not rows:
        return _trials(out, jobs)
    found = cross_table.cells(rows)
    folder = RunFolder(out)
    folder.write("table1.csv", written(rows, with_truth(COLUMNS, rows)))
    folder.write("table1.md", "\n".join(cross_table.markdown(found)) + "\n")
    with drawing():
        save(cross_table.draw(found), out / "figures", "table1")
    seeds = len({row["seed"] for row in rows})
    several = f", mean ± sd over {seeds} seeds" if seeds > 1 else ""
    table = cross_table.as_text(
        found, f"True probability of a desired outcome{several}; {len(rows)} decisions"
    )
    return f"Written: table1.csv, table1.md, figures/table1.png in {out} (figure as .svg, too)\n{table}"


def _trials(out: Path, jobs: Sequence[dict[str, Any]]) -> str:
    """The same for trials: ``traces.csv``, ``regret.md``, ``figures/rounds.*``."""
    from rehearsal_torch.evaluation.rehearsal_rows import written
    from rehearsal_torch.evaluation.trial_rows import COLUMNS, scored, trial_rows
    from rehearsal_torch.reporting import trial_table
    from rehearsal_torch.reporting.figures import trial_panels
    from rehearsal_torch.reporting.style import drawing, save

    rows = []
    for run, world, method, seed in _named(jobs):
        if run.kind == "optimise" and all(scored(one) for one in run.decisions):
            rows += trial_rows(world, "", method, seed, run.decisions)
    if not rows:
        return ""
    folder = RunFolder(out)
    folder.write("traces.csv", written(rows, COLUMNS))
    folder.write("regret.md", "\n".join(trial_table.markdown(rows)) + "\n")
    with drawing():
        save(trial_panels.draw(trial_table.grouped_rows(rows)), out / "figures", "rounds")
    return (
        f"Written: traces.csv, regret.md, figures/rounds.png in {out} (figure as .svg, "
        f"too)\n{trial_table.as_text(rows)}"
    )


def judged_rows(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all successful jobs, sorted by world, method and seed."""
    from rehearsal_torch.evaluation.rehearsal_rows import row, scored_by_world, truth_bounds

    found = []
    for run, world, method, seed in _named(jobs):
        if run.kind == "rehearse":
            found += [
                row(world, method, seed, one) | truth_bounds(one)
                for one in run.decisions
                if scored_by_world(one)
            ]
    worlds, methods = (list(dict.fromkeys(each[key] for each in found)) for key in ("dataset", "method"))
    return sorted(
        found, key=lambda each: (worlds.index(each["dataset"]), methods.index(each["method"]), each["seed"])
    )


def _named(jobs: Sequence[dict[str, Any]]) -> "Iterator[tuple[Recorded, str, str, int]]":
    """The run of every successful job, with its world, method and seed."""
    from rehearsal_torch.evaluation.recorded_run import read

    good = [
        job for job in jobs if job["state"] == "ok" and (Path(job["folder"]) / "decisions.jsonl").is_file()
    ]
    shared = set.intersection(*(set(job["overrides"]) for job in good)) if good else set[str]()
    for job in good:
        run = read(job["folder"])
        own = [
            text.lstrip("+")
            for text in job["overrides"]
            if text not in shared and not text.startswith(_APART)
        ]
        world = " ".join(
            [
                run.choices.get("dataset", "data"),
                *(text.removeprefix("dataset.") for text in own if text.startswith("dataset.")),
            ]
        )
        method = " ".join(
            [
                run.choices.get("decision", "decision"),
                *(text for text in own if not text.startswith("dataset.")),
            ]
        )
        yield run, world, method, int(run.config.get("seed", 0))
