"""Tables of claims about trials: how often they hold near the best trials, and what is recommended.

Errors |m - E[r | a]| and standard deviations s are shown in percent of the mean gap between the optimum and
the best of the start design, over the seeds of a world,

    100 |m - E[r | a]| / mean(optimum - start),

so that worlds with different units can be compared and averaged. In figures an interval of nominal level q
holds where the error is at most s Phi^-1((1 + q) / 2).

Source: Dawid (1982) (calibration of forecasts); the scale is ours, that of the study of trials.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from rehearsal_torch.evaluation.bootstrap import t_interval
from rehearsal_torch.evaluation.rows import Row
from rehearsal_torch.evaluation.summaries import grouped, mean, median
from reproduction.calibration import coverage
from reproduction.calibration.trial_claims import at_points, of_recommendations
from reproduction.page import Section, table
from reproduction.plan import study, texts

STUDY, TEXTS = study("calibration"), texts("calibration")
# The method whose worlds have a figure of their own.
DEFAULT = str(STUDY["facts"]["trial_default"])
# Nominal levels of the figures, in percent.
LEVELS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
# The lower ends of the groups of claimed chances; the last one ends at 1.
CHANCES = (0.0, 0.5, 0.7, 0.9)


def sections(rows: Sequence[Row]) -> Iterable[Section]:
    """The part of the README about trials; nothing without rows.

    Args:
        rows: The claims.
    """
    if not rows:
        return
    points, last = at_points(rows), latest(rows)
    methods = [TEXTS[f"trials by {method}"] for (method,) in grouped(rows, "method")]
    text = " ".join([TEXTS["trials"], *methods])
    yield Section(["## Expected rewards of trials", text, points_table(last)])
    yield Section(["### All worlds together", TEXTS["trial_totals"], totals_table(rows)])
    by_method = {
        f"{method}, round {done}": levels(some)
        for (method, done), some in grouped(points, "method", "round").items()
    }
    yield Section(figures={"trials": coverage.draw(by_method)})
    worlds = {
        str(world): levels(some)
        for (world, method), some in grouped(at_points(last), "dataset", "method").items()
        if method == DEFAULT
    }
    if worlds:
        text = TEXTS["trial_worlds"].format(method=DEFAULT)
        yield Section([text], {"trials_by_world": coverage.draw(worlds)})
    yield Section(["### Recommendations", TEXTS["recommendations"], recommendations_table(last)])
    yield Section([TEXTS["chances"], chances_table(rows)])


def latest(rows: Sequence[Row]) -> list[Row]:
    """The rows of the last round that each world, method and seed has.

    Args:
        rows: The claims.
    """
    groups = grouped(rows, "dataset", "method", "seed").values()
    return [row for some in groups for row in some if row["round"] == max(each["round"] for each in some)]


def levels(rows: Sequence[Row]) -> dict[int, float]:
    """Nominal level, in percent, to the share of its intervals that hold the truth.

    Args:
        rows: The claims.
    """
    errors = [(abs(row["claimed"] - row["true"]), row["std"]) for row in rows]
    within = {level: NormalDist().inv_cdf((1 + level / 100) / 2) for level in LEVELS}
    return {
        level: mean([float(error <= times * std) for error, std in errors]) for level, times in within.items()
    }


def points_table(rows: Sequence[Row]) -> list[str]:
    """The claims near the best trials, one line per world, method and round, as Markdown.

    Args:
        rows: The claims, those of recommendations included, which have the gaps.
    """
    lines = []
    for (world, method, done), some in grouped(rows, "dataset", "method", "round").items():
        gap, points = mean_gap(some), at_points(some)
        held = [mean([row["held"] for row in each]) for each in grouped(points, "seed").values()]
        lines.append(
            {
                "world": str(world),
                "method": f"`{method}`",
                "rounds": str(done),
                "seeds": str(len(held)),
                "points": str(len(points)),
                "interval holds": _share_with_interval(held),
                "error / std": f"{median([_ratio(row) for row in points]):.2f}",
                "claimed std": _percent_of(mean([row["std"] for row in points]), gap),
                "error": _percent_of(mean([_error(row) for row in points]), gap),
            }
        )
    return table(lines)


def totals_table(rows: Sequence[Row]) -> list[str]:
    """Means over worlds, one line per method and round, as Markdown; over the seeds that all worlds of the
    line have.

    Args:
        rows: The claims, those of recommendations included.
    """
    lines = []
    for (method, done), every in grouped(rows, "method", "round").items():
        worlds = list(grouped(every, "dataset").values())
        seeds = sorted(set.intersection(*({row["seed"] for row in some} for some in worlds)))
        if not seeds:
            continue
        worlds = [[row for row in some if row["seed"] in seeds] for some in worlds]
        points = [at_points(some) for some in worlds]
        gaps = [mean_gap(some) for some in worlds]
        held = [
            mean([mean([row["held"] for row in some if row["seed"] == seed]) for some in points])
            for seed in seeds
        ]
        stds, errors = (
            [mean([value(row) for row in some]) / gap for some, gap in zip(points, gaps, strict=True)]
            for value in (_std, _error)
        )
        lines.append(
            {
                "method": f"`{method}`",
                "rounds": str(done),
                "worlds": str(len(worlds)),
                "seeds": str(len(seeds)),
                "points": str(sum(map(len, points))),
                "interval holds": _share_with_interval(held),
                "error / std": f"{median([_ratio(row) for some in points for row in some]):.2f}",
                "claimed std": f"{100 * mean(stds):.1f}%",
                "error": f"{100 * mean(errors):.1f}%",
            }
        )
    return table(lines)


def recommendations_table(rows: Sequence[Row]) -> list[str]:
    """The recommendations, one line per world, method and round, as Markdown.

    Args:
        rows: The claims; only those of recommendations count.
    """
    lines = []
    for (world, method, done), some in grouped(
        of_recommendations(rows), "dataset", "method", "round"
    ).items():
        means = {key: mean([row[key] for row in some]) for key in ("claimed", "std", "true", "start")}
        lines.append(
            {
                "world": str(world),
                "method": f"`{method}`",
                "rounds": str(done),
                "seeds": str(len(some)),
                "claimed": f"{means['claimed']:.4g}",
                "claimed std": f"{means['std']:.2g}",
                "true": f"{means['true']:.4g}",
                "best of the start": f"{means['start']:.4g}",
                "optimum": f"{mean([row['optimum'] for row in some]):.4g}",
                "share of gain": _percent_of(means["true"] - means["start"], mean_gap(some), digits=0),
                "interval holds": f"{sum(row['held'] for row in some):.0f} of {len(some)}",
            }
        )
    return table(lines)


def chances_table(rows: Sequence[Row]) -> list[str]:
    """The claimed chances that recommendations are better than the best other action tried, in groups, beside
    how often they are, over all worlds, seeds and rounds, as Markdown.

    Args:
        rows: The claims; only those of recommendations with another action tried count.
    """
    compared = [row for row in of_recommendations(rows) if not math.isnan(row["chance"])]
    gaps = {world: mean_gap(some) for (world,), some in grouped(rows, "dataset").items()}
    lines = []
    for (method,), every in grouped(compared, "method").items():
        for place, low in enumerate(CHANCES):
            high = CHANCES[place + 1] if place + 1 < len(CHANCES) else math.inf
            some = [row for row in every if low <= row["chance"] < high]
            if some:
                gains = [(row["true"] - row["runner_up"]) / gaps[row["dataset"]] for row in some]
                lines.append(
                    {
                        "method": f"`{method}`",
                        "claimed chance": f"{low:.1f} to {min(high, 1.0):.1f}",
                        "recommendations": str(len(some)),
                        "mean chance": _percent(mean([row["chance"] for row in some])),
                        "truly better": _percent(mean([float(gain > 0) for gain in gains])),
                        "gain": f"{100 * mean(gains):+.1f}%",
                    }
                )
    return table(lines)


def mean_gap(rows: Sequence[Row]) -> float:
    """The mean over seeds of the gap between the optimum and the best of the start design.

    Args:
        rows: The claims of one world, those of recommendations included.
    """
    gaps = {row["seed"]: row["optimum"] - row["start"] for row in of_recommendations(rows)}
    return mean(list(gaps.values()))


def _error(row: Row) -> float:
    return float(abs(row["claimed"] - row["true"]))


def _std(row: Row) -> float:
    return float(row["std"])


def _ratio(row: Row) -> float:
    return _error(row) / row["std"] if row["std"] > 0 else math.inf


def _percent(value: float) -> str:
    return f"{100 * value:.0f}%"


def _percent_of(value: float, gap: float, digits: int = 1) -> str:
    return f"{100 * value / gap:.{digits}f}%" if gap > 0 else "-"


def _share_with_interval(shares: Sequence[float]) -> str:
    """The mean of shares with its t interval, cut at 0 and 1."""
    found = t_interval(shares)
    if math.isnan(found.low):
        return _percent(found.mean)
    return f"{_percent(found.mean)} [{_percent(max(found.low, 0.0))}, {_percent(min(found.high, 1.0))}]"
