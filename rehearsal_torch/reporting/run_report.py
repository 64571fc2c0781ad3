"""The report of a run folder: tables, figures and a page of what it holds.

The figures depend on the content of the folder: training curves if a model was trained; for action sequences
distributions, outcomes, search effort and the courses of a few units, and claims against the truth if the
problem scored the decisions by it; what happened to the patients afterwards, where the data say so, is a
table (`observed_outcomes`). There is a table in any case. Rehearsal decisions and trials have tables and
figures of their own (`alteration_report`, `trial_report`).
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.recorded_run import Decided, Recorded, counterpart
from rehearsal_torch.evaluation.recorded_run import effort as effort_of
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.reporting import alteration_report as alteration_report
from rehearsal_torch.reporting import console, method_choice, observed_outcomes, trial_report
from rehearsal_torch.reporting.figures import (
    claimed_and_true,
    courses,
    effort,
    improvement_distribution,
    outcomes,
    recovery_panels,
    surrogate_panels,
    training_curve,
    truth_errors,
)
from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.run_page import FILE, page
from rehearsal_torch.reporting.style import Wording, drawing, save, worded
from rehearsal_torch.reporting.summary import as_text, finite


def report(folder: str | Path, *, tables: bool = False, told: Sequence[str] = ()) -> str:
    """Writes ``table.csv``, ``figures/`` and ``report.html`` into a run folder.

    Args:
        tables: Whether the tables are part of the answer.
        told: Warnings that were told before, and are not repeated.

    Returns:
        What a terminal shows: a sentence for each case, the warnings, the summary or the tables, and the
        names of the written files.

    Raises:
        FileNotFoundError: if the folder is not a run folder.
    """
    of = material(folder)
    run, words = of.run, of.words
    written: list[Path] = []
    if trial_report.concerns(run):
        long = "\n".join([*recovery_panels.table(run.truth), trial_report.tables(run)])
        written += trial_report.written(run)
    elif alteration_report.concerns(run):
        long = alteration_report.tables(run)
        written += alteration_report.written(run)
    else:
        rows = of.sequence_rows
        if rows:
            write_text(run.path / "table.csv", as_csv(rows))
            written.append(run.path / "table.csv")
        long = as_text(rows, words, f"{len(run.decisions)} decisions in {run.path}") if rows else ""
        compared = observed_outcomes.groups(run)
        if compared:
            path = run.path / observed_outcomes.FILE
            write_text(path, as_csv([group.row() for group in compared]))
            written.append(path)
    written += draw(run)
    if run.decisions:
        written.append(write_text(run.path / FILE, page(of)))
    # Which method was taken; the others, and why, are in the table and on the page.
    taken = [text for text in method_choice.reasons(run)[:1] if text not in told]
    parts = [console.answers(of), console.warnings(of, told), taken, console.numbers(of)]
    parts += [[long]] if tables and long else []
    parts.append(console.files(of, written))
    return "\n".join(line for part in parts for line in part)


def draw(run: Recorded) -> list[Path]:
    """Draws the figures of a run folder from its records, anew if they are there already.

    Returns:
        The files, two for each figure.

    Raises:
        OSError: if a file cannot be written.
    """
    with drawing():
        return [
            path
            for name, figure in _figures(run, worded(run)).items()
            for path in save(figure, run.path / "figures", name)
        ]


def _figures(run: Recorded, words: Wording) -> dict[str, Figure]:
    """File name to figure, for everything that the run recorded."""
    figures = {}
    parts = training_curve.trained_parts(run.metrics)
    if parts:
        figures["training"] = training_curve.draw(run.metrics, parts, words)
    if trial_report.concerns(run):
        learnt = recovery_panels.figures(run.truth) | surrogate_panels.figures(run.curves)
        return figures | learnt | trial_report.figures(run)
    if alteration_report.concerns(run):
        return figures | alteration_report.figures(run)
    groups = {
        f"{search}, at most {changes} changes": decided
        for (search, changes), decided in run.groups().items()
        if changes is not None
    }
    if not groups:
        return figures
    figures["improvement"] = improvement_distribution.draw(
        {
            label: finite([decision["trajectory"]["improvement"] for decision in decided])
            for label, decided in groups.items()
        },
        words,
    )
    figures["outcomes"] = outcomes.draw(groups, words)
    if any(
        effort_of(decision, "proven") and decision.get("seconds") is not None
        for decided in groups.values()
        for decision in decided
    ):
        figures["effort"] = effort.draw(groups, words)
    last = list(groups.values())[-1]
    figures[words.file] = courses.draw(courses.chosen(last), len(last), words)
    pairs = {label: _claims(decided) for label, decided in groups.items()}
    if any(claimed for claimed, _ in pairs.values()):
        figures["truth"] = claimed_and_true.draw({label: pair for label, pair in pairs.items() if pair[0]})
    if any(row["quantity"] == "rmse" for row in run.truth):
        figures["truth_errors"] = truth_errors.draw(run.truth)
    return figures


def _claims(decisions: list[Decided]) -> tuple[list[float], list[float]]:
    """The claimed and the true improvements, of the decisions whose truth is known."""
    both = []
    for decision in decisions:
        score, trajectory = decision.get("score"), decision["trajectory"]
        if isinstance(score, dict):
            # Scores of own worlds may have nothing but the improvement.
            alone = "true_observed" not in score
            name = "true" if alone else counterpart(trajectory, score)
            known = finite([score.get(f"{name}_improvement")])
            both += [(float(trajectory["improvement"]), true) for true in known]
    return [claimed for claimed, _ in both], [true for _, true in both]
