"""README.md, from the content of scale.json alone: figures, and what follows from them for many jobs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

Kept = Mapping[str, Any]
JOBS, BATCH, PATIENTS, CASES = 1000, 25, 1_000_000, 10_000
ONE = "one process"
INTRO = (
    "What engines cost, measured on whole commands in processes of their own, with one thread each. "
    "**CPU s** are user and system seconds of all processes of a command, those that it started included; "
    "**wall s** are those of the clock. Figures are medians, with the smallest and the largest in brackets; "
    "those that follow from measured ones are in *italics*."
)
# The share of the cores' time that other work may take before the page calls them shared.
ALONE = 0.05
FREE = "**The cores were free of other work**, so that wall seconds are those of two cores."
SHARED = (
    "**The cores were shared with other work**: wall seconds say which way was faster meanwhile, and no "
    "more. CPU seconds, which that disturbs less, say what a way costs; they, too, are more than on free "
    "cores."
)
START = (
    "A job of one case: a shard with a checkpoint and `limit=1`. *Imports* is Python and all modules that "
    "such a shard has imported at its end; the *first decision* is there when its line is; CPU s of the "
    "process, each from its start."
)
SHARING = (
    "The same command in each way, in turn. Decisions, and the weights of what is fitted, are compared with "
    "those of the first command of one process, byte for byte (*files*). Each further process imports the "
    "packages as well."
)
DEVICES = (
    "Rows a second by the clock, the best epoch after the first of each training. Losses are compared over "
    "all epochs with those of one process with one thread."
)
PATIENT = (
    "CPU s of each decision in one process, by the four models of `checkpoints/sepsis`, with all that a run "
    "does for it: search, appraisal, what a hidden cause would change, its line. Most patients take little, "
    "and few take long: the average, and with it what follows from it, hangs on those few."
)
TABLE = (
    "Whole commands of one process, from typing to the report, that fit the default, `cme_stack`, to the "
    "rows and decide for some cases: a single command for each number of cases. What each further case costs "
    "is the difference of the largest and the smallest command over that of their cases."
)
LIMITS = (
    "Not measured here: SLURM, whose seconds were read off by hand ([SLURM](../../scale.md#slurm)); several "
    "machines; GPUs; large tables, which have a command of their own "
    "([scale](../../scale.md#large-tables)). Dask's cluster is one that the command starts "
    "itself on this machine, with its certificate and its page."
)


def page(content: Kept) -> str:
    """The text of README.md.

    Args:
        content: That of scale.json.
    """
    found = list(content["rows"].values())
    parts: Sequence[tuple[str, str, str, Callable[[Sequence[Kept]], Iterator[str]]]] = (
        ("start", "The start of a job", START, starts),
        ("sharing", "One command, shared", SHARING, shared),
        ("devices", "One training, two processes", DEVICES, devices),
        ("patients", "Decisions for patients", PATIENT, patients),
        ("tables", "Decisions for cases of a table", TABLE, tables),
    )
    others = [each["others"] for row in found for each in row["rounds"]]
    free = max(others, default=0.0) <= ALONE
    blocks = ["# What engines cost", origin(content), f"{INTRO} {FREE if free else SHARED}"]
    for part, title, told, lines in parts:
        mine = [row for row in found if row["part"] == part]
        if mine:
            blocks += [f"## {title}", told, "\n".join(lines(mine))]
    return "\n\n".join([*blocks, "## Limits", LIMITS]) + "\n"


def origin(content: Kept) -> str:
    """Command, commit, versions, processor and time."""
    versions = ", ".join(f"{name} {each}" for name, each in content["versions"].items() if each)
    found = list(content["rows"].values())
    rounds = [each for row in found for each in row["rounds"]]
    minutes, others = sum(each["seconds"] for each in rounds) / 60, [each["others"] for each in rounds]
    taken = f"{100 * min(others):.1f} to {100 * max(others):.1f} %" if others else "nothing"
    busy = f"; other work took {taken} of the cores' time, row by row"
    return (
        f"Made by `{content['command']}` at commit {content['commit']}; Python {content['python']}, "
        f"{versions}; {content['processor']}, {content['cores']} cores; {minutes:.0f} minutes{busy}."
    )


def starts(rows: Sequence[Kept]) -> Iterator[str]:
    """Starts of jobs, and what a thousand of them cost before their decisions."""
    yield (
        "| job | imports, CPU s | to the first decision | to the end "
        f"| {JOBS:,} jobs to their first decision | the same, {BATCH} in a process |"
    )
    yield f"| --- {'| ---: ' * 5}|"
    for row in rows:
        found = [each for taken in measured(row) for each in taken["marks"]]
        marks = {name: [each[name] for each in found] for name in ("imports", "decided", "ended")}
        imports, decided = (median(marks[name]) for name in ("imports", "decided"))
        alone, together = JOBS * decided, JOBS / BATCH * imports + JOBS * (decided - imports)
        cells = [f"`{row['command']}` ({row['name']})", *(spread(each) for each in marks.values())]
        minutes = (f"*{each / 60:.0f} CPU minutes*" for each in (alone, together))
        yield f"| {' | '.join([*cells, *minutes])} |"


def shared(rows: Sequence[Kept]) -> Iterator[str]:
    """What each way to share a command takes."""
    yield "| command | way | wall s | CPU s | CPU s more than one process | files |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for row in rows:
        for way, same in equal(row).items():
            taken = [each[way] for each in measured(row)]
            more = [each[way]["cpu"] - each[ONE]["cpu"] for each in measured(row)]
            cells = [
                f"{row['name']}: `{row['command']}`" if way == ONE else "",
                way,
                spread([each["wall"] for each in taken]),
                spread([each["cpu"] for each in taken]),
                "" if way == ONE else spread(more),
                "equal" if same else "**different**",
            ]
            yield f"| {' | '.join(cells)} |"


def devices(rows: Sequence[Kept]) -> Iterator[str]:
    """Rows a second of each way to train."""
    yield "| training | way | rows a second | CPU s of the command | largest difference of losses |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for row in rows:
        for way, difference in apart(row).items():
            taken = [each[way] for each in measured(row)]
            cells = [
                f"{row['name']}, {row['epochs']} epochs of {row['rows']:,} rows" if way == ONE else "",
                way,
                spread([each["rate"] for each in taken]),
                spread([each["cpu"] for each in taken]),
                f"{difference:.1g}",
            ]
            yield f"| {' | '.join(cells)} |"


def patients(rows: Sequence[Kept]) -> Iterator[str]:
    """CPU seconds of each decision, and what a million of them cost."""
    yield (
        "| method | patients | median, CPU s | average | most | the longest tenth takes "
        f"| kB of record each | {PATIENTS:,} patients |"
    )
    yield f"| --- {'| ---: ' * 7}|"
    for row in rows:
        (taken,) = measured(row)
        seconds, count = sorted(taken["cpu"]), len(taken["cpu"])
        tail = sum(seconds[count - -(-count // 10) :]) / sum(seconds)
        size = fmean(taken["bytes"])
        cells = [
            f"`{row['method']}`",
            f"{count}",
            *(number(each) for each in (median(seconds), fmean(seconds), seconds[-1])),
            f"{tail:.0%}",
            f"{size / 1e3:.1f}",
            f"*{fmean(seconds) * PATIENTS / 3600:.0f} core hours, {size * PATIENTS / 1e9:.0f} GB*",
        ]
        yield f"| {' | '.join(cells)} |"


def tables(rows: Sequence[Kept]) -> Iterator[str]:
    """What whole commands for cases of a table take, what each further case costs, and what 10,000 would."""
    yield (
        "| command | candidate sets | cases | CPU s | largest memory, MB | each further case, CPU ms "
        f"| {CASES:,} cases |"
    )
    yield f"| --- {'| ---: ' * 6}|"
    for row in rows:
        (found,) = measured(row)
        low, high = found["commands"][0], found["commands"][-1]
        each = slope(found["commands"])
        whole = high["cpu"] + each * (CASES - high["cases"])
        for taken in found["commands"]:
            cells = [
                f"`{row['command']}`" if taken is low else "",
                f"{row['sets']}",
                f"{taken['cases']:,}",
                number(taken["cpu"]),
                f"{taken['memory']:,.0f}",
                number(1e3 * each) if taken is high else "",
                f"*{whole:,.0f} CPU s*" if taken is high else "",
            ]
            yield f"| {' | '.join(cells)} |"


def measured(row: Kept) -> list[Kept]:
    """What was measured in each round."""
    return [each["measured"] for each in row["rounds"]]


def equal(row: Kept) -> dict[str, bool]:
    """Whether the files of each way were always those of the first command of one process."""
    found = measured(row)
    first = found[0][ONE]["digest"]
    return {way: all(each[way]["digest"] == first for each in found) for way in found[0]}


def apart(row: Kept) -> dict[str, float]:
    """The largest difference of each way's losses, over epochs and rounds, from those of one process."""
    found = measured(row)
    first = found[0][ONE]["losses"]
    return {
        way: max(abs(a - b) for each in found for a, b in zip(each[way]["losses"], first, strict=True))
        for way in found[0]
    }


def slope(commands: Sequence[Kept]) -> float:
    """CPU seconds of each further case, from the smallest and the largest of some commands."""
    low, high = commands[0], commands[-1]
    return (high["cpu"] - low["cpu"]) / (high["cases"] - low["cases"])


def spread(values: Sequence[float]) -> str:
    """Median and, where there are several values, range."""
    whole = f" [{number(min(values))}, {number(max(values))}]" if len(values) > 1 else ""
    return f"{number(median(values))}{whole}"


def number(value: float) -> str:
    """Three digits, or whole numbers with commas."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
