"""The answers of a run, case by case: what is recommended, and the chances before and after.

What is known of a case is said of cases that were given. Rows of the table that were held out and decided for
instead may be those of persons who asked nothing: their values are left out, also of warnings and reasons,
unless the reader asks for rows (`reporting.page.material`).
"""

from collections.abc import Sequence

from rehearsal_torch.data.finding import findings_of, further, reason_of
from rehearsal_torch.evaluation.recorded_run import ACTS, NOTHING, REFUSED, Decided, group_of
from rehearsal_torch.reporting.page import probability_sentences
from rehearsal_torch.reporting.page.markup import Markup, joined, name_of, paragraphs, tag
from rehearsal_torch.reporting.page.material import Material, counted, finite
from rehearsal_torch.reporting.page.question import question
from rehearsal_torch.reporting.page.sequence_sentences import said_of_episode
from rehearsal_torch.reporting.page.trial_sentences import said_of_trials
from rehearsal_torch.reporting.summary import headline

WITHHELD = (
    "The cases are rows of the table that were held out. What is known of each is left out here; "
    "rehearsal report RUN rows=true shows it."
)
_BOXES = {ACTS: None, NOTHING: "none", REFUSED: "refused"}


def answers(of: Material) -> Markup:
    """The section's content: the question, then one box for each case."""
    boxes = [_box(decision, of) for decision in of.shown]
    more = 0 if of.trials else len(of.run.decisions) - len(boxes)
    rest = f"{counted(more, 'further case')} of {len(of.run.decisions)} in decisions.jsonl and table.csv."
    sentences = [probability_sentences.overall(of.run.decisions, of.wanted)] if of.alterations else []
    sentences += headline(of.sequence_rows, of.words) if of.sequences else []
    return joined(
        [
            paragraphs(question(of)),
            *(tag("p", sentence, class_="answer") for sentence in sentences if sentence),
            tag("p", WITHHELD) if of.withholds else None,
            *boxes,
            tag("p", rest) if more > 0 else None,
        ]
    )


def verdicts(decisions: Sequence[Decided]) -> str:
    """How many cases got which answer, in words."""
    groups = [group_of(decision) for decision in decisions]
    words = {ACTS: "with a recommendation", NOTHING: "without action", REFUSED: "refused"}
    parts = [f"{groups.count(group)} {verdict}" for group, verdict in words.items() if group in groups]
    return ", ".join(parts)


def _box(decision: Decided, of: Material) -> Markup:
    if of.trials:
        title, headline, sentences = said_of_trials(of)
    elif of.sequences:
        title, headline, sentences = said_of_episode(decision, of.words)
    else:
        title, headline, sentences = _said_of_case(decision, of)
    return tag(
        "div",
        tag("h3", title),
        tag("p", headline, class_="answer"),
        paragraphs(sentences),
        class_=" ".join(["case", *filter(None, [_BOXES[group_of(decision)]])]),
    )


def _said_of_case(decision: Decided, of: Material) -> tuple[str, str, list[str]]:
    sentences = [probability_sentences.context(decision, of.units)]
    if of.alterations:
        sentences += probability_sentences.chances(decision, of.wanted) + probability_sentences.truth(
            decision
        )
    else:
        value = finite(decision.get("value"))
        sentences += [] if value is None else [f"Value of the objective: {value:.4g}."]
    if decision.get("alteration") is None and (reason := reason_of(decision)):
        sentences.append(f"Why: {reason}.")
    sentences += [f"Warning: {text}." for text in further(findings_of(decision), " ".join(sentences))]
    return (
        f"Case {name_of(decision)}",
        probability_sentences.headline(decision, of.units),
        [text for text in sentences if text],
    )
