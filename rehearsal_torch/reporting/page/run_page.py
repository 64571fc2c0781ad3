"""The page of a run: ``report.html`` in its folder, complete in one file that can be handed on.

In this order: what was asked and the answer for each case; the pictures; why, and what would overturn it;
comparisons; assumptions with the graph; the data card; all warnings; where the page comes from. Every number
comes from the files of the folder. By default no rows are shown but the cases decided for.
"""

from pathlib import Path

from rehearsal_torch.files.writing import write_text
from rehearsal_torch.reporting import method_choice
from rehearsal_torch.reporting.page.answers import answers, verdicts
from rehearsal_torch.reporting.page.assumptions import assumptions
from rehearsal_torch.reporting.page.cautions import cautions, notice
from rehearsal_torch.reporting.page.comparison import comparison
from rehearsal_torch.reporting.page.data_card import data_card
from rehearsal_torch.reporting.page.document import Section, document
from rehearsal_torch.reporting.page.markup import Markup, joined, tag
from rehearsal_torch.reporting.page.material import CASES, Material, counted, material
from rehearsal_torch.reporting.page.pictures import pictures
from rehearsal_torch.reporting.page.provenance import provenance
from rehearsal_torch.reporting.page.recorded_rows import recorded_rows
from rehearsal_torch.reporting.page.why import why

FILE = "report.html"
_END = (
    "A recommendation is a claim of a model that was fitted to data, not a prescription. Every number on "
    "this page comes from the files of the run."
)


def write_page(
    folder: str | Path, *, cases: int = CASES, rows: bool = False, ended: bool = False
) -> Path | None:
    """Writes the page of a run folder, in one step.

    Args:
        folder: A run folder.
        cases: The largest number of cases that are shown one by one.
        rows: Whether the recorded rows are shown as well.
        ended: Whether the run has just ended well, and has yet to write its status.

    Returns:
        The file; None if the folder holds no decisions, so that there is nothing to report.

    Raises:
        FileNotFoundError: if the folder is not a run folder.
        PlainFileError: if one of its files is damaged.
        OSError: if the file cannot be written.
    """
    found = material(folder, cases=cases, rows=rows, ended=ended)
    return write_text(found.run.path / FILE, page(found)) if found.run.decisions else None


def page(of: Material) -> str:
    """The page of a run with decisions."""
    sections = [
        Section("answers", "What was asked, and the answers", answers(of)),
        Section("pictures", "Pictures of the run", pictures(of)),
        Section("why", "Why, and what would overturn it", why(of)),
        Section("method", "Which method, and why", method_choice.section(of.run)),
        Section("comparison", "Comparisons", comparison(of)),
        Section("assumptions", "Assumptions", assumptions(of)),
        Section("data", "The data", data_card(of)),
        Section("warnings", "Warnings", cautions(of)),
        Section("provenance", "Where this page comes from", provenance(of)),
        Section("rows", "Recorded rows", recorded_rows(of)),
    ]
    return document(title(of), _lead(of), sections, _END)


def title(of: Material) -> str:
    """What the page is called: by the table of a problem file, else by the name of the run."""
    source = of.card.get("source")
    if not _of_a_file(of) or not isinstance(source, str):
        return f"Report: {name_of_run(of)}"
    return f"The next experiment after {source}" if of.trials else f"Decisions for {_count(of)} of {source}"


def _of_a_file(of: Material) -> bool:
    """Whether the run is one of a problem file, and was given no name of its own."""
    return str(of.run.config.get("path") or "").endswith((".yaml", ".yml")) and of.run.config.get("name") in (
        "own_problem",
        "own_sequence",
        "own_trials",
    )


def _count(of: Material) -> str:
    return counted(len(of.run.decisions), *(("trial", "trials") if of.trials else of.nouns))


def name_of_run(of: Material) -> str:
    """The name of a run: that of its configuration, else that of its folder."""
    return str(of.run.config.get("name") or of.run.path.name)


def _lead(of: Material) -> Markup:
    keys = {"decision": "method"} if _of_a_file(of) else {"dataset": "dataset", "decision": "decision"}
    chosen = [f"{word} {of.run.choices[key]}" for key, word in keys.items() if key in of.run.choices]
    answered = [] if of.trials else [verdicts(of.run.decisions)]
    words = "; ".join([_count(of), *answered, *chosen])
    return joined(part for part in (tag("p", f"{words}.", class_="soft"), notice(of)) if part is not None)
