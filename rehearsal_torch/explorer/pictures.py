"""Pictures of the pages: SVG in the style of the report's figures, and a text for those who do not see them.

Each is drawn from the plain data of an answer. A picture is an image at a data URL, in which no script runs.
"""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.reporting.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    SKY,
    VERMILION,
    drawing,
    legend_below,
    svg,
)

# Inches of a picture, pixels of one, and characters of a label.
WIDTH, HEIGHT, PIXELS, LONGEST = 4.6, 3.2, 96, 40
GREY = "#B4B4B4"
# Levels, or steps, whose points are drawn one by one; height of the tallest bar of observations.
FEW, TALLEST = 12, 0.2
Picture = dict[str, Any]


def picture(
    draw: Callable[[Axes], None], title: str, text: str, height: float = HEIGHT, columns: int = 2
) -> Picture:
    """An image with its title, what it shows in words, and its size in pixels; a legend of `columns`."""
    with drawing():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        if columns:
            legend_below(figure, columns)
        content = svg(figure)
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
    size = {"width": round(PIXELS * WIDTH), "height": round(PIXELS * height)}
    return {"title": title, "text": text, "source": source, **size}


def short(text: str) -> str:
    """A label of limited length, in which nothing is a formula."""
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...").replace("$", r"\$")


def claims_picture(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """The claim of each set of variables: ``name``, ``chosen``, and the parts of its `answer`."""

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            estimate, unchanged = row["estimate"], row["unchanged"]
            colour = GREEN if row["chosen"] else BLUE
            if estimate is None:
                axes.text(0.5, place, "no number", ha="center", va="center", color=VERMILION)
                continue
            if estimate.get("lower") is not None:
                ends = (estimate["lower"], estimate["upper"])
                axes.hlines(place, *ends, color=colour, alpha=0.35, linewidth=7)
            axes.plot(estimate["point"], place, "o", color=colour)
            if unchanged is not None:
                style = {"color": BLACK, "fillstyle": "none", "label": "present values"}
                axes.plot(unchanged["point"], place, "s", **style)
        if (baseline := next((row["baseline"] for row in rows if row["baseline"]), None)) is not None:
            axes.axvline(baseline["point"], color=BLACK, linestyle="--", linewidth=1.1, label="no action")
        axes.plot([], [], "o-", color=GREEN, label="set as above")
        if len(rows) > 1:
            axes.plot([], [], "o-", color=BLUE, label="other sets")
        axes.set_yticks(range(len(rows)), [short(row["name"]) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.02, 1.02), xlabel="Claimed probability")
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
        np.array([math.nan if value is None else value for value in series[part]], dtype=float)
        for part in ("at", "point", "lower", "upper")
    )
    ordered, texts, marked = not series["texts"], series["texts"], series["levels"] or len(at) <= FEW

    def draw(axes: Axes) -> None:
        if np.isfinite(lower).any():
            if marked:
                axes.vlines(at, lower, upper, color=BLUE, alpha=0.35, linewidth=5, label="interval")
            else:
                axes.fill_between(at, lower, upper, color=BLUE, alpha=0.2, linewidth=0, label="interval")
        style = {"linestyle": "-" if ordered else "", "marker": "o" if marked else ""}
        axes.plot(at, point, color=BLUE, label="claim", **style)
        if baseline is not None:
            line = {"color": BLACK, "linestyle": "--", "linewidth": 1.1}
            axes.axhline(baseline["point"], label="no action", **line)
        if present is not None:
            axes.axvline(present, color=BLACK, linestyle=":", linewidth=1.4, label="present value")
        axes.axvline(setting, color=GREEN, linestyle="-.", linewidth=1.6, label="as set above")
        if claim is not None:
            axes.plot(setting, claim["point"], "o", color=GREEN)
        edges = np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]])
        for start, end in zip(edges[:-1][np.isnan(point)], edges[1:][np.isnan(point)], strict=True):
            axes.axvspan(start, end, color=PALE, linewidth=0, zorder=0.2, label="outside the data")
        if bins := series["bins"]:
            _observations(axes, bins)
        if texts:
            axes.set_xticks(at, [short(texts[int(place)]) for place in at])
        elif series["levels"]:
            axes.set_xticks(at[:: -(-len(at) // FEW)])
        axes.set(ylim=(-0.02, 1.02), xlabel=short(label), ylabel="Claimed probability")

    missing = "; outside the data there is none" if np.isnan(point).any() else ""
    text = f"The claim over {series['name']}, all else as above{missing}. Bars are numbers of observations."
    return picture(draw, f"Over {series['name']}", text, HEIGHT + 0.3)


def _observations(axes: Axes, bins: Mapping[str, Any]) -> None:
    """Bars of numbers of observations from below; those of 1 to 4, which are not told apart, are low."""
    low, high = np.array(bins["low"]), np.array(bins["high"])
    counts = np.array([2.5 if count is None else count for count in bins["counts"]], dtype=float)
    heights = TALLEST * counts / max(counts.max(), 5.0)
    style: dict[str, Any] = {"align": "edge", "zorder": 0.5, "transform": axes.get_xaxis_transform()}
    axes.bar(low, heights, high - low, color=GREY, alpha=0.6, label="observations", **style)
    margin = 0.03 * (high.max() - low.min())
    axes.set_xlim(low.min() - margin, high.max() + margin)


def outcome_picture(density: Mapping[str, Any]) -> Picture:
    """The expected outcomes beside the desired region (a coordinate of `charts.densities`)."""

    def draw(axes: Axes) -> None:
        edges = density["edges"]
        ends = [density[name] for name in ("lower", "upper")]
        if ends != [None, None]:
            low, high = (edge if end is None else end for end, edge in zip(ends, (edges[0], edges[-1]), strict=True))
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
            style = {"color": BLUE, "markersize": 3}
            axes.plot(times, series["after"], "--s", label="under these actions", **style)
        if series["lower"] is not None:
            band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": "range of the models"}
            axes.fill_between(times, series["lower"], series["upper"], **band)
        for step in changed:
            span = (start + step - 0.35, start + step + 0.35)
            axes.axvspan(*span, color=ORANGE, alpha=0.25, linewidth=0, label="changed action")
        axes.set_xlabel(time)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    replayed = ", and as the model replays it under these actions" if series["after"] is not None else ""
    return picture(draw, label, f"{label} over time, as observed{replayed}.", 2.4 + 0.3 * columns, columns)


def rewards_picture(course: Mapping[str, Any], recommended: Mapping[str, Any] | None) -> Picture:
    """The rewards of trials, the best so far, and a recommendation with its expected reward, if any."""

    def draw(axes: Axes) -> None:
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
    text = f"The reward of {'the trial' if count == 1 else f'each of {count} trials'}, and the best so far."
    return picture(draw, "Rewards", text)
