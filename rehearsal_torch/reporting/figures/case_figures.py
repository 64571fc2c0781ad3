"""Figures of cases: what is claimed of them, what would overturn it, and the truth where a world knows it; to
be called in `drawing`.

A case outside the data has no number, and is shaded (`data.finding`).

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

Rows = Sequence[Mapping[str, str]]
# Names of cases are written below the axis up to this number of cases; inches of a letter of a name upright.
NAMED, LETTER = 30, 0.075
# Characters of a case's name and of another label that are shown; characters of all names on an inch.
LONGEST_NAME, LONGEST, ACROSS = 24, 44, 8
# Characters of a line of the vertical axis' label, and of a sentence in a panel.
BROAD, SENTENCE = 26, 36
# Entries of a legend side by side in a panel; inches of a line of it.
ENTRIES, LINE = 2, 0.24
# Cases of a panel, and panels side by side.
CASES, BESIDE = 14, 2
# Actions of a case that have a panel; levels that are named at an axis.
ACTIONS, TICKS = 3, 9
# Curves of at most so many points are levels, shown as points; the heights of the tallest bar and of a
# hatched one, and the margins left and right, as shares of a panel.
FEW, TALLEST, HATCHED, MARGIN = 6, 0.2, 0.025, 0.03
GREY = "#B4B4B4"
# Strengths of a hidden cause: points of a curve, and the least and the largest right end of the axis.
POINTS, LEAST, MOST = 200, 2.0, 100.0


def draw_decisions(frame: pd.DataFrame, of: str) -> Figure:
    """What a method claims for each case, with at most `CASES` of them in a panel, and a common scale.

    One column per case: a filled point with the interval of the estimate where an alteration is recommended,
    an open circle for no action, or a square where the comparison is with present values. A case without a
    filled point has no recommendation; where it was refused, its mark is crossed.

    Args:
        frame: One row per case (`reporting.decision_frame`), at least one.
        of: What the estimates are of.
    """
    pieces = np.array_split(np.arange(len(frame)), -(-len(frame) // CASES))
    figure, every = panel_list(len(pieces), BESIDE)
    columns = min(len(pieces), BESIDE)
    for axes, cases in zip(every, pieces, strict=True):
        _decisions(axes, frame.iloc[cases], of)
    entries = legend_below(figure, ENTRIES * columns)
    # Names that stand upright, and the legend, take no room from the panels.
    upright = any(_upright(axes, frame.iloc[cases]) for axes, cases in zip(every, pieces, strict=True))
    tall = max(len(_short(name, LONGEST_NAME)) for name in frame["case"]) if upright else 0
    lines = LETTER * tall * -(-len(pieces) // columns) + LINE * -(-entries // (ENTRIES * columns))
    figure.set_figheight(figure.get_figheight() + lines)
    ends = [end for axes in every for end in axes.get_ylim()]
    for axes in every:
        axes.set_ylim(min(ends), max(ends))
    return figure


def draw_decisions_into(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws all cases into given axes, with a legend above them; as `draw_decisions`."""
    _decisions(axes, frame, of)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": ENTRIES}
    axes.legend(list(unique.values()), list(unique), **place)


def _decisions(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws all but the legend."""
    places, hidden = np.arange(len(frame)), beyond(frame).to_numpy()
    point, low, high, before, present = (
        np.where(hidden, np.nan, frame[name].to_numpy(float))
        if name in frame
        else np.full(len(frame), np.nan)
        for name in ("estimate", "lower", "upper", "no_action", "unchanged")
    )
    before = np.where(np.isnan(present), before, np.nan)
    acted = (frame["status"] != "leave").to_numpy() & ~hidden
    unknown = refused(frame).to_numpy() & ~hidden
    bounded = acted & ~np.isnan(low + high)
    if bounded.any():
        ends, label = (low[bounded], high[bounded]), _of_level(frame["level"][bounded].unique())
        axes.vlines(places[bounded], *ends, color=BLUE, alpha=0.45, linewidth=3, label=label)
    axes.plot(places[acted], point[acted], "o", color=BLUE, markersize=5, label="after the alteration")
    known = ~np.isnan(before)
    kept = ~np.isnan(present)
    if known.any() or not kept.any():
        axes.plot(places[known], before[known], "o", color=BLACK, fillstyle="none", label="no action")
    if kept.any():
        axes.plot(places[kept], present[kept], "s", color=BLACK, fillstyle="none", label="present values")
    if unknown.any():
        at = np.where(kept, present, before)
        axes.plot(places[unknown], at[unknown], "x", color=VERMILION, label="refused")
    for case in places[hidden]:
        axes.axvspan(case - 0.5, case + 0.5, color=PALE, linewidth=0, zorder=0.2, label="outside the data")
    axes.set(xlabel="Case", ylabel=fill(f"Claimed {of}", BROAD))
    if of.startswith("probability"):
        axes.set_ylim(-0.02, 1.02)
    if len(frame) <= NAMED:
        names = [_short(name, LONGEST_NAME) for name in frame["case"]]
        axes.set_xticks(places, names, rotation=90 if _upright(axes, frame) else 0)


def _upright(axes: Axes, frame: pd.DataFrame) -> bool:
    """Whether names stand upright, as they would lie on each other."""
    figure, cell = axes.get_figure(root=True), axes.get_subplotspec()
    beside = 1 if cell is None else cell.get_gridspec().ncols
    room = 0.0 if figure is None else ACROSS * figure.get_figwidth() / beside
    return len(frame) <= NAMED and sum(len(_short(name, LONGEST_NAME)) + 2 for name in frame["case"]) > room


def draw_claims(
    rows: Rows,
    units: Mapping[str, str] = MappingProxyType({}),
    codings: Mapping[str, Coding] = MappingProxyType({}),
    beyond: Collection[str] = (),
) -> Figure | None:
    """The claimed probability of a desired outcome over each action, for a few decisions of a run; None if no
    panel has a claim.

    A row of panels for each case, one for each of the `ACTIONS` along which the claim changes most, the other
    actions as recommended: the claim with its interval, the value to set, the present value where it is
    known, and what is claimed of the present values or of no action. Where there is no line, the place lies
    outside the data; a value to set that lies there has no point either. Bars from below are numbers of
    observations, of levels one at each of them; hatched ones stand for 1 to 4, which are not told apart.

    Args:
        rows: Rows of ``claims.csv`` (`evaluation.claim_curves`).
        codings: Action to the coding of its texts, which stand at its axis.
        beyond: The cases whose decision lies outside the data.
    """
    cases: dict[str, dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        cases.setdefault(row["case"], {}).setdefault(row["along"], []).append(row)
    shown = {
        case: {name: rows_along for name, rows_along in along.items() if name in _most(along)}
        for case, along in cases.items()
    }
    shown = {case: along for case, along in shown.items() if along}
    if not shown:
        return None
    across = max(map(len, shown.values()))
    figure, grid = panels(len(shown), across, width=4.6, height=3.0)
    for line, (case, along) in zip(grid, shown.items(), strict=True):
        for axes, (name, rows_along) in zip(line, along.items(), strict=False):
            coding = codings.get(name)
            _claims(axes, rows_along, coding is None or not coding.of_classes, case in beyond)
            label = _short(f"{name} ({units[name]})" if units.get(name) else name)
            axes.set(xlabel=label, ylabel="Claimed probability", title=_short(f"Case {case}"))
            if coding is not None:
                at = np.unique(_columns(rows_along, CLAIM)[0]).astype(int)
                axes.set_xticks(at, [_short(coding.levels[code]) for code in at])
        for axes in line[len(along) :]:
            axes.set_visible(False)
    columns = 1 if across == 1 else 3
    entries = legend_below(figure, columns)
    figure.set_figheight(figure.get_figheight() + LINE * -(-entries // columns))
    return figure


def _most(along: Mapping[str, Rows]) -> list[str]:
    """The actions of a case along which the claim changes most, of those that have one."""
    points = {name: _columns(rows, CLAIM)[1] for name, rows in along.items()}
    change = {
        name: np.nanmax(point) - np.nanmin(point)
        for name, point in points.items()
        if np.isfinite(point).any()
    }
    return sorted(change, key=lambda name: -change[name])[:ACTIONS]


def _claims(axes: Axes, rows: Rows, ordered: bool, beyond: bool) -> None:
    """A panel; the claims of classes, which have no order, are points that no line joins."""
    at, point, low, high, level = _columns(rows, CLAIM)
    bars, _, left, *_ = _columns(rows, ROWS)
    levelled = bool((bars > left).any())
    few = len(at) <= FEW or levelled
    if np.isfinite(low + high).any():
        label = _of_level(np.unique(level[np.isfinite(level)]))
        if few:
            axes.vlines(at, low, high, color=BLUE, alpha=0.35, linewidth=4, label=label)
        else:
            axes.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)
    line, marker = "-" if ordered else "none", "o" if few or not ordered else None
    label = "claim, the others as recommended"
    axes.plot(at, point, color=BLUE, linestyle=line, marker=marker, label=label)
    for _, value in zip(*_columns(rows, BEFORE)[:2], strict=True):
        words = "present values" if len(_columns(rows, PRESENT)[0]) else "no action"
        axes.axhline(value, color=BLACK, linestyle="--", linewidth=1.1, label=f"claim for {words}")
    for at_value in _columns(rows, PRESENT)[0]:
        axes.axvline(at_value, color=BLACK, linestyle=":", linewidth=1.4, label="present value")
    for at_value, chosen, lower, upper, _ in zip(*_columns(rows, SET), strict=True):
        axes.axvline(at_value, color=GREEN, linestyle="-.", linewidth=1.6, label="recommended")
        if not beyond:
            axes.plot(at_value, chosen, "o", color=GREEN, markersize=5)
            axes.vlines(at_value, lower, upper, color=GREEN, linewidth=2.5, alpha=0.6)
    _outside(axes, at, point, levelled)
    _bars(axes, rows)
    if levelled:
        axes.set_xticks(bars[:: -(-len(bars) // TICKS)])
    axes.set_ylim(-0.02, 1.02)


def _of_level(levels: np.ndarray) -> str:
    """The label of intervals, with their level if they have one in common."""
    return f"{levels[0]:.0%} interval" if len(levels) == 1 else "interval"


def _outside(axes: Axes, at: np.ndarray, point: np.ndarray, levelled: bool) -> None:
    """Shades the places without a number, each up to half-way to the next one; levels on both sides."""
    between = (at[1:] + at[:-1]) / 2
    beside = float(np.diff(at).min()) / 2 if levelled and len(at) > 1 else 0.0
    starts, ends = np.concatenate([at[:1] - beside, between]), np.concatenate([between, at[-1:] + beside])
    for start, end in zip(starts[np.isnan(point)], ends[np.isnan(point)], strict=True):
        axes.axvspan(start, end, color=PALE, linewidth=0, zorder=0.2, label="outside the data")


def _bars(axes: Axes, rows: Rows) -> None:
    """Numbers of observations, as bars whose heights are shares of the panel."""
    _, count, left, right, _ = _columns(rows, ROWS)
    if not len(count):
        return
    known = np.nan_to_num(count)
    height = TALLEST * known / max(float(known.max()), 1.0)
    style: dict[str, Any] = {"align": "edge", "zorder": 0.5, "transform": axes.get_xaxis_transform()}
    axes.bar(left, height, right - left, color=GREY, alpha=0.6, label="number of observations", **style)
    if (hidden := np.isnan(count)).any():
        style |= {"facecolor": "none", "edgecolor": GREY, "linewidth": 0, "hatch": "////"}
        bars = (left[hidden], HATCHED, (right - left)[hidden])
        axes.bar(*bars, label="1 to 4 observations", **style)
    room = MARGIN * float(right.max() - left.min())
    axes.set_xlim(float(left.min()) - room, float(right.max()) + room)


def _columns(rows: Rows, series: str) -> tuple[np.ndarray, ...]:
    """x, point, lower, upper and level of one series; NaN for empty cells."""
    selected = [row for row in rows if row["series"] == series]
    return tuple(
        np.array([number(row[name]) for row in selected], dtype=float)
        for name in ("x", "point", "lower", "upper", "level")
    )


def _short(text: str, most: int = LONGEST) -> str:
    """A text that is not long, and shown as it is: a pair of dollar signs would be read as a formula."""
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    return text.replace("$", r"\$")


def draw_overturning(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """What would overturn the recommendations, by the strength of a hidden common cause; two panels per
    method.

    Left, the recommendation with the median tipping strength: the interval of the probability of a desired
    outcome that a hidden cause of strength Gamma allows, from the interval of the estimate at Gamma = 1; the
    probability with no action; the tipping strength, where the lower end meets it; and the strength of the
    strongest observed covariate. Right, the share of all recommendations that stand against a hidden cause of
    each strength. Where no strength of the axis changes that share, a sentence in the panel says why.
    Strengths are on a logarithmic axis.
    """
    figure, grid = panels(len(groups), 2, width=5.2, height=4.6)
    for index, ((left, right), (name, decided)) in enumerate(zip(grid, groups.items(), strict=True)):
        known = [sensitivity for sensitivity in map(sensitivity_of, decided) if sensitivity is not None]
        strengths = np.geomspace(1.0, _furthest(known), POINTS)
        colour, middle = COLOURS[index % len(COLOURS)], typical(known)
        _interval(left, decided[middle], known[middle], strengths, colour)
        left.set_title(f"{name}: case {decided[middle].get('identity', '')}")
        shares = [stands(known, strength) for strength in strengths]
        right.step(strengths, shares, where="post", color=colour, label="still better than no action")
        _yardstick(right, yardstick(known), strengths[-1])
        count = f"{len(known)} recommendation{'s'[: len(known) > 1]}"
        right.set(ylabel="Share of the recommendations", ylim=(-0.02, 1.02))
        right.set_title(f"Of {count}, the share that stands")
        _note(right, _constant(known, strengths[-1]), shares[-1])
        xlabel = "How many times as likely, or as unlikely,\na hidden common cause makes the action"
        for axes in (left, right):
            axes.set(xlabel=xlabel, xlim=(1.0, strengths[-1]))
            logarithmic(axes.xaxis)
            # Below the axis and its label of two lines.
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.27), ncols=1)
    return figure


def _interval(
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
        usual = number(claim(decision, of="baseline"))
        axes.axhline(usual, color=BLACK, linestyle="--", linewidth=1.2, label="no action")
    else:
        # A hidden cause biases what is said of the present values, too.
        kept = torch.tensor(unchanged, dtype=torch.float64).clamp(0.0, 1.0)
        most = interval_bounds(kept, kept, torch.from_numpy(strengths))[1]
        label = "present values, at most"
        axes.plot(strengths, most, color=BLACK, linestyle="--", linewidth=1.2, label=label)
    tipping = sensitivity.tipping
    if tipping <= strengths[-1]:
        label = "doubtful without a hidden cause" if tipping == 1 else f"overturned at {factor(tipping)}"
        axes.axvline(tipping, color=colour, linestyle=":", label=label)
    known = None if sensitivity.yardstick is None else (sensitivity.covariate, sensitivity.yardstick)
    _yardstick(axes, known, strengths[-1])
    axes.set(ylabel="Probability of a desired outcome", ylim=(-0.02, 1.02))


def _note(axes: Axes, sentence: str, share: float) -> None:
    """A sentence in the panel, clear of a flat line at a share."""
    if sentence:
        height = 0.25 if 0.3 < share < 0.7 else 0.5
        text = axes.text(0.5, height, fill(sentence, SENTENCE), ha="center", va="center")
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        text.set(transform=axes.transAxes, bbox=behind, zorder=3)


def _constant(known: Sequence[Sensitivity], furthest: float) -> str:
    """Why the share that stands is the same at all strengths shown; empty where it is not."""
    later = [sensitivity.tipping for sensitivity in known if sensitivity.tipping > 1]
    if any(strength <= furthest for strength in later):
        return ""
    if not later or math.isinf(min(later)):
        others = "no hidden common cause can overturn {}"
    else:
        least = f"{'at least ' if len(later) > 1 else ''}{factor(min(later))}"
        others = f"overturning {{}} takes a strength of {least}, which is beyond this axis"
    if len(later) == len(known):
        sentence = others.format("any of them" if len(known) > 1 else "it")
        return f"{sentence[:1].upper()}{sentence[1:]}."
    compared = {sensitivity.against for sensitivity in known if sensitivity.tipping == 1}
    against = compared.pop() if len(compared) == 1 else "no action or the present values"
    if later:
        who = f"{len(known) - len(later)} of {len(known)}"
        rest = f"; {others.format('the others' if len(later) > 1 else 'the other')}"
    else:
        who, rest = "all of them" if len(known) > 1 else "it", ""
    return f"Even without a hidden common cause, {who} may be no better than {against}{rest}."


def _yardstick(axes: Axes, known: tuple[str, float] | None, furthest: float) -> None:
    """The strength of the strongest covariate, if it is within the axis."""
    if known is not None and known[1] <= furthest:
        label = f"as strong as {known[0]} ({factor(known[1])})"
        axes.axvline(known[1], color=BLACK, linestyle="-.", linewidth=1.2, label=label)


def _furthest(sensitivities: Sequence[Sensitivity]) -> float:
    """The right end of the axis: a little beyond the largest finite strength, between 2 and 100."""
    known = yardstick(sensitivities)
    strengths = [sensitivity.tipping for sensitivity in sensitivities] + ([] if known is None else [known[1]])
    return min(max([LEAST, *(1.2 * strength for strength in strengths if math.isfinite(strength))]), MOST)


def draw_probabilities(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """The true probability of a desired outcome, between no action and the best possible; a panel per method.

    Contexts are ordered by the largest possible probability. Filled points are alterations, open ones
    decisions without an alteration; where they coincide with the crosses, the decision made no difference.
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
        acted = np.array([decision.get("alteration") is not None for decision in ordered])
        axes.vlines(rank, no_action, best, color="#BBBBBB", linewidth=1.0)
        axes.plot(rank, best, "_", color=BLACK, markersize=9, markeredgewidth=1.6, label="best possible")
        axes.plot(rank, no_action, "x", color=BLACK, markersize=5, label="no action")
        axes.plot(rank[acted], true[acted], **style, markersize=5, label="decision")
        if not acted.all():
            label = "decision without alteration"
            axes.plot(rank[~acted], true[~acted], **style, markersize=6, markerfacecolor="white", label=label)
        axes.set(
            xlabel="Case, ordered by the best possible probability",
            ylabel="True probability of a desired outcome",
            ylim=(-0.02, 1.02),
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        means = f"mean {true.mean():.3f}, best {best.mean():.3f}, no action {no_action.mean():.3f}"
        axes.set_title(f"{name}\n{means}")
    legend_below(figure, 2)
    return figure


def draw_calibration(groups: Mapping[str, Sequence[Row]]) -> Figure:
    """Claimed against true probabilities of a desired outcome (calibration), one panel per label of rows.

    One point per decision; the horizontal bar is the claimed interval, which contains the truth where it
    meets the diagonal. Points below the diagonal are over-confident. If a certificate bounds the posterior
    mean and the truth, the thin bar is the interval of the truth, the thick one that of the mean.
    """
    figure, every = panel_list(len(groups), 3, width=4.4, height=4.0)
    for index, (axes, (name, rows)) in enumerate(zip(every, groups.items(), strict=True)):
        claimed, true, lower, upper, least, most = (
            np.array([row.get(key, np.nan) for row in rows], dtype=float)
            for key in ("estimate", "auf", "lower", "upper", "truth_lower", "truth_upper")
        )
        known, wide = ~np.isnan(claimed + true), ~np.isnan(least + most + true)
        bounded = known & ~np.isnan(lower + upper)
        style = point_style(index)
        # An interval need not contain the estimate: the bar is drawn as it is, not around the point.
        for shown, low, high, width in (
            (bounded, lower, upper, 2.4 if wide.any() else 1.2),
            (wide, least, most, 0.8),
        ):
            if shown is bounded or wide.any():
                axes.hlines(
                    true[shown], low[shown], high[shown], color=style["color"], alpha=0.35, linewidth=width
                )
        axes.plot(claimed[known], true[known], **style, markersize=4, alpha=0.8)
        held, within = (
            100 * ((low <= true) & (true <= high))[shown].mean() if shown.any() else np.nan
            for shown, low, high in ((bounded, lower, upper), (wide, least, most))
        )
        means = f"estimated {claimed[known].mean():.3f}, true {true[known].mean():.3f}" if known.any() else ""
        title = f"{name}\n{means or 'no estimates'}"
        if bounded.any() and wide.any():
            title += f"\ntruth inside the interval of the posterior mean {held:.0f}%,"
            title += f"\nof the truth {within:.0f}%"
        elif bounded.any():
            title += f"\ninterval holds for {held:.0f}%"
        ends = (-0.02, 1.02)
        axes.set(xlabel="Estimated probability", ylabel="True probability", xlim=ends, ylim=ends)
        axes.set_title(title)
        diagonal(axes, "estimate = truth")
    return figure
