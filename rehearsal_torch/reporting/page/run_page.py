"""Report page of a run: ``report.html`` in its folder, complete in one file that can be handed on.

In this order: the question and the answer for each case; figures; reasons and sensitivity; comparisons, as in
the terminal (`alteration_report`, `trial_report`, `sequence_report`); assumptions with the graph; the data
card; all warnings; provenance. Every number comes from the files of the folder.

The context of a case is shown if the case was given. Rows of the table that were held out and decided for
instead may be those of persons who asked nothing: their values are left out, also of warnings and reasons,
unless the reader asks for rows (`reporting.page.page_content`). Rows are then what the run recorded for its
cases (context, steps of episodes, answers); rows that the method learnt from are in no run folder.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from rehearsal_torch.evaluation.effect_tables import averages
from rehearsal_torch.evaluation.run_record import ACTS, NOTHING, REFUSED, Decided, claim, effort, group_of
from rehearsal_torch.reporting import alteration_report, no_action_score, sequence_report, trial_report
from rehearsal_torch.reporting.alteration_report import figure, method_rows
from rehearsal_torch.reporting.page import sentences
from rehearsal_torch.reporting.page.data_card import in_words, label, question
from rehearsal_torch.reporting.page.html import (
    Child,
    Markup,
    Section,
    document,
    facts,
    joined,
    name_of,
    paragraphs,
    table,
    tag,
)
from rehearsal_torch.reporting.page.inline_figures import pictures
from rehearsal_torch.reporting.page.page_content import (
    Material,
    counted,
    finite,
    listed,
    mapping,
    named,
    shown,
)
from rehearsal_torch.reporting.page.reasons import assumptions, cautions, limits, notice, why

FILE = "report.html"
WITHHELD = (
    "The cases are rows of the table that were held out. What is known of each is left out here; "
    "rehearsal report RUN rows=true shows it."
)
_END = (
    "A recommendation is a claim of a model that was fitted to data, not a prescription. Every number on "
    "this page comes from the files of the run."
)
_CLASS_OF_ANSWER = {ACTS: "case", NOTHING: "case none", REFUSED: "case refused"}
# Entries of the data card that other sections show.
_SHOWN_ELSEWHERE = frozenset(
    {"graph", "box", "actions", "region", "caution", "findings", "ranges", "features", "desired", "reward"}
)
# Characters of an entry of the data card, and of the configuration; variables of a table.
LONGEST, LONGEST_CONFIGURATION, VARIABLES = 300, 60_000, 400


def page(report: Material) -> str:
    """The page of a run with decisions."""
    sections = [
        Section("answers", "What was asked, and the answers", answers(report)),
        Section("pictures", "Pictures of the run", pictures(report)),
        Section("why", "Why, and what would overturn it", why(report)),
        Section("method", "Which method, and why", alteration_report.choice_as_markup(report.run)),
        Section("comparison", "Comparisons", comparison(report)),
        Section("assumptions", "Assumptions", assumptions(report)),
        Section("data", "The data", data_card(report)),
        Section("warnings", "Warnings", cautions(report)),
        Section(
            "provenance",
            "Where this page comes from",
            joined([facts(origin(report)), _configuration(report)]),
        ),
        Section("rows", "Recorded rows", recorded_rows(report)),
    ]
    return document(title(report), _lead(report), sections, _END)


def title(report: Material) -> str:
    """The title of the page: by the table of a problem file, else by the name of the run or its folder."""
    source = report.card.get("source")
    if not _has_default_name(report) or not isinstance(source, str):
        return f"Report: {report.run.config.get('name') or report.run.path.name}"
    return (
        f"The next experiment after {source}"
        if report.trials
        else f"Decisions for {_count(report)} of {source}"
    )


def _has_default_name(report: Material) -> bool:
    """Whether the run is one of a problem file, and was given no name of its own."""
    default_names = ("own_problem", "own_sequence", "own_trials")
    path = str(report.run.config.get("path") or "")
    return path.endswith((".yaml", ".yml")) and report.run.config.get("name") in default_names


def _count(report: Material) -> str:
    return counted(len(report.run.decisions), *(("trial", "trials") if report.trials else report.nouns))


def _lead(report: Material) -> Markup:
    keys = (
        {"decision": "method"}
        if _has_default_name(report)
        else {"dataset": "dataset", "decision": "decision"}
    )
    choices = [f"{word} {report.run.choices[key]}" for key, word in keys.items() if key in report.run.choices]
    answer_counts = [] if report.trials else [verdicts(report.run.decisions)]
    words = "; ".join([_count(report), *answer_counts, *choices])
    return joined([tag("p", f"{words}.", class_="soft"), notice(report)])


def answers(report: Material) -> Markup:
    """The question, then one box for each case."""
    boxes = [_case_box(decision, report) for decision in report.shown]
    more = 0 if report.trials else len(report.run.decisions) - len(boxes)
    note = f"{counted(more, 'further case')} of {len(report.run.decisions)} in decisions.jsonl and table.csv."
    overall = (
        [sentences.overall(report.run.decisions, report.wanted), averages(report.run)]
        if report.alterations
        else []
    )
    overall += sequence_report.headline(report.sequence_rows, report.words) if report.sequences else []
    return joined(
        [
            paragraphs(question(report)),
            *(tag("p", sentence, class_="answer") for sentence in overall if sentence),
            tag("p", WITHHELD) if report.withholds else None,
            *boxes,
            tag("p", note) if more > 0 else None,
        ]
    )


def verdicts(decisions: Sequence[Decided]) -> str:
    """How many cases got which answer, in words."""
    groups = [group_of(decision) for decision in decisions]
    words = {ACTS: "with a recommendation", NOTHING: "without action", REFUSED: "refused"}
    return ", ".join(f"{groups.count(group)} {words[group]}" for group in words if group in groups)


def _case_box(decision: Decided, report: Material) -> Markup:
    if report.trials:
        title, headline, texts = sentences.said_of_trials(report)
    elif report.sequences:
        title, headline, texts = sentences.said_of_episode(decision, report.words)
    else:
        title, headline, texts = sentences.said_of_case(decision, report)
    head = [tag("h3", title), tag("p", headline, class_="answer")]
    return tag("div", *head, paragraphs(texts), class_=_CLASS_OF_ANSWER[group_of(decision)])


def comparison(report: Material) -> Markup:
    """Comparisons with no action, of the parts of the method, and with held-out outcomes; else empty."""
    if report.trials:
        heads, body = trial_report.last_rounds(report.run)
        caption = f"The last {len(body)} of {len(report.run.decisions)} trials"
        reached = paragraphs(f"{sentence}." for sentence in trial_report.reached(report.run))
        return joined([table(caption, heads, body, texts=(0, 1)), reached])
    if report.alterations:
        methods = table("All cases of the run", ["", *report.methods], indented(method_rows(report.methods)))
        online = paragraphs(alteration_report.online_sentences(report.run))
        score = paragraphs(filter(None, [no_action_score.line(report.run)]))
        return joined([methods, online, _part_table(report.shown), score])
    results, *scores = sequence_tables(report) or [Markup()]
    observed = sequence_report.observed_as_text(sequence_report.observed_groups(report.run))
    notes = sequence_report.sentences(report.sequence_rows, report.words)
    return joined([results, paragraphs(notes), *scores, paragraphs(observed)])


def indented(rows: Sequence[Sequence[str]]) -> list[list[Child]]:
    """Rows of methods; heads that begin with spaces are set in below the one before."""
    return [
        [tag("span", head.strip(), class_="sub") if head.startswith(" ") else head, *cells]
        for head, *cells in rows
    ]


def _part_table(decisions: list[Decided]) -> Markup:
    """Table by case: no action, decision, estimates of the parts of the method, and the uncorrected claim."""
    estimates = [mapping(effort(decision, "estimates")) for decision in decisions]
    names = list(dict.fromkeys(name for parts in estimates for name in parts))
    corrected = any(effort(decision, "claimed_in_sample") is not None for decision in decisions)
    has_present = any("unchanged" in decision for decision in decisions)
    rows = [
        [
            name_of(decision),
            figure(claim(decision, of="baseline")),
            *([figure(claim(decision, of="unchanged"))] if has_present else []),
            figure(claim(decision)) if decision.get("alteration") is not None else "-",
            *(_number(parts.get(name)) for name in names),
            *([_number(effort(decision, "claimed_in_sample"))] if corrected else []),
        ]
        for decision, parts in zip(decisions, estimates, strict=True)
    ]
    before = ["usual in such a case", "present values"] if has_present else ["no action"]
    heads = ["case", *before, "decision", *(f"by {name}" for name in names)]
    heads += ["before correction for the choice"] if corrected else []
    caption = "Estimated probability of a desired outcome, case by case"
    caption += "; the last columns are the parts that the method weighs" if names else ""
    return table(caption, heads, rows)


def _number(value: object) -> str:
    return figure(value) if isinstance(value, int | float) else "-"


def sequence_tables(report: Material, of_run: str = "") -> list[Markup]:
    """Results of decisions other than alterations and trials, then scores; `of_run` begins captions."""
    title = f"{len(report.run.decisions)} decisions"
    return [
        table(f"{of_run}{caption}", heads, body, texts=(0, 2) if "score" in heads else (0,))
        for caption, heads, body in sequence_report.tables(report.sequence_rows, report.words, title)
    ]


def origin(report: Material) -> list[tuple[str, Child]]:
    """Name to value of the provenance in ``run.json``."""
    record = report.record

    def coded(name: str, key: str) -> list[tuple[str, Child]]:
        return [(name, tag("code", str(record[key])))] if record.get(key) else []

    entries = [*coded("command", "command"), *coded("commit", "commit")]
    if "commit" in record and not record["commit"]:
        entries.append(("commit", "not known: the package was installed without its history"))
    entries += [("seed", shown(record["seed"]))] if "seed" in record else []
    mappings = {key: mapping(record.get(key)) for key in ("versions", "machine")}
    entries += [(name, named(values)) for name, values in mappings.items() if values]
    if report.run.choices:
        entries.append(("chosen", ", ".join(f"{group} {name}" for group, name in report.run.choices.items())))
    entries += coded("fingerprint of the data", "data_fingerprint")
    return [*entries, ("run folder", tag("code", str(report.run.path)))]


def _configuration(report: Material) -> Markup:
    if not report.run.config:
        return tag("p", "The run recorded no configuration.")
    text = yaml.safe_dump(report.run.config, sort_keys=False, allow_unicode=True)
    if len(text) > LONGEST_CONFIGURATION:
        text = f"{text[:LONGEST_CONFIGURATION]}\n... (the rest is in config.yaml)"
    summary = tag("summary", "The whole configuration (config.yaml)")
    return tag("details", summary, tag("pre", text, tabindex="0", aria_label="config.yaml"))


def data_card(report: Material) -> Markup:
    """The data card; a sentence where a run recorded none."""
    if not report.card:
        return tag("p", "The run recorded no data card.")
    simple, tables = list[tuple[str, Child]](), list[Markup]()
    for key, value in report.card.items():
        if key in _SHOWN_ELSEWHERE:
            continue
        rows = mapping(value)
        if rows and all(isinstance(inner, Mapping) for inner in rows.values()):
            tables.append(_nested_table(key, rows))
        else:
            words = _short(in_words(key, value, report.card))
            simple.append((label(key), tag("code", words) if key == "fingerprint" else words))
    ranges = {name: listed(value) for name, value in mapping(report.card.get("ranges")).items()}
    range_rows = [[name, *map(shown, value)] for name, value in ranges.items() if len(value) == 2]
    features = {name: mapping(value) for name, value in mapping(report.card.get("features")).items()}
    feature_rows = [
        [name, *(shown(feature.get(key)) for key in ("min", "median", "max")), str(feature.get("unit", ""))]
        for name, feature in features.items()
    ]
    heads = ["variable", "smallest", "median", "largest", "unit"]
    return joined(
        [
            facts([*simple, *limits(report)]),
            table("Observed ranges", ["variable", "smallest", "largest"], range_rows[:VARIABLES]),
            table("Observed variables", heads, feature_rows[:VARIABLES], texts=(0, 4)),
            *tables,
        ]
    )


def _nested_table(key: str, mappings: Mapping[str, Any]) -> Markup:
    """A mapping of mappings as a table with a column for each key."""
    lines = {name: mapping(value) for name, value in mappings.items()}
    heads = list(dict.fromkeys(head for line in lines.values() for head in line))
    rows = [[name, *(_short(shown(line.get(head, ""))) for head in heads)] for name, line in lines.items()]
    text_columns = [
        column
        for column, head in enumerate(heads, 1)
        if any(finite(line.get(head)) is None for line in lines.values())
    ]
    return table(key.replace("_", " "), ["", *heads], rows[:VARIABLES], texts=(0, *text_columns))


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."


def recorded_rows(report: Material) -> Markup:
    """The rows of the cases; empty unless the reader asked for rows."""
    if not report.rows:
        return Markup()
    decisions = report.run.decisions[: report.cases]
    given = [(name_of(decision), mapping(decision.get("given"))) for decision in decisions]
    answers = [mapping(mapping(decision.get("answer")).get("rows")) for decision in decisions]
    observed = [(name, row) for (name, _), row in zip(given, answers, strict=True) if row]
    tables = [
        _row_table("What was known of each case", given),
        _row_table("What was observed after each decision", observed),
        *(_step_table(decision, report) for decision in decisions),
    ]
    return joined(tables) or tag("p", "The run recorded no rows.")


def _row_table(caption: str, cases: Sequence[tuple[str, Mapping[str, object]]]) -> Markup:
    """Cases with their values, a column for each name; empty without any."""
    names = list(dict.fromkeys(name for _, row in cases for name in row))
    rows = [[case, *(shown(row[name]) if name in row else "" for name in names)] for case, row in cases]
    return table(caption, ["case", *names], rows if names else [])


def _step_table(decision: Decided, report: Material) -> Markup:
    """An episode step by step: rewards and doses, as observed and under the decision."""
    trajectory, words = mapping(decision.get("trajectory")), report.words
    observed, replayed = (listed(trajectory.get(key)) for key in ("observed_rewards", "rewards"))
    old, new = (listed(trajectory.get(key)) for key in ("observed_doses", "doses"))
    coordinates = range(max((len(listed(row)) for row in (*old, *new)), default=0))
    heads = [words.one_step.lower(), f"{words.level}, observed", "predicted"]
    for coordinate in coordinates:
        heads += [f"{words.dose(coordinate).name}{when}" for when in (", observed", ", changed")]
    rows = []
    for step in range(len(observed)):
        doses = [
            _dose(rows_of, step, coordinate, report) for coordinate in coordinates for rows_of in (old, new)
        ]
        rewards = [_reward(values, step, report) for values in (observed, replayed)]
        rows.append([str(words.start + step), *rewards, *doses])
    return table(f"{words.titled(name_of(decision))}, step by step", heads, rows)


def _reward(values: list[object], step: int, report: Material) -> str:
    value = finite(values[step]) if step < len(values) else None
    return "" if value is None else shown(report.words.sign * value + 0.0)


def _dose(rows: list[object], step: int, coordinate: int, report: Material) -> str:
    cells = listed(rows[step]) if step < len(rows) else []
    if coordinate >= len(cells):
        return ""
    return report.words.dose(coordinate).level(cells[coordinate]) or shown(cells[coordinate])
