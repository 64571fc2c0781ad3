"""The page of a run: ``report.html`` in its folder, complete in one file that can be handed on.

In this order: what was asked and the answer for each case; the pictures; why, and what would overturn it;
comparisons; assumptions with the graph; the data card; all warnings; where the page comes from. Every number
comes from the files of the folder. By default no rows are shown but the cases decided for.

The data card shows sizes, ranges, units and the fingerprint of the data, as they were recorded. Rows are, for
readers who asked for them, what the run recorded for its cases (context, steps of episodes, answers); rows of
the table that the method learnt from are in no run folder.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting import method_choice
from rehearsal_torch.reporting.card_lines import in_words, label
from rehearsal_torch.reporting.page.answers import answers, verdicts
from rehearsal_torch.reporting.page.assumptions import assumptions, limits
from rehearsal_torch.reporting.page.cautions import cautions, notice
from rehearsal_torch.reporting.page.comparison import comparison
from rehearsal_torch.reporting.page.document import Section, document, provenance
from rehearsal_torch.reporting.page.markup import Child, Markup, facts, joined, name_of, table, tag
from rehearsal_torch.reporting.page.material import (
    Material,
    counted,
    finite,
    listed,
    mapping,
    shown,
)
from rehearsal_torch.reporting.page.pictures import pictures
from rehearsal_torch.reporting.page.why import why

FILE = "report.html"
_END = (
    "A recommendation is a claim of a model that was fitted to data, not a prescription. Every number on "
    "this page comes from the files of the run."
)


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


# What other sections show.
_ELSEWHERE = frozenset(
    {"graph", "box", "actions", "region", "caution", "findings", "ranges", "features", "desired", "reward"}
)
LONGEST, VARIABLES = 300, 400


def data_card(of: Material) -> Markup:
    """The section's content; says so where a run recorded no card."""
    if not of.card:
        return tag("p", "The run recorded no data card.")
    simple, tables = list[tuple[str, Child]](), list[Markup]()
    for key, value in of.card.items():
        if key in _ELSEWHERE:
            continue
        if (
            isinstance(value, Mapping)
            and value
            and all(isinstance(inner, Mapping) for inner in value.values())
        ):
            tables.append(_nested(key, mapping(value)))
        else:
            simple.append((label(key), _cell(key, in_words(key, value, of.card))))
    return joined(
        [
            facts([*simple, *limits(of)]),
            _ranges(mapping(of.card.get("ranges"))),
            _features(mapping(of.card.get("features"))),
            *tables,
        ]
    )


def _cell(key: str, words: str) -> Child:
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
    return tag("code", cut) if key == "fingerprint" else cut


def _ranges(ranges: Mapping[str, Any]) -> Markup:
    rows = [
        [name, shown(ends[0]), shown(ends[1])]
        for name, ends in ((name, listed(value)) for name, value in ranges.items())
        if len(ends) == 2
    ]
    return table("Observed ranges", ["variable", "smallest", "largest"], rows[:VARIABLES])


def _features(features: Mapping[str, Any]) -> Markup:
    rows = [
        [name, *(shown(feature.get(key)) for key in ("min", "median", "max")), str(feature.get("unit", ""))]
        for name, feature in ((name, mapping(value)) for name, value in features.items())
    ]
    heads = ["variable", "smallest", "median", "largest", "unit"]
    return table("Observed variables", heads, rows[:VARIABLES], texts=(0, 4))


def _nested(key: str, mappings: Mapping[str, Any]) -> Markup:
    """A mapping of mappings as a table with a column for each key."""
    lines = {name: mapping(value) for name, value in mappings.items()}
    heads = list(dict.fromkeys(head for line in lines.values() for head in line))
    rows = [[name, *(_short(line.get(head, "")) for head in heads)] for name, line in lines.items()]
    words = [
        column
        for column, head in enumerate(heads, 1)
        if any(finite(line.get(head)) is None for line in lines.values())
    ]
    return table(key.replace("_", " "), ["", *heads], rows[:VARIABLES], texts=(0, *words))


def _short(value: Any) -> str:
    words = value if isinstance(value, str) else shown(value)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."


def recorded_rows(of: Material) -> Markup:
    """The section's content; empty unless the reader asked for rows."""
    if not of.rows:
        return Markup()
    decisions = of.run.decisions[: of.cases]
    tables = [_contexts(decisions), _answers(decisions), *(_steps(decision, of) for decision in decisions)]
    content = joined(tables)
    return content or tag("p", "The run recorded no rows.")


def _contexts(decisions: list[Decided]) -> Markup:
    names = list(dict.fromkeys(name for decision in decisions for name in mapping(decision.get("given"))))
    rows = (
        [[name_of(decision), *_cells(mapping(decision.get("given")), names)] for decision in decisions]
        if names
        else []
    )
    return table("What was known of each case", ["case", *names], rows)


def _answers(decisions: list[Decided]) -> Markup:
    """What came of the decisions that were carried out, where there was somebody to answer."""
    answered = [
        (name_of(decision), mapping(mapping(decision.get("answer")).get("rows"))) for decision in decisions
    ]
    names = list(dict.fromkeys(name for _, columns in answered for name in columns))
    rows = [
        [name, *(shown(listed(columns.get(column))) if column in columns else "" for column in names)]
        for name, columns in answered
        if columns
    ]
    return table("What was observed after each decision", ["case", *names], rows)


def _steps(decision: Decided, of: Material) -> Markup:
    """An episode step by step: rewards and doses, as observed and under the decision."""
    trajectory = mapping(decision.get("trajectory"))
    observed, replayed = (listed(trajectory.get(key)) for key in ("observed_rewards", "rewards"))
    old, new = (listed(trajectory.get(key)) for key in ("observed_doses", "doses"))
    count = max((len(listed(rows_of)) for rows_of in (*old, *new)), default=0)
    heads = [
        of.words.one_step.lower(),
        f"{of.words.level}, observed",
        "predicted",
    ]
    heads += [
        f"{of.words.dose(coordinate).name}{when}"
        for coordinate in range(count)
        for when in (", observed", ", changed")
    ]
    rows = []
    for step in range(len(observed)):
        doses = [_in(rows_of, step, coordinate, of) for coordinate in range(count) for rows_of in (old, new)]
        rewards = [_reward(rows_of, step, of) for rows_of in (observed, replayed)]
        rows.append([str(of.words.start + step), *rewards, *doses])
    return table(f"{of.words.titled(name_of(decision))}, step by step", heads, rows)


def _cells(values: dict[str, object], names: list[str]) -> list[str]:
    return [shown(values[name]) if name in values else "" for name in names]


def _reward(values: list[object], step: int, of: Material) -> str:
    value = finite(values[step]) if step < len(values) else None
    return "" if value is None else shown(of.words.sign * value + 0.0)


def _in(rows: list[object], step: int, coordinate: int, of: Material) -> str:
    cells = listed(rows[step]) if step < len(rows) else []
    return (
        ""
        if coordinate >= len(cells)
        else of.words.dose(coordinate).level(cells[coordinate]) or shown(cells[coordinate])
    )
