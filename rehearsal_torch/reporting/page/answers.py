"""The answers of a run, case by case: what is recommended, and the chances before and after.

What is known of a case is said of cases that were given. Rows of the table that were held out and decided for
instead may be those of persons who asked nothing: their values are left out, also of warnings and reasons,
unless the reader asks for rows (`reporting.page.material`).
"""

from collections.abc import Sequence

from rehearsal_torch.data.estimates.outside import further
from rehearsal_torch.data.finding import findings_of, reason_of
from rehearsal_torch.evaluation.recorded_run import ACTS, NOTHING, REFUSED, Decided, group_of
from rehearsal_torch.reporting.page import probability_sentences
from rehearsal_torch.reporting.page.markup import Markup, joined, name_of, paragraphs, tag
from rehearsal_torch.reporting.page.material import Material, counted, finite
from rehearsal_torch.reporting.page.question import question
from rehearsal_torch.reporting.page.sequence_sentences import said_of_episode
from rehearsal_torch.reporting.page.trial_sentences import said_of_trials
from rehearsal_torch.reporting.summary import headline, summary

WITHHELD = (
    "The cases are rows of the table that were held out. What is known of each is left out here; "
    "rehearsal report RUN rows=true shows it."
)
_BOXES = {ACTS: None, NOTHING: "none", REFUSED: "refused"}


def answers(of: Material) -> Markup:
    """The section's content: the question, then one box for each case."""
    boxes = [_box(one, of) for one in of.shown]
    more = 0 if of.trials else len(of.run.decisions) - len(boxes)
    rest = f"{counted(more, 'further case')} of {len(of.run.decisions)} in decisions.jsonl and table.csv."
    every = [probability_sentences.overall(of.run.decisions, of.wanted)] if of.alterations else []
    every += headline(summary(of.run, of.words), of.words) if of.sequences else []
    return joined(
        [
            paragraphs(question(of)),
            *(tag("p", each, class_="answer") for each in every if each),
            tag("p", WITHHELD) if of.withholds else None,
            *boxes,
            tag("p", rest) if more > 0 else None,
        ]
    )


def verdicts(decisions: Sequence[Decided]) -> str:
    """How many cases got which answer, in words."""
    groups = [group_of(one) for one in decisions]
    parts = [
        f"{groups.count(group)} {words}"
        for group, words in (
            (ACTS, "with a recommendation"),
            (NOTHING, "without action"),
            (REFUSED, "refused"),
        )
        if group in groups
    ]
    return ", ".join(parts)


def _box(one: Decided, of: Material) -> Markup:
    if of.trials:
        title, headline, said = said_of_trials(of)
    elif of.sequences:
        title, headline, said = said_of_episode(one, of.words)
    else:
        title, headline, said = _said_of_case(one, of)
    return tag(
        "div",
        tag("h3", title),
        tag("p", headline, class_="answer"),
        paragraphs(said),
        class_=" ".join(["case", *filter(None, [_BOXES[group_of(one)]])]),
    )


def _said_of_case(one: Decided, of: Material) -> tuple[str, str, list[str]]:
    said = [probability_sentences.context(one, of.units)]
    if of.alterations:
        said += probability_sentences.chances(one, of.wanted) + probability_sentences.truth(one)
    else:
        value = finite(one.get("value"))
        said += [] if value is None else [f"Value of the objective: {value:.4g}."]
    if one.get("alteration") is None and (reason := reason_of(one)):
        said.append(f"Why: {reason}.")
    said += [f"Warning: {text}." for text in further(findings_of(one), " ".join(said))]
    return (
        f"Case {name_of(one)}",
        probability_sentences.headline(one, of.units),
        [text for text in said if text],
    )
