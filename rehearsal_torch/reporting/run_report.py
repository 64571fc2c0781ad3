"""The report of a run folder: tables, figures and a page of what it holds.

There is a table in any case; what happened to the patients afterwards, where the data say so, is one too
(`observed_outcomes`). Figures are those of `figures.run_figures`. Rehearsal decisions and trials have tables
of their own (`alteration_report`, `trial_report`).
"""

from collections.abc import Sequence
from pathlib import Path

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.reporting import alteration_report as alteration_report
from rehearsal_torch.reporting import console, method_choice, observed_outcomes, trial_report
from rehearsal_torch.reporting.figures.run_figures import figures
from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.run_page import FILE, page
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.reporting.summary import as_text
from rehearsal_torch.reporting.wording import worded


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
        long = "\n".join([*trial_report.recovered_noise(run.truth), trial_report.tables(run)])
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
            for name, figure in figures(run, worded(run)).items()
            for path in save(figure, run.path / "figures", name)
        ]
