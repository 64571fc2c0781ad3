"""What a finished run says in a terminal: one sentence a case, the warnings once each, the numbers in short.

The sentences are those of the page (`page.probability_sentences`, `page.sequence_sentences`,
`page.trial_sentences`), the numbers those of its comparison. Warnings that differ in their numbers alone are
one warning, with the numbers of the first case that has it.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from rehearsal_torch.data.finding import reason_of
from rehearsal_torch.evaluation.overturning import graphs_overall, overall, sequences_overall
from rehearsal_torch.evaluation.recorded_run import Decided, is_sequence
from rehearsal_torch.reporting import (
    alteration_report,
    observed_outcomes,
    summary,
    trial_report,
    untouched_score,
)
from rehearsal_torch.reporting.decision_table import method_rows
from rehearsal_torch.reporting.page import cautions, probability_sentences
from rehearsal_torch.reporting.page.markup import name_of, whom
from rehearsal_torch.reporting.page.material import Material, finite
from rehearsal_torch.reporting.page.sequence_sentences import answer_of, said_of_episode
from rehearsal_torch.reporting.page.trial_sentences import proposes, said_of_trials

SHOWN, WIDTH = 10, 110
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def answers(of: Material) -> list[str]:
    """One sentence, or a few, for each of the first cases; of trials, for the recommendation alone."""
    decisions = of.run.decisions
    if not decisions:
        return [f"No decisions in {of.run.path} yet."]
    if of.trials:
        title, headline, sentences = said_of_trials(of)
        # Of a system of one's own there are two settings, the next one and that to keep.
        shown = 3 if proposes(decisions[-1]) else 1
        return _wrapped(f"{title}: {' '.join([headline, *sentences[:shown]])}")
    summary_sentence = probability_sentences.overall(decisions, of.wanted) if of.alterations else ""
    lines = _wrapped(summary_sentence) if summary_sentence else []
    lines += [line for decision in decisions[:SHOWN] for line in _wrapped(_answer(decision, of))]
    more = len(decisions) - SHOWN
    return lines + ([f"... and {more} more: decisions.jsonl"] if more > 0 else [])


def warnings(of: Material, told: Sequence[str] = ()) -> list[str]:
    """Each warning once, with the cases that it is of.

    Args:
        told: Sentences that were told before, without their full stops.
    """
    of_cases = cautions.of_decisions(of.run.decisions)
    before = [*told, *(text for _, text in of_cases)]
    general = [text for text in cautions.of_the_run(of) if not any(known in text for known in before)]
    grouped: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for name, text in of_cases:
        grouped.setdefault(_NUMBER.sub("#", text), (text, []))[1].append((name, text))
    lines = [f"- {text}" for text in general]
    for text, cases in grouped.values():
        names = list(dict.fromkeys(name for name, _ in cases))
        differ = len({known for _, known in cases}) > 1
        numbers = f"; the numbers are those of {of.nouns[0]} {names[0]}" if differ else ""
        lines.append(f"- {text} ({whom(names, len(of.run.decisions), *of.nouns)}{numbers})")
    return ["Warnings", *_listed(lines)] if lines else []


def numbers(of: Material) -> list[str]:
    """The summary of the run: counts, means and what they are compared with, an entry a line."""
    run = of.run
    if not run.decisions:
        return []
    if of.trials:
        lines = [f"{sentence}." for sentence in trial_report.reached(run)] + trial_report.recovered_in_short(
            run.truth
        )
    elif of.alterations:
        several = len(of.methods) > 1
        lines = [
            f"{head}: "
            + ", ".join(
                f"{name} {cell}" if several else cell for name, cell in zip(of.methods, cells, strict=True)
            )
            for head, *cells in method_rows(of.methods)
        ]
        lines += alteration_report.online_sentences(run)
        doubts = (overall(run.decisions), graphs_overall(run.decisions), untouched_score.line(run))
        lines += [f"{text.rstrip('.')}." for text in doubts if text]
    else:
        sequences = [decision for decision in run.decisions if is_sequence(decision)]
        weighed = sequences_overall(sequences, of.words.actions)
        lines = [*summary.lines(of.sequence_rows, of.words), *summary.sentences(of.sequence_rows, of.words)]
        lines += [*([weighed] if weighed else []), *observed_outcomes.text(observed_outcomes.groups(run))]
    return ["Summary", *_listed(lines)] if lines else []


def files(of: Material, written: Iterable[Path]) -> list[str]:
    """Where the page, the tables and the figures are."""
    names = [str(path.relative_to(of.run.path)) for path in written if path.suffix != ".svg"]
    figures = [Path(name).stem for name in names if name.startswith("figures/")]
    pages = [name for name in names if name.endswith(".html")]
    tables = [name for name in names if name.endswith(".csv")]
    lines = [f"Report: {of.run.path / name}" for name in pages]
    lines += [f"Tables: {', '.join(tables)}"] if tables else []
    lines += [f"Figures (.png and .svg in figures): {', '.join(figures)}"] if figures else []
    return [part for line in lines for part in _wrapped(line)]


def _answer(decision: Decided, of: Material) -> str:
    if of.sequences:
        title, headline, _ = said_of_episode(decision, of.words)
        sentences = [headline, *answer_of(decision, of.words)]
    else:
        title, headline = f"Case {name_of(decision)}", probability_sentences.headline(decision, of.units)
        sentences = [
            headline,
            *(probability_sentences.chances(decision, of.wanted) if of.alterations else _value(decision)),
        ]
    if decision.get("alteration") is None and (reason := reason_of(decision)):
        sentences.append(f"Why: {reason}.")
    return f"{title}: {' '.join(sentences)}"


def _value(decision: Decided) -> list[str]:
    value = finite(decision.get("value"))
    return [] if value is None else [f"Value of the objective: {value:.4g}."]


def _listed(lines: Iterable[str]) -> list[str]:
    return [f"  {part}" for line in lines for part in _wrapped(line, WIDTH - 2)]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """A text as lines, the further ones set in; a number stays with its per cent sign."""
    lines = textwrap.wrap(
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        width,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]
