"""The pictures of the page, inside of it: the figures of the run folder, with captions and alternative texts.

A picture is a PNG file of at most 6 MiB whose first bytes say so; anything else in its place is named, not
shown. Sizes are read from the header, so that the page does not jump while it is loaded. A figure of several
panels that says where they lie (`narrow.png`) is cut into them: side by side where there is room for several,
one below the other on a phone, with the texts of its legend and its heading as texts of the page.
"""

import base64
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.reporting.narrow import png
from rehearsal_torch.reporting.page.markup import Markup, bullets, joined, tag
from rehearsal_torch.reporting.page.material import Material
from rehearsal_torch.reporting.style import Wording

LARGEST, MOST = 6 * 2**20, 24
# Width over height from which on a picture that cannot be cut scrolls on a phone instead of shrinking.
WIDE = 1.7
# Pixels of the screen for each inch of a panel: at least, where several stand side by side, and at most; and
# for each inch of a legend's sign.
NARROW, BROAD, SIGN = 80, 130, 96
# The widest column of texts of a page, the narrowest, and what a screen has beside it, in pixels.
COLUMN, PHONE, BESIDE = 888, 290, 40
# Name to what the figure shows: one text for everybody, and the reading of it, with the words for an episode.
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


def embedded(content: bytes, alternative: str, caption: Markup | str) -> Markup:
    """A figure with a picture inside the page, in its panels if it says where they lie.

    Args:
        content: A PNG file.
        alternative: What it shows, for those who do not see it.
        caption: What stands above it.

    Raises:
        ValueError: if it is not a PNG file, or one that says where its panels lie and is damaged.
    """
    found = png.read(content)
    shown = _whole(content, alternative) if found is None else _in_panels(content, found, alternative)
    return tag("figure", tag("figcaption", caption), shown)


def either(wide: bytes, narrow: bytes, alternative: str, caption: Markup | str, least: float) -> Markup:
    """A figure that a page has in two forms, of which it shows the one that fits the screen.

    Args:
        wide: A PNG file for screens that are wide enough.
        narrow: A PNG file of two dots per pixel for others.
        alternative: What both show.
        caption: What stands above them.
        least: Pixels that the wide one needs for its texts to be legible.

    Raises:
        ValueError: if one is not a PNG file.
    """
    width, height = (length // 2 for length in png.size(narrow))
    if least > COLUMN:
        shown = tag("img", src=source(narrow), alt=alternative, width=width, height=height)
    elif least <= PHONE:
        shown = _image(wide, alternative)
    else:
        media = f"(max-width: {least + BESIDE:.0f}px)"
        shown = tag(
            "picture",
            tag("source", media=media, srcset=source(narrow), width=width, height=height),
            _image(wide, alternative),
        )
    return tag("figure", tag("figcaption", caption), shown)


def drawn(figure: Figure, dots: int = 110) -> bytes:
    """A figure as a PNG file, equal for equal figures; to be called within `style.drawing`.

    Args:
        figure: The figure.
        dots: Dots per inch.
    """
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=dots, metadata={"Software": None})
    return stream.getvalue()


def source(content: bytes) -> str:
    """A PNG file as an address that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def _image(content: bytes, alternative: str, **attributes: object) -> Markup:
    width, height = (min(length, 10_000) for length in png.size(content))
    return tag("img", src=source(content), alt=alternative, width=width, height=height, **attributes)


def _whole(content: bytes, alternative: str) -> Markup:
    """A picture of one panel, or one of several that does not say where they lie."""
    width, height = png.size(content)
    if width <= WIDE * height:
        return _image(content, alternative, class_="alone")
    image = _image(content, alternative, class_="wide")
    return tag("div", image, class_="scroll", role="group", aria_label="picture", tabindex="0")


def _in_panels(content: bytes, found: png.Regions, alternative: str) -> Markup:
    """Heading, legend and panels; each panel says what it shows, and their group what the figure does."""
    pieces = png.cut(content, [*found.signs, *found.panels])
    signs, panels = pieces[: len(found.signs)], pieces[len(found.signs) :]
    legend = bullets(
        (
            joined([_sign(piece, part, found.dots), part.says])
            for piece, part in zip(signs, found.signs, strict=True)
        ),
        "signs",
    )
    inches = max(part.width for part in found.panels) / found.dots
    grid = tag(
        "div",
        *(_image(piece, part.says or alternative) for piece, part in zip(panels, found.panels, strict=True)),
        class_="panels",
        role="group",
        aria_label=alternative,
        style=f"--least: {NARROW * inches:.0f}px; --most: {BROAD * inches:.0f}px",
    )
    return joined(
        [tag("p", found.heading, class_="caption") if found.heading else None, legend or None, grid]
    )


def _sign(content: bytes, part: png.Part, dots: int) -> Markup:
    """A sign of a legend, whose text stands beside it."""
    width = SIGN * part.width / dots
    return tag(
        "img",
        src=source(content),
        alt="",
        role="presentation",
        width=round(width),
        height=round(width * (part.box[3] - part.box[1]) / part.width),
    )


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
