"""Tables of decisions in worlds by seed, by trait: harm, coverage and width of estimate and gain, true gains.

    harm        share of the decisions whose true probability is more than .02 below that of no action
    true gain   P(decision) - P(no action), over all cases; 0 where nothing is altered
    printed     the interval of the decision
    model       that of the model alone, ``model.estimate`` and ``model.gain`` in the trace
    hull        that which counts what lies beyond the rows as anything from 0 to 1, ``hull.estimate`` and
                ``hull.gain``
    S           the share of what a decision rests on that no row is near, ``beyond``

Intervals of means are bootstrap intervals over whole worlds (`evaluation.bootstrap`). Of shares of 0 or 1
they reach as far as W worlds allow: to 1 - .05^(1 / W), or .05^(1 / W).
"""

import math
from collections.abc import Callable, Iterator, Sequence

from rehearsal_torch.evaluation.bootstrap import mean_interval
from rehearsal_torch.evaluation.claim_rows import Row
from rehearsal_torch.evaluation.method_summaries import grouped, mean
from rehearsal_torch.problems.cases.random_world import TRAITS
from reproduction.page import Section, table
from reproduction.plan import texts

TEXTS = texts("calibration")
WORSE = 0.02
# Worlds of a report.
REPORT = 200
# Kind of interval to the largest S of the decisions that its lines count.
SUPPORTED = {"printed": (math.inf, 0.2), "model": (math.inf, 0.05, 0.2), "hull": (math.inf, 0.2)}
Measure = Callable[[Row], float]


def true_gain(row: Row) -> float:
    """The true gain of a decision over no action."""
    return float(row["auf"] - row["no_action"]) if row["status"] != "leave" else 0.0


def harmed(row: Row) -> float:
    """Whether a decision is truly worse than no action."""
    return float(true_gain(row) < -WORSE)


def has(status: str) -> Measure:
    """Whether a decision has a status."""
    return lambda row: float(row["status"] == status)


def ends(row: Row, of: str, kind: str) -> tuple[float, float]:
    """An interval of the ``estimate`` or the ``gain``: of the ``model``, the ``hull``, or as ``printed``."""
    printed = row[f"{of}_lower"], row[f"{of}_upper"]
    low, high = printed if kind == "printed" else row["trace"].get(f"{kind}.{of}", (math.nan, math.nan))
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


def sections(rows: Sequence[Row]) -> Iterator[Section]:
    """The part of the page about worlds by seed, a table for each method and each report; nothing without
    rows.
    """
    if rows:
        yield Section(["## Decisions in worlds by seed", TEXTS["drawn"].format(worse=f"{WORSE:g}"[1:])])
    for (method,), some in grouped(rows, "method").items():
        for number in sorted({row["seed"] // REPORT for row in some}):
            reported = [row for row in some if row["seed"] // REPORT == number]
            seeds = [row["seed"] for row in reported]
            yield Section([f"### `{method}`, seeds {min(seeds)} to {max(seeds)}", by_trait(reported)])


def by_method(rows: Sequence[Row]) -> list[str]:
    """A heading and a table for each method."""
    return [
        f"{method}\n\n" + "\n".join(by_trait(some)) for (method,), some in grouped(rows, "method").items()
    ]


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    acts = {status: [row for row in rows if row["status"] == status] for status in ("do", "may")}
    chosen = [*acts["do"], *acts["may"]]
    yield "worlds", str(len({row["seed"] for row in rows}))
    for status in ("do", "may", "leave"):
        yield f"*{status}*", shown(rows, has(status), 100)
    for name, some in {
        **{f"among *{status}*": each for status, each in acts.items()},
        "of all": rows,
    }.items():
        count = f" ({sum(map(harmed, some)):.0f} of {len(some)})" if some else ""
        yield f"harmed {name}", shown(some, harmed, 100) + count
    yield "true gain", shown(rows, true_gain)
    yield "true gain, *do* alone", shown(rows, lambda row: true_gain(row) * has("do")(row))
    yield "best of a grid", shown(rows, lambda row: row["oracle"] - row["no_action"])
    for status, some in acts.items():
        yield f"claimed - true, *{status}*", shown(some, lambda row: row["estimate"] - row["auf"])
    truths: dict[str, Measure] = {"estimate": lambda row: row["auf"], "gain": true_gain}
    for of, true in truths.items():
        for kind, limits in SUPPORTED.items():
            for most in limits:
                some = [row for row in chosen if not row["trace"].get("beyond", 0.0) > most]
                words = "" if most == math.inf else f", S <= {most:g}"
                yield from _interval(f"{of}, {kind}{words}", some, of, kind, true)
    yield from _interval("no action", rows, "baseline", "printed", lambda row: row["no_action"])
    yield "no action, claimed - true", shown(rows, lambda row: row["baseline"] - row["no_action"])
    for name in ("fit", "decision"):
        spent = {row["seed"]: float(row[f"{name}_seconds"]) for row in rows}
        cases = 1 if name == "fit" else len(rows) / max(len(spent), 1)
        yield f"CPU s, {name}", f"{mean(list(spent.values())) / cases:.3g}"


def _interval(name: str, rows: Sequence[Row], of: str, kind: str, true: Measure) -> Iterator[tuple[str, str]]:
    known = [row for row in rows if not math.isnan(sum(ends(row, of, kind)))]
    rounding = 1e-9

    def held(row: Row) -> float:
        low, high = ends(row, of, kind)
        return float(low - rounding <= true(row) <= high + rounding)

    yield f"{name}: holds", shown(known, held, 100)
    yield f"{name}: width", shown(known, lambda row: ends(row, of, kind)[1] - ends(row, of, kind)[0])


def shown(rows: Sequence[Row], measure: Measure, times: float = 1.0) -> str:
    """The mean of a measure with its interval over worlds; "-" where nothing is known."""
    pairs = [(measure(row), str(row["seed"])) for row in rows]
    pairs = [pair for pair in pairs if not math.isnan(pair[0])]
    if not pairs:
        return "-"
    values, worlds = zip(*pairs, strict=True)
    found = mean_interval(values, worlds)
    low, high, share = found.low, found.high, times > 1
    if share and found.mean in (0, 1):
        reach = 0.05 ** (1 / len(set(worlds)))
        low, high = (0.0, 1 - reach) if found.mean == 0 else (reach, 1.0)
    form = ".1f" if share else ".3f"
    shown = "" if math.isnan(low) else f" [{times * low:{form}}, {times * high:{form}}]"
    return f"{times * found.mean:{form}}{'%' if share else ''}{shown}"


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
        pairs: list[Row] = [
            {"seed": seed[0], "own": true_gain(mine), "other": true_gain(theirs)}
            for seed in seeds
            for mine, theirs in zip(own[seed], other[seed], strict=True)
        ]
        means = [mean([pair[name] for pair in pairs]) for name in ("own", "other")]
        ratio = means[0] / means[1] if pairs and means[1] > 0 else math.nan
        difference = shown(pairs, lambda pair: float(pair["own"] - pair["other"]))
        lines.append(
            f"true gain, {words} ({len(seeds)}): {means[0]:.3f} beside {means[1]:.3f}, {ratio:.2f} of it; "
            f"difference {difference}"
        )
    return "\n".join(lines)
