"""Report of a run of action sequences, and of decisions of other kinds: one row for each search and each k.

For action sequences a row holds the mean observed outcome (without changes), the mean and the median relative
improvement, the share proven optimal, and the search effort; for other decisions the mean value. The mean of
every numeric score of the problem follows. Means over episodes come with a 95% bootstrap interval.

Where the data say what happened afterwards (a death in hospital, for instance), a table gives its share among
the episodes for which a change is recommended and among the others, and, for the former, by thirds of the
predicted improvement. Shares have 95 % Wilson intervals, which do not collapse where nobody died. The groups
differ in how ill the patients were, and nobody was treated as recommended: no difference between them is an
effect of the recommendation.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (counterfactual improvement, effective branching factor);
Wilson (1927), Probable inference, the law of succession, and statistical inference (intervals).
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rehearsal_torch.data.decision import action_name, action_step
from rehearsal_torch.data.finding import undecided
from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.run_record import NOTHING, Decided, Recorded, effort, group_of, is_sequence
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.text_table import text_table

Row = dict[str, float | int | str]
# Sequence, quantity, feature, estimator of a row of ``truth.csv``.
TruthKey = tuple[str, str, str, str]
# The files of observed outcomes and of changes, and the 97.5 % quantile of the standard normal distribution.
OBSERVED, CHANGES, NORMAL = "observed_outcomes.csv", "changes.csv", 1.959963984540054
NOT_AN_EFFECT = (
    "Observed outcomes are a comparison of patients, not an effect: the groups differ in severity, nobody "
    "was treated as recommended, and no model has seen these columns."
)
# What the scores of simulated episodes are called; returns, of which more is better.
SCORES = {
    "true_observed": "true return as observed",
    "true_value": "true return under the recommended changes",
    "true_improvement": "true improvement, as a share of what was observed",
    "true_optimum": "true return of the best changes",
}


# Why the method cannot tell, by the name of a column and by its kind; the others are the members'.
COUNTED = {"model": "model_error", "scores": "falling_score"}
CAUSES = {
    "model": "the model has errors in what it takes for noise, which their reasons name",
    "scores": "a score that is reported beside the reward would fall",
    "members": "the models of the ensemble disagree",
}


def summary(run: Recorded, words: Wording) -> list[Row]:
    """One row per search and k; improvements and shares are fractions, scores in their own units."""
    rows = []
    for (search, changes), decided in run.groups().items():
        row = _plain(search, decided) if changes is None else _sequence(search, changes, decided, words)
        scores = [score for decision in decided if isinstance(score := decision.get("score"), dict)]
        for name in dict.fromkeys(key for score in scores for key in score):
            row |= _with_interval(f"score/{name}", finite([score.get(name) for score in scores]))
        rows.append(row)
    if len(rows) == 1:
        rows[0] |= _truth(run, words)
    return rows


def as_text(rows: Sequence[Row], words: Wording, title: str) -> str:
    """Rows as tables for a terminal: the results, then the scores that the problem computed."""
    first, *others = (
        text_table(heads, body, name, folds=()) for name, heads, body in tables(rows, words, title)
    )
    return "\n".join([first, *sentences(rows, words), *others])


def sentences(rows: Sequence[Row], words: Wording) -> list[str]:
    """What the results of action sequences need to be read with: how many episodes got no recommendation,
    and what of an improvement is bookkeeping.
    """
    return [text for row in rows if "k" in row for text in _declined(row, words) + _bookkeeping(row, words)]


def lines(rows: Sequence[Row], words: Wording) -> list[str]:
    """The results in short, an entry a line: what was observed, what the model predicts, what the problem
    scored, and how long it took.
    """
    entries = []
    for row in rows:
        of = f"{_of(row)}: " if len(rows) > 1 else ""
        if "k" in row:
            better, middle = (_number(row[name], 100) for name in ("improvement", "improvement_median"))
            own = [
                f"{row[words.subjects]} {words.episodes}, at most {row['k']} changed actions each",
                f"cumulative {words.variable} as observed: {_number(row['observed'])} on average",
                f"better under the recommended changes, by the model: by {better}% on average "
                f"(95% interval {_span(row, 'improvement', 100)}), by {middle}% in the median{_both(row)}",
                *_contradicted(row),
                "recommendations that are proven to be the best by the model: "
                f"{_number(row['proven'], 100)}%",
            ]
        else:
            own = [
                f"decisions: {row['decisions']}, refused: {row['refused']}",
                f"mean value: {_number(row['value'])}{_ends(row, 'value')}",
            ]
        own += [
            f"{_called(name)}: {_number(row[name])} on average{_ends(row, name)}"
            for name in _scores(row, "score/")
        ]
        own.append(f"median seconds for each decision: {_number(row['seconds_median'])}")
        entries += [f"{of}{text}" for text in own]
    return entries


def headline(rows: Sequence[Row], words: Wording) -> list[str]:
    """What the first lines of a report say of action sequences: how much better they are by the model, by
    each of the scores that stand beside each other, and where a known truth contradicts it.
    """
    texts = []
    for row in rows:
        if "k" in row:
            better = (
                f"{_number(row['improvement'], 100)}% on average over {row[words.subjects]} {words.episodes}"
            )
            texts.append(f"{_of(row)}: by the model, better by {better}{_both(row)}.")
            texts += [f"{text}." for text in _contradicted(row)]
    return texts


def _pair(row: Row, of: str) -> tuple[str, str] | None:
    """The improvements by a reward without and with its "doses" (`objectives.step_score`) or "costs"
    (`objectives.task_reward`), in percent; None for other rewards.
    """
    without, whole = (row.get(f"improvement {which} {of}") for which in ("without", "with"))
    return None if without is None or whole is None else (_number(without, 100), _number(whole, 100))


def _both(row: Row) -> str:
    """The improvement by the score without the points of doses and with them; empty for other rewards."""
    pair = _pair(row, "doses")
    return "" if pair is None else f"; without the points of doses by {pair[0]}%, with them by {pair[1]}%"


def _contradicted(row: Row) -> list[str]:
    """That a known truth got worse on average under changes that the model calls better."""
    truths = [name for name in row if name.startswith("score/true") and name.endswith("improvement")]
    return [
        f"caution: the truth contradicts the model: {_called(name)} is {_number(row[name], 100)}%, worse"
        for name in truths
        if float(row[name]) < 0 < float(row["improvement"])
    ]


def _ends(row: Row, name: str) -> str:
    """The interval of a mean in brackets; empty without one."""
    low = row[f"{name}_low"]
    return "" if isinstance(low, float) and math.isnan(low) else f" (95% interval {_span(row, name)})"


def _called(name: str) -> str:
    """What a score is called in sentences."""
    plain = name.partition("/")[2]
    return SCORES.get(plain, plain.replace("_", " "))


def tables(
    rows: Sequence[Row], words: Wording, title: str
) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Rows as tables, each with its title, its heads and its cells: the results, then the scores that the
    problem computed.
    """
    parts: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = []
    sequences, others = [row for row in rows if "k" in row], [row for row in rows if "k" not in row]
    if sequences:
        heads = ("search", "most\nchanges")
        results = (
            words.episodes,
            f"observed\n{words.variable}",
            "better\nby %",
            "95%\ninterval",
            "median\n%",
        )
        body = [
            (
                *(str(row[key]) for key in ("search", "k", words.subjects)),
                _number(row["observed"]),
                _number(row["improvement"], 100),
                _span(row, "improvement", 100),
                _number(row["improvement_median"], 100),
            )
            for row in sequences
        ]
        parts.append((title, (*heads, *results), body))
        efforts = ("proven\nbest %", "median\nseconds", "median\nsteps", "branching\nfactor")
        spent = [
            (
                *(str(row[key]) for key in ("search", "k")),
                _number(row["proven"], 100),
                *(_number(row[key]) for key in ("seconds_median", "expanded_median", "ebf")),
            )
            for row in sequences
        ]
        parts.append(("Effort of the search", (*heads, *efforts), spent))
    if others:
        values = [
            (
                *(str(row[key]) for key in ("search", "decisions", "refused")),
                _number(row["value"]),
                _span(row, "value"),
                _number(row["seconds_median"]),
            )
            for row in others
        ]
        parts.append(
            (title, ("search", "decisions", "refused", "mean value", "95% interval", "median s"), values)
        )
    scored = [
        (
            str(row["search"]),
            str(row.get("k", "")),
            name.partition("/")[2],
            _number(row[name]),
            _span(row, name),
        )
        for row in rows
        for name in _scores(row, "score/", "truth/")
    ]
    if scored:
        heads_of_scores = ("search", "changes", "score", "mean", "95% interval")
        parts.append(("Mean scores, computed by the problem", heads_of_scores, scored))
    return parts


def _scores(row: Row, *of: str) -> list[str]:
    """The names of the means of scores in a row, without the ends of their intervals."""
    return [name for name in row if name.startswith(of) and not name.endswith(("_low", "_high"))]


def _declined(row: Row, words: Wording) -> list[str]:
    """How many episodes got no recommendation, in a sentence; empty if all got one."""
    none, refused, count = int(row["no_action"]), int(row["refused"]), row[words.subjects]
    if not none + refused:
        return []
    no_change = f"lowers {words.variable}" if words.sign < 0 else "raises the return"
    why = [f"no change {no_change} for {none}"] if none else []
    causes = {key: int(row.get(f"refused: {key}", 0)) for key in COUNTED}
    causes["members"] = refused - sum(causes.values())
    why += [f"for {count_of} {CAUSES[key]}" for key, count_of in causes.items() if count_of]
    listed = " and ".join([", ".join(why[:-1]) + ",", why[-1]]) if len(why) > 1 else why[0]
    return [f"{_of(row)}: nothing is recommended for {none + refused} of {count}: {listed}."]


def _of(row: Row) -> str:
    """Which search a row is of, with the largest number of changes."""
    return f"{row['search']}, at most {row['k']} changes" if "k" in row else str(row["search"])


def _bookkeeping(row: Row, words: Wording) -> list[str]:
    """The improvement without and with the points that actions score, or with costs, in a sentence; empty for
    other rewards.
    """
    if pair := _pair(row, "costs"):
        return [
            f"{_of(row)}: by the model, the reward without costs gets better by {pair[0]}%, and with costs "
            f"by {pair[1]}%."
        ]
    if pair := _pair(row, "doses"):
        return [
            f"{_of(row)}: by the model, the score without the points of {words.actions} gets better by "
            f"{pair[0]}%, and with them by {pair[1]}%. {words.an_action.capitalize()} scores because it is "
            f"given: the difference is bookkeeping, not an effect on the {words.subject}."
        ]
    return []


def finite(values: Sequence[object]) -> list[float]:
    """The finite numbers among values."""
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _truth(run: Recorded, words: Wording) -> Row:
    """Means over ``truth.csv`` for the outcome variable, without the quantities that the scores hold already;
    the file does not distinguish searches.
    """
    row: Row = {}
    for (sequence, quantity, feature, estimator), mean in truth_means(run.truth).items():
        if (
            feature == words.variable
            and quantity != "improvement"
            and (quantity, estimator) not in (("return", "no action"), ("return", "true"))
        ):
            name = f"truth/{quantity}, {estimator}" + ("" if sequence == "recommended" else f" ({sequence})")
            row |= {name: mean.mean, f"{name}_low": mean.low, f"{name}_high": mean.high}
    return row


def truth_means(rows: Sequence[Mapping[str, str]]) -> dict[TruthKey, Interval]:
    """Key to the mean over patients, with its interval."""
    values = defaultdict[TruthKey, list[float]](list)
    for row in rows:
        key = (row["sequence"], row["quantity"], row["feature"], row["estimator"])
        values[key].append(number(row["value"]))
    return {key: mean_interval(every) for key, every in values.items()}


def _sequence(search: str, changes: int, decided: Sequence[Decided], words: Wording) -> Row:
    row: Row = {"search": search, "k": changes, words.subjects: len(decided)}
    row["observed"] = _mean([words.sign * decision["trajectory"]["observed"] for decision in decided])
    row |= {"no_action": sum(group_of(decision) == NOTHING for decision in decided)}
    kinds = [decision["reason"]["kind"] for decision in decided if undecided(decision)]
    row |= {"refused": len(kinds)}
    row |= {f"refused: {key}": kinds.count(kind) for key, kind in COUNTED.items() if kind in kinds}
    improvements = finite([decision["trajectory"]["improvement"] for decision in decided])
    row |= _with_interval("improvement", improvements) | _claimed_ends(decided)
    row["improvement_median"] = _median(improvements)
    row["proven"] = _mean([float(bool(effort(decision, "proven"))) for decision in decided])
    row["seconds_median"] = _median(finite([decision.get("seconds") for decision in decided]))
    row["expanded_median"] = _median(finite([effort(decision, "expanded") for decision in decided]))
    row["ebf"] = _mean(finite([effort(decision, "effective_branching_factor") for decision in decided]))
    for name in dict.fromkeys(
        name for decision in decided for name in decision["trajectory"].get("related", ())
    ):
        shares = [_share(decision["trajectory"].get("related", {}).get(name)) for decision in decided]
        row |= _with_interval(f"improvement {name}", finite(shares))
    return row


def _claimed_ends(decided: Sequence[Decided]) -> Row:
    """The ends of the mean improvement where other models claim it, as means of those of the episodes: what
    is wrong with the form of a model is wrong in all of them. Empty where nothing is claimed.
    """
    claimed = [decision["trajectory"].get("improvement_ends") for decision in decided]
    if not any(claimed):
        return {}
    ends = [each or [0.0, 0.0] for each in claimed]
    low, high = (_mean([float(end) for end in column]) for column in zip(*ends, strict=True))
    return {"improvement_low": low, "improvement_high": high}


def _share(returns: object) -> float:
    """(value - observed) / |observed| of two returns; NaN if they are missing."""
    if not isinstance(returns, dict):
        return math.nan
    gain, observed = returns["value"] - returns["observed"], abs(returns["observed"])
    return gain / observed if observed else 0.0


def _plain(search: str, decided: Sequence[Decided]) -> Row:
    row: Row = {
        "search": search,
        "decisions": len(decided),
        "refused": sum(map(undecided, decided)),
    }
    row |= _with_interval("value", finite([decision.get("value") for decision in decided]))
    row["seconds_median"] = _median(finite([decision.get("seconds") for decision in decided]))
    return row


def _with_interval(name: str, values: Sequence[float]) -> Row:
    interval = mean_interval(values)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def _number(value: float | int | str, times: float = 1.0) -> str:
    """A number in at most four digits; a dash if there is none."""
    if isinstance(value, str) or math.isnan(value):
        return "-"
    scaled = value * times
    return f"{scaled:.0f}" if abs(scaled) >= 1000 else f"{scaled:.3g}"


def _span(row: Row, name: str, times: float = 1.0) -> str:
    return f"{_number(row[f'{name}_low'], times)} to {_number(row[f'{name}_high'], times)}"


def changed_doses(run: Recorded, words: Wording) -> list[Row]:
    """The rows of ``changes.csv``, one for each dose that a recommendation changes: unit, step from 0, time
    of the table, if known, the name of the dose, from what to what, its unit, and, if known, in how many
    units it was given in a comparable step, and the part of the gain that the step carries, with its interval
    and the tipping strength of a hidden cause.
    """
    rows: list[Row] = []
    for decided in (each for each in run.decisions if is_sequence(each)):
        trajectory, times = decided["trajectory"], decided.get("times") or ()
        support, steps = (
            trajectory.get("support") or {},
            sorted(map(action_step, decided.get("alteration") or ())),
        )
        parts = {step: _part(decided, action_name(step)) for step in steps}
        for step in steps:
            given, chosen = (trajectory.get(key, ()) for key in ("observed_doses", "doses"))
            if step >= min(len(given), len(chosen)):
                continue
            for place, (old, new) in enumerate(zip(given[step], chosen[step], strict=True)):
                dose, time = words.dose(place), times[step] if step < len(times) else ""
                ends = {"from": dose.level(old) or old, "to": dose.level(new) or new}
                row = {"unit": decided["identity"], "step": step, "time": time, "action": dose.name}
                more = {"dose_unit": dose.unit, "support": support.get(str(step), ""), **parts[step]}
                rows += [row | ends | more] if old != new else []
    return rows


def _part(decided: Decided, name: str) -> Row:
    """What a changed action carries."""
    part = (decided.get("parts") or {}).get(name) or {}
    tipping = ((decided.get("hidden_cause") or {}).get("parts") or {}).get(name, "")
    ends = {"part": "point", "part_low": "lower", "part_high": "upper"}
    return {key: part.get(end, "") for key, end in ends.items()} | {"tipping": tipping}


def observed_groups(run: Recorded) -> list[Row]:
    """The rows of ``observed_outcomes.csv``: how many of the episodes of a group with a known outcome had it,
    and their share; empty if the data of a run know no outcomes.
    """
    rows: list[Row] = []
    for (search, changes), decided in run.groups().items():
        if changes is None:
            continue
        known = [decision for decision in decided if isinstance(decision.get("observed_outcomes"), Mapping)]
        for outcome in dict.fromkeys(name for decision in known for name in decision["observed_outcomes"]):
            with_outcome = [decision for decision in known if outcome in decision["observed_outcomes"]]
            for group, members in _split(with_outcome):
                observed = sum(decision["observed_outcomes"][outcome] > 0 for decision in members)
                share, low, high = wilson(observed, len(members))
                row: Row = {"search": search, "k": changes, "outcome": outcome, "group": group}
                row |= {"episodes": len(members), "observed": observed}
                rows.append(row | {"share": share, "low": low, "high": high})
    return rows


def wilson(observed: int, count: int) -> tuple[float, float, float]:
    """The share of a count with its 95 % Wilson interval; NaN for none."""
    if not count:
        return math.nan, math.nan, math.nan
    share, square = observed / count, NORMAL**2
    centre = (observed + square / 2) / (count + square)
    half = NORMAL / (count + square) * math.sqrt(count * share * (1 - share) + square / 4)
    return share, max(0.0, centre - half), min(1.0, centre + half)


def observed_as_text(rows: Sequence[Row]) -> list[str]:
    """The groups as lines for a terminal, with the sentence of what they are not; empty without groups."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        title = f"Observed {row['outcome']} ({_of(row)}), with 95% intervals:"
        share, low, high = (f"{100 * float(row[key]):.1f}" for key in ("share", "low", "high"))
        count = f"{row['observed']} of {row['episodes']}, {share}% [{low}, {high}]"
        line = f"  {row['group']}: {count if row['episodes'] else 'no episode'}"
        lines.setdefault(title, []).append(line)
    texts = [text for title, below in lines.items() for text in (title, *below)]
    return [*texts, NOT_AN_EFFECT] if texts else []


def _split(decided: Sequence[Decided]) -> list[tuple[str, list[Decided]]]:
    """Named groups: without and with a recommendation, the latter also by thirds of its predicted
    improvement.
    """
    acted = [decision for decision in decided if decision.get("alteration") is not None]
    others = [decision for decision in decided if decision.get("alteration") is None]
    split = [("nothing recommended", others), ("change recommended", acted)]
    ordered = sorted(acted, key=lambda decision: float(decision["trajectory"]["improvement"]))
    names = ("smallest", "middle", "largest") if len(ordered) >= 3 else ()
    for index, name in enumerate(names):
        members = ordered[index * len(ordered) // 3 : (index + 1) * len(ordered) // 3]
        ends = [100 * float(members[end]["trajectory"]["improvement"]) for end in (0, -1)]
        split.append((f"{name} third of predicted improvements, {ends[0]:.1f} to {ends[1]:.1f}%", members))
    return split
