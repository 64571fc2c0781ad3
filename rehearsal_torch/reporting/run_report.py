"""Report of a run folder: its tables, figures and page, and its summary in a terminal.

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

# Cases in the figure of claims and in the terminal, at most; characters of a line.
MOST, SHOWN, WIDTH = 100, 10, 110
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def report(folder: str | Path, *, tables: bool = False, told: Sequence[str] = ()) -> str:
    """Writes ``table.csv``, for episodes ``changes.csv``, ``figures/`` and ``report.html`` into a run folder.
    FileNotFoundError if it is none.

    Args:
        tables: Whether the returned text has the tables.
        told: Warnings that were told before, and are not repeated.

    Returns:
        Text for a terminal: a sentence for each case, warnings, summary or tables, and the written files.
    """
    of = material(folder)
    run = of.run
    if of.trials:
        table_text = "\n".join([*trial_report.recovered_noise(run.truth), trial_report.tables(run)])
        paths = trial_report.written(run)
    elif of.alterations:
        table_text, paths = alteration_report.tables(run), alteration_report.written(run)
    else:
        title = f"{len(run.decisions)} decisions in {run.path}"
        table_text = sequence_report.as_text(of.sequence_rows, of.words, title) if of.sequence_rows else ""
        contents = {
            "table.csv": of.sequence_rows,
            sequence_report.CHANGES: sequence_report.changed_doses(run, of.words),
            sequence_report.OBSERVED: sequence_report.observed_groups(run),
        }
        paths = [write_text(run.path / name, as_csv(rows)) for name, rows in contents.items() if rows]
    paths += draw(run)
    if run.decisions:
        paths.append(write_text(run.path / FILE, page(of)))
    # The chosen method alone; the others are in the table and on the page.
    choice = [text for text in alteration_report.choice_reasons(run)[:1] if text not in told]
    parts = [answers(of), warnings(of, told), choice, numbers(of)]
    parts += [[table_text]] if tables and table_text else []
    return "\n".join(line for part in [*parts, files(of, paths)] for line in part)


def draw(run: Recorded) -> list[Path]:
    """Draws the figures of a run folder from its records; returns the files, two for each figure."""
    with drawing():
        return [
            path
            for name, figure in figures(run, worded(run)).items()
            for path in save(figure, run.path / "figures", name)
        ]


def figures(run: Recorded, words: Wording) -> dict[str, Figure]:
    """File name to figure, for everything that the run recorded; to be called within `drawing`."""
    figure_of: dict[str, Figure] = {}
    if parts := model_figures.trained_parts(run.metrics):
        subjects = words.subjects if words.doses else "rows"
        figure_of["training"] = model_figures.draw_training(run.metrics, parts, subjects)
    if trial_report.concerns(run):
        figure_of |= model_figures.draw_recovered(run.truth) | model_figures.draw_surrogate(run.curves)
        if scored := trial_report.rounds(run):
            methods = {trial_report.named(run, "decision"): scored}
            figure_of["rounds"] = round_figures.draw_trials({trial_report.named(run, "dataset"): methods})
        return figure_of
    return figure_of | (
        _case_figures(run) if alteration_report.concerns(run) else _episode_figures(run, words)
    )


def _episode_figures(run: Recorded, words: Wording) -> dict[str, Figure]:
    """Improvements, outcomes, search effort, the courses of a few units, and claims against the truth."""
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
    decisions = [decision for decided in groups.values() for decision in decided]
    figure_of = {
        "improvement": sequence_figures.draw_improvements(improvements, words.subjects),
        "outcomes": sequence_figures.draw_outcomes(groups, words),
    }
    if any(effort(decision, "proven") and decision.get("seconds") is not None for decision in decisions):
        figure_of["effort"] = sequence_figures.draw_effort(groups, words.subjects)
    last = list(groups.values())[-1]
    figure_of[words.file] = sequence_figures.draw_courses(sequence_figures.chosen(last), len(last), words)
    pairs = {label: _claimed_and_true(decided) for label, decided in groups.items()}
    if true_pairs := {label: pair for label, pair in pairs.items() if pair[0]}:
        figure_of["truth"] = sequence_figures.draw_true_improvements(true_pairs)
    if any(row["quantity"] == "rmse" for row in run.truth):
        figure_of["truth_errors"] = sequence_figures.draw_errors(run.truth)
    return figure_of


def _claimed_and_true(decisions: list[Decided]) -> tuple[list[float], list[float]]:
    """The claimed and the true improvements, of the decisions whose truth is known."""
    pairs = []
    for decision in decisions:
        score, trajectory = decision.get("score"), decision["trajectory"]
        if isinstance(score, dict):
            # A user's own world may score nothing but the improvement.
            name = counterpart(trajectory, score) if "true_observed" in score else "true"
            truths = finite([score.get(f"{name}_improvement")])
            pairs += [(float(trajectory["improvement"]), true) for true in truths]
    return [claimed for claimed, _ in pairs], [true for _, true in pairs]


def _case_figures(run: Recorded) -> dict[str, Figure]:
    """Claims of cases and over actions, sensitivity, and comparisons with the truth where it is known."""
    figure_of: dict[str, Figure] = {}
    groups, online = by_method(run), learnt(run)
    lines = next(iter(groups.values()), [])
    if len(groups) == 1 and len(lines) <= MOST and not online and any(map(claim, lines)):
        figure_of["decisions"] = case_figures.draw_decisions(decision_frame(lines), quantity(lines))
    units = run.words.get("units_of")
    beyond = {str(line.get("identity", "")) for line in lines if in_place(findings_of(line))}
    curves = case_figures.draw_claims(
        run.claims, units if isinstance(units, dict) else {}, run.codings, beyond
    )
    figure_of |= {} if curves is None else {"claims": curves}
    if with_sensitivity := decisions_that(run, lambda decision: sensitivity_of(decision) is not None):
        figure_of["overturning"] = case_figures.draw_overturning(with_sensitivity)
    scored = decisions_that(run, scored_by_world)
    if not scored:
        return figure_of
    figure_of["probability"] = case_figures.draw_probabilities(scored)
    if online:
        figure_of["rounds"] = round_figures.draw_online({alteration_report.dataset_of(run): online})
    rows_of = {
        name: [row_of(run, name, line) for line in decisions if line.get("alteration") is not None]
        for name, decisions in scored.items()
    }
    claims = {
        name: rows for name, rows in rows_of.items() if not all(math.isnan(row["estimate"]) for row in rows)
    }
    return figure_of | ({"calibration": case_figures.draw_calibration(claims)} if claims else {})


def answers(of: Material) -> list[str]:
    """One sentence, or a few, for each of the first cases; of trials, for the recommendation alone."""
    decisions = of.run.decisions
    if not decisions:
        return [f"No decisions in {of.run.path} yet."]
    if of.trials:
        title, headline, texts = sentences.said_of_trials(of)
        # Of a system of one's own there are two settings, the next one and that to keep.
        count = 3 if sentences.proposes(decisions[-1]) else 1
        return _wrapped(f"{title}: {' '.join([headline, *texts[:count]])}")
    lines = []
    if of.alterations:
        lines = [*_wrapped(sentences.overall(decisions, of.wanted)), *_wrapped(averages(of.run))]
    for decision in decisions[:SHOWN]:
        if of.sequences:
            title, headline, _ = sentences.said_of_episode(decision, of.words)
            texts = sentences.answer_of(decision, of.words)
        else:
            title, headline = f"Case {name_of(decision)}", sentences.headline(decision, of.units)
            texts = sentences.estimated(decision, of)
        lines += _wrapped(f"{title}: {' '.join([headline, *texts, *sentences.why(decision)])}")
    more = len(decisions) - SHOWN
    return lines + ([f"... and {more} more: decisions.jsonl"] if more > 0 else [])


def warnings(of: Material, told: Sequence[str] = ()) -> list[str]:
    """Each warning once, with its cases; `told` are sentences told before, without their full stops."""
    of_cases = warnings_of_decisions(of.run.decisions)
    repeated = [*told, *(text for _, text in of_cases)]
    general = [text for text in warnings_of_run(of) if not any(earlier in text for earlier in repeated)]
    grouped: dict[str, list[tuple[str, str]]] = {}
    for name, text in of_cases:
        grouped.setdefault(_NUMBER.sub("#", text), []).append((name, text))
    lines = [f"- {text}" for text in general]
    for group in grouped.values():
        names, text = list(dict.fromkeys(name for name, _ in group)), group[0][1]
        numbers_differ = len({warning for _, warning in group}) > 1
        note = f"; the numbers are those of {of.nouns[0]} {names[0]}" if numbers_differ else ""
        lines.append(f"- {text} ({whom(names, len(of.run.decisions), *of.nouns)}{note})")
    return ["Warnings", *_indented(lines)] if lines else []


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
        sensitivity = sequences_overall(list(filter(is_sequence, run.decisions)), of.words.actions)
        lines = sequence_report.lines(of.sequence_rows, of.words)
        lines += sequence_report.sentences(of.sequence_rows, of.words)
        lines += [sensitivity] if sensitivity else []
        lines += sequence_report.observed_as_text(sequence_report.observed_groups(run))
    return ["Summary", *_indented(lines)] if lines else []


def files(of: Material, written: Iterable[Path]) -> list[str]:
    """Where the page, the tables and the figures are."""
    names = [str(path.relative_to(of.run.path)) for path in written if path.suffix != ".svg"]
    stems = [Path(name).stem for name in names if name.startswith("figures/")]
    tables = [name for name in names if name.endswith(".csv")]
    lines = [f"Report: {of.run.path / name}" for name in names if name.endswith(".html")]
    lines += [f"Tables: {', '.join(tables)}"] if tables else []
    lines += [f"Figures (.png and .svg in figures): {', '.join(stems)}"] if stems else []
    return [part for line in lines for part in _wrapped(line)]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {part}" for line in lines for part in _wrapped(line, WIDTH - 2)]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """A text as lines, the further ones indented; a number stays with its per cent sign."""
    unbroken = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(
        unbroken, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]
