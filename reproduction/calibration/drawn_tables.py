"""Tables of decisions in worlds by seed, by trait: harm, coverage and width of estimate and gain, true gains.

    harm        share of the decisions whose true probability is more than .02 below that of no action
    true gain   P(decision) - P(no action), over all cases; 0 where nothing is altered
    model       the interval of the model alone, ``model.estimate`` and ``model.gain`` in the trace; without
                them that of the decision
    hull        the interval that counts what lies beyond the rows as anything from 0 to 1, ``hull.estimate``
                and ``hull.gain``
    S           the share of what a decision rests on that no row is near, ``beyond``

Intervals of means are bootstrap intervals over whole worlds (`evaluation.bootstrap`).
"""

import math
from collections.abc import Callable, Iterator, Sequence

from rehearsal_torch.evaluation.bootstrap import mean_interval
from rehearsal_torch.evaluation.rows import Row
from rehearsal_torch.evaluation.summaries import grouped, mean
from rehearsal_torch.problems.rehearsal.drawn_world import TRAITS
from reproduction.page import table

WORSE = 0.02
# Largest S of the decisions that a line counts.
SUPPORTED = {"": math.inf, ", S <= .05": 0.05, ", S <= .2": 0.2}
Measure = Callable[[Row], float]


def true_gain(row: Row) -> float:
    """The true gain of a decision over no action."""
    return float(row["auf"] - row["no_action"]) if row["status"] != "leave" else 0.0


def harmed(row: Row) -> float:
    """Whether a decision is truly worse than no action."""
    return float(true_gain(row) < -WORSE)


def ends(row: Row, of: str, kind: str) -> tuple[float, float]:
    """An interval of the ``estimate`` or the ``gain``: of the ``model``, the ``hull``, or as ``printed``."""
    printed = row[f"{of}_lower"], row[f"{of}_upper"]
    if kind == "printed":
        return printed
    low, high = row["trace"].get(f"{kind}.{of}", printed if kind == "model" else (math.nan, math.nan))
    return low, high


def by_trait(rows: Sequence[Row]) -> list[str]:
    """The table of one method, a column for all worlds and for each trait, as Markdown."""
    traits = {str(trait): [row for row in rows if row["trait"] == trait] for trait in TRAITS}
    columns = {"all": list(rows), **{trait: some for trait, some in traits.items() if some}}
    lines: dict[str, dict[str, str]] = {}
    for column, some in columns.items():
        for name, cell in _cells(some):
            lines.setdefault(name, {"": name})[column] = cell
    known = [line for line in lines.values() if set(line.values()) - {"-", line[""]}]
    return table(known, ["", *columns])


def by_method(rows: Sequence[Row]) -> list[str]:
    """A heading and a table for each method."""
    return [
        f"{method}\n\n" + "\n".join(by_trait(some)) for (method,), some in grouped(rows, "method").items()
    ]


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    acts = {status: [row for row in rows if row["status"] == status] for status in ("do", "may", "leave")}
    chosen = [*acts["do"], *acts["may"]]
    yield "worlds", str(len({row["seed"] for row in rows}))
    for status in acts:
        yield f"*{status}*", _of(rows, lambda row, status=status: float(row["status"] == status), 100)
    for status in ("do", "may"):
        yield f"harmed among *{status}*", _of(acts[status], harmed, 100)
    yield "harmed of all cases", _of(rows, harmed, 100)
    yield "true gain", _of(rows, true_gain)
    yield "true gain, *do* alone", _of(rows, lambda row: true_gain(row) * (row["status"] == "do"))
    yield "best of a grid", _of(rows, lambda row: row["oracle"] - row["no_action"])
    for status in ("do", "may"):
        yield f"claimed - true, *{status}*", _of(acts[status], lambda row: row["estimate"] - row["auf"])
    for of, true in (("estimate", lambda row: row["auf"]), ("gain", true_gain)):
        for kind in ("printed", "model", "hull"):
            for words, most in SUPPORTED.items():
                some = [row for row in chosen if not row["trace"].get("beyond", 0.0) > most]
                yield from _interval(f"{of}, {kind}{words}", some, of, kind, true)
    yield from _interval("no action", rows, "baseline", "printed", lambda row: row["no_action"])
    yield "no action, claimed - true", _of(rows, lambda row: row["baseline"] - row["no_action"])
    for name in ("fit", "decision"):
        spent = {row["seed"]: row[f"{name}_seconds"] for row in rows}
        cases = 1 if name == "fit" else len(rows) / max(len(spent), 1)
        yield f"CPU s, {name}", f"{mean(list(spent.values())) / cases:.2f}"


def _interval(name: str, rows: Sequence[Row], of: str, kind: str, true: Measure) -> Iterator[tuple[str, str]]:
    known = [row for row in rows if not math.isnan(sum(ends(row, of, kind)))]
    rounding = 1e-9

    def held(row: Row) -> float:
        low, high = ends(row, of, kind)
        return float(low - rounding <= true(row) <= high + rounding)

    yield f"{name}: holds", _of(known, held, 100)
    yield f"{name}: width", _of(known, lambda row: ends(row, of, kind)[1] - ends(row, of, kind)[0])


def _of(rows: Sequence[Row], measure: Measure, times: float = 1.0) -> str:
    """The mean of a measure with its interval over worlds; "-" where nothing is known."""
    pairs = [(measure(row), str(row["seed"])) for row in rows]
    pairs = [pair for pair in pairs if not math.isnan(pair[0])]
    if not pairs:
        return "-"
    found = mean_interval(*zip(*pairs, strict=True)).times(times)
    form = ".1f" if times > 1 else ".3f"
    shown = "" if math.isnan(found.low) else f" [{found.low:{form}}, {found.high:{form}}]"
    return f"{found.mean:{form}}{'%' if times > 1 else ''}{shown}"


def beside(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """What one method gains beside another one, in the worlds of both: over all of them, and where the other
    one harms nobody.
    """
    own, other = (
        grouped([row for row in some if row["method"] == some[0]["method"]], "seed")
        for some in (rows, others)
    )
    common = [seed for seed in own if seed in other]
    harmless = [seed for seed in common if not any(map(harmed, other[seed]))]
    lines = []
    for words, seeds in (("all worlds", common), ("where the other one harms nobody", harmless)):
        pairs = [
            {"seed": seed[0], "own": true_gain(one), "other": true_gain(two)}
            for seed in seeds
            for one, two in zip(own[seed], other[seed], strict=True)
        ]
        means = [mean([pair[name] for pair in pairs]) for name in ("own", "other")]
        ratio = means[0] / means[1] if pairs and means[1] > 0 else math.nan
        difference = _of(pairs, lambda pair: pair["own"] - pair["other"])
        lines.append(
            f"true gain, {words} ({len(seeds)}): {means[0]:.3f} beside {means[1]:.3f}, {ratio:.2f} of it; "
            f"difference {difference}"
        )
    return "\n".join(lines)
