"""The report of a run folder: its tables, figures and page, and what a finished run says in a terminal.

A terminal shows one sentence a case, the warnings once each, and the numbers in short; the sentences are
those of the page (`page.sentences`), the numbers those of its comparison. Warnings that differ in their
numbers alone are one warning, with the numbers of the first case that has it.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.data.finding import findings_of, in_place
from rehearsal_torch.evaluation.claim_rows import scored_by_world
from rehearsal_torch.evaluation.effect_tables import averages
from rehearsal_torch.evaluation.overturning_sentences import (
    graphs_overall,
    overall,
    sensitivity_of,
    sequences_overall,
)
from rehearsal_torch.evaluation.run_record import Decided, Recorded, claim, counterpart, effort, is_sequence
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.reporting import alteration_report, no_action_score, sequence_report, trial_report
from rehearsal_torch.reporting.alteration_report import by_method, decisions_that, learnt, row_of
from rehearsal_torch.reporting.decision_frame import decision_frame, quantity
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures import case_figures, model_figures, round_figures, sequence_figures
from rehearsal_torch.reporting.labels import Wording, worded
from rehearsal_torch.reporting.page import sentences
from rehearsal_torch.reporting.page.html import name_of, whom
from rehearsal_torch.reporting.page.page_content import Material, material
from rehearsal_torch.reporting.page.reasons import warnings_of_decisions, warnings_of_run
from rehearsal_torch.reporting.page.run_page import FILE, page
from rehearsal_torch.reporting.sequence_report import finite

# Cases whose claims are drawn side by side, at most; cases that have sentences in a terminal, and its width.
MOST, SHOWN, WIDTH = 100, 10, 110
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def report(folder: str | Path, *, tables: bool = False, told: Sequence[str] = ()) -> str:
    """Writes ``table.csv``, for episodes ``changes.csv``, ``figures/`` and ``report.html`` into a run folder.

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
    run = of.run
    if of.trials:
        long = "\n".join([*trial_report.recovered_noise(run.truth), trial_report.tables(run)])
        written = trial_report.written(run)
    elif of.alterations:
        long, written = alteration_report.tables(run), alteration_report.written(run)
    else:
        title = f"{len(run.decisions)} decisions in {run.path}"
        long = sequence_report.as_text(of.sequence_rows, of.words, title) if of.sequence_rows else ""
        contents = {
            "table.csv": of.sequence_rows,
            sequence_report.CHANGES: sequence_report.changed_doses(run, of.words),
            sequence_report.OBSERVED: sequence_report.observed_groups(run),
        }
        written = [write_text(run.path / name, as_csv(rows)) for name, rows in contents.items() if rows]
    written += draw(run)
    if run.decisions:
        written.append(write_text(run.path / FILE, page(of)))
    # Which method was taken; the others, and why, are in the table and on the page.
    taken = [text for text in alteration_report.choice_reasons(run)[:1] if text not in told]
    parts = [answers(of), warnings(of, told), taken, numbers(of)]
    parts += [[long]] if tables and long else []
    return "\n".join(line for part in [*parts, files(of, written)] for line in part)


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


def figures(run: Recorded, words: Wording) -> dict[str, Figure]:
    """File name to figure, for everything that the run recorded; to be called within `drawing`."""
    drawn: dict[str, Figure] = {}
    if parts := model_figures.trained_parts(run.metrics):
        subjects = words.subjects if words.doses else "rows"
        drawn["training"] = model_figures.draw_training(run.metrics, parts, subjects)
    if trial_report.concerns(run):
        drawn |= model_figures.draw_recovered(run.truth) | model_figures.draw_surrogate(run.curves)
        if scored := trial_report.rounds(run):
            methods = {trial_report.named(run, "decision"): scored}
            drawn["rounds"] = round_figures.draw_trials({trial_report.named(run, "dataset"): methods})
        return drawn
    return drawn | (_of_alterations(run) if alteration_report.concerns(run) else _of_sequences(run, words))


def _of_sequences(run: Recorded, words: Wording) -> dict[str, Figure]:
    """Distributions, outcomes, search effort, the courses of a few units, and claims against the truth."""
    groups = {
        f"{search}, at most {changes} changes": decided
        for (search, changes), decided in run.groups().items()
        if changes is not None
    }
    if not groups:
        return {}
    improvements = {
        label: finite([decision["trajectory"]["improvement"] for decision in decided])
        for label, decided in groups.items()
    }
    every = [decision for decided in groups.values() for decision in decided]
    drawn = {
        "improvement": sequence_figures.draw_improvements(improvements, words.subjects),
        "outcomes": sequence_figures.draw_outcomes(groups, words),
    }
    if any(effort(decision, "proven") and decision.get("seconds") is not None for decision in every):
        drawn["effort"] = sequence_figures.draw_effort(groups, words.subjects)
    last = list(groups.values())[-1]
    drawn[words.file] = sequence_figures.draw_courses(sequence_figures.chosen(last), len(last), words)
    pairs = {label: _claims(decided) for label, decided in groups.items()}
    if known := {label: pair for label, pair in pairs.items() if pair[0]}:
        drawn["truth"] = sequence_figures.draw_true_improvements(known)
    if any(row["quantity"] == "rmse" for row in run.truth):
        drawn["truth_errors"] = sequence_figures.draw_errors(run.truth)
    return drawn


def _claims(decisions: list[Decided]) -> tuple[list[float], list[float]]:
    """The claimed and the true improvements, of the decisions whose truth is known."""
    both = []
    for decision in decisions:
        score, trajectory = decision.get("score"), decision["trajectory"]
        if isinstance(score, dict):
            # Scores of own worlds may have nothing but the improvement.
            name = counterpart(trajectory, score) if "true_observed" in score else "true"
            known = finite([score.get(f"{name}_improvement")])
            both += [(float(trajectory["improvement"]), true) for true in known]
    return [claimed for claimed, _ in both], [true for _, true in both]


def _of_alterations(run: Recorded) -> dict[str, Figure]:
    """The claims of cases and over actions, what would overturn the recommendations, and comparisons with the
    truth where it is known. Claims of few cases alone are drawn side by side, and not those of rounds, which
    stand beside the truth of each.
    """
    drawn: dict[str, Figure] = {}
    groups, online = by_method(run), learnt(run)
    lines = next(iter(groups.values()), [])
    if len(groups) == 1 and len(lines) <= MOST and not online and any(map(claim, lines)):
        drawn["decisions"] = case_figures.draw_decisions(decision_frame(lines), quantity(lines))
    units = run.words.get("units_of")
    beyond = {str(line.get("identity", "")) for line in lines if in_place(findings_of(line))}
    curves = case_figures.draw_claims(
        run.claims, units if isinstance(units, dict) else {}, run.codings, beyond
    )
    drawn |= {} if curves is None else {"claims": curves}
    if weighed := decisions_that(run, lambda decision: sensitivity_of(decision) is not None):
        drawn["overturning"] = case_figures.draw_overturning(weighed)
    scored = decisions_that(run, scored_by_world)
    if not scored:
        return drawn
    drawn["probability"] = case_figures.draw_probabilities(scored)
    if online:
        drawn["rounds"] = round_figures.draw_online({alteration_report.dataset_of(run): online})
    acted = {
        name: [
            row_of(run, name, decision) for decision in decisions if decision.get("alteration") is not None
        ]
        for name, decisions in scored.items()
    }
    claims = {
        name: rows for name, rows in acted.items() if not all(math.isnan(row["estimate"]) for row in rows)
    }
    return drawn | ({"calibration": case_figures.draw_calibration(claims)} if claims else {})


def answers(of: Material) -> list[str]:
    """One sentence, or a few, for each of the first cases; of trials, for the recommendation alone."""
    decisions = of.run.decisions
    if not decisions:
        return [f"No decisions in {of.run.path} yet."]
    if of.trials:
        title, headline, known = sentences.said_of_trials(of)
        # Of a system of one's own there are two settings, the next one and that to keep.
        shown = 3 if sentences.proposes(decisions[-1]) else 1
        return _wrapped(f"{title}: {' '.join([headline, *known[:shown]])}")
    lines = []
    if of.alterations:
        lines = [*_wrapped(sentences.overall(decisions, of.wanted)), *_wrapped(averages(of.run))]
    for decision in decisions[:SHOWN]:
        if of.sequences:
            title, headline, _ = sentences.said_of_episode(decision, of.words)
            known = sentences.answer_of(decision, of.words)
        else:
            title, headline = f"Case {name_of(decision)}", sentences.headline(decision, of.units)
            known = sentences.estimated(decision, of)
        lines += _wrapped(f"{title}: {' '.join([headline, *known, *sentences.why(decision)])}")
    more = len(decisions) - SHOWN
    return lines + ([f"... and {more} more: decisions.jsonl"] if more > 0 else [])


def warnings(of: Material, told: Sequence[str] = ()) -> list[str]:
    """Each warning once, with the cases that it is of.

    Args:
        told: Sentences that were told before, without their full stops.
    """
    of_cases = warnings_of_decisions(of.run.decisions)
    before = [*told, *(text for _, text in of_cases)]
    general = [text for text in warnings_of_run(of) if not any(known in text for known in before)]
    grouped: dict[str, list[tuple[str, str]]] = {}
    for name, text in of_cases:
        grouped.setdefault(_NUMBER.sub("#", text), []).append((name, text))
    lines = [f"- {text}" for text in general]
    for warned in grouped.values():
        names, text = list(dict.fromkeys(name for name, _ in warned)), warned[0][1]
        differ = len({known for _, known in warned}) > 1
        which = f"; the numbers are those of {of.nouns[0]} {names[0]}" if differ else ""
        lines.append(f"- {text} ({whom(names, len(of.run.decisions), *of.nouns)}{which})")
    return ["Warnings", *_listed(lines)] if lines else []


def numbers(of: Material) -> list[str]:
    """The summary of the run: counts, means and what they are compared with, an entry a line."""
    run = of.run
    if not run.decisions:
        return []
    if of.trials:
        lines = [f"{sentence}." for sentence in trial_report.reached(run)]
        lines += trial_report.recovered_in_short(run.truth)
    elif of.alterations:
        names = [f"{name} " if len(of.methods) > 1 else "" for name in of.methods]
        lines = [
            f"{head}: {', '.join(f'{name}{cell}' for name, cell in zip(names, cells, strict=True))}"
            for head, *cells in alteration_report.method_rows(of.methods)
        ]
        lines += alteration_report.online_sentences(run)
        doubts = (overall(run.decisions), graphs_overall(run.decisions), no_action_score.line(run))
        lines += [f"{text.rstrip('.')}." for text in doubts if text]
    else:
        weighed = sequences_overall(list(filter(is_sequence, run.decisions)), of.words.actions)
        lines = sequence_report.lines(of.sequence_rows, of.words)
        lines += sequence_report.sentences(of.sequence_rows, of.words)
        lines += [weighed] if weighed else []
        lines += sequence_report.observed_as_text(sequence_report.observed_groups(run))
    return ["Summary", *_listed(lines)] if lines else []


def files(of: Material, written: Iterable[Path]) -> list[str]:
    """Where the page, the tables and the figures are."""
    names = [str(path.relative_to(of.run.path)) for path in written if path.suffix != ".svg"]
    drawn = [Path(name).stem for name in names if name.startswith("figures/")]
    tables = [name for name in names if name.endswith(".csv")]
    lines = [f"Report: {of.run.path / name}" for name in names if name.endswith(".html")]
    lines += [f"Tables: {', '.join(tables)}"] if tables else []
    lines += [f"Figures (.png and .svg in figures): {', '.join(drawn)}"] if drawn else []
    return [part for line in lines for part in _wrapped(line)]


def _listed(lines: Iterable[str]) -> list[str]:
    return [f"  {part}" for line in lines for part in _wrapped(line, WIDTH - 2)]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """A text as lines, the further ones set in; a number stays with its per cent sign."""
    whole = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(
        whole, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]
