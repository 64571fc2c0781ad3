"""Report of a run folder: its tables, figures and page, and its summary in a terminal.

A terminal shows at most some 25 lines, whatever the number of cases: the answer over all, how many come to
what, a line for each of the first cases, findings by kind, and where everything else stands. The sentences
are those of the page (``page/templates/sentences.txt``).
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from rehearsal_torch.data.estimate import ends_of, in_words, is_chance
from rehearsal_torch.data.finding import findings_of, in_place, texts_of
from rehearsal_torch.evaluation.claim_rows import scored_by_world
from rehearsal_torch.evaluation.effect_tables import averages
from rehearsal_torch.evaluation.overturning_sentences import sensitivity_of
from rehearsal_torch.evaluation.run_record import Decided, Recorded, counterpart
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.reporting import alteration_report, no_action_score, sequence_report, trial_report
from rehearsal_torch.reporting.alteration_report import by_method, decisions_that, learnt, row_of
from rehearsal_torch.reporting.decision_frame import overall_of, quantity
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures import case_figures, model_figures, round_figures, sequence_figures
from rehearsal_torch.reporting.labels import Wording, worded
from rehearsal_torch.reporting.page import html, sentences
from rehearsal_torch.reporting.page.html import sentence
from rehearsal_torch.reporting.page.html import words as words_of
from rehearsal_torch.reporting.page.page_content import Material, counted, material
from rehearsal_torch.reporting.page.reasons import by_kind, warnings_of_run
from rehearsal_torch.reporting.page.run_page import (
    FILE,
    all_tables,
    notes_of_sequences,
    overall_of_sequences,
    page,
    tally,
)
from rehearsal_torch.reporting.page.views import case_of, episode_of, proposes
from rehearsal_torch.reporting.sequence_report import finite
from rehearsal_torch.reporting.text_table import text_table

# Characters of a line; lines of the answer, of cases, of findings and of numbers in the terminal.
WIDTH, OVERALL, SHOWN, FINDINGS, NUMBERS = 110, 5, 3, 4, 4


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
        paths = trial_report.written(run)
    elif of.alterations:
        paths = alteration_report.written(run)
    else:
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
    if tables and run.decisions:
        parts.append(
            [
                text_table(table.heads, table.rows, table.caption, texts=table.texts)
                for table in all_tables(of)
            ]
        )
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
    if run.of_trials:
        figure_of |= model_figures.draw_recovered(run.truth) | model_figures.draw_surrogate(run.curves)
        if scored := trial_report.rounds(run):
            methods = {trial_report.named(run, "decision"): scored}
            figure_of["rounds"] = round_figures.draw_trials({trial_report.named(run, "dataset"): methods})
        return figure_of
    return figure_of | (_case_figures(run) if run.of_cases else _episode_figures(run, words))


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
    signed = [
        [words.sign * float(decision["trajectory"][key]) for decision in decisions]
        for key in ("observed", "value")
    ]
    means = fmean(signed[0]), fmean(signed[1])
    label = f"{words.total}, on average over {counted(len(decisions), words.episode, words.episodes)}"
    names = ("observed", "predicted")
    figure_of = {
        "answer": case_figures.draw_answer(means, None, label, names, False),
        "improvement": sequence_figures.draw_improvements(improvements, words.subjects),
    }
    last = list(groups.values())[-1]
    figure_of[words.file] = sequence_figures.draw_courses(sequence_figures.chosen(last), len(last), words)
    pairs = {label: _claimed_and_true(decided) for label, decided in groups.items()}
    if true_pairs := {label: pair for label, pair in pairs.items() if pair[0]}:
        figure_of["truth"] = sequence_figures.draw_true_improvements(true_pairs)
    if any(row["quantity"] == "rmse" for row in run.truth):
        figure_of["truth_errors"] = sequence_figures.draw_errors(run.truth)
    return figure_of


def _answer_of(lines: Sequence[Decided]) -> tuple[Any, ...] | None:
    """The mean estimates of all cases before and after, with the interval, for `draw_answer`."""
    total, measure, names = overall_of(lines), quantity(lines), ("before", "after")
    label = f"Estimated {in_words(measure)}{' (%)' if is_chance(measure) else ''}, on average over all cases"
    if total is not None:
        gain = total.gain
        return (total.before, total.after), ends_of(gain), label, names, True
    acted = [line for line in lines if line.get("alteration") is not None and not in_place(findings_of(line))]
    ends = sentences.mean_ends(acted)
    return ends and (ends, None, label, names, is_chance(measure))


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
    if (answer := _answer_of(lines)) and len(groups) == 1:
        figure_of["answer"] = case_figures.draw_answer(*answer)
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
    """The answer over all decisions, how many come to what, and a line for each of the first ones; of trials,
    and of one case, the whole answer.
    """
    decisions = of.run.decisions
    if not decisions:
        return [f"No decisions in {of.run.path} yet."]
    if of.trials:
        title, headline, texts = sentences.said_of_trials(of)
        # Of a system of one's own there are two settings, the next one and that to keep.
        count = 4 if proposes(decisions[-1]) else 1
        return _wrapped(f"{title}: {' '.join([headline, *texts[:count]])}")
    lines = [part for text in _overall(of) for part in _wrapped(text)][:OVERALL]
    if len(decisions) == 1:
        return [*lines, *_wrapped(_whole(of, decisions[0]))]
    counts = ", ".join(
        f"{count} {words_of('verdicts')[verdict]}" for verdict, count in tally(decisions) if count
    )
    lines.append(f"{counted(len(decisions), *of.nouns)}: {counts}")
    lines += [_cut(_in_short(of, decision)) for decision in decisions[:SHOWN]]
    more = len(decisions) - SHOWN
    return lines + ([f"... and {more} more: {FILE}, decisions.jsonl"] if more > 0 else [])


def _overall(of: Material) -> list[str]:
    if of.alterations:
        texts = [sentences.overall(of.run.decisions, of.wanted), averages(of.run)]
    else:
        texts = [text for row in of.sequence_rows for text in overall_of_sequences(row, of.words)]
    return [text for text in texts if text]


def _whole(of: Material, decision: Decided) -> str:
    """All that is said of one decision."""
    if of.sequences:
        episode = episode_of(decision, of.words)
        texts = [f"{episode.title}: {sentence('episode_headline', episode)}"]
        return " ".join(
            [*texts, *html.sentences("episode_answer", episode, of.words), sentence("why", episode)]
        )
    case = case_of(decision, of.units, of.wanted)
    texts = html.sentences("chances", case) if of.alterations else [f"Value of the objective: {case.value}."]
    return " ".join([f"Case {case.name}: {sentence('headline', case)}", *texts, sentence("why", case)])


def _in_short(of: Material, decision: Decided) -> str:
    if of.sequences:
        return sentence("episode_in_short", episode_of(decision, of.words), of.words)
    return sentence("case_in_short", case_of(decision, of.units, of.wanted))


def warnings(of: Material, told: Sequence[str] = ()) -> list[str]:
    """Each kind of finding of decisions once, with its number of decisions, and those of the data, a line
    each; `told` are sentences told before, without their full stops.
    """
    decisions, kinds = of.run.decisions, words_of("kinds")
    lines = [
        f"- {counted(group.count, *of.nouns)} of {len(decisions)}: {kinds.get(group.kind, group.kind)}"
        for group in by_kind(decisions)
    ]
    if len(decisions) == 1 or of.trials:
        lines = [f"- {text}" for decision in decisions[-1:] for text in texts_of(decision)]
    lines += [f"- {text}" for text in warnings_of_run(of) if not any(earlier in text for earlier in told)]
    more = len(lines) - FINDINGS
    lines = [*lines[:FINDINGS], *([f"- and {more} more: {FILE}"] if more > 0 else [])]
    return ["Findings", *(f"  {_cut(line, WIDTH - 2)}" for line in lines)] if lines else []


def numbers(of: Material) -> list[str]:
    """The run in numbers, in a few lines: what was reached, or how well untouched rows are predicted."""
    run = of.run
    if not run.decisions:
        return []
    if of.trials:
        lines = [f"{sentence}." for sentence in trial_report.reached(run)]
        lines += trial_report.recovered_in_short(run.truth)
    elif of.alterations:
        truths = [
            text
            for name, summary in of.methods.items()
            if (text := alteration_report.truth_in_short(summary))
        ]
        lines = [*truths, *alteration_report.online_sentences(run), no_action_score.line(run)]
        lines = [f"{text.rstrip('.')}." for text in lines if text]
    else:
        lines = notes_of_sequences(of)
    return [part for line in lines for part in _wrapped(line)][:NUMBERS]


def files(of: Material, written: Iterable[Path]) -> list[str]:
    """Where the page, the tables and the figures are."""
    names = [str(path.relative_to(of.run.path)) for path in written if path.suffix != ".svg"]
    stems = [Path(name).stem for name in names if name.startswith("figures/")]
    tables = [name for name in names if name.endswith(".csv")]
    lines = [f"Report: {of.run.path / name}" for name in names if name.endswith(".html")]
    lines += [_cut(f"Tables: {', '.join(tables)}")] if tables else []
    return lines + ([_cut(f"Figures (.png and .svg in figures): {', '.join(stems)}")] if stems else [])


def _cut(text: str, width: int = WIDTH) -> str:
    """A text on one line."""
    return text if len(text) <= width else f"{text[: width - 4].rsplit(' ', 1)[0]} ..."


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """A text as lines, the further ones indented; a number stays with its per cent sign."""
    unbroken = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(
        unbroken, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]
