"""The study of structural rehearsal models as tables and figures: each function takes rows and gives lines of
Markdown and figures.

Source: Qin et al. (2023), Fig. 4 and Tab. 1 (layout).
"""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.online_rows import Row
from rehearsal_torch.evaluation.summaries import LAST, OnlineSummary, grouped, online_summary
from rehearsal_torch.reporting.cross_table import as_markdown
from rehearsal_torch.reporting.decision_table import figure, percent
from rehearsal_torch.reporting.figures import online_panels
from rehearsal_torch.studies.study_files import published, study, texts

Section = tuple[list[str], dict[str, Figure]]
MAIN, PUBLISHED, SUCCESS, COUNTERPARTS, CHANGING = (
    "qwz23",
    "qwz23_published",
    "qwz23_success",
    ("causal", "associative"),
    "two_stores",
)
TAU, HIGH = str(published("online")["tau"]), "0.9"
WORLDS = tuple(study("online").worlds)
TABLE1_HEADS = [
    "world",
    "method",
    "probability",
    "successes",
    f"last {LAST} rounds",
    "best possible",
    "paper",
    "repeats",
]


def table1(rows: Sequence[Row], played: Sequence[Row], longer: Mapping[int, Sequence[Row]]) -> Section:
    """Table 1: the average probability of success at tau = .7, and that of reinforcement learning agents.

    Args:
        rows: Of the rehearsal methods.
        played: Of agents, over as many rounds.
        longer: Of agents, number of rounds to rows.
    """
    chosen = [row for row in rows if row["tau"] in ("", TAU) and row["world"] != CHANGING]
    body = []
    for (world, method), some in _sorted([*chosen, *played], "world", "method"):
        paper = published("online")["table1"].get(world.removesuffix("_released"), {}).get(method)
        body.append(
            [
                world,
                f"`{method}`",
                *_reached(online_summary(some)),
                figure(paper),
                str(online_summary(some).repeats),
            ]
        )
    if not body:
        return [], {}
    text = ["## Table 1: average probability of success, tau = 0.7", "", *as_markdown(TABLE1_HEADS, body)]
    return [*text, *(line for rounds, those in longer.items() for line in _longer(rounds, those))], {}


def fig4(rows: Sequence[Row]) -> Section:
    """Fig. 4: each tau, round by round."""
    worlds, lines = {}, []
    for world in _worlds(rows):
        some = [row for row in rows if row["world"] == world and row["method"] == MAIN]
        taus = sorted({row["tau"] for row in some}, key=float)
        if not some:
            continue
        worlds[world] = {f"tau = {tau}": [row for row in some if row["tau"] == tau] for tau in taus}
        for name, each in worlds[world].items():
            one = online_summary(each)
            told = [
                f"{one.information:.3f}",
                f"{one.information_late:.3f}",
                f"{one.width:.3f}",
                percent(one.covered),
                percent(one.covered_late),
            ]
            lines.append([world, name, *_reached(one), *told, _targets(one), str(one.repeats)])
    if not worlds:
        return [], {}
    heads = [
        "world",
        "",
        "probability",
        "successes",
        f"last {LAST}",
        "best possible",
        "information",
        f"last {LAST}",
        "bound's width",
        "truth inside",
    ]
    table = as_markdown([*heads, f"last {LAST}", "altered", "repeats"], lines)
    said = texts("online")["fig4"]
    bounded = dict.fromkeys(worlds, f"tau = {TAU}")
    return ["## Fig. 4: rounds at each tau", "", said, "", *table], {
        "fig4": online_panels.draw(worlds, bounded)
    }


def policies(rows: Sequence[Row]) -> Section:
    """Policies at the paper's tau: informative, as published, refusing, success alone."""
    others = (*COUNTERPARTS, "none", "forgetting")
    some = [
        row
        for row in rows
        if row["tau"] in ("", TAU) and row["method"] not in others and row["world"] != CHANGING
    ]
    return _compared(some, "## Policies at tau = 0.7", "policies")


def counterparts(rows: Sequence[Row]) -> Section:
    """Influence beside causation without bi-directional edges and beside correlation."""
    worlds = {row["world"] for row in rows if row["method"] in COUNTERPARTS}
    some = [
        row
        for row in rows
        if row["tau"] in ("", TAU)
        and row["method"] in (MAIN, *COUNTERPARTS, "none")
        and row["world"] in worlds
    ]
    numbers = {(row["world"], row["repeat"]) for row in some if row["method"] in COUNTERPARTS}
    lines, figures = _compared(
        [row for row in some if (row["world"], row["repeat"]) in numbers],
        "## When modelling influence pays",
        "counterparts",
    )
    said = texts("online")["counterparts"]
    return [*lines[:2], said, "", *lines[2:]] if lines else [], figures


def changing(rows: Sequence[Row]) -> Section:
    """A world that changes half-way: with and without forgetting."""
    some = [row for row in rows if row["world"] == CHANGING and row["tau"] == ""]
    if not some:
        return [], {}
    half, body = max(row["round"] for row in some) // 2, []
    for (method,), those in grouped(some, "method").items():
        before, after = ([row for row in those if (row["round"] <= half) == early] for early in (True, False))
        cells = (
            [text for part in (before, after) for text in _reached(online_summary(part))[:1]]
            if before and after
            else ["-", "-"]
        )
        one = online_summary(those)
        body.append([f"`{method}`", *cells, figure(one.late), figure(one.late + one.left), str(one.repeats)])
    heads = [
        "method",
        "before the change",
        "after it",
        f"last {LAST} rounds",
        "best possible there",
        "repeats",
    ]
    said = texts("online")["changing"]
    figures = {
        "changing": online_panels.draw(
            {CHANGING: {str(method): those for (method,), those in grouped(some, "method").items()}}
        )
    }
    return ["## A world that changes (Fig. 2d)", "", said, "", *as_markdown(heads, body)], figures


def goals(rows: Sequence[Row]) -> list[str]:
    """What was aimed at, and whether it was reached."""
    text = []
    for world in (world for world in _worlds(rows) if world != CHANGING):
        for method, tau in ((MAIN, TAU), (SUCCESS, ""), (MAIN, HIGH), (PUBLISHED, HIGH)):
            some = [row for row in rows if (row["world"], row["method"], row["tau"]) == (world, method, tau)]
            if not some:
                continue
            one = online_summary(some)
            text.append(
                f"- {world}: {_goal(one, method, tau)}; {one.repeats} repeat{'s' if one.repeats > 1 else ''}."
            )
    return text


def _goal(one: OnlineSummary, method: str, tau: str) -> str:
    said, mean = texts("online"), one.probability.mean
    if tau == HIGH:
        instead = said["instead" if method == MAIN else "instead_published"]
        return said["out_of_reach"].format(oracle=one.oracle, instead=instead, method=method, mean=mean)
    if method == MAIN:
        least = "at least" if mean >= 0.7 else "below"
        share = one.targets.get("recommend")
        end = "" if share is None else said["recommended"].format(share=percent(share))
        return said["reached"].format(mean=mean, least=least, oracle=one.oracle) + end
    reached = "within" if one.left <= 0.02 else "not within"
    return said["success"].format(late=one.late, last=LAST, left=one.left, reached=reached)


def _longer(rounds: int, rows: Sequence[Row]) -> list[str]:
    body = []
    for (world, method), some in _sorted(rows, "world", "method"):
        one = online_summary(some, max(rounds // 10, 1))
        body.append(
            [
                world,
                f"`{method}`",
                *_reached(one),
                figure(published("online")["long"].get(world, {}).get(method)),
                str(one.repeats),
            ]
        )
    heads = ["last tenth" if head.startswith("last") else head for head in TABLE1_HEADS]
    return ["", f"### After {rounds} rounds", "", *as_markdown(heads, body)]


def _compared(rows: Sequence[Row], head: str, name: str) -> Section:
    methods = {row["method"] for row in rows}
    if len(methods) < 2:
        return [], {}
    body, worlds = [], dict[str, dict[str, Sequence[Row]]]()
    for (world, method), some in _sorted(rows, "world", "method"):
        one = online_summary(some)
        worlds.setdefault(world, {})[method] = some
        body.append(
            [
                world,
                f"`{method}`",
                *_reached(one),
                percent(one.targets.get("-", 0.0)),
                _targets(one),
                f"{one.seconds:.2g}",
                str(one.repeats),
            ]
        )
    heads = [
        "world",
        "method",
        "probability",
        "successes",
        f"last {LAST}",
        "best possible",
        "nothing altered",
        "altered",
        "seconds a round",
        "repeats",
    ]
    return [head, "", *as_markdown(heads, body)], {name: online_panels.draw(worlds)}


def _reached(one: OnlineSummary) -> list[str]:
    std = "" if math.isnan(one.std) else f" ± {one.std:.3f}"
    return [
        f"{figure(one.probability.mean)}{std}",
        f"{one.successes:.1f}",
        figure(one.late),
        figure(one.oracle),
    ]


def _targets(one: OnlineSummary) -> str:
    shares = [(name, share) for name, share in one.targets.items() if name != "-"]
    return ", ".join(f"{name} {100 * share:.1f}%" for name, share in shares[:3]) or "-"


def _worlds(rows: Sequence[Row]) -> list[str]:
    present = {row["world"] for row in rows}
    return [*(world for world in WORLDS if world in present), *sorted(present - set(WORLDS))]


def _sorted(rows: Sequence[Row], *keys: str) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Groups in the order of worlds, and of appearance within."""
    order = _worlds(rows)
    found = [(tuple(map(str, key)), some) for key, some in grouped(rows, *keys).items()]
    return sorted(found, key=lambda pair: order.index(pair[0][0]))
