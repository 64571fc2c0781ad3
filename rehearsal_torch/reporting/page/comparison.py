"""Compared with no action, with the parts of the method, and with the outcomes that were held out.

The tables are those of the console (`alteration_report`, `trial_report`, `summary`), with the same digits.
"""

from collections.abc import Sequence

from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.reporting import alteration_report, observed_outcomes, trial_report, untouched_score
from rehearsal_torch.reporting import summary as sequence_summary
from rehearsal_torch.reporting.decision_table import figure, method_rows
from rehearsal_torch.reporting.page.markup import Child, Markup, joined, name_of, paragraphs, table, tag
from rehearsal_torch.reporting.page.material import Material, mapping


def comparison(of: Material) -> Markup:
    """The section's content; empty where there is nothing to compare."""
    if of.trials:
        return _trials(of)
    if of.alterations:
        return _alterations(of)
    return _others(of)


def indented(rows: Sequence[Sequence[str]]) -> list[list[Child]]:
    """The rows of methods with heads that begin with spaces set in below the one before."""
    return [
        [tag("span", head.strip(), class_="sub") if head.startswith(" ") else head, *cells]
        for head, *cells in rows
    ]


def _alterations(of: Material) -> Markup:
    rows = indented(method_rows(of.methods))
    score = untouched_score.line(of.run)
    return joined(
        [
            table("All cases of the run", ["", *of.methods], rows),
            paragraphs(alteration_report.online_sentences(of.run)),
            _parts(of.shown),
            tag("p", score) if score else None,
        ]
    )


def _parts(decisions: list[Decided]) -> Markup:
    """Case by case: no action, the decision, what each part of a method of several estimates, and the claim
    before it was corrected for the choice.
    """
    names = list(
        dict.fromkeys(name for decision in decisions for name in mapping(effort(decision, "estimates")))
    )
    corrected = any(effort(decision, "claimed_in_sample") is not None for decision in decisions)
    compared = any("unchanged" in decision for decision in decisions)
    rows = [
        [
            name_of(decision),
            figure(claim(decision, of="baseline")),
            *([figure(claim(decision, of="unchanged"))] if compared else []),
            figure(claim(decision)) if decision.get("alteration") is not None else "-",
            *(_cell(mapping(effort(decision, "estimates")).get(name)) for name in names),
            *([_cell(effort(decision, "claimed_in_sample"))] if corrected else []),
        ]
        for decision in decisions
    ]
    before = ["usual in such a case", "present values"] if compared else ["no action"]
    heads = ["case", *before, "decision", *(f"by {name}" for name in names)]
    caption = "Estimated probability of a desired outcome, case by case"
    if names:
        caption += "; the last columns are the parts that the method weighs"
    return table(caption, heads + (["before correction for the choice"] if corrected else []), rows)


def _trials(of: Material) -> Markup:
    heads, body = trial_report.last_rounds(of.run)
    caption = f"The last {len(body)} of {len(of.run.decisions)} trials"
    return joined(
        [
            table(caption, heads, body, texts=(0, 1)),
            paragraphs(f"{sentence}." for sentence in trial_report.reached(of.run)),
        ]
    )


def _others(of: Material) -> Markup:
    results, *scores = sequence_tables(of) or [Markup()]
    sentences = sequence_summary.sentences(of.sequence_rows, of.words)
    observed = observed_outcomes.text(observed_outcomes.groups(of.run))
    return joined([results, paragraphs(sentences), *scores, paragraphs(observed)])


def sequence_tables(of: Material, of_run: str = "") -> list[Markup]:
    """The results of decisions other than alterations and trials, then their scores.

    Args:
        of_run: How captions begin.
    """
    title = f"{len(of.run.decisions)} decisions"
    return [
        table(f"{of_run}{caption}", heads, body, texts=(0, 2) if "score" in heads else (0,))
        for caption, heads, body in sequence_summary.tables(of.sequence_rows, of.words, title)
    ]


def _cell(value: object) -> str:
    return figure(value) if isinstance(value, int | float) else "-"
