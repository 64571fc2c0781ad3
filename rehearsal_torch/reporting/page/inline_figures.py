"""Figures of a run folder inside a page, with captions and alternative texts.

A figure is an SVG file of at most 6 MiB as this package writes it; anything else in its place is named, not
shown. It stands in an ``img``, in which browsers run no script and load nothing. Its size is read from its
first lines, so that the page does not jump while it is loaded. It scales with the page: two stand side by
side where there is room; a wide one takes the whole width, and scrolls where texts would be too small.
"""

import base64
import re
from pathlib import Path

from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.page.html import Markup, joined, tag
from rehearsal_torch.reporting.page.page_content import Material

LARGEST, MOST = 6 * 2**20, 24
# Pixels from which on a figure takes the whole width of the page, and the share of its own width below which
# it does not shrink: letters of 11 points are then 8 pixels high.
WIDE, LEAST = 650, 0.55
# Points of a pixel, and the bytes at the start of a file that hold its size.
POINTS, OPENING = 0.75, 4096
_ROOT, _LENGTH = re.compile(rb"<svg\b[^>]*>"), rb'\b%s="([0-9]{1,8}(?:\.[0-9]{1,12})?)pt"'
# Name of a figure to its title and its explanation.
CAPTIONS = {
    "decisions": (
        "What is claimed of each case",
        "A point is the estimate after the alteration, a bar its interval; an open square is the estimate "
        "with the present values, where these are known, and an open circle that of no action, where they "
        "are not. Shaded cases lie outside the data, and have no number.",
    ),
    "claims": (
        "The claimed probability over each action",
        "Of the decisions with the largest, the median and the smallest difference, the other actions as "
        "recommended. Shaded places lie outside the data, and have no number, also where they are "
        "recommended; bars are numbers of observations.",
    ),
    "overturning": (
        "How strong a hidden common cause would have to be",
        "For the median recommendation, the interval in which the true probability lies if a hidden common "
        "cause of the given strength exists; and the share of recommendations that stand at each strength.",
    ),
    "probability": (
        "True probability of a desired outcome, case by case",
        "Between no action and the best possible; known because the world is simulated.",
    ),
    "calibration": (
        "Estimated against true probabilities",
        "Points on the diagonal are estimates that are right; bars are their intervals.",
    ),
    "rounds": ("The run, round by round", "What happened as each answer was learnt from."),
    "recovered": (
        "Recovered against true noise, node by node",
        "On the diagonal the model has recovered what moved each node; known because the world is simulated.",
    ),
    "surrogate": (
        "What the model has learnt",
        "The reward along each action, each node along an input, and the noise; bands are what the model "
        "does not know of the mean.",
    ),
    "patient": (
        "The {episodes} with the largest, the median and the smallest predicted improvement",
        "Above, the outcome; below, what was done. Solid: as observed. Dashed: what is recommended, and what "
        "the model predicts of it; the band holds the predictions of all models of an ensemble. Time steps "
        "with a changed action are shaded.",
    ),
    "improvement": (
        "Predicted improvements over all {episodes}",
        "How many {episodes} would have been better by how many percent, under the model.",
    ),
    "outcomes": (
        "Observed and predicted outcomes",
        "Each point is {one}: as observed, and as the model predicts it under the changed actions.",
    ),
    "effort": (
        "Search effort",
        "The share of {episodes} that were solved within a number of steps or seconds.",
    ),
    "truth": (
        "Predicted against true improvements",
        "On the diagonal a prediction is right; known because the {episodes} are simulated.",
    ),
    "truth_errors": (
        "Errors of the predicted courses, variable by variable",
        "How far a predicted course is from the true one under the same actions, as a share of the error of "
        "the same model that draws chance anew, instead of recovering it from what was observed; known "
        "because the {episodes} are simulated.",
    ),
    "training": ("Training", "The loss of each epoch, on the rows that were fitted to and on held-out ones."),
}


def pictures(report: Material) -> Markup:
    """The figures of a run folder, in the order of `CAPTIONS`, others last; empty without any."""
    rank, words = {name: number for number, name in enumerate(CAPTIONS)}, report.words
    folder = report.run.path / "figures"
    files = sorted(folder.glob("*.svg")) if folder.is_dir() else []
    files.sort(key=lambda path: rank.get(_key(path.stem, words), len(rank)))
    if not files:
        return Markup()
    shown = tag("div", *(_figure_markup(path, words) for path in files[:MOST]), class_="pictures")
    further = ", ".join(path.name for path in files[MOST:])
    return joined([shown, tag("p", f"Further figures in the folder: {further}.") if further else None])


def embedded(content: bytes, alternative: str, caption: Markup | str) -> Markup:
    """A figure with an SVG file inside the page, and the text for those who do not see it. ValueError if it
    is not an SVG file with a size in points.
    """
    width, height = _size_in_pixels(content)
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode('ascii')}"
    wide = width > WIDE
    least = f"min-width: {LEAST * width:.0f}px" if wide else None
    image = tag("img", src=source, alt=alternative, width=width, height=height, style=least)
    if wide:
        image = tag("div", image, class_="scroll", role="group", aria_label="picture", tabindex="0")
    return tag("figure", tag("figcaption", caption), image, class_="wide" if wide else None)


def _size_in_pixels(content: bytes) -> tuple[int, int]:
    """Width and height in pixels."""
    root = _ROOT.search(content[:OPENING]) if content.startswith(b"<?xml") else None
    sides = [re.search(_LENGTH % side, root[0]) if root else None for side in (b"width", b"height")]
    width, height = (0 if side is None else round(float(side[1]) / POINTS) for side in sides)
    if width < 1 or height < 1:
        raise ValueError("expected an SVG file with its size in points; its first lines are not those of one")
    return width, height


def _key(name: str, words: Wording) -> str:
    """The name of a figure's caption; the figures of training share one."""
    if name == words.file:
        return "patient"
    return "training" if name.startswith("training_") else name


def _figure_markup(path: Path, words: Wording) -> Markup:
    key = _key(path.stem, words)
    title, meaning = path.stem.replace("_", " "), ""
    if key in CAPTIONS:
        unit = "an episode" if words.episode == "episode" else f"one {words.episode}"
        title, meaning = (text.format(one=unit, episodes=words.episodes) for text in CAPTIONS[key])
    if key == "training" != path.stem:
        title = f"{title}: {path.stem.removeprefix('training_').replace('_', ' ')}"
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"expected at most {LARGEST // 2**20} MiB; it is larger")
        caption = joined([tag("strong", f"{title}."), f" {meaning}" if meaning else None])
        return embedded(content, f"{title}. {meaning}".strip(), caption)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return tag("p", f"The figure {path.name} cannot be shown: {reason}.")
