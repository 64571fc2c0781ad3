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
# Reasons of refusals: column to the kind of a finding; all other kinds are of the members.
COUNTED = {"model": "model_error", "scores": "falling_score"}
# Columns that are shares, beginning with these.
SHARES = ("improvement", "proven", "score/true_improvement", "score/true_organs_improvement")


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


def contradicted(row: Row) -> list[str]:
    """The columns of true improvements that are losses, where the model claims a gain."""
    truths = [name for name in row if name.startswith("score/true") and name.endswith("improvement")]
    return [name for name in truths if float(row[name]) < 0 < float(row["improvement"])]


def cells(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Column to its cells, one for each row, with the interval of a mean in brackets."""
    hidden = ("search", "k", "refused: ")
    names = dict.fromkeys(name for row in rows for name in row if not name.startswith(hidden))
    shown = [name for name in names if not name.endswith(("_low", "_high"))]
    return {name: [_cell(row, name) for row in rows] for name in shown}


def _cell(row: Row, name: str) -> str:
    value, ends = row.get(name, math.nan), [row.get(f"{name}{end}", math.nan) for end in ("_low", "_high")]
    if isinstance(value, str) or math.isnan(value):
        return "-"
    texts = [
        (f"{value:.3g} %" if (value := 100 * float(end)) < 1000 else f"{value:.0f} %")
        if name.startswith(SHARES)
        else f"{float(end):.3g}"
        if abs(float(end)) < 1000
        else f"{float(end):.0f}"
        for end in (value, *ends)
    ]
    return texts[0] if any(map(math.isnan, map(float, ends))) else f"{texts[0]} ({texts[1]} to {texts[2]})"


def search_of_row(row: Row) -> str:
    """The search of a row, with the largest number of changes."""
    return f"{row['search']}, at most {row['k']} changes" if "k" in row else str(row["search"])


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


def changed_doses(run: Recorded, words: Wording) -> list[Row]:
    """The rows of ``changes.csv``, one for each dose that a recommendation changes: unit, step from 1, time,
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
                row = {"unit": decision["identity"], "step": step + 1, "time": time, "action": dose.name}
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
