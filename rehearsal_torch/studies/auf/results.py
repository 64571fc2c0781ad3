"""The results of the study of avoiding undesired futures as Markdown and figures: ours, and what the paper
prints.

Source: Du et al. (2026), Tab. 1 to 4.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import Row
from rehearsal_torch.evaluation.summaries import MethodSummary, grouped, mean, summed
from rehearsal_torch.reporting import cross_table
from rehearsal_torch.reporting.cross_table import Cells, as_markdown, cells, plus_minus
from rehearsal_torch.reporting.decision_table import figure, percent
from rehearsal_torch.reporting.figures import probability_claims
from rehearsal_torch.reporting.style import COLOURS, DASHES, MARKERS, panels
from rehearsal_torch.studies.auf.rows import counts, rows_of
from rehearsal_torch.studies.record import Record
from rehearsal_torch.studies.study_files import published, texts

Section = list[str]


def table1(record: Record) -> tuple[Section, dict[str, Figure]]:
    """Table 1 with shares, coverage, what the paper prints, and who declined; no lines where there are no
    rows.
    """
    rows = _ordered(rows_of(record, "table1"))
    if not rows:
        return [], {}
    found = cells(rows, counts(record, "table1", "idle"))
    warned = counts(record, "table1", "warned")
    text = [
        "## Table 1: true probability of a desired outcome",
        "",
        _coverage_of_jobs(found),
        "",
        *cross_table.markdown(found),
    ]
    text += [
        "",
        "### Share of the possible gain that was reached",
        "",
        texts("auf")["share"],
        "",
        *cross_table.shares(found),
    ]
    text += ["", "### Beside the paper's numbers", "", *_beside(found), "", *_unreachable(found)]
    text += ["", "### What the methods claim", "", texts("auf")["intervals"], "", *_claims(found, warned)]
    claims = {
        f"{world}: {method}": some
        for (world, method), some in grouped(rows, "dataset", "method").items()
        if method == "cme"
    }
    figures = {"table1": cross_table.draw(found)}
    if claims:
        figures["calibration"] = probability_claims.draw({str(name): some for name, some in claims.items()})
    return text, figures


def table2(record: Record) -> tuple[Section, dict[str, Figure]]:
    """Table 2: time and probability of exact and approximate estimators."""
    body = []
    for (method, setting), some in grouped(rows_of(record, "scalability"), "method", "setting").items():
        one, paper = summed(some, 0), _published()["table2"].get(str(method), {}).get(str(setting))
        fits = [row["fit_seconds"] for row in some]
        printed = [f"{paper[0]:.3f}", f"{paper[1]:.3f}"] if paper else ["-", "-"]
        body.append(
            [
                str(method),
                str(setting),
                f"{statistics.median(fits):.3g}",
                f"{one.seconds:.2g}",
                plus_minus(one),
                figure(one.oracle),
                *printed,
                str(one.seeds),
            ]
        )
    if not body:
        return [], {}
    heads = [
        "method",
        "setting",
        "fit (s)",
        "decision (s)",
        "probability",
        "oracle",
        "paper: fit (s)",
        "paper: probability",
        "seeds",
    ]
    said = texts("auf")["scalability"]
    return ["## Table 2: many rows (Non-Syn1)", "", said, "", *as_markdown(heads, body)], {}


def table3(record: Record) -> tuple[Section, dict[str, Figure]]:
    """Table 3: the sharpness eta."""
    found = {
        key: summed(some, 0) for key, some in grouped(rows_of(record, "eta"), "method", "setting").items()
    }
    if not found:
        return [], {}
    methods, settings = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    body = [
        [
            str(method),
            *(plus_minus(found[method, each]) if (method, each) in found else "-" for each in settings),
        ]
        for method in methods
    ]
    body.append(["paper", *(figure(_published()["table3"].get(str(each))) for each in settings)])
    body.append(
        [
            "oracle",
            *(figure(next(one for key, one in found.items() if key[1] == each).oracle) for each in settings),
        ]
    )
    return ["## Table 3: the sharpness (Non-Syn1)", "", *as_markdown(["", *map(str, settings)], body)], {}


def table4(record: Record) -> tuple[Section, dict[str, Figure]]:
    """Table 4: the ridges, rows lambda_h and columns lambda_x."""
    found = {
        str(setting): summed(some, 0)
        for (setting,), some in grouped(rows_of(record, "lambdas"), "setting").items()
    }
    if not found:
        return [], {}
    factors = sorted({setting.split()[0].partition("=")[2] for setting in found}, key=float)
    body = []
    for place, first in enumerate(factors):
        line = [found.get(f"lambda_h={first} lambda_x={second}") for second in factors]
        paper = _published()["table4"][place] if len(factors) == len(_published()["table4"]) else ()
        body.append(
            [
                f"{first}x",
                *(figure(one.auf.mean) if one else "-" for one in line),
                *(f"{value:.3f}" for value in paper),
            ]
        )
    heads = [
        "lambda_h / lambda_x",
        *(f"{second}x" for second in factors),
        *(f"paper {second}x" for second in factors if len(body[0]) > len(factors) + 1),
    ]
    said = texts("auf")["lambdas"].format(oracle=figure(next(iter(found.values())).oracle))
    return ["## Table 4: the ridges (Non-Syn1)", "", said, "", *as_markdown(heads, body)], {}


def learning_curve(record: Record) -> tuple[Section, dict[str, Figure]]:
    """The probability our method reaches at growing N."""
    rows = rows_of(record, "learning_curve")
    if not rows:
        return [], {}
    found = {
        (str(world), int(str(setting).partition("=")[2])): summed(some, 0)
        for (world, setting), some in grouped(rows, "dataset", "setting").items()
    }
    worlds, sizes = list(dict.fromkeys(world for world, _ in found)), sorted({size for _, size in found})
    body = []
    for world in worlds:
        line = [found.get((world, size)) for size in sizes]
        last = next(one for one in reversed(line) if one)
        body.append(
            [
                world,
                figure(last.no_action),
                *(f"{plus_minus(one)} ({percent(one.share)})" if one else "-" for one in line),
                figure(last.oracle),
            ]
        )
    heads = ["world", "no action", *(f"N = {size}" for size in sizes), "oracle"]
    text = [
        "## Learning curves of `cme`",
        "",
        texts("auf")["learning_curve"],
        "",
        *as_markdown(heads, body),
    ]
    return text, {"learning_curve": _curves(found, worlds)}


def sensitivity(record: Record) -> tuple[Section, dict[str, Figure]]:
    """Hyper-parameters with and without our selection."""
    fixed = rows_of(record, "sensitivity")
    if not fixed:
        return [], {}
    chosen = [
        row | {"setting": {"cme": "ours (`cme`)", "cme_published": "widths=median"}[row["method"]]}
        for row in rows_of(record, "table1")
        if row["method"] in ("cme", "cme_published")
    ]
    found = {
        (str(world), str(setting)): summed(some, 0)
        for (world, setting), some in grouped([*chosen, *fixed], "dataset", "setting").items()
    }
    worlds, settings = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    body = [
        [world, *(plus_minus(found[world, each]) if (world, each) in found else "-" for each in settings)]
        for world in worlds
    ]
    said = texts("auf")["sensitivity"]
    worst = [[each, *_regret(found, worlds, each)] for each in settings]
    text = ["## With and without our selection", "", said, "", *as_markdown(["world", *settings], body)]
    return [
        *text,
        "",
        texts("auf")["left"],
        "",
        *as_markdown(["setting", "mean", "worst"], worst),
    ], {}


def _published() -> Mapping[str, Any]:
    return published("auf")


def _ordered(rows: Sequence[Row]) -> list[Row]:
    """Worlds and methods in the paper's order, what it lacks behind it."""
    worlds = list(dict.fromkeys([*_published()["table1"], *(row["dataset"] for row in rows)]))
    methods = list(dict.fromkeys([*_published()["table1"]["bank"], *(row["method"] for row in rows)]))
    return sorted(
        rows, key=lambda row: (worlds.index(row["dataset"]), methods.index(row["method"]), row["seed"])
    )


def _regret(found: dict[tuple[str, str], MethodSummary], worlds: Sequence[str], setting: str) -> list[str]:
    left = [
        found[world, setting].oracle - found[world, setting].auf.mean
        for world in worlds
        if (world, setting) in found
    ]
    return [figure(mean(left)), figure(max(left))]


def _beside(found: Cells) -> list[str]:
    methods = list(dict.fromkeys(name for line in found.values() for name in line))
    heads = [
        "world",
        *(
            f"{name}{end}"
            for name in methods
            if name in _published()["table1"]["bank"]
            for end in ("", " (paper)")
        ),
    ]
    body = []
    for world, line in found.items():
        cells_ = [world]
        for name in methods:
            if name in _published()["table1"]["bank"]:
                paper = _published()["table1"].get(world, {}).get(name)
                cells_ += [
                    plus_minus(line[name]) if name in line else "-",
                    f"{paper[0]:.3f} ± {paper[1]:.3f}" if paper else "-",
                ]
        body.append(cells_)
    return as_markdown(heads, body)


def _unreachable(found: Cells) -> list[str]:
    """A sentence for each world in which the paper's number lies above what the printed equations allow."""
    said = []
    for world, line in found.items():
        oracle, paper = next(iter(line.values())).oracle, _published()["table1"].get(world, {}).get("cme")
        if paper and paper[0] > oracle + 0.005:
            said.append(texts("auf")["unreachable"].format(world=world, paper=paper[0], oracle=oracle))
    return said


def _claims(found: Cells, warned: dict[tuple[object, object], int]) -> list[str]:
    heads = [
        "world",
        "method",
        "claimed",
        "true",
        "claimed - true",
        "intervals that hold",
        "their width",
        "nothing altered",
        "warned",
    ]
    body = []
    for world, line in found.items():
        for name, one in line.items():
            if not math.isnan(one.claimed):
                held = f"{percent(one.covered)} of {one.intervals}" if one.intervals else "-"
                counts = [f"{one.no_action_count} of {one.count}", str(warned.get((world, name), 0))]
                body.append(
                    [
                        world,
                        name,
                        figure(one.claimed),
                        figure(one.auf.mean),
                        f"{one.excess:+.3f}",
                        held,
                        figure(one.width),
                        *counts,
                    ]
                )
    for name in dict.fromkeys(name for line in found.values() for name in line):
        some = [line[name] for line in found.values() if name in line and line[name].intervals]
        if len(some) > 1:
            covered, count = (
                sum(one.covered * one.intervals for one in some),
                sum(one.intervals for one in some),
            )
            body.append(["all", name, "-", "-", "-", f"{percent(covered / count)} of {count}", "-", "-", "-"])
    return as_markdown(heads, body)


def _coverage_of_jobs(found: Cells) -> str:
    sizes = {(one.count, one.seeds) for line in found.values() for one in line.values()}
    if len(sizes) == 1:
        ((count, seeds),) = sizes
        return texts("auf")["complete"].format(
            seeds=seeds, plural="s" if seeds > 1 else "", contexts=count // seeds
        )
    return texts("auf")["incomplete"]


def _curves(found: dict[tuple[str, int], MethodSummary], worlds: Sequence[str]) -> Figure:
    columns = min(3, len(worlds))
    drawn, grid = panels(-(-len(worlds) // columns), columns, width=4.0, height=3.0)
    places = [axes for line in grid for axes in line]
    for axes in places[len(worlds) :]:
        axes.set_visible(False)
    for place, (axes, world) in enumerate(zip(places, worlds, strict=False)):
        sizes = sorted(size for each, size in found if each == world)
        some = [found[world, size] for size in sizes]
        bars = np.nan_to_num([one.std for one in some])
        axes.errorbar(
            sizes,
            [one.auf.mean for one in some],
            bars,
            color=COLOURS[0],
            marker=MARKERS[0],
            linestyle=DASHES[0],
            capsize=3,
            label="cme",
        )
        axes.plot(
            sizes, [one.oracle for one in some], "-", color="black", linewidth=1.2, label="best possible"
        )
        axes.plot(
            sizes, [one.no_action for one in some], ":", color="black", linewidth=1.2, label="no action"
        )
        axes.set(title=world, xscale="log", xlabel="Rows, N", ylim=(0, 1.02))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xticks([], minor=True)
        if place % columns == 0:
            axes.set_ylabel("True probability")
    drawn.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn
