"""The pictures of the page, inside of it: the figures of the run folder, with captions and alternative texts.

A picture is a PNG file of at most 6 MiB whose first bytes say so; anything else in its place is named, not
shown. Sizes are read from the header, so that the page does not jump while it is loaded.

Source: W3C, Portable Network Graphics, Third Edition, Sec. 5.2 and 11.2.1 (signature and IHDR).
"""

import base64
import struct
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.reporting.page.markup import Markup, joined, tag
from rehearsal_torch.reporting.page.material import Material
from rehearsal_torch.reporting.style import Wording

LARGEST, MOST = 6 * 2**20, 24
# Width over height from which on a picture scrolls on a phone instead of shrinking.
WIDE = 1.7
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Name to what the figure shows: one text for everybody, and the reading of it, with the words for an episode.
CAPTIONS = {
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


def pictures(of: Material) -> Markup:
    """The figures of a run folder, in the order of `CAPTIONS`, others last; empty without any."""
    order, words = list(CAPTIONS), of.words
    folder = of.run.path / "figures"
    found = sorted(folder.glob("*.png")) if folder.is_dir() else []
    found.sort(
        key=lambda path: (
            order.index(_key(path.stem, words)) if _key(path.stem, words) in order else len(order)
        )
    )
    shown = joined(_picture(path, words) for path in found[:MOST])
    left = [path.name for path in found[MOST:]]
    return joined([shown, tag("p", f"Further figures in the folder: {', '.join(left)}.") if left else None])


def embedded(content: bytes, alternative: str, caption: Markup | str, natural: bool = False) -> Markup:
    """A figure with a picture inside the page.

    Args:
        content: A PNG file.
        alternative: What it shows, for those who do not see it.
        caption: What stands below it.
        natural: Whether it keeps its size, and scrolls where the page is narrower.

    Raises:
        ValueError: if it is not a PNG file.
    """
    if not content.startswith(SIGNATURE) or len(content) < 24:
        raise ValueError("expected a PNG file; its first bytes are not those of one")
    width, height = struct.unpack(">II", content[16:24])
    image = tag(
        "img",
        src=f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}",
        alt=alternative,
        width=min(width, 10_000),
        height=min(height, 10_000),
        class_="natural" if natural else "wide" if width > WIDE * height else None,
    )
    image = tag("div", image, class_="scroll", role="group", aria_label="picture", tabindex="0")
    return tag("figure", image, tag("figcaption", caption))


def drawn(figure: Figure, dots: int = 110) -> bytes:
    """A figure as a PNG file, equal for equal figures; to be called within `style.drawing`.

    Args:
        figure: The figure.
        dots: Dots per inch.
    """
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=dots, metadata={"Software": None})
    return stream.getvalue()


def _key(name: str, words: Wording) -> str:
    """The caption of a figure: those of training have one, and that of one unit is named after the unit."""
    if name == words.file:
        return "patient"
    return "training" if name.startswith("training_") else name


def _picture(path: Path, words: Wording) -> Markup:
    key = _key(path.stem, words)
    title, meaning = CAPTIONS.get(key, (path.stem.replace("_", " "), ""))
    if key in CAPTIONS:
        one = "an episode" if words.episode == "episode" else f"one {words.episode}"
        title, meaning = (
            said.format(one=one, episode=words.episode, episodes=words.episodes) for said in (title, meaning)
        )
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
        what = error.strerror if isinstance(error, OSError) else error
        return tag("p", f"The figure {path.name} cannot be shown: {what}.")
