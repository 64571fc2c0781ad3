"""Report of a run of action sequences, and of decisions of other kinds: one row for each search and each k.

For action sequences a row holds the mean observed outcome (without changes), the mean and the median relative
improvement, the share proven optimal, and the search effort (effective branching factor; Tsirtsis and
Gomez-Rodriguez, 2023, Sec. 5); for other decisions the mean value. The mean of every numeric score of the
problem follows. Means over episodes come with a 95% bootstrap interval.

Where the data say what happened afterwards (a death in hospital, for instance), a table gives its share among
the episodes for which a change is recommended and among the others, and, for the former, by thirds of the
predicted improvement. Shares have 95 % Wilson intervals (Wilson, 1927, Probable inference, the law of
succession, and statistical inference), which do not collapse where nobody died. The groups differ in how ill
the patients were, and nobody was treated as recommended: no difference is due to recommendations.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rehearsal_torch.data.decision import action_name, action_step
from rehearsal_torch.data.finding import undecided
from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.method_summaries import mean, median
from rehearsal_torch.evaluation.run_record import NOTHING, Decided, Recorded, effort, group_of, is_sequence
from rehearsal_torch.reporting.labels import Wording

Row = dict[str, float | int | str]
# Sequence, quantity, feature, estimator of a row of ``truth.csv``.
TruthKey = tuple[str, str, str, str]
# The files of observed outcomes and of changes, and the 97.5 % quantile of the standard normal distribution.
OBSERVED, CHANGES, NORMAL = "observed_outcomes.csv", "changes.csv", 1.959963984540054
NOT_AN_EFFECT = (
    "Observed outcomes are a comparison of patients, not an effect: the groups differ in severity, nobody "
    "was treated as recommended, and no model has seen these columns."
)
# Names of the scores of simulated episodes: returns, of which more is better.
SCORES = {
    "true_observed": "true return as observed",
    "true_value": "true return under the recommended changes",
    "true_improvement": "true improvement, as a share of what was observed",
    "true_optimum": "true return of the best changes",
}
# Reasons of refusals: column to the kind of a finding, and to words; all other kinds are of the members.
COUNTED = {"model": "model_error", "scores": "falling_score"}
CAUSES = {
    "model": "the model has errors in what it takes for noise, which their reasons name",
    "scores": "a score that is reported beside the reward would fall",
    "members": "the models of the ensemble disagree",
}


def summary(run: Recorded, words: Wording) -> list[Row]:
    """One row per search and k; improvements and shares are fractions, scores in their own units."""
    rows = []
    for (search, k), decided in run.groups().items():
        row = _mean_row(search, decided) if k is None else _sequence_row(search, k, decided, words)
        scores = [score for decision in decided if isinstance(score := decision.get("score"), dict)]
        for name in dict.fromkeys(key for score in scores for key in score):
            row |= _with_interval(f"score/{name}", finite([score.get(name) for score in scores]))
        rows.append(row)
    if len(rows) == 1:
        rows[0] |= _truth_row(run, words)
    return rows


def sentences(rows: Sequence[Row], words: Wording) -> list[str]:
    """Notes to results: how many episodes got no recommendation, and how much of a gain is bookkeeping."""
    return [text for row in rows if "k" in row for text in _refusals(row, words) + _bookkeeping(row, words)]


def _improvements(row: Row, of: str) -> tuple[str, str] | None:
    """Improvements by a reward without and with its "doses" or "costs", in percent; None without these."""
    without, full = (row.get(f"improvement {which} {of}") for which in ("without", "with"))
    return None if without is None or full is None else (_number(without, 100), _number(full, 100))


def _points(row: Row) -> str:
    """The improvement without and with the points of doses; empty for other rewards."""
    pair = _improvements(row, "doses")
    return "" if pair is None else f"; without the points of doses by {pair[0]}%, with them by {pair[1]}%"


def contradictions(row: Row) -> list[str]:
    """Where a known truth got worse on average under changes that the model calls better."""
    truths = [name for name in row if name.startswith("score/true") and name.endswith("improvement")]
    return [
        f"caution: the truth contradicts the model: {_score_name(name)} is {_number(row[name], 100)}%, worse"
        for name in truths
        if float(row[name]) < 0 < float(row["improvement"])
    ]


def _interval(row: Row, name: str) -> str:
    """The interval of a mean in brackets; empty without one."""
    low = row[f"{name}_low"]
    return "" if isinstance(low, float) and math.isnan(low) else f" (95% interval {_span(row, name)})"


def _score_name(name: str) -> str:
    plain = name.partition("/")[2]
    return SCORES.get(plain, plain.replace("_", " "))


def tables(
    rows: Sequence[Row], words: Wording, title: str
) -> list[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Rows as tables (title, heads, cells): the results, then the scores that the problem computed."""
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
        result_rows = [
            (
                *(str(row[key]) for key in ("search", "k", words.subjects)),
                _number(row["observed"]),
                _number(row["improvement"], 100),
                _span(row, "improvement", 100),
                _number(row["improvement_median"], 100),
            )
            for row in sequences
        ]
        parts.append((title, (*heads, *results), result_rows))
        efforts = ("proven\nbest %", "median\nseconds", "median\nsteps", "branching\nfactor")
        effort_rows = [
            (
                *(str(row[key]) for key in ("search", "k")),
                _number(row["proven"], 100),
                *(_number(row[key]) for key in ("seconds_median", "expanded_median", "ebf")),
            )
            for row in sequences
        ]
        parts.append(("Effort of the search", (*heads, *efforts), effort_rows))
    if others:
        value_rows = [
            (
                *(str(row[key]) for key in ("search", "decisions", "refused")),
                _number(row["value"]),
                _span(row, "value"),
                _number(row["seconds_median"]),
            )
            for row in others
        ]
        parts.append(
            (title, ("search", "decisions", "refused", "mean value", "95% interval", "median s"), value_rows)
        )
    score_rows = [
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
    if score_rows:
        score_heads = ("search", "changes", "score", "mean", "95% interval")
        parts.append(("Mean scores, computed by the problem", score_heads, score_rows))
    return parts


def _scores(row: Row, *of: str) -> list[str]:
    """The names of the means of scores in a row, without the ends of their intervals."""
    return [name for name in row if name.startswith(of) and not name.endswith(("_low", "_high"))]


def _refusals(row: Row, words: Wording) -> list[str]:
    """How many episodes got no recommendation, in a sentence; empty if all got one."""
    none, refused, count = int(row["no_action"]), int(row["refused"]), row[words.subjects]
    if not none + refused:
        return []
    no_change = f"lowers {words.variable}" if words.sign < 0 else "raises the return"
    reasons = [f"no change {no_change} for {none}"] if none else []
    causes = {key: int(row.get(f"refused: {key}", 0)) for key in COUNTED}
    causes["members"] = refused - sum(causes.values())
    reasons += [f"for {number} {CAUSES[key]}" for key, number in causes.items() if number]
    text = " and ".join([", ".join(reasons[:-1]) + ",", reasons[-1]]) if len(reasons) > 1 else reasons[0]
    return [f"{_search(row)}: nothing is recommended for {none + refused} of {count}: {text}."]


def _search(row: Row) -> str:
    """The search of a row, with the largest number of changes."""
    return f"{row['search']}, at most {row['k']} changes" if "k" in row else str(row["search"])


def _bookkeeping(row: Row, words: Wording) -> list[str]:
    """The improvement without and with the points of actions, or costs; empty for other rewards."""
    if pair := _improvements(row, "costs"):
        return [
            f"{_search(row)}: by the model, the reward without costs gets better by {pair[0]}%, and with "
            f"costs by {pair[1]}%."
        ]
    if pair := _improvements(row, "doses"):
        return [
            f"{_search(row)}: by the model, the score without the points of {words.actions} gets better "
            f"by {pair[0]}%, and with them by {pair[1]}%. {words.an_action.capitalize()} scores because it "
            f"is given: the difference is bookkeeping, not an effect on the {words.subject}."
        ]
    return []


def finite(values: Sequence[object]) -> list[float]:
    """The finite numbers among values."""
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _truth_row(run: Recorded, words: Wording) -> Row:
    """Means over ``truth.csv`` for the outcome variable, without the quantities that scores hold already."""
    row: Row = {}
    for (sequence, quantity, feature, estimator), interval in truth_means(run.truth).items():
        scored = quantity == "improvement" or (quantity == "return" and estimator in ("no action", "true"))
        if feature == words.variable and not scored:
            name = f"truth/{quantity}, {estimator}" + ("" if sequence == "recommended" else f" ({sequence})")
            row |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return row


def truth_means(rows: Sequence[Mapping[str, str]]) -> dict[TruthKey, Interval]:
    """Key to the mean over patients, with its interval."""
    values = defaultdict[TruthKey, list[float]](list)
    for row in rows:
        key = (row["sequence"], row["quantity"], row["feature"], row["estimator"])
        values[key].append(number(row["value"]))
    return {key: mean_interval(numbers) for key, numbers in values.items()}


def _sequence_row(search: str, changes: int, decisions: Sequence[Decided], words: Wording) -> Row:
    row: Row = {"search": search, "k": changes, words.subjects: len(decisions)}
    row["observed"] = mean([words.sign * decision["trajectory"]["observed"] for decision in decisions])
    row |= {"no_action": sum(group_of(decision) == NOTHING for decision in decisions)}
    kinds = [decision["reason"]["kind"] for decision in decisions if undecided(decision)]
    row |= {"refused": len(kinds)}
    row |= {f"refused: {key}": kinds.count(kind) for key, kind in COUNTED.items() if kind in kinds}
    improvements = finite([decision["trajectory"]["improvement"] for decision in decisions])
    row |= _with_interval("improvement", improvements) | _claimed_ends(decisions)
    row["improvement_median"] = median(improvements)
    row["proven"] = mean([float(bool(effort(decision, "proven"))) for decision in decisions])
    row["seconds_median"] = median(finite([decision.get("seconds") for decision in decisions]))
    row["expanded_median"] = median(finite([effort(decision, "expanded") for decision in decisions]))
    row["ebf"] = mean(finite([effort(decision, "effective_branching_factor") for decision in decisions]))
    related = [decision["trajectory"].get("related", {}) for decision in decisions]
    for name in dict.fromkeys(name for returns in related for name in returns):
        row |= _with_interval(
            f"improvement {name}", finite([_gain(returns.get(name)) for returns in related])
        )
    return row


def _claimed_ends(decisions: Sequence[Decided]) -> Row:
    """The ends of the mean improvement where other models claim it: means of the episodes' ends, as what is
    wrong with the form of a model is wrong in all of them. Empty where nothing is claimed.
    """
    intervals = [decision["trajectory"].get("improvement_ends") for decision in decisions]
    if not any(intervals):
        return {}
    ends = [interval or [0.0, 0.0] for interval in intervals]
    low, high = (mean([float(end) for end in column]) for column in zip(*ends, strict=True))
    return {"improvement_low": low, "improvement_high": high}


def _gain(returns: object) -> float:
    """(value - observed) / |observed| of two returns; NaN if they are missing."""
    if not isinstance(returns, dict):
        return math.nan
    gain, observed = returns["value"] - returns["observed"], abs(returns["observed"])
    return gain / observed if observed else 0.0


def _mean_row(search: str, decisions: Sequence[Decided]) -> Row:
    row: Row = {"search": search, "decisions": len(decisions), "refused": sum(map(undecided, decisions))}
    row |= _with_interval("value", finite([decision.get("value") for decision in decisions]))
    row["seconds_median"] = median(finite([decision.get("seconds") for decision in decisions]))
    return row


def _with_interval(name: str, values: Sequence[float]) -> Row:
    interval = mean_interval(values)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _number(value: float | int | str, times: float = 1.0) -> str:
    """A number in at most four digits; a dash if there is none."""
    if isinstance(value, str) or math.isnan(value):
        return "-"
    scaled = value * times
    return f"{scaled:.0f}" if abs(scaled) >= 1000 else f"{scaled:.3g}"


def _span(row: Row, name: str, times: float = 1.0) -> str:
    return f"{_number(row[f'{name}_low'], times)} to {_number(row[f'{name}_high'], times)}"


def changed_doses(run: Recorded, words: Wording) -> list[Row]:
    """The rows of ``changes.csv``, one for each dose that a recommendation changes: unit, step from 0, time,
    name and unit of the dose, from what to what, and, if known, in how many units it was given in a
    comparable step, and the part of the gain that the step carries, with its interval and the tipping
    strength of a hidden cause.
    """
    rows: list[Row] = []
    for decision in (line for line in run.decisions if is_sequence(line)):
        trajectory, times = decision["trajectory"], decision.get("times") or ()
        support = trajectory.get("support") or {}
        steps = sorted(map(action_step, decision.get("alteration") or ()))
        parts = {step: _part_of_gain(decision, action_name(step)) for step in steps}
        for step in steps:
            observed, recommended = (trajectory.get(key, ()) for key in ("observed_doses", "doses"))
            if step >= min(len(observed), len(recommended)):
                continue
            for coordinate, (old, new) in enumerate(zip(observed[step], recommended[step], strict=True)):
                dose, time = words.dose(coordinate), times[step] if step < len(times) else ""
                ends = {"from": dose.level(old) or old, "to": dose.level(new) or new}
                row = {"unit": decision["identity"], "step": step, "time": time, "action": dose.name}
                more = {"dose_unit": dose.unit, "support": support.get(str(step), ""), **parts[step]}
                rows += [row | ends | more] if old != new else []
    return rows


def _part_of_gain(decision: Decided, name: str) -> Row:
    """The part of the gain that a changed action carries."""
    part = (decision.get("parts") or {}).get(name) or {}
    tipping = ((decision.get("hidden_cause") or {}).get("parts") or {}).get(name, "")
    ends = {"part": "point", "part_low": "lower", "part_high": "upper"}
    return {key: part.get(end, "") for key, end in ends.items()} | {"tipping": tipping}


def observed_groups(run: Recorded) -> list[Row]:
    """The rows of ``observed_outcomes.csv``: how many of a group had a known outcome, and their share."""
    rows: list[Row] = []
    for (search, changes), decided in run.groups().items():
        if changes is None:
            continue
        cases = [decision for decision in decided if isinstance(decision.get("observed_outcomes"), Mapping)]
        for outcome in dict.fromkeys(name for decision in cases for name in decision["observed_outcomes"]):
            with_outcome = [decision for decision in cases if outcome in decision["observed_outcomes"]]
            for group, members in _outcome_groups(with_outcome):
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
    """The groups as lines for a terminal, with a caution; empty without groups."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        title = f"Observed {row['outcome']} ({_search(row)}), with 95% intervals:"
        share, low, high = (f"{100 * float(row[key]):.1f}" for key in ("share", "low", "high"))
        count = f"{row['observed']} of {row['episodes']}, {share}% [{low}, {high}]"
        line = f"  {row['group']}: {count if row['episodes'] else 'no episode'}"
        lines.setdefault(title, []).append(line)
    texts = [text for title, group_lines in lines.items() for text in (title, *group_lines)]
    return [*texts, NOT_AN_EFFECT] if texts else []


def _outcome_groups(decisions: Sequence[Decided]) -> list[tuple[str, list[Decided]]]:
    """Named groups: without and with a recommendation, the latter also by thirds of its improvement."""
    recommended = [decision for decision in decisions if decision.get("alteration") is not None]
    unchanged = [decision for decision in decisions if decision.get("alteration") is None]
    groups = [("nothing recommended", unchanged), ("change recommended", recommended)]
    ordered = sorted(recommended, key=lambda decision: float(decision["trajectory"]["improvement"]))
    names = ("smallest", "middle", "largest") if len(ordered) >= 3 else ()
    for index, name in enumerate(names):
        members = ordered[index * len(ordered) // 3 : (index + 1) * len(ordered) // 3]
        ends = [100 * float(members[end]["trajectory"]["improvement"]) for end in (0, -1)]
        groups.append((f"{name} third of predicted improvements, {ends[0]:.1f} to {ends[1]:.1f}%", members))
    return groups
