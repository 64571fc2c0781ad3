"""README.md of the suite, from the content of bench.json alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.suite.measuring import factor, slope

INTRO = (
    "Each row does the same work twice in one process and in turns, by the package and by a plain "
    "reference or a peer. Times are medians of process milliseconds on one thread, for the whole call. "
    "The ratio is the reference's time over the package's: **above 1 the package is faster, below 1 the "
    "reference is**; its 95 % interval is a bootstrap over repetitions. Memory is the largest resident "
    "set of a call beyond that before it. Quality is judged in the same way for both; where the two are "
    "meant to agree, *equal* means within the tolerance that is stated below."
)
OWN = (
    "The suite is its own rather than pytest-benchmark or asv: pytest-benchmark times one function after the "
    "other, and asv one project's commits, whereas a row here is a pair whose sides take turns in one "
    "process, so that a busy machine slows both, and whose results are compared beside their times."
)
GROWTH = (
    "Exponents b of time ~ size^b, by least squares on logarithms, beside that of the leading term; *last "
    "step* is the exponent between the two largest sizes alone. Small sizes are ruled by what a call costs "
    "whatever its size, which lowers the exponent; where the last step, too, is below the leading term, that "
    "cost, or a term of lower order, still rules at these sizes."
)
FACTORS = (
    "Factors c of time ~ c^size, by least squares on the logarithms of times: what each further unit of the "
    "size multiplies the time by."
)
SHARE = (
    "Rates of the two factorisations of a `cme fit` (of one for `ridge`), counted as N^3 / 3 operations "
    "each, over the rate of torch's Cholesky factorisation alone at the same N: the rest of the time goes to "
    "kernels, triangular solves and copies."
)
ARITHMETIC = (
    "Of every row of the package that computes with matrices: the operations of its products, factorisations "
    "and solves, counted as torch runs them in one call (an epoch, a round), and the time that they would "
    "take at the rate of a product of size 1,000 in the same precision, over the time of the row. "
    "Exponentials of kernels, sums and copies are not counted. A small share says that arithmetic does not "
    "bound the row: its matrices are small, and time goes to the calls of torch, to checks and to records. "
    "Rows on graphs have no such arithmetic; it is not counted for machines and proofs, whose trainings and "
    "searches have rows of their own."
)
PROOFS = (
    "Branch and bound in episodes of held-out patients, with at most k changes of |A| = 25 actions in T "
    "steps: episodes with a proof, and processor seconds of an episode. The median is that of episodes, each "
    "at its median over repetitions; the largest is that of all searches."
)
CARE = (
    "How far to trust it. Rows with two or three repetitions (searches, large batches, causal rounds) have "
    "an interval that is little more than the range of their ratios. Causal rounds are judged by a handful "
    "of seeds, whose regrets differ more from seed to seed than from side to side: their verdict is no "
    "finding. The published A* runs on this package's tensors one node at a time, so that the nodes "
    "expanded say more than its ratio."
)
FOOT = (
    "Not measured here: the authors' programs (A* as published is this package's own implementation of the "
    "printed algorithm){}. causal-learn's d-separation is asked of ten nodes only: at fifty it had no "
    "answers after two minutes."
)
LEFT_OUT = {
    "stable-baselines3 PPO": "reinforcement learning beside the search for sequences, which has no row yet",
    "pgmpy": "pgmpy",
}
"""What is said to be missing where a peer has no row."""


def page(content: Mapping[str, Any]) -> str:
    """The text of README.md.

    Args:
        content: That of bench.json.
    """
    rows = list(content["rows"].values())
    groups = list(dict.fromkeys((row["group"], row["peer"], row["axis"]) for row in rows))
    blocks = [
        "# Speed beside references and peers",
        origin(content),
        INTRO,
        OWN,
        "\n".join(table(rows, groups)),
    ]
    notes = {row["group"]: row["note"] for row in rows if row["note"]}
    if notes:
        told = [f"- `{group}`: {note}." for group, note in notes.items()]
        blocks += ["What one side does more than the other:", "\n".join(told)]
    blocks += ["## Tolerances", "\n".join(tolerances(rows))]
    proven = list(proofs(rows))
    if proven:
        head = [
            "| T | k | episodes | proven | proven within 60 s | median, s | largest, s |",
            "|" + " ---: |" * 7,
        ]
        blocks += ["## Proofs within a minute", PROOFS, "\n".join([*head, *proven])]
    grown = list(growth(rows, groups))
    if grown:
        head = [
            "| hot path | size | exponent, ours | theirs | last step, ours | theirs | leading term |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        blocks += ["## Growth", GROWTH, "\n".join([*head, *grown])]
    multiplied = list(factors(rows, groups))
    if multiplied:
        head = ["| hot path | size | factor, ours | theirs |", "| --- | --- | ---: | ---: |"]
        blocks += ["## Factors", FACTORS, "\n".join([*head, *multiplied])]
    shared, counted = list(shares(rows)), list(arithmetic(rows, groups, content["limits"]["product_gflops"]))
    if shared or counted:
        blocks += ["## Share of what the processor gives", rates(content["limits"])]
    if shared:
        head = [
            "| fit | N | ours, GFLOP/s | theirs | Cholesky alone | our share |",
            "| --- " + "| ---: " * 5 + "|",
        ]
        blocks += [SHARE, "\n".join([*head, *shared])]
    if counted:
        head = ["| hot path | size | MFLOP | GFLOP/s | share |", "| --- | --- | ---: | ---: | ---: |"]
        blocks += [ARITHMETIC, "\n".join([*head, *counted])]
    nodes = list(expanded(rows))
    if nodes:
        head = ["| search | size | nodes expanded, ours | theirs |", "| --- | --- | ---: | ---: |"]
        blocks += ["## Nodes", "\n".join([*head, *nodes])]
    peers = {row["peer"] for row in rows}
    absent = "".join(f"; {told}" for peer, told in LEFT_OUT.items() if peer not in peers)
    return "\n\n".join([*blocks, "## Limits", CARE, FOOT.format(absent)]) + "\n"


def origin(content: Mapping[str, Any]) -> str:
    """Command, commit, versions, processor and processor time."""
    versions = ", ".join(f"{name} {each}" for name, each in content["versions"].items() if each)
    minutes = sum(row["seconds"] for row in content["rows"].values()) / 60
    loads = [row["load"] for row in content["rows"].values()]
    busy = f"; load of the machine {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    earlier = sorted(
        {f"{row['commit']} ({row['processor']})" for row in content["rows"].values() if "commit" in row}
    )
    kept = f" Rows with * are of commit {', '.join(earlier)}." if earlier else ""
    return (
        f"Made by `{content['command']}` at commit {content['commit']}; Python {content['python']}, "
        f"{versions}; {content['processor']}, {content['cores']} cores, {content['threads']} thread; "
        f"{minutes:.0f} minutes of one core{busy}.{kept}"
    )


def table(rows: Sequence[Mapping[str, Any]], groups: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The main table, the rows of a group together."""
    yield (
        "| hot path | size | beside | ours, ms | theirs, ms | ratio | MB, ours / theirs "
        "| quality | ours | theirs | |"
    )
    yield "| --- | --- | --- | ---: | ---: | --- | ---: | --- | ---: | ---: | --- |"
    for row in (row for group in groups for row in _of(rows, group)):
        quality = row["quality"]
        cells = [
            row["group"],
            f"{row['axis']} {row['size']:,}{' *' if 'commit' in row else ''}",
            row["peer"],
            _number(row["ours_ms"]),
            _number(row["theirs_ms"]),
            f"{_number(row['ratio'])} [{_number(row['low'])}, {_number(row['high'])}]",
            f"{_memory(row['ours_mb'])} / {_memory(row['theirs_mb'])}",
            quality["name"],
            f"{quality['ours']:.6g}",
            f"{quality['theirs']:.6g}",
            quality["verdict"],
        ]
        yield f"| {' | '.join(cells)} |"


def growth(rows: Sequence[Mapping[str, Any]], groups: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Exponents of the groups with several sizes and a leading term."""
    for group in groups:
        mine = _of(rows, group)
        if len(mine) < 2 or mine[0]["theory"] is None:
            continue
        sizes = [float(row["size"]) for row in mine]
        ours, theirs = ([row[name] for row in mine] for name in ("ours_ms", "theirs_ms"))
        cells = [f"{group[0]}, beside {group[1]}", f"{group[2]} {sizes[0]:,.0f} to {sizes[-1]:,.0f}"]
        cells += [f"{slope(sizes, times):.2f}" for times in (ours, theirs)]
        cells += [f"{slope(sizes[-2:], times[-2:]):.2f}" for times in (ours, theirs)]
        yield f"| {' | '.join(cells)} | {mine[0]['theory']:g} |"


def factors(rows: Sequence[Mapping[str, Any]], groups: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Factors of the groups with several sizes whose work grows exponentially."""
    for group in groups:
        mine = _of(rows, group)
        if len(mine) < 2 or not mine[0]["exponential"]:
            continue
        sizes = [float(row["size"]) for row in mine]
        ours, theirs = (factor(sizes, [row[name] for row in mine]) for name in ("ours_ms", "theirs_ms"))
        cells = [f"{group[0]}, beside {group[1]}", f"{group[2]} {sizes[0]:,.0f} to {sizes[-1]:,.0f}"]
        yield f"| {' | '.join(cells)} | {ours:.2f} | {theirs:.2f} |"


def rates(limits: Mapping[str, Any]) -> str:
    """What the processor reached alone."""
    double, single = (limits["product_gflops"][name] for name in ("float64", "float32"))
    return (
        f"At size 1,000 a product of matrices reaches {double:.0f} GFLOP/s in float64 and {single:.0f} in "
        f"float32, a Cholesky factorisation {limits['cholesky_gflops']:.0f} in float64."
    )


def shares(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Rates of the fits over that of a factorisation alone."""
    for row in rows:
        if "gflop" in row["facts"]:
            work, limit = row["facts"]["gflop"], row["facts"]["cholesky_gflops"]
            ours, theirs = 1e3 * work / row["ours_ms"], 1e3 * work / row["theirs_ms"]
            rates = f"{ours:.1f} | {theirs:.1f} | {limit:.1f} | {ours / limit:.0%}"
            yield f"| {row['group']} | {row['size']:,} | {rates} |"


def arithmetic(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[tuple[str, str, str]], limits: Mapping[str, float]
) -> Iterator[str]:
    """Operations of the package's matrix arithmetic, and the share of the time that they would take."""
    for row in (row for group in groups for row in _of(rows, group)):
        if found := row["operations"]:
            seconds = row["ours_ms"] / 1e3
            least = sum(count / limits[name] / 1e9 for name, count in found.items())
            count = sum(found.values())
            cells = [row["group"], f"{row['axis']} {row['size']:,}", _number(count / 1e6)]
            yield f"| {' | '.join(cells)} | {_number(count / seconds / 1e9)} | {least / seconds:.1%} |"


def tolerances(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What *equal* means, and which rows are not meant to be equal, with the reasons."""
    found = dict[tuple[float | None, str], list[str]]()
    for row in rows:
        names = found.setdefault((row["quality"]["tolerance"], row["quality"]["because"]), [])
        if row["group"] not in names:
            names.append(row["group"])
    for (tolerance, because), names in sorted(
        found.items(), key=lambda each: (each[0][0] is None, each[0][1])
    ):
        told = (
            "not meant to be equal"
            if tolerance is None
            else f"within {tolerance:g}"
            if tolerance
            else "exact"
        )
        yield f"- {', '.join(f'`{name}`' for name in names)}: {told}, since {because}."


def proofs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Proven episodes, and the seconds of an episode."""
    for row in rows:
        if "proven" in row["facts"]:
            facts = row["facts"]
            counts = (row["size"], facts["k"], facts["episodes"], facts["proven"], facts["within"])
            seconds = _number(facts["median_s"]), _number(facts["largest_s"])
            yield f"| {' | '.join([*map(str, counts), *seconds])} |"


def expanded(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Nodes of the searches."""
    for row in rows:
        if "ours_expanded" in row["facts"]:
            facts = row["facts"]
            counts = f"{facts['ours_expanded']:,.1f} | {facts['theirs_expanded']:,.1f}"
            yield f"| {row['group']} | {row['axis']} {row['size']} | {counts} |"


def _of(rows: Sequence[Mapping[str, Any]], group: tuple[str, str, str]) -> list[Mapping[str, Any]]:
    found = [row for row in rows if (row["group"], row["peer"], row["axis"]) == group]
    return sorted(found, key=lambda row: row["size"])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _memory(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
