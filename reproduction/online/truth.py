"""How often the bounds of the posterior mean and of the truth hold the truth: a section of README.md.

Shares are means over repeats, with the 95 % bootstrap interval over repeats: the rounds of a repeat share
their rows, so that a hundred rounds are far from a hundred independent trials. The rule that the bound for
the truth has to keep was set before the first repeat and is stated in study.yaml and in the section.

Source: Qin et al. (2023), Thm. 7 and Fig. 4 (the bound of the posterior mean); that of the truth is ours.
"""

from collections.abc import Callable, Mapping, Sequence

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import Row, by_run
from rehearsal_torch.evaluation.method_summaries import grouped, mean
from rehearsal_torch.reporting.figures import round_figures
from reproduction.page import Section, table
from reproduction.plan import texts

TEXTS = texts("online")
# First and last round of each part of a run.
PARTS = ((1, 20), (21, 50), (51, 100))
# The rule: least share inside, least share of lower bounds reached, largest mean width after round 50.
INSIDE, REACHED, WIDTH, LATE = 0.92, 0.95, 0.16, 51
LABEL = "tau = 0.7"

_QUANTITIES: Mapping[str, Callable[[Row], float]] = {
    "truth inside the bound of the mean": lambda row: row["lower"] <= row["p_true"] <= row["upper"],
    "its width": lambda row: row["upper"] - row["lower"],
    "truth inside the bound of the truth": lambda row: (
        row["truth_lower"] <= row["p_true"] <= row["truth_upper"]
    ),
    "lower bound of the truth reached": lambda row: row["truth_least"] <= row["p_true"],
    "width": lambda row: row["truth_upper"] - row["truth_lower"],
}
_INSIDE, _REACHED, _WIDTH = list(_QUANTITIES)[2:]


def truth(rows: Sequence[Row]) -> Section:
    """The section, with one line of the table per world and part of the run; empty without rows.

    Args:
        rows: The rows of the method with both bounds; rounds without an alteration have no bounds and are
            left out.
    """
    bounded = [row for row in rows if row["truth_lower"] == row["truth_lower"]]
    if not bounded:
        return Section()
    items, body, worlds = [], [], dict[str, dict[str, Sequence[Row]]]()
    for (world,), each in grouped(bounded, "world").items():
        worlds[str(world)] = {LABEL: [row for row in rows if row["world"] == world]}
        repeats = str(len(by_run(each, "repeat")))
        for first, last in ((1, max(row["round"] for row in each)), *PARTS):
            some = _between(each, first, last)
            if some:
                cells = {name: _shown(_over_repeats(some, name)) for name in _QUANTITIES}
                body.append({"world": str(world), "rounds": f"{first}-{last}", **cells, "repeats": repeats})
        items.append(kept(str(world), each))
    numbers = sorted({row["repeat"] for row in rows})
    text = TEXTS["truth"].format(seeds=f"{numbers[0]} to {numbers[-1]}")
    return Section(
        ["## Bounds for the mean and for the truth", text, items, table(body)],
        {"truth": round_figures.draw_online(worlds)},
    )


def kept(world: str, rows: Sequence[Row]) -> str:
    """What the rule asks for in a world, what was reached, and whether that keeps the rule.

    Args:
        world: Name of the world.
        rows: Its rows, all with bounds.
    """
    inside, reached = (_over_repeats(rows, name).mean for name in (_INSIDE, _REACHED))
    late = _between(rows, LATE, max(row["round"] for row in rows))
    width = _over_repeats(late, _WIDTH).mean
    words = {True: "kept", False: "not kept"}
    return TEXTS["rule"].format(
        world=world,
        inside=f"{inside:.3f}",
        inside_kept=words[inside >= INSIDE],
        reached=f"{reached:.3f}",
        reached_kept=words[reached >= REACHED],
        width=f"{width:.3f}" if late else "-",
        width_kept=words[width <= WIDTH] if late else "no such rounds",
    )


def _between(rows: Sequence[Row], first: int, last: int) -> list[Row]:
    return [row for row in rows if first <= row["round"] <= last]


def _over_repeats(rows: Sequence[Row], name: str) -> Interval:
    """The mean of a quantity over repeats, each the mean over its rounds."""
    value = _QUANTITIES[name]
    return mean_interval(
        [mean([float(value(row)) for row in some]) for some in by_run(rows, "repeat").values()]
    )


def _shown(found: Interval) -> str:
    ends = "" if found.low != found.low else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.mean:.3f}{ends}"
