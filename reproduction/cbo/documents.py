"""README.md and the figures of the study of causal Bayesian optimisation, from its rows.

Methods are compared seed by seed: two runs with the same seed have the same start design and the same noise
in every round.

    difference = (E[r | default's recommendation] - E[r | other's recommendation])
                 / mean over seeds of (optimum - best of the start design)

Source: Ren et al. (2025), Fig. 4-7, 10, 12-14 and Tab. 2-3 (layout); the differences are ours.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median, stdev

from rehearsal_torch.evaluation.bootstrap import mean_interval
from rehearsal_torch.evaluation.claim_rows import TRIAL_NUMBERS, Row, by_run, number
from rehearsal_torch.evaluation.method_summaries import trial_summary
from rehearsal_torch.reporting import sweep_tables
from rehearsal_torch.reporting.figures.round_figures import draw_trials
from rehearsal_torch.reporting.sweep_tables import grouped_rows, problem_of
from rehearsal_torch.run_folder import RunFolder
from reproduction.cbo.jobs import LOG, layouts, rows_of
from reproduction.page import Block, Section, caution, ordered, origin, table
from reproduction.plan import published, published_value, study, texts
from reproduction.record import Record
from reproduction.run import Options, Paper

STUDY, TEXTS = study("cbo"), texts("cbo")
DEFAULT = str(STUDY["facts"]["default"])
# The compared methods, without the variants of the ablation.
METHODS = [name for name in STUDY["methods"] if ", " not in name]


def trial_typed(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with texts converted to numbers."""
    return [
        {
            **line,
            "seed": int(line["seed"]),
            "round": int(line["round"]),
            **{key: number(line[key]) for key in TRIAL_NUMBERS},
        }
        for line in rows
    ]


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows."""
    record, groups = PAPER.record(out.path, options, "main"), STUDY["groups"]
    lines = list(record.lines.values())
    rows = trial_typed(record.rows("main"))
    on_main = [row for row in rows if problem_of(row) in groups["main"]]
    compared = ordered(
        [row for row in rows if row["method"] in METHODS],
        (problem_of, list(STUDY["worlds"])),
        (_method, METHODS),
    )
    main = [row for row in compared if problem_of(row) in groups["main"]]
    others = [row for row in compared if problem_of(row) not in groups["main"]]

    yield f"# {STUDY['title']}"
    yield f"{origin('cbo', lines, 'repeat')}."
    yield from (caution(lines, "repeats"), TEXTS["methods"], TEXTS["made"])
    yield recommended(main, "Every method on the main setting of each problem", "main")
    yield differences(main)
    many_seeds = [row for row in main if problem_of(row) in STUDY["facts"]["many_seeds"]]
    yield medians(many_seeds, "Dropwave: medians over seeds")
    yield best_so_far(main)
    for figure in dict.fromkeys(world["figure"] for world in STUDY["worlds"].values() if "figure" in world):
        panel = [row for row in compared if STUDY["worlds"][problem_of(row)].get("figure") == figure]
        if any(problem_of(row) not in groups["main"] for row in panel):
            yield recommended(panel, f"{figure} of the paper", figure.lower().replace(". ", ""))
    yield mean_differences(others, "All other settings together")
    yield variants(
        [row for row in rows if problem_of(row) in groups["mixture_problems"]],
        groups["component_numbers"],
        "Fig. 14: numbers of mixture components",
        TEXTS["components"],
    )
    yield variants(on_main, groups["kernels"], "Kernels", TEXTS["kernels"])
    yield variants(on_main, groups["ablations"], "Ablation", TEXTS["ablation"])
    yield _missing_runs(record)


PAPER = Paper("cbo", layouts, LOG, rows_of, parts)


def recommended(rows: Sequence[Row], title: str, figure: str) -> Section:
    """Expected reward of the action recommended after the last round, and a figure of all rounds.

    Args:
        rows: The rows of some methods and problems.
        title: Heading of the section.
        figure: File name of the figure.
    """
    if not rows:
        return Section()
    found = sweep_tables.trial_cells(rows)
    seeds = {one.seeds for line in found.values() for one in line.values()}
    rounds = {one.rounds for line in found.values() for one in line.values()}
    text = TEXTS["recommended"].format(rounds=_range(rounds), seeds=_seeds(seeds))
    blocks = [f"## {title}", text, sweep_tables.trials_as_markdown(rows)]
    return Section(blocks, {figure: draw_trials(grouped_rows(rows))})


def differences(rows: Sequence[Row]) -> Section:
    """Difference of the default to each other method, problem by problem and averaged over problems.

    Args:
        rows: The rows of the default and of other methods.
    """
    others = [method for method in sweep_tables.methods(sweep_tables.trial_cells(rows)) if method != DEFAULT]
    by_method: dict[str, list[dict[int, float]]] = {method: [] for method in others}
    body = []
    for problem, line in grouped_rows(rows).items():
        if DEFAULT in line:
            cells = {"problem": problem}
            for method in others:
                by_seed_ = _differences(line[DEFAULT], line[method]) if method in line else {}
                cells[f"`{method}`"] = _signed(list(by_seed_.values()))
                by_method[method] += [by_seed_] if by_seed_ else []
            body.append(cells)
    if not body or not others:
        return Section()
    means = {f"`{method}`": _signed(_means(found)) for method, found in by_method.items()}
    body.append({"problem": "mean of the problems above", **means})
    return Section([f"## `{DEFAULT}` compared with each method", TEXTS["differences"], table(body)])


def mean_differences(rows: Sequence[Row], title: str) -> Section:
    """Mean difference of the default to each other method over problems; a problem counts once, however many
    seeds it has.

    Args:
        rows: The rows of the default and of other methods.
        title: Heading of the section.
    """
    found: dict[str, list[list[float]]] = {}
    for line in grouped_rows(rows).values():
        for method, some in line.items():
            values = list(_differences(line[DEFAULT], some).values()) if DEFAULT in line else []
            if values and method != DEFAULT:
                found.setdefault(method, []).append(values)
    body = []
    for method, each in found.items():
        means = [sum(values) / len(values) for values in each]
        body.append(
            {
                "method": f"`{method}`",
                "settings": str(len(means)),
                "pairs": str(sum(map(len, each))),
                "default better in": str(sum(mean > 0 for mean in means)),
                "difference": _signed(means),
            }
        )
    return Section([f"## {title}", TEXTS["mean_differences"], table(body)]) if body else Section()


def medians(rows: Sequence[Row], title: str, min_seeds: int = 2) -> Section:
    """Median over seeds of the expected reward of the recommendation, and the best action tried.

    Args:
        rows: The rows of some problems.
        title: Heading of the section.
        min_seeds: Methods with fewer seeds on a problem are left out.
    """
    body = []
    for problem, line in grouped_rows(rows).items():
        for method, some in line.items():
            last = [run[-1] for run in by_run(some, "seed").values()]
            rewards = [row["recommended_expected"] for row in last]
            if len(rewards) >= min_seeds:
                numbers = {
                    "median": median(rewards),
                    "lowest": min(rewards),
                    "highest": max(rewards),
                    "best tried": fmean(row["best_expected"] for row in last),
                    "optimum": last[0]["optimum"],
                }
                cells = {name: f"{value:.4g}" for name, value in numbers.items()}
                body.append(
                    {"problem": problem, "method": f"`{method}`", "seeds": str(len(rewards)), **cells}
                )
    return Section([f"## {title}", TEXTS["medians"], table(body)]) if body else Section()


def best_so_far(rows: Sequence[Row]) -> Section:
    """Tables 2 and 3: the best expected reward of the actions tried so far, beside the published one.

    Args:
        rows: The rows of some methods and problems; problems without published numbers are left out.
    """
    body, rounds = [], published("cbo")["rounds"]
    for problem, line in grouped_rows(rows).items():
        in_paper = published_value("cbo", "best", problem)
        for method, some in line.items() if in_paper else ():
            length = trial_summary(some).rounds
            ours = {str(round_): _best(some, round_) for round_ in rounds if round_ <= length}
            body.append({"problem": problem, "method": f"`{method}`", **ours})
            if method in in_paper:
                pairs = zip(rounds, in_paper[method], strict=True)
                theirs = {str(round_): f"{mean:g} ± {std:g}" for round_, (mean, std) in pairs}
                body.append({"problem": problem, "method": f"{method}, published", **theirs})
    if not body:
        return Section()
    headings = ["problem", "method", *map(str, rounds)]
    return Section(["## Tables 2 and 3: unit-Gaussian noise", TEXTS["best_so_far"], table(body, headings)])


def variants(rows: Sequence[Row], methods: Sequence[str], title: str, text: str) -> Section:
    """Mean normalised regret of the default and of its variants, over the problems and seeds they share.

    Args:
        rows: The rows of any methods.
        methods: The default and the variants; those without rows are left out.
        title: Heading of the section.
        text: What is compared.
    """
    present = [method for method in methods if any(row["method"] == method for row in rows)]
    if len(present) < 2:
        return Section()
    shared = set.intersection(
        *({_problem_and_seed(row) for row in rows if row["method"] == method} for method in present)
    )
    if not shared:
        return Section()
    found = sweep_tables.trial_cells(
        [row for row in rows if row["method"] in present and _problem_and_seed(row) in shared]
    )
    body = [
        {
            "": method,
            **{problem: f"{line[method].normalised:.3f}" for problem, line in found.items()},
            "mean": str(sweep_tables.regret(found, method)),
            "seconds per round, maximum": f"{max(line[method].seconds for line in found.values()):.2g}",
        }
        for method in present
    ]
    seeds = {one.seeds for line in found.values() for one in line.values()}
    return Section([f"## {title}", TEXTS["variants"].format(compared=text, seeds=_seeds(seeds)), table(body)])


def _method(row: Row) -> str:
    return str(row["method"])


def _problem_and_seed(row: Row) -> tuple[str, int]:
    return problem_of(row), row["seed"]


def _differences(ours: Sequence[Row], theirs: Sequence[Row]) -> dict[int, float]:
    """Seed to difference, for the seeds of both; empty if the start design leaves no gap to the optimum."""
    mine, other = by_run(ours, "seed"), by_run(theirs, "seed")
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


def _means(by_problem: Sequence[dict[int, float]]) -> list[float]:
    """For each seed that all problems have, the mean over problems."""
    seeds = sorted(set.intersection(*map(set, by_problem))) if by_problem else []
    return [sum(each[seed] for each in by_problem) / len(by_problem) for seed in seeds]


def _signed(values: Sequence[float]) -> str:
    """The mean with its sign and its 95% interval; "-" if there are no values."""
    if not values:
        return "-"
    found = mean_interval(values)
    ends = "" if found.low != found.low else f" [{found.low:+.3f}, {found.high:+.3f}]"
    return f"{found.mean:+.3f}{ends}"


def _best(rows: Sequence[Row], round_: int) -> str:
    """Mean and standard deviation over seeds of the best expected reward after a round."""
    values = [run[round_ - 1]["best_expected"] for run in by_run(rows, "seed").values()]
    return f"{fmean(values):.4g} ± {stdev(values) if len(values) > 1 else 0.0:.2g}"


def _missing_runs(record: Record) -> Section:
    """The problems that have fewer seeds than the study plans, and those that were not run."""
    planned = len(STUDY["seeds"])
    counts = Counter((" ".join(key[:2]), key[2]) for key in record.lines)
    fewer, missing = [], []
    for problem in STUDY["worlds"]:
        line = {method: counts[problem, method] for method in STUDY["groups"]["compared"]}
        short = [f"{method} {count}" for method, count in line.items() if count < planned]
        if not any(line.values()):
            missing.append(problem)
        elif short:
            equal = len(set(line.values())) == 1
            text = f"every method {min(line.values())}" if equal else ", ".join(short)
            fewer.append(f"- {problem}: {text}")
    if not fewer and not missing:
        return Section([TEXTS["complete"]])
    return Section(
        [
            "## Missing repeats",
            f"Fewer than {planned} seeds:" if fewer else "",
            fewer,
            f"Not run: {'; '.join(missing)}." if missing else "",
        ]
    )


def _seeds(counts: set[int]) -> str:
    return f"{_range(counts)} seed{'' if max(counts) == 1 else 's'}"


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"
