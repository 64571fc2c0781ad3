"""Figures of cases: claims, sensitivity to a hidden common cause, true probabilities and calibration.

Everything is drawn within `drawing`. A case outside the data has no number, and is shaded (`data.finding`).

Source: `estimators.marginal_sensitivity` (hidden causes); Du et al. (2026), Tab. 1 (true probabilities);
Dawid (1982), calibration of probability forecasts.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from textwrap import fill
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.sensitivity import Sensitivity, factor
from rehearsal_torch.estimators.marginal_sensitivity import interval_bounds
from rehearsal_torch.evaluation.claim_curves import BEFORE, CLAIM, PRESENT, ROWS, SET
from rehearsal_torch.evaluation.claim_rows import Row, interval_of, number
from rehearsal_torch.evaluation.overturning_sentences import sensitivity_of, stands, typical, yardstick
from rehearsal_torch.evaluation.run_record import Decided, claim
from rehearsal_torch.reporting.decision_frame import beyond, refused
from rehearsal_torch.reporting.figure_style import (
    BLACK,
    BLUE,
    CHANCES,
    COLOURS,
    GREEN,
    PALE,
    VERMILION,
    diagonal,
    legend_below,
    logarithmic,
    panel_list,
    panels,
    point_style,
)
from rehearsal_torch.reporting.labels import with_unit
from rehearsal_torch.spaces.box import setting_text

Rows = Sequence[Mapping[str, str]]
# Cases whose names stand below the axis, at most; inches of a letter of an upright name.
NAMED, LETTER = 30, 0.075
# Characters of a case's name and of another label, at most; characters of all names on an inch.
LONGEST_NAME, LONGEST, ACROSS = 24, 44, 8
# Characters of a line: of the vertical axis' label, of texts of a narrow panel, and of a wide one.
BROAD, NARROW, WIDE = 26, 30, 52
# Entries of a legend side by side in a panel; inches of a line of it.
ENTRIES, LINE = 2, 0.24
# Actions of a case that have a panel; levels that are named at an axis.
ACTIONS, TICKS = 3, 9
# Share of a panel beside its edges where names are written inwards.
EDGE = 0.3
# Points of a curve of levels, at most; shares of a panel: height of the tallest and of a hatched bar, margin.
FEW, TALLEST, HATCHED, MARGIN = 6, 0.2, 0.025, 0.03
GREY = "#B4B4B4"
# What the cases of `draw_claims` are, by how many there are.
RANKS = {2: ("largest", "smallest"), 3: ("largest", "median", "smallest")}
# Strengths of a hidden cause: points of a curve, and the least and the largest right end of the axis.
POINTS, LEAST, MOST = 200, 2.0, 100.0


def draw_answer(
    ends: tuple[float, float],
    gain: tuple[float, float] | None,
    label: str,
    names: tuple[str, str],
    chance: bool,
) -> Figure:
    """The answer over all cases: above, the mean estimates before (open) and after (filled), named `names`,
    chances from 0 to 100 %; below, the interval of their difference, where it is known, beside zero.
    """
    rows, scale = (1 if gain is None else 2), 100 if chance else 1
    figure, grid = panels(rows, 1, width=5.4, height=1.5)
    axes, (before, after) = grid[0][0], (scale * end for end in ends)
    axes.plot([before, after], [0, 0], color=BLACK, linewidth=1)
    axes.plot([before], [0], "o", color=BLACK, markersize=9, markerfacecolor="white", zorder=3)
    axes.plot([after], [0], "o", color=BLUE, markersize=9, zorder=3)
    texts = percents(ends, 1) if chance else [setting_text(end) for end in ends]
    margin = max(abs(after - before), 1e-9)
    limits = (-3, 103) if chance else (min(before, after) - 1.2 * margin, max(before, after) + 1.2 * margin)
    # One below and one above the line, so that they never meet; outwards, but at the edges of the panel.
    for value, name, text, colour, height in (
        (before, names[0], texts[0], BLACK, -20),
        (after, names[1], texts[1], BLUE, 10),
    ):
        place = (value - limits[0]) / (limits[1] - limits[0])
        outwards = "right" if value == min(before, after) else "left"
        side = outwards if EDGE < place < 1 - EDGE else "left" if place < 0.5 else "right"
        label_text = f"{name} {text}"
        axes.annotate(label_text, (value, 0), (0, height), textcoords="offset points", color=colour, ha=side)
    axes.set(xlabel=fill(label, WIDE), xlim=limits, ylim=(-1, 1))
    if gain is not None:
        below = grid[1][0]
        below.axvline(0, color=BLACK, linewidth=1)
        below.hlines([0], scale * gain[0], scale * gain[1], color=BLUE, alpha=0.3, linewidth=9)
        below.plot([after - before], [0], "o", color=BLUE, markersize=9, zorder=3)
        unit = " in percentage points" if chance else ""
        below.set(xlabel=f"Difference{unit}, with its interval", ylim=(-1, 1))
        below.margins(x=0.15)
    for each in (line[0] for line in grid):
        each.yaxis.set_visible(False)
        each.spines["left"].set_visible(False)
    return figure


def draw_decisions_into(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws the claim for each case of a `decision_frame` into given axes, with a legend above them; `of` is
    the estimated quantity, in words.

    One column per case: a filled point with the interval of the estimate where an alteration is recommended,
    an open circle for no action, or a square where the comparison is with present values. A case without a
    filled point has no recommendation; where it was refused, its mark is crossed.
    """
    _decision_panel(axes, frame, of)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    location: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": ENTRIES}
    axes.legend(list(unique.values()), list(unique), **location)


def _decision_panel(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws all but the legend."""
    x, outside = np.arange(len(frame)), beyond(frame).to_numpy()
    point, low, high, before, present = (
        np.where(outside, np.nan, frame[name].to_numpy(float)) if name in frame else np.full(len(x), np.nan)
        for name in ("estimate", "lower", "upper", "no_action", "unchanged")
    )
    before = np.where(np.isnan(present), before, np.nan)
    recommended = (frame["status"] != "leave").to_numpy() & ~outside
    refusals = refused(frame).to_numpy() & ~outside
    bounded = recommended & ~np.isnan(low + high)
    if bounded.any():
        ends, label = (low[bounded], high[bounded]), _interval_label(frame["level"][bounded].unique())
        axes.vlines(x[bounded], *ends, color=BLUE, alpha=0.45, linewidth=3, label=label)
    axes.plot(x[recommended], point[recommended], "o", color=BLUE, markersize=5, label="after the alteration")
    has_base = ~np.isnan(before)
    has_now = ~np.isnan(present)
    if has_base.any() or not has_now.any():
        axes.plot(x[has_base], before[has_base], "o", color=BLACK, fillstyle="none", label="no action")
    if has_now.any():
        axes.plot(x[has_now], present[has_now], "s", color=BLACK, fillstyle="none", label="present values")
    if refusals.any():
        reference = np.where(has_now, present, before)
        axes.plot(x[refusals], reference[refusals], "x", color=VERMILION, label="refused")
    for case in x[outside]:
        axes.axvspan(case - 0.5, case + 0.5, color=PALE, linewidth=0, zorder=0.2, label="outside the data")
    axes.set(xlabel="Case", ylabel=fill(f"Estimated {of}", BROAD))
    if of.startswith("probability"):
        axes.set_ylim(*CHANCES)
    if len(frame) <= NAMED:
        names = [short(name, LONGEST_NAME) for name in frame["case"]]
        axes.set_xticks(x, names, rotation=90 if _is_upright(axes, frame) else 0)


def _is_upright(axes: Axes, frame: pd.DataFrame) -> bool:
    """Whether names stand upright, as they would overlap."""
    figure, subplot = axes.get_figure(root=True), axes.get_subplotspec()
    columns = 1 if subplot is None else subplot.get_gridspec().ncols
    limit = 0.0 if figure is None else ACROSS * figure.get_figwidth() / columns
    return len(frame) <= NAMED and sum(len(short(name, LONGEST_NAME)) + 2 for name in frame["case"]) > limit


def draw_claims(
    rows: Rows,
    units: Mapping[str, str] = MappingProxyType({}),
    codings: Mapping[str, Coding] = MappingProxyType({}),
    beyond: Collection[str] = (),
) -> Figure | None:
    """The claimed probability of a desired outcome over each action, for a few decisions (rows of
    ``claims.csv``, `evaluation.claim_curves`); None if no panel has a claim.

    A row of panels for each case, one for each of the `ACTIONS` along which the claim changes most, the other
    actions as recommended: the claim with its interval, the value to set, the present value where it is
    known, and the claim for the present values or for no action. Where there is no line, the value lies
    outside the data; a value to set that lies there has no point either (`beyond` names the cases whose
    decision does). Bars from below are numbers of observations, of levels one at each of them; hatched ones
    stand for 1 to 4, which are not told apart.
    """
    cases: dict[str, dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        cases.setdefault(row["case"], {}).setdefault(row["along"], []).append(row)
    shown = {
        case: {name: rows_along for name, rows_along in along.items() if name in _most_telling_actions(along)}
        for case, along in cases.items()
    }
    shown = {case: shown[case] for case in sorted(shown, key=lambda case: -_gain(cases[case])) if shown[case]}
    if not shown:
        return None
    across, ranks = max(map(len, shown.values())), dict(zip(shown, RANKS.get(len(shown), ()), strict=False))
    if across == 1:
        figure, grid = panels(1, len(shown), width=3.4, height=3.0)
        grid = [[axes] for axes in grid[0]]
    else:
        figure, grid = panels(len(shown), across, width=4.6, height=3.0)
    for line, (case, along) in zip(grid, shown.items(), strict=True):
        for axes, (name, rows_along) in zip(line, along.items(), strict=False):
            coding = codings.get(name)
            _claim_panel(axes, rows_along, coding is None, case in beyond)
            title = f"Case {case}: {ranks[case]} gain" if case in ranks else f"Case {case}"
            label = short(with_unit(name, units.get(name, "")))
            narrow = NARROW if across == 1 else LONGEST
            axes.set(xlabel=fill(label, narrow), ylabel="Estimated chance", title=fill(short(title), narrow))
            if coding is not None:
                codes = np.unique(_columns(rows_along, CLAIM)[0]).astype(int)
                axes.set_xticks(codes, [short(coding.levels[level]) for level in codes])
        for axes in line[len(along) :]:
            axes.set_visible(False)
    columns = min(len(shown) if across == 1 else 3, 3)
    entries = legend_below(figure, columns)
    figure.set_figheight(figure.get_figheight() + LINE * -(-entries // columns))
    return figure


def _gain(along: Mapping[str, Rows]) -> float:
    """The difference between the claims of what is set and of what it is compared with; 0 without both."""
    after, before = (
        [point for rows in along.values() for point in _columns(rows, series)[1]] for series in (SET, BEFORE)
    )
    gain = after[0] - before[0] if after and before else 0.0
    return 0.0 if math.isnan(gain) else float(gain)


def _most_telling_actions(along: Mapping[str, Rows]) -> list[str]:
    """The actions of a case along which the claim changes most, of those that have one."""
    points = {name: _columns(rows, CLAIM)[1] for name, rows in along.items()}
    finite = {name: point[np.isfinite(point)] for name, point in points.items()}
    change = {name: np.ptp(point) for name, point in finite.items() if len(point)}
    return sorted(change, key=lambda name: -change[name])[:ACTIONS]


def _claim_panel(axes: Axes, rows: Rows, ordered: bool, beyond: bool) -> None:
    """A panel; no line joins the claims of texts and of levels, between which nothing can be set."""
    x, point, low, high, level = _columns(rows, CLAIM)
    bars, _, left, *_ = _columns(rows, ROWS)
    has_levels = bool((bars > left).any())
    as_points = len(x) <= FEW or has_levels
    intervals(axes, x, low, high, as_points, _interval_label(np.unique(level[np.isfinite(level)])))
    line, marker = "none" if as_points or not ordered else "-", "o" if as_points or not ordered else None
    label = "estimate, the others as recommended"
    axes.plot(x, point, color=BLUE, linestyle=line, marker=marker, label=label)
    for _, value in zip(*_columns(rows, BEFORE)[:2], strict=True):
        reference = "present values" if len(_columns(rows, PRESENT)[0]) else "no action"
        axes.axhline(value, color=BLACK, linestyle="--", linewidth=1.1, label=f"estimate for {reference}")
    for setting in _columns(rows, PRESENT)[0]:
        axes.axvline(setting, color=BLACK, linestyle=":", linewidth=1.4, label="present value")
    for setting, claimed, lower, upper, _ in zip(*_columns(rows, SET), strict=True):
        axes.axvline(setting, color=GREEN, linestyle="-.", linewidth=1.6, label="recommended")
        if not beyond:
            axes.plot(setting, claimed, "o", color=GREEN, markersize=5)
            axes.vlines(setting, lower, upper, color=GREEN, linewidth=2.5, alpha=0.6)
    shade_outside(axes, x, point, has_levels)
    _, count, left, right, _ = _columns(rows, ROWS)
    if len(count):
        observations(axes, left, right, count)
    if has_levels:
        axes.set_xticks(bars[:: -(-len(bars) // TICKS)])
    axes.set_ylim(*CHANCES)


def _interval_label(levels: np.ndarray) -> str:
    """The label of intervals, with their level if they have one in common."""
    return f"{levels[0]:.0%} interval" if len(levels) == 1 else "interval"


def intervals(
    axes: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, as_points: bool, label: str
) -> None:
    """Intervals of claims, as a band or one by one; none where there is no finite one."""
    if np.isfinite(low + high).any():
        if as_points:
            axes.vlines(x, low, high, color=BLUE, alpha=0.35, linewidth=4, label=label)
        else:
            axes.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)


def shade_outside(axes: Axes, x: np.ndarray, point: np.ndarray, has_levels: bool) -> None:
    """Shades the values without a number, each up to half-way to the next one; levels on both sides."""
    middles = (x[1:] + x[:-1]) / 2
    margin = float(np.diff(x).min()) / 2 if has_levels and len(x) > 1 else 0.0
    starts, ends = np.concatenate([x[:1] - margin, middles]), np.concatenate([middles, x[-1:] + margin])
    for start, end in zip(starts[np.isnan(point)], ends[np.isnan(point)], strict=True):
        axes.axvspan(start, end, color=PALE, linewidth=0, zorder=0.2, label="outside the data")


def observations(axes: Axes, left: np.ndarray, right: np.ndarray, count: np.ndarray) -> None:
    """Numbers of observations, as bars whose heights are shares of the panel; NaN stands for 1 to 4."""
    counts = np.nan_to_num(count)
    height = TALLEST * counts / max(float(counts.max()), 1.0)
    style: dict[str, Any] = {"align": "edge", "zorder": 0.5, "transform": axes.get_xaxis_transform()}
    axes.bar(left, height, right - left, color=GREY, alpha=0.6, label="number of observations", **style)
    if (uncounted := np.isnan(count)).any():
        style |= {"facecolor": "none", "edgecolor": GREY, "linewidth": 0, "hatch": "////"}
        edges = (left[uncounted], HATCHED, (right - left)[uncounted])
        axes.bar(*edges, label="1 to 4 observations", **style)
    margin = MARGIN * float(right.max() - left.min())
    axes.set_xlim(float(left.min()) - margin, float(right.max()) + margin)


def _columns(rows: Rows, series: str) -> tuple[np.ndarray, ...]:
    """x, point, lower, upper and level of one series; NaN for empty cells."""
    selected = [row for row in rows if row["series"] == series]
    return tuple(
        np.array([number(row[name]) for row in selected], dtype=float)
        for name in ("x", "point", "lower", "upper", "level")
    )


def short(text: str, limit: int = LONGEST) -> str:
    """A text of limited length; its dollar signs are escaped, as a pair would be read as a formula."""
    text = text if len(text) <= limit else f"{text[: limit - 3]}..."
    return text.replace("$", r"\$")


def draw_overturning(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """Sensitivity of recommendations to a hidden cause, by its strength (logarithmic); two panels per method.

    Left, the recommendation with the median tipping strength: the interval of the probability of a desired
    outcome that a hidden cause of strength Gamma allows, from the interval of the estimate at Gamma = 1; the
    probability with no action; the tipping strength, where the lower end meets it; and the strength of the
    strongest observed covariate. Right, the share of all recommendations that stand against a hidden cause of
    each strength.
    """
    figure, grid = panels(len(groups), 2, width=5.2, height=4.6)
    for index, ((left, right), (name, decisions)) in enumerate(zip(grid, groups.items(), strict=True)):
        causes = [sensitivity for sensitivity in map(sensitivity_of, decisions) if sensitivity is not None]
        strengths = np.geomspace(1.0, _largest_strength(causes), POINTS)
        colour, median = COLOURS[index % len(COLOURS)], typical(causes)
        _sensitivity_interval(left, decisions[median], causes[median], strengths, colour)
        scope = f"{name}: the" if len(groups) > 1 else "The"
        left.set_title(f"{scope} median recommendation, case {decisions[median].get('identity', '')}")
        shares = [stands(causes, strength) for strength in strengths]
        right.step(strengths, shares, where="post", color=colour, label="still better than no action")
        _covariate_line(right, yardstick(causes), strengths[-1])
        count = f"{len(causes)} recommendation{'s'[: len(causes) > 1]}"
        right.set(ylabel="Share of the recommendations", ylim=CHANCES)
        right.set_title(f"Of {count}, the share that stands")
        xlabel = "How many times as likely, or as unlikely,\na hidden common cause makes the action"
        for axes in (left, right):
            axes.set(xlabel=xlabel, xlim=(1.0, strengths[-1]))
            logarithmic(axes.xaxis)
            # Below the axis and its label of two lines.
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.27), ncols=1)
    return figure


def _sensitivity_interval(
    axes: Axes, decision: Decided, sensitivity: Sensitivity, strengths: np.ndarray, colour: str
) -> None:
    """The interval of one decision against the strength, with its marks."""
    point = number(claim(decision))
    lower, upper = (point if math.isnan(number(end)) else number(end) for end in interval_of(decision))
    unchanged = number(claim(decision, of="unchanged"))
    gains = [number(claim(decision, end, "gain")) for end in ("lower", "upper")]
    if not any(map(math.isnan, (unchanged, *gains))):
        # The comparison is with the present values: what both have in common is not in doubt.
        lower, upper = (unchanged + gain for gain in gains)
    ends = torch.tensor([lower, upper], dtype=torch.float64).clamp(0.0, 1.0)
    low, high = interval_bounds(ends[0], ends[1], torch.from_numpy(strengths))
    axes.fill_between(strengths, low, high, color=colour, alpha=0.2, linewidth=0, label="interval")
    axes.plot(strengths, low, color=colour)
    axes.plot(strengths, high, color=colour)
    if math.isnan(unchanged):
        baseline = number(claim(decision, of="baseline"))
        axes.axhline(baseline, color=BLACK, linestyle="--", linewidth=1.2, label="no action")
    else:
        # A hidden cause biases the claim for the present values, too.
        present = torch.tensor(unchanged, dtype=torch.float64).clamp(0.0, 1.0)
        largest = interval_bounds(present, present, torch.from_numpy(strengths))[1]
        label = "present values, at most"
        axes.plot(strengths, largest, color=BLACK, linestyle="--", linewidth=1.2, label=label)
    tipping = sensitivity.tipping
    if tipping <= strengths[-1]:
        label = "doubtful without a hidden cause" if tipping == 1 else f"overturned at {factor(tipping)}"
        axes.axvline(tipping, color=colour, linestyle=":", label=label)
    covariate = None if sensitivity.yardstick is None else (sensitivity.covariate, sensitivity.yardstick)
    _covariate_line(axes, covariate, strengths[-1])
    axes.set(ylabel="Probability of a desired outcome", ylim=CHANCES)


def _covariate_line(axes: Axes, covariate: tuple[str, float] | None, furthest: float) -> None:
    """The strength of the strongest covariate, if it is within the axis."""
    if covariate is not None and covariate[1] <= furthest:
        label = f"as strong as {covariate[0]} ({factor(covariate[1])})"
        axes.axvline(covariate[1], color=BLACK, linestyle="-.", linewidth=1.2, label=label)


def _largest_strength(sensitivities: Sequence[Sensitivity]) -> float:
    """The right end of the axis: a little beyond the largest finite strength, between 2 and 100."""
    mark = yardstick(sensitivities)
    strengths = [sensitivity.tipping for sensitivity in sensitivities] + ([] if mark is None else [mark[1]])
    return min(max([LEAST, *(1.2 * strength for strength in strengths if math.isfinite(strength))]), MOST)


def draw_probabilities(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """The true probability of a desired outcome, between no action and the best possible, by which cases are
    ordered; a panel per method. Filled points are alterations, open ones decisions without an alteration.
    """
    figure, [line] = panels(1, len(groups), width=5.2, height=3.9)
    for index, (axes, (name, decisions)) in enumerate(zip(line, groups.items(), strict=True)):
        ordered = sorted(
            decisions, key=lambda decision: (decision["score"]["oracle"], decision["score"]["no_action"])
        )
        rank, style = np.arange(1, len(ordered) + 1), point_style(index)
        true, best, no_action = (
            np.array([decision["score"][key] for decision in ordered], dtype=float)
            for key in ("probability", "oracle", "no_action")
        )
        acts = np.array([decision.get("alteration") is not None for decision in ordered])
        axes.vlines(rank, no_action, best, color="#BBBBBB", linewidth=1.0)
        axes.plot(rank, best, "_", color=BLACK, markersize=9, markeredgewidth=1.6, label="best possible")
        axes.plot(rank, no_action, "x", color=BLACK, markersize=5, label="no action")
        axes.plot(rank[acts], true[acts], **style, markersize=5, label="decision")
        if not acts.all():
            label = "decision without alteration"
            axes.plot(rank[~acts], true[~acts], **style, markersize=6, markerfacecolor="white", label=label)
        axes.set(
            xlabel="Case, ordered by the best possible probability",
            ylabel="True probability of a desired outcome",
            ylim=CHANCES,
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        means = f"mean {true.mean():.3f}, best {best.mean():.3f}, no action {no_action.mean():.3f}"
        axes.set_title(f"{name}\n{means}")
    legend_below(figure, 2)
    return figure


def draw_calibration(groups: Mapping[str, Sequence[Row]]) -> Figure:
    """Claimed against true probabilities of a desired outcome (calibration), one panel per label of rows: a
    point and the claimed interval per decision. Points below the diagonal are over-confident. If a
    certificate bounds the posterior mean and the truth, the thin bar is the interval of the truth.
    """
    figure, panel_axes = panel_list(len(groups), 3, width=4.4, height=4.0)
    for index, (axes, (name, rows)) in enumerate(zip(panel_axes, groups.items(), strict=True)):
        claimed, true, lower, upper, least, most = (
            np.array([row.get(key, np.nan) for row in rows], dtype=float)
            for key in ("estimate", "auf", "lower", "upper", "truth_lower", "truth_upper")
        )
        valid, has_bounds = ~np.isnan(claimed + true), ~np.isnan(least + most + true)
        bounded = valid & ~np.isnan(lower + upper)
        style = point_style(index)
        # An interval need not contain the estimate: the bar is drawn as it is, not around the point.
        colour, width = style["color"], 2.4 if has_bounds.any() else 1.2
        axes.hlines(true[bounded], lower[bounded], upper[bounded], color=colour, alpha=0.35, linewidth=width)
        if has_bounds.any():
            ends = (least[has_bounds], most[has_bounds])
            axes.hlines(true[has_bounds], *ends, color=colour, alpha=0.35, linewidth=0.8)
        axes.plot(claimed[valid], true[valid], **style, markersize=4, alpha=0.8)
        coverage, truth_coverage = (
            100 * ((low <= true) & (true <= high))[mask].mean() if mask.any() else np.nan
            for mask, low, high in ((bounded, lower, upper), (has_bounds, least, most))
        )
        means = f"estimated {claimed[valid].mean():.3f}, true {true[valid].mean():.3f}" if valid.any() else ""
        title = f"{name}\n{means or 'no estimates'}"
        if bounded.any() and has_bounds.any():
            title += f"\ntruth inside the interval of the posterior mean {coverage:.0f}%,"
            title += f"\nof the truth {truth_coverage:.0f}%"
        elif bounded.any():
            title += f"\ninterval holds for {coverage:.0f}%"
        limits = CHANCES
        axes.set(xlabel="Estimated probability", ylabel="True probability", xlim=limits, ylim=limits)
        axes.set_title(title)
        diagonal(axes, "estimate = truth")
    return figure
