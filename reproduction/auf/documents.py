"""README.md and the figures of the study of avoiding undesired futures: our numbers beside the paper's.

Source: Du et al. (2026), Tab. 1 to 4 and Fig. 3, 5 and 10.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from rehearsal_torch.evaluation.claim_rows import Row
from rehearsal_torch.evaluation.method_summaries import MethodSummary, grouped, mean, summed
from rehearsal_torch.reporting import sweep_tables
from rehearsal_torch.reporting.alteration_report import figure, percent
from rehearsal_torch.reporting.figures import case_figures
from rehearsal_torch.reporting.sweep_tables import WorldCells, plus_minus, world_cells
from rehearsal_torch.reporting.text_table import markdown_table
from rehearsal_torch.run_folder import RunFolder
from reproduction.auf import learning_panels
from reproduction.auf.illustrations import generator, loan, triangle
from reproduction.auf.jobs import LOG, TABLE1, job_totals, layouts, recorded_rows, rows_of
from reproduction.page import Block, Section, caution, distinct, ordered, origin, table
from reproduction.plan import jobs, published, published_value, study, texts
from reproduction.record import Record
from reproduction.run import Options, Paper

TEXTS = texts("auf")
Summaries = Mapping[tuple[str, str], MethodSummary]


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows."""
    record = PAPER.record(out.path, options, TABLE1)
    lines = list(record.lines.values())
    yield f"# {study('auf')['title']}"
    yield caution(lines)
    yield TEXTS["made"].format(origin=origin("auf", lines))
    for section in SECTIONS:
        yield section(record)
    yield loan()
    yield triangle()
    yield generator(out.path, str(options["nhanes"]))


PAPER = Paper("auf", layouts, LOG, rows_of, parts)


def table1(record: Record) -> Section:
    """Table 1 with the share of the possible gain, the paper's numbers, and the claimed probabilities.

    Args:
        record: The study's record.
    """
    rows = recorded_rows(record, TABLE1)
    if not rows:
        return Section()
    in_paper = published("auf")["table1"]
    rows = ordered(
        sorted(rows, key=lambda row: int(row["seed"])),
        (lambda row: str(row["dataset"]), list(in_paper)),
        (lambda row: str(row["method"]), list(in_paper["bank"])),
    )
    found = world_cells(rows, job_totals(record, TABLE1, "idle"))
    blocks = [
        "## Table 1: true probability of a desired outcome",
        _completeness(found, record),
        sweep_tables.worlds_as_markdown(found),
        "### Share of the possible gain that was reached",
        TEXTS["gain"],
        shares(found),
        "### Comparison with the paper",
        _comparison(found),
        _unreachable(found),
        "### Claimed probabilities and their intervals",
        TEXTS["intervals"],
        _claims(found, job_totals(record, TABLE1, "warned")),
    ]
    figures = {"table1": sweep_tables.draw_worlds(found)}
    # The default, or, in a record that lacks it, the paper's method.
    shown = "cme_stack" if any(row["method"] == "cme_stack" for row in rows) else "cme"
    claims = {
        f"{world}: {method}": some
        for (world, method), some in grouped(rows, "dataset", "method").items()
        if method == shown
    }
    if claims:
        figures["calibration"] = case_figures.draw_calibration(claims)
    return Section(blocks, figures)


def shares(found: WorldCells) -> list[str]:
    """The share of the possible gain that each method reached, as lines of Markdown; no action, 0 by
    definition, is left out.
    """
    names = sweep_tables.methods(found)
    body = [
        [world, *(percent(line[name].share) if name in line else "-" for name in names)]
        for world, line in found.items()
    ]
    return markdown_table(["world", *names], body)


def table2(record: Record) -> Section:
    """Table 2: seconds and probability of exact and approximate estimators.

    Args:
        record: The study's record.
    """
    body = []
    for (method, setting), some in grouped(recorded_rows(record, "scalability"), "method", "setting").items():
        one = summed(some, 0)
        in_paper = published_value("auf", "table2", str(method), str(setting))
        body.append(
            {
                "method": str(method),
                "setting": str(setting),
                "fit (s)": f"{statistics.median(row['fit_seconds'] for row in some):.3g}",
                "decision (s)": f"{one.seconds:.2g}",
                "probability": plus_minus(one),
                "oracle": figure(one.oracle),
                "paper: fit (s)": f"{in_paper[0]:.3f}" if in_paper else "-",
                "paper: probability": f"{in_paper[1]:.3f}" if in_paper else "-",
                "seeds": str(one.seeds),
            }
        )
    if not body:
        return Section()
    return Section(["## Table 2: many observations (Non-Syn1)", TEXTS["scalability"], table(body)])


def table3(record: Record) -> Section:
    """Table 3: probability at several values of the sharpness eta.

    Args:
        record: The study's record.
    """
    found = _summaries(recorded_rows(record, "eta"), "method", "setting")
    if not found:
        return Section()
    settings = distinct([setting for _, setting in found])
    body = _crossed("", found, settings)
    in_paper = {setting: figure(published_value("auf", "table3", setting)) for setting in settings}
    oracle = {
        setting: next(figure(one.oracle) for key, one in found.items() if key[1] == setting)
        for setting in settings
    }
    body += [{"": "paper", **in_paper}, {"": "oracle", **oracle}]
    return Section(["## Table 3: the sharpness (Non-Syn1)", table(body, ["", *settings])])


def table4(record: Record) -> Section:
    """Table 4: probability on a grid of ridges, lambda_h by lambda_x.

    Args:
        record: The study's record.
    """
    rows = recorded_rows(record, "lambdas")
    found = {setting: one for (_, setting), one in _summaries(rows, "method", "setting").items()}
    if not found:
        return Section()
    factors = sorted({setting.split()[0].partition("=")[2] for setting in found}, key=float)
    in_paper = published("auf")["table4"]
    body = []
    for place, first in enumerate(factors):
        line = {"lambda_h / lambda_x": f"{first}x"}
        for second in factors:
            one = found.get(f"lambda_h={first} lambda_x={second}")
            line[f"{second}x"] = figure(one.auf.mean) if one else "-"
        if len(factors) == len(in_paper):
            pairs = zip(factors, in_paper[place], strict=True)
            line |= {f"paper {second}x": f"{value:.3f}" for second, value in pairs}
        body.append(line)
    text = TEXTS["lambdas"].format(oracle=figure(next(iter(found.values())).oracle))
    return Section(["## Table 4: the ridges (Non-Syn1)", text, table(body)])


def learning_curve(record: Record) -> Section:
    """Probability reached by `cme` at several numbers of observations N.

    Args:
        record: The study's record.
    """
    found: dict[str, dict[int, MethodSummary]] = {}
    for (world, setting), one in _summaries(
        recorded_rows(record, "learning_curve"), "dataset", "setting"
    ).items():
        found.setdefault(world, {})[int(setting.partition("=")[2])] = one
    if not found:
        return Section()
    sizes = sorted({size for line in found.values() for size in line})
    body = []
    for world, line in found.items():
        largest = line[max(line)]
        reached = {f"N = {size}": f"{plus_minus(one)} ({percent(one.share)})" for size, one in line.items()}
        ends = {"no action": figure(largest.no_action), "oracle": figure(largest.oracle)}
        body.append({"world": world, **reached, **ends})
    headings = ["world", "no action", *(f"N = {size}" for size in sizes), "oracle"]
    blocks = ["## Learning curves of `cme`", TEXTS["learning_curve"], table(body, headings)]
    return Section(blocks, {"learning_curve": learning_panels.draw(found)})


def sensitivity(record: Record) -> Section:
    """Probability with fixed and with selected hyper-parameters.

    Args:
        record: The study's record.
    """
    fixed = recorded_rows(record, "sensitivity")
    if not fixed:
        return Section()
    settings_of_table1 = {"cme": "`cme`", "cme_published": "widths=median"}
    selected = [
        row | {"setting": settings_of_table1[row["method"]]}
        for row in recorded_rows(record, TABLE1)
        if row["method"] in settings_of_table1
    ]
    found = _summaries([*selected, *fixed], "dataset", "setting")
    settings = distinct([setting for _, setting in found])
    regrets = []
    for each in settings:
        left = [one.oracle - one.auf.mean for (_, setting), one in found.items() if setting == each]
        regrets.append({"setting": each, "mean": figure(mean(left)), "worst": figure(max(left))})
    return Section(
        [
            "## Fixed and selected hyper-parameters",
            TEXTS["sensitivity"],
            table(_crossed("world", found, settings), ["world", *settings]),
            TEXTS["regret"],
            table(regrets),
        ]
    )


SECTIONS = (table1, sensitivity, learning_curve, table2, table3, table4)


def _summaries(rows: Sequence[Row], first: str, second: str) -> dict[tuple[str, str], MethodSummary]:
    """The summary of each pair of values of two columns, in order of appearance."""
    return {(str(a), str(b)): summed(some, 0) for (a, b), some in grouped(rows, first, second).items()}


def _crossed(heading: str, found: Summaries, columns: Sequence[str]) -> list[dict[str, str]]:
    """Mean and standard deviation, one table row for each first key and one column for each second key."""
    return [
        {heading: name, **{each: plus_minus(found[name, each]) for each in columns if (name, each) in found}}
        for name in distinct([name for name, _ in found])
    ]


def _completeness(found: WorldCells, record: Record) -> str:
    """How many seeds and contexts a cell stands for, and how many of the planned jobs are missing."""
    sizes = {(one.count, one.seeds) for line in found.values() for one in line.values()}
    planned = jobs(study("auf"), TABLE1)
    missing = len(record.todo(planned))
    several = sorted({seeds for _, seeds in sizes})
    if len(sizes) == 1:
        ((count, seeds),) = sizes
        plural = "s" if seeds > 1 else ""
        text = TEXTS["equal"].format(seeds=seeds, plural=plural, contexts=count // seeds)
    else:
        text = TEXTS["several"].format(fewest=several[0], most=several[-1])
    end = TEXTS["incomplete"] if missing else TEXTS["complete"]
    return f"{text} {end.format(missing=missing, planned=len(planned))}"


def _comparison(found: WorldCells) -> list[str]:
    """Our mean and standard deviation beside the paper's, for the methods of the paper."""
    in_paper = published("auf")["table1"]
    methods = distinct([name for line in found.values() for name in line if name in in_paper["bank"]])
    body = []
    for world, line in found.items():
        cells_ = {"world": world}
        for name in methods:
            theirs = in_paper.get(world, {}).get(name)
            cells_[name] = plus_minus(line[name]) if name in line else "-"
            cells_[f"{name} (paper)"] = f"{theirs[0]:.3f} ± {theirs[1]:.3f}" if theirs else "-"
        body.append(cells_)
    return table(body)


def _unreachable(found: WorldCells) -> list[str]:
    """One sentence for each world whose equations do not allow the probability that the paper prints."""
    sentences = []
    for world, line in found.items():
        oracle = next(iter(line.values())).oracle
        in_paper = published_value("auf", "table1", world, "cme")
        if in_paper and in_paper[0] > oracle + 0.005:
            sentences.append(TEXTS["unreachable"].format(world=world, paper=in_paper[0], oracle=oracle))
    return sentences


def _claims(found: WorldCells, warned: Mapping[tuple[object, object], int]) -> list[str]:
    """Claimed and true probabilities, and the coverage of the claimed intervals."""
    body = []
    for world, line in found.items():
        for name, one in line.items():
            if not math.isnan(one.claimed):
                body.append(
                    {
                        "world": world,
                        "method": name,
                        "claimed": figure(one.claimed),
                        "true": figure(one.auf.mean),
                        "claimed - true": f"{one.excess:+.3f}",
                        "coverage": _coverage([one]),
                        "mean width": figure(one.width),
                        "no action": f"{one.no_action_count} of {one.count}",
                        "warned": str(warned.get((world, name), 0)),
                    }
                )
    for name in distinct([name for line in found.values() for name in line]):
        some = [line[name] for line in found.values() if name in line and line[name].intervals]
        if len(some) > 1:
            body.append({"world": "all", "method": name, "coverage": _coverage(some)})
    return table(body)


def _coverage(some: Sequence[MethodSummary]) -> str:
    """The share of intervals that contain the truth; "-" if there are no intervals."""
    count = sum(one.intervals for one in some)
    covered = sum(one.covered * one.intervals for one in some if one.intervals)
    return f"{percent(covered / count)} of {count}" if count else "-"
