"""Tables of claims about trials: how often they hold, whether chances come true, and what is lost.

Shares are over networks, with bootstrap intervals (`drawn_tables.shown`); rms z is the root mean square of
(claimed - true) / s, s the half-width of the interval over 1.96. Rewards are in percent of the range of
expected rewards in their network. What is *lost* is the true expected reward of the best tried action less
that of the recommended one; negative where the recommended one is better than all that were tried.

Source: Dawid (1982) (calibration of forecasts).
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from rehearsal_torch.evaluation.claim_rows import Row
from rehearsal_torch.evaluation.method_summaries import grouped, mean, median
from rehearsal_torch.problems.trials.random_network import NETWORK_TRAITS
from reproduction.calibration.drawn_tables import Measure, shown
from reproduction.page import Section, table
from reproduction.plan import texts

NETWORK, EQUAL, FEW, ONE = "drawn network", "equal settings", "few settings", "one dial"
# Networks of a report.
REPORT = 60
# The lower ends of the groups of claimed chances; the last one ends at 1.
CHANCES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
POOLED = "all rounds"
# How much of the range the recommended action must lose for rounds to have made it worse.
WORSE = 0.01


def sections(rows: Sequence[Row]) -> Iterator[Section]:
    """The part of the page about trials, for each method and each report; nothing without rows."""
    if rows:
        yield Section(["## Trials in networks by seed", texts("calibration")["trials"]])
    for (method,), some in grouped(rows, "method").items():
        reports = dict[int, list[Row]]()
        for row in some:
            # Reports begin at 1000 and at every sixtieth seed from there.
            reports.setdefault((row["seed"] - 1000) // REPORT, []).append(row)
        for _, reported in sorted(reports.items()):
            seeds = [row["seed"] for row in reported]
            heading = f"### `{method}`, seeds {min(seeds)} to {max(seeds)}"
            yield Section([heading, *tables(reported)])


def tables(rows: Sequence[Row]) -> list[list[str]]:
    """The tables of one method: calibration, losses and chances."""
    networks = [row for row in rows if row["dataset"] == NETWORK]
    found = [claims_table(networks), losses_table(networks)] if networks else []
    return [*found, chances_table(rows)]


def claims_table(rows: Sequence[Row]) -> list[str]:
    """How often intervals hold the truth, a column for each round, as Markdown.

    Args:
        rows: Those of networks.
    """
    parts: dict[str, list[Row]] = {
        "all": list(rows),
        "residuals silent": [row for row in rows if row["silent"] == 1],
        "residuals not silent": [row for row in rows if row["silent"] == 0],
        "no trait": [row for row in rows if not row["traits"]],
    } | {trait: [row for row in rows if trait in row["traits"].split()] for trait in NETWORK_TRAITS}
    lines = {
        "networks": {at: str(len({row["seed"] for row in some})) for at, some in _by_round(rows).items()}
    }
    for name, some in parts.items():
        if some:
            held: Measure = lambda row: row["held"]  # noqa: E731
            lines[f"holds, {name}"] = {at: shown(each, held, 100) for at, each in _by_round(some).items()}
    for name, some in ((each, parts[each]) for each in ("all", "residuals silent") if parts[each]):
        lines[f"rms z, {name}"] = {
            at: f"{math.sqrt(mean([_z(row) ** 2 for row in each])):.2f}"
            for at, each in _by_round(some).items()
        }
    widths = {
        at: f"{100 * median([(row['high'] - row['low']) / row['reach'] for row in each]):.1f}%"
        for at, each in _by_round(rows).items()
    }
    return _table(lines | {"median width": widths}, rows)


def losses_table(rows: Sequence[Row]) -> list[str]:
    """What is lost and what more rounds bring, a column for each round, as Markdown.

    Args:
        rows: Those of networks.
    """
    lines: dict[str, dict[str, str]] = {}
    before = dict[int, Row]()
    for at, some in _by_round(rows).items():
        lost = [_share(row, row["tried"] - row["true"]) for row in some]
        cells = {
            "lost, mean": shown(some, lambda row: _share(row, row["tried"] - row["true"]), 100),
            "lost, worst": f"{100 * max(lost):.1f}%",
            "below the optimum": shown(some, lambda row: _share(row, row["optimum"] - row["true"]), 100),
            "claimed - true": shown(some, lambda row: _share(row, row["claimed"] - row["true"]), 100),
        }
        if at != POOLED:
            pairs = [
                row | {"gained": row["true"] - before[row["seed"]]["true"]}
                for row in some
                if row["seed"] in before
            ]
            cells["gained since"] = shown(pairs, lambda row: _share(row, row["gained"]), 100)
            cells[f"worse by {WORSE:.0%}"] = shown(
                pairs, lambda row: float(_share(row, row["gained"]) < -WORSE), 100
            )
            before |= {row["seed"]: row for row in some}
        seconds = [row["seconds"] for row in some if not math.isnan(row["seconds"])]
        cells["CPU s, round"] = f"{mean(seconds):.2f}" if seconds else "-"
        for name, cell in cells.items():
            lines.setdefault(name, {})[at] = cell
    return _table(lines, rows)


def chances_table(rows: Sequence[Row]) -> list[str]:
    """Claimed chances that the recommended action is better than the runner-up, in groups, beside the share
    that is and the closed form, as Markdown.
    """
    lines = []
    for (world,), every in grouped(rows, "dataset").items():
        if unknown := sum(math.isnan(row["chance"]) for row in every):
            lines.append({"": str(world), "claimed chance": "no runner-up", "claims": str(unknown)})
        for low, high in zip(CHANCES, (*CHANCES[1:], math.inf), strict=True):
            some = [row for row in every if low <= row["chance"] < high]
            if some:
                lines.append(
                    {
                        "": str(world),
                        "claimed chance": f"{low:g} to {min(high, 1.0):g}",
                        "claims": str(len(some)),
                        "mean": _percent([row["chance"] for row in some]),
                        "closed form": _percent([row["exact"] for row in some]),
                        "better": shown(some, lambda row: row["better"], 100),
                    }
                )
    return table(lines)


def _by_round(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Heading to rows, by round, then all of them."""
    rounds = sorted({row["round"] for row in rows})
    found = {_heading(done): [row for row in rows if row["round"] == done] for done in rounds}
    return found | {POOLED: list(rows)}


def _heading(done: int) -> str:
    return f"round {done}" if done else "start"


def _table(lines: Mapping[str, Mapping[str, str]], rows: Sequence[Row]) -> list[str]:
    return table([{"": name, **cells} for name, cells in lines.items()], ["", *_by_round(rows)])


def _z(row: Row) -> float:
    """The error in standard deviations of the interval; infinite where it is a point."""
    deviation = (row["high"] - row["low"]) / 3.92
    return float((row["claimed"] - row["true"]) / deviation) if deviation > 0 else math.inf


def _share(row: Row, value: float) -> float:
    return float(value / row["reach"])


def _percent(values: Sequence[float]) -> str:
    """The mean of what is known."""
    known = [value for value in values if not math.isnan(value)]
    return f"{100 * mean(known):.1f}%" if known else "-"
