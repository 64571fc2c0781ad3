"""README.md, claims.csv and the figures of the study of claims, from its rows.

Source: Dawid (1982) (calibration of forecasts).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from rehearsal_torch.estimators.marginal_sensitivity import interval_bounds
from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.evaluation.claim_rows import Row, written
from rehearsal_torch.evaluation.method_summaries import grouped, mean
from rehearsal_torch.reporting.figures.case_figures import draw_calibration
from rehearsal_torch.reporting.figures.sequence_figures import draw_true_improvements
from rehearsal_torch.run_folder import RunFolder
from reproduction.calibration import coverage, drawn_tables, network_tables, sequence_claims
from reproduction.calibration.drawn_claims import DRAWN
from reproduction.calibration.interval_levels import LEVELS
from reproduction.calibration.jobs import EPISODES, FLOWS, LOG, layouts, recorded_rows, rows_of
from reproduction.calibration.network_claims import TRIALS
from reproduction.calibration.sequence_claims import STAGES
from reproduction.page import Block, Section, caution, minutes, ordered, origin, table
from reproduction.plan import study, texts
from reproduction.run import Options, Paper

STUDY, TEXTS = study("calibration"), texts("calibration")
CLAIMS = "claims.csv"
COLUMNS = (
    "world",
    "method",
    "seed",
    "cases",
    "claimed",
    "true",
    "no_action",
    "best",
    "inside95",
    "width",
    "worse_off",
    "inside50",
    "inside80",
)
# How far below no action a decision counts as worse.
WORSE = 1e-9
STRENGTH = float(STUDY["facts"]["strength"])


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows; claims.csv has the means of its tables by seed."""
    record = PAPER.record(out.path, options, FLOWS)
    rows = {stage: _ordered(recorded_rows(record, stage)) for stage in STUDY["stages"]}
    claims = [
        line
        for stage, found in rows.items()
        if stage not in (TRIALS, DRAWN, *STAGES)
        for line in claims_of(found, stage in EPISODES)
    ]
    out.write(CLAIMS, written(claims, COLUMNS))
    lines = list(record.lines.values())
    yield f"# {STUDY['title']}"
    yield f"{origin('calibration', lines)}; {minutes(lines)}."
    yield caution(lines)
    yield from _parts(rows)


PAPER = Paper("calibration", layouts, LOG, rows_of, parts)


def claims_of(rows: Sequence[Row], percent: bool = False) -> list[Row]:
    """The means of one world, method and seed per row.

    Args:
        rows: The decisions.
        percent: Whether claims and truths are written in percent.
    """
    found = []
    times = 100.0 if percent else 1.0
    for (world, method, seed), some in grouped(rows, "dataset", "method", "seed").items():
        bounded = [row for row in some if not math.isnan(row["lower"] + row["upper"])]
        inside = coverages(some)
        found.append(
            {
                "world": world,
                "method": method,
                "seed": seed,
                "cases": len(some),
                "claimed": times * mean([row["estimate"] for row in some]),
                "true": times * mean([row["auf"] for row in some]),
                "no_action": times * mean([row["no_action"] for row in some]),
                "best": times * mean([row["oracle"] for row in some]),
                "inside95": inside[95],
                "width": times * mean([row["upper"] - row["lower"] for row in bounded]),
                "worse_off": mean([float(row["auf"] < row["no_action"] - WORSE) for row in some]),
                "inside50": inside[50],
                "inside80": inside[80],
            }
        )
    return found


def coverages(rows: Sequence[Row]) -> dict[int, float]:
    """Nominal level, in percent, to the share of its intervals that hold the truth; NaN without intervals.

    Args:
        rows: The decisions; a level that a row lacks counts for nothing.
    """
    ends = {level: (f"lower{level}", f"upper{level}") for level in LEVELS} | {95: ("lower", "upper")}
    found = {}
    for level, (lower, upper) in ends.items():
        some = [row for row in rows if not math.isnan(row.get(lower, math.nan) + row.get(upper, math.nan))]
        found[level] = mean([float(row[lower] <= row["auf"] <= row[upper]) for row in some])
    return found


def levels_table(rows: Sequence[Row]) -> list[str]:
    """How often intervals of each nominal level hold the truth, by world and method, as Markdown; empty if no
    row has an interval of a further level.

    Args:
        rows: The decisions; methods without intervals are left out.
    """
    lines = []
    for (world, method), some in grouped(rows, "dataset", "method").items():
        seeds = [coverages(each) for each in grouped(some, "seed").values()]
        means = {level: mean([each[level] for each in seeds]) for level in (*LEVELS, 95)}
        if not any(math.isnan(value) for value in means.values()):
            cells = {f"nominal {level}%": _percent(value) for level, value in means.items()}
            lines.append({"world": str(world), "method": f"`{method}`"} | cells)
    return table(lines) if lines else []


def t_interval(values: Sequence[float]) -> Interval:
    """The mean of a few finite values, such as means over seeds, with Student's 95% interval."""
    numbers = np.asarray(values, dtype=np.float64)
    count = len(numbers)
    mean = float(numbers.mean()) if count else math.nan
    if count < 2:
        return Interval(mean, math.nan, math.nan, count)
    half_width = float(stdtrit(count - 1, 0.975) * numbers.std(ddof=1) / math.sqrt(count))
    return Interval(mean, mean - half_width, mean + half_width, count)


def claims_table(rows: Sequence[Row], percent: bool = False) -> list[str]:
    """One line per world and method, as Markdown.

    Args:
        rows: The decisions.
        percent: Whether claims and truths are shown in percent.
    """
    lines = []
    digits = 2 if percent else 3
    for (world, method), some in grouped(rows, "dataset", "method").items():
        seeds = claims_of(some, percent)
        means = {key: mean([line[key] for line in seeds]) for key in COLUMNS[3:]}
        gap = t_interval([line["claimed"] - line["true"] for line in seeds])
        gain = means["best"] - means["no_action"]
        share = (means["true"] - means["no_action"]) / gain if gain > WORSE else math.nan
        lines.append(
            {
                "world": str(world),
                "method": f"`{method}`",
                "seeds": str(len(seeds)),
                "cases": str(len(some)),
                "claimed": _figure(means["claimed"], digits),
                "true": _figure(means["true"], digits),
                "claimed - true": _signed(gap.mean, digits) + _span(gap.low, gap.high, digits),
                "no action": _figure(means["no_action"], digits),
                "best": _figure(means["best"], digits),
                "share of gain": _percent(share),
                "interval holds": _percent(means["inside95"]),
                "width": _figure(means["width"], digits),
                "worse off": _percent(means["worse_off"], 1),
            }
        )
    return table(lines)


def bounds_table(rows: Sequence[Row]) -> list[str]:
    """How often intervals, and the bounds drawn from them at the true strength, hold the truth, as Markdown.

    Args:
        rows: The decisions in worlds with a hidden cause; those without an interval are left out.
    """
    lines = []
    for (world, method), some in grouped(rows, "dataset", "method").items():
        bounded = [row for row in some if not math.isnan(row["lower"] + row["upper"])]
        lower, upper, true = (
            torch.tensor([row[key] for row in bounded], dtype=torch.float64)
            for key in ("lower", "upper", "auf")
        )
        low, high = interval_bounds(lower, upper, STRENGTH)
        lines.append(
            {
                "world": str(world),
                "method": f"`{method}`",
                "recommendations": str(len(bounded)),
                "claimed": _figure(mean([row["estimate"] for row in bounded]), 3),
                "true": _figure(mean([row["auf"] for row in bounded]), 3),
                "interval holds": _percent(_share((lower <= true) & (true <= upper)), 1),
                "bounds hold": _percent(_share((low <= true) & (true <= high)), 1),
            }
        )
    return table(lines)


def _share(held: Tensor) -> float:
    return float(held.to(torch.float64).mean())


def _parts(rows: dict[str, list[Row]]) -> Iterator[Block | Section]:
    yield TEXTS["made"]
    tables, hidden, episodes, stays = (
        rows[name] for name in ("rehearsal", "confounding", "episodes", "stays")
    )
    tables = [*tables, *rows[FLOWS]]
    if tables:
        yield Section(["## Probabilities of a desired outcome", TEXTS["rehearsal"], claims_table(tables)])
        levels = levels_table(tables)
        if levels:
            yield Section(["### Intervals at three levels", TEXTS["levels"], levels])
            yield Section(figures={"coverage": coverage.draw(_by_method(tables))})
        by_method = grouped(tables, "method")
        yield Section(
            figures={
                "probabilities": draw_calibration({str(key[0]): some for key, some in by_method.items()})
            }
        )
    if hidden:
        text = TEXTS["confounding"].format(strength=f"{STRENGTH:g}")
        yield Section(["## With a hidden common cause", text, bounds_table(hidden)])
    if episodes:
        yield Section(
            ["## Improvements of SOFA, in percent", TEXTS["episodes"], claims_table(episodes, percent=True)]
        )
        worlds = grouped(episodes, "dataset")
        for place, ((world,), some) in enumerate(worlds.items()):
            pairs = {
                str(method): ([row["estimate"] for row in each], [row["auf"] for row in each])
                for (method,), each in grouped(some, "method").items()
            }
            yield Section([f"### {world}"], {f"improvements_{place}": draw_true_improvements(pairs)})
    if stays:
        yield Section(["## How many stays are needed", TEXTS["stays"], claims_table(stays, percent=True)])
    yield from drawn_tables.sections(rows[DRAWN])
    yield from sequence_claims.sections([row for stage in STAGES for row in rows[stage]])
    yield from network_tables.sections(rows[TRIALS])


def _by_method(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """The coverages of each method over all its decisions; methods without intervals are left out."""
    found = {str(key[0]): coverages(some) for key, some in grouped(rows, "method").items()}
    return {name: each for name, each in found.items() if not any(map(math.isnan, each.values()))}


def _ordered(rows: list[Row]) -> list[Row]:
    """Worlds and methods in the order of study.yaml."""
    return ordered(
        rows,
        (lambda row: str(row["dataset"]), list(STUDY["worlds"])),
        (lambda row: str(row["method"]), list(STUDY["methods"])),
    )


def _figure(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _signed(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:+.{digits}f}"


def _span(low: float, high: float, digits: int) -> str:
    return "" if math.isnan(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]"


def _percent(value: float, digits: int = 0) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f}%"
