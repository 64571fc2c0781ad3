"""The study of causal Bayesian optimisation as tables and figures: each function takes rows and gives lines
of Markdown and figures.

Methods are compared seed by seed: two with the same seed have the same start design and the same noise in
every round.

Source: Ren et al. (2025), Fig. 4-7, 10, 12-14 and Tab. 2-3 (layout).
"""

from collections.abc import Sequence
from statistics import median

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.summaries import trial_summary
from rehearsal_torch.evaluation.trial_rows import Row, by_seed
from rehearsal_torch.reporting import trial_table
from rehearsal_torch.reporting.cross_table import as_markdown
from rehearsal_torch.reporting.figures import trial_panels
from rehearsal_torch.studies.study_files import published, study, texts

Section = tuple[list[str], dict[str, Figure]]
OURS = str(study("cbo").facts["default"])


def whole(rows: Sequence[Row], head: str, name: str) -> Section:
    """What each method recommends in the end, beside the optimum, with the rounds as a figure.

    Args:
        rows: Of the methods and settings to be shown.
        head: The section's title.
        name: The figure's file name.
    """
    if not rows:
        return [], {}
    found = trial_table.cells(rows)
    seeds = sorted({one.seeds for line in found.values() for one in line.values()})
    lengths = sorted({one.rounds for line in found.values() for one in line.values()})
    told = texts("cbo")["recommended"].format(rounds=_range(lengths), seeds=_seeds(seeds))
    table = [f"## {head}", "", told, "", *trial_table.markdown(rows)]
    return table, {name: trial_panels.draw(trial_table.grouped_rows(rows))}


def beaten(rows: Sequence[Row]) -> list[str]:
    """Problem by problem, how much more the default's recommendation is worth than each other method's, seed
    by seed; and the mean of all problems.
    """
    body, others = [], [method for method in trial_table.methods(trial_table.cells(rows)) if method != OURS]
    found: dict[str, list[dict[int, float]]] = {method: [] for method in others}
    for problem, line in trial_table.grouped_rows(rows).items():
        if OURS in line:
            each = {method: _differences(line[OURS], line[method]) for method in others if method in line}
            body.append([problem, *(_signed(list(each.get(method, {}).values())) for method in others)])
            for method, differences in each.items():
                found[method] += [differences] if differences else []
    if not body or not others:
        return []
    body.append(["mean of the problems above", *(_signed(_means(found[method])) for method in others)])
    said = texts("cbo")["beaten"]
    return [
        f"## `{OURS}` beside each method",
        "",
        said,
        "",
        *as_markdown(["problem", *(f"`{method}`" for method in others)], body),
    ]


def across(rows: Sequence[Row], head: str) -> list[str]:
    """The default beside each other method over many settings, each of which counts as one, however many
    seeds it has.

    Args:
        rows: Of the settings.
        head: The section's title.
    """
    found: dict[str, list[list[float]]] = {}
    for line in trial_table.grouped_rows(rows).values():
        for method, some in line.items():
            each = list(_differences(line[OURS], some).values()) if OURS in line and method != OURS else []
            found.setdefault(method, []).extend([each] if each else [])
    body = []
    for name, pairs in found.items():
        means = [sum(each) / len(each) for each in pairs]
        body += (
            [
                [
                    f"`{name}`",
                    str(len(means)),
                    str(sum(map(len, pairs))),
                    str(sum(one > 0 for one in means)),
                    _signed(means),
                ]
            ]
            if means
            else []
        )
    if not body:
        return []
    said = texts("cbo")["across"]
    return [
        f"## {head}",
        "",
        said,
        "",
        *as_markdown(["method", "settings", "pairs", "default ahead in", "difference"], body),
    ]


def medians(rows: Sequence[Row], head: str, least: int = 2) -> list[str]:
    """The median over seeds of what each method recommends in the end, and the mean of the best it tried, for
    methods with at least so many seeds.

    Args:
        rows: Of one problem.
        head: The section's title.
        least: How many seeds a method needs.
    """
    body = []
    for problem, line in trial_table.grouped_rows(rows).items():
        for method, some in line.items():
            runs = by_seed(some)
            ends = sorted(run[-1]["recommended_expected"] for run in runs.values())
            if len(ends) >= least:
                optimum = runs[min(runs)][0]["optimum"]
                tried = sum(run[-1]["best_expected"] for run in runs.values()) / len(runs)
                values = (median(ends), ends[0], ends[-1], tried, optimum)
                body.append([problem, f"`{method}`", str(len(ends)), *(f"{value:.4g}" for value in values)])
    said = texts("cbo")["medians"]
    columns = ["problem", "method", "seeds", "median", "lowest", "highest", "best tried", "optimum"]
    return [f"## {head}", "", said, "", *as_markdown(columns, body)] if body else []


def tables23(rows: Sequence[Row]) -> list[str]:
    """Tables 2 and 3: the best expected reward so far, by round, beside what was published."""
    body = []
    for problem, line in trial_table.grouped_rows(rows).items():
        printed = published("cbo")["best"].get(problem)
        if printed is None:
            continue
        for method, some in line.items():
            cells = [
                trial_summary(some, round_) if _long(some) >= round_ else None
                for round_ in published("cbo")["rounds"]
            ]
            body.append(
                [problem, f"`{method}`", *("-" if one is None else _best(some, one.rounds) for one in cells)]
            )
            if method in printed:
                body.append(
                    [
                        problem,
                        f"{method}, published",
                        *(f"{mean:g} ± {std:g}" for mean, std in printed[method]),
                    ]
                )
    if not body:
        return []
    said = texts("cbo")["published"]
    return [
        "## Tables 2 and 3: unit-Gaussian noise",
        "",
        said,
        "",
        *as_markdown(["problem", "method", *map(str, published("cbo")["rounds"])], body),
    ]


def changed(rows: Sequence[Row], methods: Sequence[str], head: str, said: str) -> list[str]:
    """The default beside itself with one thing changed: mean normalised regret over the problems and seeds
    that all share.

    Args:
        rows: All rows.
        methods: The variants.
        head: The section's title.
        said: What is compared.
    """
    present = [method for method in methods if any(row["method"] == method for row in rows)]
    if len(present) < 2:
        return []
    mine = [row for row in rows if row["method"] in present]
    keys = [
        {(row["problem"], row["setting"], row["seed"]) for row in mine if row["method"] == method}
        for method in present
    ]
    shared = set.intersection(*keys)
    mine = [row for row in mine if (row["problem"], row["setting"], row["seed"]) in shared]
    if not mine:
        return []
    found = trial_table.cells(mine)
    problems = list(found)
    body = []
    for method in present:
        each = [f"{found[problem][method].normalised:.3f}" for problem in problems]
        body.append(
            [
                method,
                *each,
                str(trial_table.regret(found, method)),
                f"{max(found[problem][method].seconds for problem in problems):.2g}",
            ]
        )
    counts = sorted({one.seeds for line in found.values() for one in line.values()})
    told = texts("cbo")["changed"].format(compared=said, seeds=_seeds(counts))
    return [
        f"## {head}",
        "",
        told,
        "",
        *as_markdown(["", *problems, "mean", "seconds a round, at most"], body),
    ]


def seconds(rows: Sequence[Row]) -> list[str]:
    """Median processor seconds of a round, problem by problem."""
    found = trial_table.cells(rows)
    names = trial_table.methods(found)
    body = [
        [problem, *(f"{line[name].seconds:.2g}" if name in line else "-" for name in names)]
        for problem, line in found.items()
    ]
    return [
        "## Seconds a round",
        "",
        texts("cbo")["seconds"],
        "",
        *as_markdown(["problem", *names], body),
    ]


def _differences(ours: Sequence[Row], theirs: Sequence[Row]) -> dict[int, float]:
    """Seed to the difference of what is recommended, as a share of the mean gap that the start design leaves;
    none where it leaves none.
    """
    mine, other = by_seed(ours), by_seed(theirs)
    seeds = sorted(set(mine) & set(other))
    gap = sum(mine[seed][0]["optimum"] - mine[seed][0]["start"] for seed in seeds) / max(len(seeds), 1)
    if gap <= 0:
        return {}
    last = {seed: min(len(mine[seed]), len(other[seed])) - 1 for seed in seeds}
    return {
        seed: (
            mine[seed][last[seed]]["recommended_expected"] - other[seed][last[seed]]["recommended_expected"]
        )
        / gap
        for seed in seeds
    }


def _means(differences: Sequence[dict[int, float]]) -> list[float]:
    """The mean over problems of each seed that all of them have."""
    seeds = sorted(set.intersection(*map(set, differences))) if differences else []
    return [sum(each[seed] for each in differences) / len(differences) for seed in seeds]


def _signed(values: Sequence[float]) -> str:
    if not values:
        return "-"
    found: Interval = mean_interval(values)
    sides = "" if found.low != found.low else f" [{found.low:+.3f}, {found.high:+.3f}]"
    return f"{found.mean:+.3f}{sides}"


def _best(rows: Sequence[Row], round_: int) -> str:
    values = [run[round_ - 1]["best_expected"] for run in by_seed(rows).values()]
    mean = sum(values) / len(values)
    std = (sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)) ** 0.5
    return f"{mean:.4g} ± {std:.2g}"


def _long(rows: Sequence[Row]) -> int:
    return min(len(run) for run in by_seed(rows).values())


def _seeds(counts: Sequence[int]) -> str:
    return f"{_range(counts)} seed{'' if counts[-1] == 1 else 's'}"


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]}-{values[-1]}"
