"""What a page shows of claims and of courses: answers in words, their numbers along an action, and pictures.

Curves are claims of `api.what_if`, point by point, with the interval of each; a point outside the data has
none. Below them stand the observations as a histogram; a bin with 1 to 4 rows has no count, so that no row
can be read off. A picture is SVG in the style of the report's figures, drawn from plain data, with a text for
those who do not see it; it is an image at a data URL, in which no script runs.
"""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.api.rehearsal_model import RehearsalModel
from rehearsal_torch.api.what_if import WhatIf, what_ifs
from rehearsal_torch.data.codings.one_hot_actions import in_indicators
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.estimate import ends_of, percents
from rehearsal_torch.data.finding import OUTSIDE, Finding, outside
from rehearsal_torch.evaluation.claim_curves import bins
from rehearsal_torch.evaluation.claim_curves import places as places_of
from rehearsal_torch.reporting.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    SKY,
    VERMILION,
    drawing,
    legend_below,
    svg,
)
from rehearsal_torch.reporting.figures.case_figures import intervals, observations, shade_outside, short
from rehearsal_torch.reporting.page.data_card import weighted_sum
from rehearsal_torch.reporting.page.page_content import shown
from rehearsal_torch.reporting.trial_view import draw_front
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws

# Places of a curve, at most, and bins of outcomes.
POINTS, BINS = 17, 48
# Inches of a picture, pixels of one, and characters of a label.
WIDTH, HEIGHT, PIXELS = 4.6, 3.2, 96
# Levels, or steps, whose points are drawn one by one.
FEW = 12
Picture = dict[str, Any]
DRAWING = Lock()


def answer(
    claim: WhatIf, unknown: Sequence[Finding], present: Mapping[str, Any], left: Sequence[Finding] = ()
) -> dict[str, Any]:
    """What the page shows of a claim: `unknown` says why the context lies outside the data, so that no action
    has no number either, `left` why leaving the `present` values has none.
    """
    outside_reason, further = outside(claim.findings)
    if unknown:
        claim = replace(claim, baseline=None)
    if left and claim.unchanged is not None:
        claim = replace(claim, unchanged=None, net_gain=None)
        further = [*further, f"leaving the present values has no number: {outside(left)[0]}"]
    withheld = f"refused: {claim.refused}" if claim.refused else outside_reason
    shown_elsewhere = (*OUTSIDE, "no_gain", *(["gain"] if withheld else []))
    warnings = [finding.text for finding in claim.findings if finding.kind not in shown_elsewhere]
    return {
        "setting": dict(claim.alteration),
        "withheld": withheld,
        "also": outside_reason if claim.refused else "",
        "estimate": None if withheld else _estimate_dict(claim.estimate),
        "baseline": _estimate_dict(claim.baseline),
        "unchanged": None if withheld else _estimate_dict(claim.unchanged),
        "cost": claim.cost,
        "net_gain": None if withheld or unknown else _estimate_dict(claim.net_gain),
        "told": None if withheld else _claim_texts(claim),
        "sentence": withheld or _claim_sentence(claim, present),
        "warnings": list(dict.fromkeys([*further, *warnings])),
        "against": "" if withheld or not claim.against else f"The method would not set this: {claim.against}",
        "near": None if withheld or claim.distance is None else round(claim.distance, 2),
        "beyond": "" if withheld else _no_row_near_sentence(claim),
    }


def _no_row_near_sentence(claim: WhatIf) -> str:
    """For which share of such cases no row is near, with the hull, in words; empty if unknown."""
    if claim.beyond is None or claim.hull is None:
        return ""
    share, lower, upper = percents([claim.beyond, *claim.hull])
    hull = f"if anything may happen there, the interval is {lower} to {upper}"
    return f"For {share} of such cases no row is near this setting; {hull}."


def _estimate_dict(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()


def _claim_texts(claim: WhatIf) -> dict[str, str]:
    """The numbers of a claim as texts; empty where there is none."""
    estimate = claim.estimate
    point, *ends = percents([estimate.point, *(ends_of(estimate) or ())], claim.decimals)
    comparisons = {"baseline": claim.baseline, "unchanged": claim.unchanged}
    # The main comparison has the decimals of the claim.
    main = "baseline" if claim.unchanged is None else "unchanged"
    texts = {
        name: percents([comparison.point], claim.decimals if name == main else 0)[0] if comparison else ""
        for name, comparison in comparisons.items()
    }
    interval = f"{100 * float(estimate.level or 0):g}% interval {ends[0]} to {ends[1]}" if ends else ""
    return {"point": point, "interval": interval, **texts}


def _claim_sentence(claim: WhatIf, present: Mapping[str, Any]) -> str:
    parts = " and ".join(
        f"{name} left at {shown(present[name])}" for name in claim.setting if name in present
    )
    return claim.claim(parts or "the present values")


def is_withheld(claim: WhatIf) -> bool:
    """Whether a claim has no number."""
    return bool(claim.refused) or any(finding.kind in OUTSIDE for finding in claim.findings)


def curve(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], name: str
) -> dict[str, Any]:
    """The claim over the range of one action of a setting (of classes its places), the others fixed.

    Returns:
        Name, places ``at``, ``point``, ``lower`` and ``upper`` (None where a claim is withheld),
        whether only ``levels`` may be set, the ``texts`` of the codes 0, 1, ... if any, and ``bins``.
    """
    levelled = {*case.levels, *(coding.name for coding in case.codings if coding.reference is not None)}
    places = places_of(case, name, POINTS)
    settings = [in_indicators({**setting, name: value}, case.codings) for value in places]
    claims = what_ifs(model, case, settings)
    estimates = [None if is_withheld(claim) else claim.estimate for claim in claims]
    return {
        "name": name,
        "at": places,
        "levels": name in levelled,
        "texts": list(coding.levels) if (coding := model.task.coded.get(name)) else None,
        **{part: [getattr(claim, part, None) for claim in estimates] for part in ("point", "lower", "upper")},
        "bins": bins(model.surrogate, case, name),
    }


def densities(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], before: bool
) -> dict[str, Any] | None:
    """Histograms of the outcomes that the model predicts after a setting, and, if `before`, with no action.

    Returns:
        The share of draws in the desired region, and for each coordinate its label, bounds, edges and
        densities; None if the model draws no outcomes.
    """
    task, names = model.task, tuple(setting)
    (context,) = task.given([case])
    values = torch.tensor([setting[name] for name in names], dtype=torch.float64)
    after = model.surrogate.outcome_draws(names, context, values)
    if after is None:
        return None
    no_action = model.surrogate.outcome_draws((), context, values[:0]) if before else None
    return {
        "share": round(after.share(task.region), 4),
        "share_before": None if no_action is None else round(no_action.share(task.region), 4),
        "coordinates": [
            _density(after, no_action, coordinate, task.outcomes, bounds)
            for coordinate, bounds in enumerate(after.bounds(task.region))
        ],
    }


def _density(
    after: OutcomeDraws,
    before: OutcomeDraws | None,
    coordinate: int,
    outcomes: Sequence[str],
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """The histograms of one coordinate over the same bins."""
    row = after.basis[coordinate]
    sign = -1.0 if float(row[row.nonzero()[0]]) < 0 else 1.0
    weights = {name: sign * float(weight) for name, weight in zip(outcomes, row, strict=True) if weight}
    ends = [end if math.isfinite(end) else None for end in sorted(sign * bound for bound in bounds)]
    kinds = [kind for kind in (after, before) if kind is not None]
    draws = [sign * kind.values[:, coordinate].double().cpu().numpy() for kind in kinds]
    quantiles = [np.quantile(values, [0.005, 0.995]) for values in draws]
    low, high = min(pair[0] for pair in quantiles), max(pair[1] for pair in quantiles)
    # A bound far from all draws is left out: it would squeeze them into a line.
    near = [end for end in ends if end is not None and 2 * low - high <= end <= 2 * high - low]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.03 * (high - low) or 1.0
    edges = np.linspace(low - margin, high + margin, BINS + 1)
    heights = [np.histogram(values, edges)[0] / (len(values) * (edges[1] - edges[0])) for values in draws]
    return {
        "label": weighted_sum({name: round(weight, 6) for name, weight in weights.items()}),
        "lower": ends[0],
        "upper": ends[1],
        "edges": edges.tolist(),
        "after": heights[0].tolist(),
        "before": heights[1].tolist() if len(heights) > 1 else None,
    }


def picture(
    draw: Callable[[Axes], None], title: str, text: str, height: float = HEIGHT, columns: int = 2
) -> Picture:
    """An image with its title, what it shows in words, and its size in pixels; a legend of `columns`."""
    # The style is that of the whole process while something is drawn.
    with DRAWING, drawing():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        if columns:
            legend_below(figure, columns)
        content = svg(figure)
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
    size = {"width": round(PIXELS * WIDTH), "height": round(PIXELS * height)}
    return {"title": title, "text": text, "source": source, **size}


def claims_picture(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """The claim of each set of variables: ``name``, ``chosen``, and the parts of its `answer`."""

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            estimate, unchanged = row["estimate"], row["unchanged"]
            colour = GREEN if row["chosen"] else BLUE
            if estimate is None:
                axes.text(0.0, place, "no number", va="center", color=VERMILION)
                continue
            if estimate.get("lower") is not None:
                ends = (estimate["lower"], estimate["upper"])
                axes.hlines(place, *ends, color=colour, alpha=0.35, linewidth=7)
            axes.plot(estimate["point"], place, "o", color=colour)
            if unchanged is not None:
                axes.plot(unchanged["point"], place, "s", color=BLACK, fillstyle="none", label="present")
        if (baseline := next((row["baseline"] for row in rows if row["baseline"]), None)) is not None:
            axes.axvline(baseline["point"], color=BLACK, linestyle="--", linewidth=1.1, label="no action")
        axes.plot([], [], "o-", color=GREEN, label="set as above")
        if len(rows) > 1:
            axes.plot([], [], "o-", color=BLUE, label="other sets")
        axes.set_yticks(range(len(rows)), [short(row["name"]) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.02, 1.02), xlabel="Estimated chance")
        axes.grid(visible=False, axis="y")

    several = f"Each of {len(rows)} sets of variables" if len(rows) > 1 else "The setting"
    text = f"{several}, at the values above: a point is the claim, a bar its interval."
    return picture(draw, "Beside no action", text, 1.6 + 0.3 * len(rows))


def curve_picture(
    series: Mapping[str, Any],
    setting: float,
    claim: Mapping[str, Any] | None,
    baseline: Mapping[str, Any] | None,
    present: float | None,
    label: str,
) -> Picture:
    """The claim over one action (a curve of `charts.curves`), and what is set; None has no mark."""
    at, point, lower, upper = (
        np.array(series[part], dtype=float) for part in ("at", "point", "lower", "upper")
    )
    ordered, texts, marked = not series["texts"], series["texts"], series["levels"] or len(at) <= FEW

    def draw(axes: Axes) -> None:
        intervals(axes, at, lower, upper, marked, "interval")
        line, marker = "-" if ordered else "", "o" if marked else ""
        axes.plot(at, point, color=BLUE, linestyle=line, marker=marker, label="claim")
        if baseline is not None:
            axes.axhline(baseline["point"], color=BLACK, linestyle="--", linewidth=1.1, label="no action")
        if present is not None:
            axes.axvline(present, color=BLACK, linestyle=":", linewidth=1.4, label="present value")
        axes.axvline(setting, color=GREEN, linestyle="-.", linewidth=1.6, label="as set above")
        if claim is not None:
            axes.plot(setting, claim["point"], "o", color=GREEN)
        shade_outside(axes, at, point, marked)
        if bins := series["bins"]:
            observations(axes, *(np.array(bins[part], dtype=float) for part in ("low", "high", "counts")))
        if texts:
            axes.set_xticks(at, [short(texts[int(place)]) for place in at])
        elif series["levels"]:
            axes.set_xticks(at[:: -(-len(at) // FEW)])
        axes.set(ylim=(-0.02, 1.02), xlabel=short(label), ylabel="Estimated chance")

    missing = "; outside the data there is none" if np.isnan(point).any() else ""
    text = f"The claim over {series['name']}, all else as above{missing}. Bars are numbers of observations."
    return picture(draw, f"Over {series['name']}", text, HEIGHT + 0.3)


def outcome_picture(density: Mapping[str, Any]) -> Picture:
    """The expected outcomes beside the desired region (a coordinate of `charts.densities`)."""

    def draw(axes: Axes) -> None:
        edges = density["edges"]
        ends = [density[name] for name in ("lower", "upper")]
        if ends != [None, None]:
            low, high = (
                edge if end is None else end for end, edge in zip(ends, (edges[0], edges[-1]), strict=True)
            )
            axes.axvspan(low, high, color=GREEN, alpha=0.15, linewidth=0, label="desired")
        axes.stairs(density["after"], edges, fill=True, color=SKY, alpha=0.6, label="after this setting")
        if density["before"] is not None:
            axes.stairs(density["before"], edges, color=BLACK, linestyle="--", label="no action")
        axes.set(xlabel=short(density["label"]), yticks=[], xlim=(edges[0], edges[-1]), ylim=(0, None))

    text = "What the fitted model expects after this setting, and with no action."
    return picture(draw, f"Expected {density['label']}", text)


def course_picture(
    series: Mapping[str, Any], changed: Sequence[int], label: str, time: str, start: int, columns: int = 0
) -> Picture:
    """One quantity over the steps of an episode (a series of `episode_session.course`), from step `start`."""

    def draw(axes: Axes) -> None:
        times = np.arange(start, start + len(series["observed"]))
        axes.plot(times, series["observed"], "-o", color=BLACK, markersize=3, label="as observed")
        if series["after"] is not None:
            axes.plot(times, series["after"], "--s", color=BLUE, markersize=3, label="under these actions")
        if series["lower"] is not None:
            ends, label = (series["lower"], series["upper"]), "range of the models"
            axes.fill_between(times, *ends, color=BLUE, alpha=0.2, linewidth=0, label=label)
        for step in changed:
            span = (start + step - 0.35, start + step + 0.35)
            axes.axvspan(*span, color=ORANGE, alpha=0.25, linewidth=0, label="changed action")
        axes.set_xlabel(time)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    replayed = ", and as the model replays it under these actions" if series["after"] is not None else ""
    return picture(draw, label, f"{label} over time, as observed{replayed}.", 2.4 + 0.3 * columns, columns)


def rewards_picture(
    course: Mapping[str, Any], recommended: Mapping[str, Any] | None, labels: Sequence[str] = ()
) -> Picture:
    """The rewards of trials, the best so far, and a recommendation with its expected reward, if any; of two
    rewards, one against the other.
    """

    def draw(axes: Axes) -> None:
        if labels:
            draw_front(axes, labels, np.array(course["rewards"]), (recommended or {}).get("front", []))
            return
        axes.plot(course["numbers"], course["rewards"], "o", color=BLACK, markersize=4, label="trial")
        axes.step(course["numbers"], course["best"], where="post", color=BLUE, label="best so far")
        if recommended is not None:
            axes.axhline(recommended["predicted"], color=GREEN, linestyle="--", label="recommended")
            if recommended["lower"] is not None:
                ends = (recommended["lower"], recommended["upper"])
                axes.axhspan(*ends, color=GREEN, alpha=0.15, linewidth=0, label="its interval")
        axes.set(xlabel="Trial", ylabel="Reward")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    count = len(course["numbers"])
    what = ("Both rewards", "") if labels else ("The reward", ", and the best so far")
    text = f"{what[0]} of {'the trial' if count == 1 else f'each of {count} trials'}{what[1]}."
    return picture(draw, "Rewards", text)
