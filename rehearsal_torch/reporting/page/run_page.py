"""Report page of a run: ``report.html`` in its folder, complete in one file that can be handed on.

In this order: the answer over all cases with a picture of it; the cases as a table, with the full box of
each on demand; how well untouched rows are predicted, and what would overturn the answers; findings by kind;
assumptions with the graph; the data; and, folded, provenance and the numbers of the method. Every number
comes from the files of the folder; ``templates/run.html`` says where each stands.

The context of a case is shown if the case was given. Rows of the table that were held out and decided for
instead may be those of persons who asked nothing: their values are left out, also of warnings and reasons,
unless the reader asks for rows (`reporting.page.page_content`). Rows are then what the run recorded for its
cases (context, steps of episodes, answers); rows that the method learnt from are in no run folder.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml
from matplotlib.figure import Figure as PlotFigure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.data.finding import findings_of
from rehearsal_torch.evaluation.effect_tables import averages
from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting import alteration_report, no_action_score, sequence_report, trial_report
from rehearsal_torch.reporting.decision_frame import doubts, in_all, overall_of
from rehearsal_torch.reporting.figure_style import drawing, svg
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.no_action_score import UntouchedScore
from rehearsal_torch.reporting.page import reasons, sentences
from rehearsal_torch.reporting.page.data_card import (
    in_words,
    label,
    limits,
    one_outcome,
    question,
    weighted_sum,
)
from rehearsal_torch.reporting.page.html import Figure, embedded, name_of, pictures, render, sentence, words
from rehearsal_torch.reporting.page.html import sentences as sentences_of
from rehearsal_torch.reporting.page.page_content import (
    Material,
    counted,
    finite,
    listed,
    mapping,
    named,
    shown,
)
from rehearsal_torch.reporting.page.reasons import FindingGroup, GraphView, by_kind
from rehearsal_torch.reporting.page.views import (
    VERDICTS,
    Case,
    Episode,
    Reading,
    Trials,
    Verdict,
    case_of,
    episode_of,
    trials_of,
    verdict_of,
)
from rehearsal_torch.reporting.trial_view import draw_rewards

FILE = "report.html"
# Entries of the data card that other sections show.
_SHOWN_ELSEWHERE = frozenset(
    {"graph", "box", "actions", "region", "caution", "findings", "ranges", "features", "desired", "reward"}
    | {"notes", "experiments"}
)
# Entries of the data card that are seen at once; characters of one, and of the configuration; variables.
FIRST, LONGEST, LONGEST_CONFIGURATION, VARIABLES = 3, 300, 60_000, 400
# Experiments of a table that are listed.
EXPERIMENTS = 40
Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class TableView:
    """A table: the first cell of a row is its head, the columns of `texts` hold words, the others numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = (0,)


@dataclass(frozen=True)
class Bar:
    """Before, after and its interval, from 0 to 100 on the scale of all rows; None where there is none."""

    before: float | None
    after: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class RunPage:
    """What a run's page says, in the order in which it says it; texts are sentences.

    Attributes:
        points: What a step of an episode is worth.
        decisions: The decisions that are shown, the largest gain first, with the pictures of their numbers.
        scale, unit: The ends of these pictures, and the unit of gains, as heads of columns.
        more: How many decisions are not shown.
        findings, reasons: Those of the decisions, by kind; `data_findings` are those of the run.
        limits, card: The data card, an entry a line, its first entries with what may be set and is wanted;
            what does not fit on a line in tables.
        internal, tables: Sentences and tables on the method, its search and its scores.
        rows: The recorded rows, None unless the reader asked for them.
    """

    title: str
    kind: Literal["cases", "episodes", "trials"]
    nouns: tuple[str, str]
    question: list[str]
    notice: str
    doubts: list[str]
    overall: list[str]
    points: Facts
    tally: list[tuple[Verdict, int]]
    total: int
    further: list[str]
    decisions: list[tuple[Case, Bar | None]] | list[tuple[Episode, Bar | None]]
    scale: str
    unit: str
    more: int
    withheld: bool
    trials: Trials | None
    reached: list[str]
    rounds: TableView | None
    truth: list[str]
    score: UntouchedScore | None
    score_line: str
    overturning: list[str]
    choice: list[str]
    compared: TableView | None
    findings: list[FindingGroup]
    reasons: list[FindingGroup]
    data_findings: list[str]
    assumptions: Sequence[str]
    adjustments: list[str]
    graph: GraphView
    limits: Facts
    card: Facts
    card_tables: list[TableView]
    origin: Facts
    internal: list[str]
    tables: list[TableView]
    configuration: str
    figures: Mapping[str, list[Figure]]
    rows: list[TableView] | None
    words: Wording

    @property
    def has_variables(self) -> bool:
        """Whether episodes show the variables of their reward."""
        return any(isinstance(decision, Episode) and decision.variables for decision, _ in self.decisions)


def page(report: Material) -> str:
    """The page of a run with decisions."""
    run = run_page(report)
    return render("run.html", title=run.title, run=run)


def run_page(report: Material) -> RunPage:
    """The fields of the page of a run with decisions."""
    run, decisions = report.run, report.decisions
    kind: Literal["cases", "episodes", "trials"]
    kind = "trials" if report.trials else "episodes" if report.sequences else "cases"
    rows, scale, unit = _rows(report) if kind != "trials" else ([], "", "")
    cards, tables = _data_card(report)
    figures = pictures(report)
    if report.trials:
        figures["cases"] = [*_course(report), *figures["cases"]]
    score_line = no_action_score.line(run) if report.alterations else ""
    assumptions = {"episodes": "sequences", "trials": "trials"}.get(kind, "alterations")
    text = yaml.safe_dump(run.settled, sort_keys=False, allow_unicode=True) if run.config else ""
    if len(text) > LONGEST_CONFIGURATION:
        text = f"{text[:LONGEST_CONFIGURATION]}\n... (the rest is in config.yaml)"
    return RunPage(
        title=_title(report),
        kind=kind,
        nouns=report.nouns,
        question=question(report),
        notice=_ending(report),
        doubts=doubts(map(findings_of, decisions)),
        overall=_overall(report),
        points=points_of(report) if report.sequences else [],
        tally=tally(run.decisions) if kind != "trials" else [],
        total=len(run.decisions),
        further=[averages(run)] if report.alterations else notes_of_sequences(report),
        decisions=rows[: report.cases],
        scale=scale,
        unit=unit,
        more=max(0, len(rows) - report.cases),
        withheld=report.withholds,
        trials=trials_of(report) if report.trials else None,
        reached=[f"{text}." for text in trial_report.reached(run)] if report.trials else [],
        rounds=_trial_table(report) if report.trials else None,
        truth=_truth(report),
        score=no_action_score.scored(run) if score_line and not run.held_out_seen else None,
        score_line=score_line and f"{score_line.rstrip('.')}.",
        overturning=reasons.overturning(report),
        choice=alteration_report.choice_reasons(run),
        compared=_compared(report),
        findings=[] if report.trials else by_kind(decisions),
        reasons=by_kind(decisions, "reason"),
        data_findings=reasons.warnings_of_run(report),
        assumptions=words(assumptions) if kind != "cases" or report.alterations else [],
        adjustments=reasons.adjustments(report) if report.alterations else [],
        graph=reasons.graph_view(report),
        limits=[*cards[:FIRST], *limits(report.card)],
        card=cards[FIRST:],
        card_tables=tables,
        origin=origin(report),
        internal=_internal(report),
        tables=_method_tables(report),
        configuration=text,
        figures=figures,
        rows=recorded_rows(report) if report.rows else None,
        words=report.words,
    )


def _title(report: Material) -> str:
    """The title of the page: by the table of a problem file, else by the name of the run or its folder."""
    source, config = report.card.get("source"), report.run.config
    # Whether the run is one of a problem file, and was given no name of its own.
    is_unnamed = config.get("name") in ("own_problem", "own_sequence", "own_trials")
    if not (
        is_unnamed and str(config.get("path") or "").endswith((".yaml", ".yml")) and isinstance(source, str)
    ):
        return f"Report: {config.get('name') or report.run.path.name}"
    if report.trials:
        return f"The next experiment after {source}"
    file = report.card.get("case file", source)
    rows = "" if file == source else f", by {source}"
    return f"Decisions for {counted(len(report.run.decisions), *report.nouns)} of {file}{rows}"


def _ending(report: Material) -> str:
    """How the run ended, if not well."""
    texts = reasons.warnings_of_run(report)
    return texts[0] if texts and not report.ended and report.status.get("state") != "ok" else ""


def _overall(report: Material) -> list[str]:
    """The answer over all cases."""
    decisions = report.run.decisions
    if report.trials:
        return []
    if report.sequences:
        return [text for row in report.sequence_rows for text in overall_of_sequences(row, report.words)]
    if len(decisions) == 1 and report.alterations:
        case = report.decisions[0]
        return [sentences.headline(case, report.units), *sentences.chances(case, report.wanted)[:1]]
    total = overall_of(decisions) if report.alterations else None
    if total is None:
        return [sentences.average(decisions, report.wanted)] if report.alterations else []
    return [in_all(total, report.wanted)]


def overall_of_sequences(row: sequence_report.Row, words: Wording) -> list[str]:
    """The mean improvement by the model; empty for decisions of other kinds."""
    known = finite(row.get("improvement_low")) is not None
    return [sentence("episodes_overall", row, words, known)] if "k" in row else []


def points_of(report: Material) -> Facts:
    """What a step is worth: the limits of a score with their points, weights, and costs of actions."""
    reward = mapping(report.run.words.get("reward"))

    def each(numbers: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}: {shown(number)}" for name, number in numbers.items())

    facts = [
        (part, "; ".join(f"{name} {each(mapping(rules))}" for name, rules in mapping(criteria).items()))
        for part, criteria in mapping(reward.get("components")).items()
    ]
    weights, levels = mapping(reward.get("weights")), mapping(report.run.words.get("levels"))
    facts += [("weighted sum", weighted_sum(weights))] if weights else []
    for action, cost in mapping(reward.get("costs")).items():
        names = listed(levels.get(action))
        priced = dict(zip(map(str, names), listed(cost), strict=False)) if names else {}
        facts.append((f"cost of {action}", each(priced) if priced else f"{shown(cost)} a unit"))
    return facts


def notes_of_sequences(report: Material) -> list[str]:
    """What to know of the mean improvements: contradictions by the truth, refusals, bookkeeping."""
    rows = [row for row in report.sequence_rows if "k" in row] if report.sequences else []
    return [
        text
        for row in rows
        for text in sentences_of("episodes_notes", row, report.words, sequence_report.contradicted(row))
    ]


def tally(decisions: Sequence[Decided]) -> list[tuple[Verdict, int]]:
    """How many decisions come to what; what none comes to is left out, but *do*."""
    verdicts = list(map(verdict_of, decisions))
    return [(name, verdicts.count(name)) for name in VERDICTS if name == "do" or name in verdicts]


def _rows(report: Material) -> tuple[list[Any], str, str]:
    """Each decision with the picture of its numbers, the largest gain first; their scale, and their unit."""
    if report.sequences:
        episodes = [episode_of(decision, report.words) for decision in report.decisions]
        episodes.sort(key=lambda episode: -(episode.better or 0.0) if episode.acts else 1.0)
        readings = [(episode.before, episode.after) for episode in episodes]
        low, high = _ends([reading for pair in readings for reading in pair])
        low, high = min(low, 0.0), max(high, 0.0)
        pairs = [(episode, _bar(episode.before, episode.after, low, high)) for episode in episodes]
        return pairs, f"{report.words.level}: {shown(low)} to {shown(high)}", "Better by"
    cases = [case_of(decision, report.units, report.wanted) for decision in report.decisions]
    cases.sort(key=lambda case: _gain(case), reverse=True)
    inside = [case for case in cases if not case.outside]
    numbers = [reading for case in inside for reading in (case.before, case.after if case.acts else None)]
    chance = all(case.chance for case in cases)
    low, high = _ends(numbers, 0.1 if chance else 0.0)
    if chance:
        # Whole tens; the ends of a few wide intervals lie beyond them.
        low, high = math.floor(10 * low + 1e-9) / 10, math.ceil(10 * high - 1e-9) / 10
    rows = [
        (case, None if case.outside else _bar(case.before, case.after if case.acts else None, low, high))
        for case in cases
    ]
    return (
        rows,
        f"{100 * low:.0f} to {100 * high:.0f} %" if chance else f"{shown(low)} to {shown(high)}",
        "Gain, points" if chance else "Gain",
    )


def _gain(case: Case) -> tuple[bool, bool, float]:
    if case.gain is not None:
        return case.acts, not case.outside, case.gain.point
    if case.before is None or case.after is None:
        return case.acts, not case.outside, 0.0
    return case.acts, not case.outside, case.after.point - case.before.point


def _ends(readings: Sequence[Reading | None], share: float = 0.0) -> tuple[float, float]:
    """The ends of all estimates and their intervals, without a share of the intervals on either side."""
    known = [reading for reading in readings if reading is not None]
    points = [reading.point for reading in known]
    lower = sorted(reading.lower for reading in known if reading.lower is not None)
    upper = sorted(reading.upper for reading in known if reading.upper is not None)
    few = int(share * len(lower))
    lowest, highest = [*points, *lower[few:]], [*points, *upper[: len(upper) - few]]
    return (min(lowest), max(highest)) if points else (0.0, 1.0)


def _bar(before: Reading | None, after: Reading | None, low: float, high: float) -> Bar | None:
    def place(number: float | None) -> float | None:
        if number is None:
            return None
        return 100 * min(max((number - low) / (high - low), 0.0), 1.0) if high > low else 50.0

    if before is None and after is None:
        return None
    spanned = after or before
    assert spanned is not None
    numbers = (before.point if before else None, after.point if after else None, spanned.lower, spanned.upper)
    return Bar(*map(place, numbers))


def _truth(report: Material) -> list[str]:
    """What a simulated world knows of the answers to cases."""
    if not report.alterations:
        return []
    truths = [alteration_report.truth_in_short(summary) for summary in report.methods.values()]
    return [*(f"{text}." for text in truths if text), *alteration_report.online_sentences(report.run)]


def _internal(report: Material) -> list[str]:
    """Sentences on the method: how a trial was chosen, and what was observed after the episodes."""
    if report.trials:
        trials = trials_of(report)
        return [sentence("trials_acquisition", trials)] if trials.acquisition else []
    if report.alterations:
        return []
    return sentences_of("observed", sequence_report.observed_groups(report.run))


def all_tables(report: Material) -> list[TableView]:
    """The tables of the page, for a terminal: the decisions, and those of the method."""
    first = [_trial_table(report)] if report.trials else [] if report.sequences else [_case_table(report)]
    compared = _compared(report)
    return [*first, *([compared] if compared.rows else []), *_method_tables(report)]


def _case_table(report: Material) -> TableView:
    """What the table of cases holds, as text."""
    rows, verdicts = [], words("verdicts")
    for case, _ in _rows(report)[0][: report.cases]:
        readings = [
            "" if reading is None else reading.text for reading in (case.before, case.after, case.gain)
        ]
        numbers = ["", "outside the data", ""] if case.outside else readings
        setting = sentence("changes", case.changes) or case.reason
        rows.append(
            [case.name, verdicts[case.verdict], setting, *numbers, "; ".join(map(str, case.findings))]
        )
    heads = ["case", "answer", "settings", "before", "after", "gain", "findings"]
    return TableView(counted(len(report.run.decisions), "case"), heads, rows, (0, 1, 2, 6))


def _trial_table(report: Material) -> TableView:
    """The experiments of a table, the newest first; of a world, the last rounds."""
    if entries := experiments(report.card):
        heads, rows = _experiment_rows(report.card, entries[: -EXPERIMENTS - 1 : -1])
        total = counted(int(entries[-1]["number"]), "experiment")
        caption = total if len(rows) == len(entries) else f"The last {len(rows)} of {total}"
        return TableView(f"{caption}, the newest first", heads, rows, (0, 1))
    heads, rows = trial_report.last_rounds(report.run)
    count = counted(len(report.run.decisions), "trial")
    return TableView(f"The last {len(rows)} of {count}", heads, rows, (0, 1))


def experiments(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The experiments of a table that the data card lists, the newest last."""
    entries = map(mapping, listed(card.get("experiments")))
    return [entry for entry in entries if finite(entry.get("number")) is not None]


def _experiment_rows(
    card: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    """Heads and cells: number, state, reward unless it is an outcome, settings, measured nodes and line."""
    names = list(dict.fromkeys(name for entry in entries for name in mapping(entry.get("values"))))
    reward = [] if one_outcome(mapping(card.get("reward"))) else ["reward"]
    rows = [
        [
            *(str(entry.get(key, "")) for key in ("number", "state")),
            *(shown(entry[key]) if key in entry else "" for key in reward),
            *(shown(values[name]) + " (set)" * (name in applied) if name in values else "" for name in names),
            str(entry.get("line", "")),
        ]
        for entry in entries
        for values, applied in [(mapping(entry.get("values")), listed(entry.get("set")))]
    ]
    return ["experiment", "state", *reward, *names, "line"], rows


def _course(report: Material) -> list[Figure]:
    """The picture of the rewards of the experiments so far, and the best among them."""
    numbers = {int(entry["number"]): finite(entry.get("reward")) for entry in experiments(report.card)}
    rewards = {number: reward for number, reward in numbers.items() if reward is not None}
    if not rewards:
        return []
    with drawing():
        figure = PlotFigure(figsize=(5.5, 2.8), layout="constrained")
        axes = figure.add_subplot()
        draw_rewards(axes, rewards)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="Experiment", ylabel=one_outcome(mapping(report.card.get("reward"))) or "Reward")
        axes.legend()
        picture = svg(figure)
    title, meaning, _ = words("captions")["course"]
    return [embedded(picture, "course", title, meaning)]


def _compared(report: Material) -> TableView:
    """The methods that were compared, if one was chosen."""
    heads, texts = alteration_report.CHOICE_HEADS, alteration_report.CHOICE_WORDS
    return TableView(
        alteration_report.CHOICE_CAPTION, heads, alteration_report.choice_rows(report.run), texts
    )


def _method_tables(report: Material) -> list[TableView]:
    if report.trials:
        noise = trial_report.recovered_noise(report.run.truth)
        heads = ["node", "rows", *(name for _, name in trial_report.MEASURES)]
        return (
            [TableView("Recovered noise compared with the true noise", heads, noise, (0, 1))] if noise else []
        )
    if report.alterations:
        rows = alteration_report.method_rows(report.methods)
        return [TableView("All cases of the run", ["", *report.methods], rows)]
    return sequence_tables(report)


def sequence_tables(report: Material, of_run: str = "") -> list[TableView]:
    """Results of decisions other than alterations and trials; `of_run` begins the caption."""
    rows, quantities = report.sequence_rows, words("quantities")
    names = {**quantities, report.words.subjects: report.words.episodes}
    body = [
        [names.get(name, name.partition("/")[2] or name), *texts]
        for name, texts in sequence_report.cells(rows).items()
    ]
    caption = f"{of_run}{counted(len(report.run.decisions), 'decision')}, means with 95% intervals"
    return [TableView(caption, ["", *map(sequence_report.search_of_row, rows)], body)] if rows else []


def origin(report: Material) -> Facts:
    """Name to value of the provenance in ``run.json``."""
    record = report.record
    entries = [(name, str(record[name])) for name in ("command", "commit") if record.get(name)]
    if "commit" in record and not record["commit"]:
        entries.append(("commit", "not known: the package was installed without its history"))
    entries += [("seed", shown(record["seed"]))] if "seed" in record else []
    mappings = {key: mapping(record.get(key)) for key in ("versions", "machine")}
    entries += [(name, named(values)) for name, values in mappings.items() if values]
    if report.run.choices:
        entries.append(("chosen", ", ".join(f"{group} {name}" for group, name in report.run.choices.items())))
    if record.get("data_fingerprint"):
        entries.append(("fingerprint of the data", str(record["data_fingerprint"])))
    return [*entries, ("run folder", str(report.run.path))]


def _data_card(report: Material) -> tuple[Facts, list[TableView]]:
    """The entries of the data card, a line each, and tables of the variables."""
    facts = [
        (label(key), _short(in_words(key, value, report.card)))
        for key, value in report.card.items()
        if key not in _SHOWN_ELSEWHERE
    ]
    ranges = {name: listed(value) for name, value in mapping(report.card.get("ranges")).items()}
    range_rows = [[name, *map(shown, value)] for name, value in ranges.items() if len(value) == 2]
    features = {name: mapping(value) for name, value in mapping(report.card.get("features")).items()}
    feature_rows = [
        [name, *(shown(feature.get(key)) for key in ("min", "median", "max")), str(feature.get("unit", ""))]
        for name, feature in features.items()
    ]
    heads = ["variable", "smallest", "median", "largest", "unit"]
    tables = [
        TableView("Observed ranges", ["variable", "smallest", "largest"], range_rows[:VARIABLES]),
        TableView("Observed variables", heads, feature_rows[:VARIABLES], (0, 4)),
    ]
    return facts, [table for table in tables if table.rows]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def recorded_rows(report: Material) -> list[TableView]:
    """The rows of the cases."""
    decisions = report.run.decisions[: report.cases]
    given = [(name_of(decision), mapping(decision.get("given"))) for decision in decisions]
    answers = [mapping(mapping(decision.get("answer")).get("rows")) for decision in decisions]
    observed = [(name, row) for (name, _), row in zip(given, answers, strict=True) if row]
    tables = [
        _row_table("What was known of each case", given),
        _row_table("What was observed after each decision", observed),
        *(_step_table(decision, report) for decision in decisions),
    ]
    return [table for table in tables if table.rows]


def _row_table(caption: str, cases: Sequence[tuple[str, Mapping[str, object]]]) -> TableView:
    """Cases with their values, a column for each name; empty without any."""
    names = list(dict.fromkeys(name for _, row in cases for name in row))
    rows = [[case, *(shown(row[name]) if name in row else "" for name in names)] for case, row in cases]
    return TableView(caption, ["case", *names], rows if names else [])


def _step_table(decision: Decided, report: Material) -> TableView:
    """An episode step by step: rewards and doses, as observed and under the decision."""
    trajectory, words = mapping(decision.get("trajectory")), report.words
    rewards = {f"{words.level}, observed": "observed_rewards", "predicted": "rewards"}
    columns = {
        head: ["" if (value := finite(cell)) is None else shown(words.sign * value + 0.0) for cell in cells]
        for head, cells in ((head, listed(trajectory.get(key))) for head, key in rewards.items())
    }
    doses = {key: list(map(listed, listed(trajectory.get(key)))) for key in ("observed_doses", "doses")}
    for index in range(max((len(row) for rows in doses.values() for row in rows), default=0)):
        dose = words.dose(index)
        for (_, rows), when in zip(doses.items(), ("observed", "changed"), strict=True):
            cells = [dose.level(row[index]) or shown(row[index]) if index < len(row) else "" for row in rows]
            columns[f"{dose.name}, {when}"] = cells
    steps = range(len(listed(trajectory.get("observed_rewards"))))
    body = [
        [str(words.start + step), *(cells[step] if step < len(cells) else "" for cells in columns.values())]
        for step in steps
    ]
    heads = [words.one_step.lower(), *columns]
    return TableView(f"{words.titled(name_of(decision))}, step by step", heads, body)
