"""README.md and the figures of the study of causal Bayesian optimisation, from its rows."""

from collections import Counter

from rehearsal_torch.evaluation.trial_rows import Row
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.reporting.trial_table import problem_of
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.cbo import results as cbo_results
from rehearsal_torch.studies.cbo.study import (
    ABLATIONS,
    COMPARED,
    COMPONENTS,
    CONTENDERS,
    COUNTED,
    FRESH_SEEDS,
    KERNELS,
    MAIN,
    METHODS,
    SEEDS,
    SETTINGS,
)
from rehearsal_torch.studies.command import origin
from rehearsal_torch.studies.rounds_record import TRIALS, RoundsRecord

TOLD = (
    "`ucb` sees actions and rewards alone. `eicf` models each node that the reward reads from all actions, "
    "so that it is expected improvement on the reward "
    "itself where the reward is a node. `eifn` and `mcbo` know the graph and take all noise for normal; "
    "their noise variance is learnt here, while the "
    "released code of MCBO is told the true one. `excbo` is the default of this package, one configuration "
    "for all problems; `excbo_paper` has the paper's "
    "settings to the letter. `random` draws actions uniformly; what it recommends is the best by the model "
    "of `ucb`."
)
HOW = (
    "A repeat is what `scripts/decide.py +experiment=cbo dataset=PROBLEM decision=METHOD seed=SEED` does. "
    "Expected rewards are the worlds' own, exact or by "
    "fixed draws, and no method sees them. Repeats with the same seed share the start design and the noise "
    "of every round. traces.csv has a row a round, "
    "jobs.csv a line a repeat."
)
WHICH = {
    "on fresh seeds": "with seeds by which nothing was chosen before but the form of `separate`",
    "on all seeds": "with the study's own seeds, by which they were noticed, and the fresh ones",
}
# What share of the default's repeats another configuration needs to be set beside it in one table.
MOST = 0.75
# Run with more seeds than the others, so that a median says something.
MANY = ("dropwave lambda=1 sigma=0.1", "dropwave unit")
# Where the default has a figure to reach.
ASKED = (*MANY, "alpine2 unit")


def documents(out: RunFolder) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
    """
    record = RoundsRecord(out.path, TRIALS)
    rows: list[Row] = []
    fresh: list[Row] = []
    for row in record.rows():
        (fresh if int(row["seed"]) in FRESH_SEEDS else rows).append(row)
    compared = [row for row in rows if row["method"] in METHODS]
    main = [row for row in compared if problem_of(row) in MAIN]
    text = ["# Causal Bayesian optimisation: the paper's problems", "", TOLD, "", HOW]
    with drawing():
        sections = [
            cbo_results.whole(_ordered(main), "Every method on the main setting of each problem", "main")
        ]
        sections.append((cbo_results.beaten(_ordered(main)), {}))
        more = [row for row in main if problem_of(row) in MANY]
        sections.append((cbo_results.medians(_ordered(more), "Dropwave: medians over seeds"), {}))
        sections.append((cbo_results.tables23(_ordered(main)), {}))
        for figure in dict.fromkeys(one.figure for one in SETTINGS.values() if one.figure):
            some = [row for row in compared if SETTINGS[problem_of(row)].figure == figure]
            if any(problem_of(row) not in MAIN for row in some):
                sections.append(
                    cbo_results.whole(
                        _ordered(some), f"{figure} of the paper", figure.lower().replace(". ", "")
                    )
                )
        others = [row for row in compared if problem_of(row) not in MAIN]
        sections.append(
            (cbo_results.across(_ordered(others), "The settings beside the main ones, together"), {})
        )
        counted = [row for row in rows if problem_of(row) in COMPONENTS]
        sections.append(
            (
                cbo_results.changed(
                    counted, COUNTED, "Fig. 14: numbers of mixture components", "The default has two."
                ),
                {},
            )
        )
        ablated = [row for row in rows if problem_of(row) in MAIN]
        told = "The default with the baselines' kernel, and a baseline with the default's."
        sections.append((cbo_results.changed(ablated, KERNELS, "Kernels", told), {}))
        told = (
            "The default, changed in one thing at a time, on the problems and seeds that all variants were "
            "run on."
        )
        sections.append((cbo_results.changed(ablated, (cbo_results.OURS, *ABLATIONS), "Ablation", told), {}))
        for head, some in {"on fresh seeds": fresh, "on all seeds": [*ablated, *fresh]}.items():
            told = (
                "What was run on every problem and about as often as the default, of those that did better "
                "in the ablation and `separate`, which came later; "
                f"on the repeats that all of them have, {WHICH[head]}."
            )
            contending = [row for row in some if row["method"] in CONTENDERS]
            sections.append(
                (
                    cbo_results.changed(
                        some, _as_often(some), f"Which configuration is the default, {head}", told
                    ),
                    {},
                )
            )
            sections.append(
                (cbo_results.across(contending, f"The default beside other configurations, {head}"), {})
            )
        often = _as_often([*ablated, *fresh])
        alone = [row for row in ablated if row["method"] in often and problem_of(row) in ASKED]
        sections.append(
            (
                cbo_results.medians(alone, "Configurations run about as often as the default, by themselves"),
                {},
            )
        )
        if compared:
            sections.append((cbo_results.seconds(_ordered(compared)), {}))
        for lines, figures in sections:
            text += ["", *lines] if lines else []
            for name, figure_ in figures.items():
                save(figure_, out.path / "figures", name)
                text += ["", f"![{name}](figures/{name}.svg)"]
    made = ["## Where the rows come from", "", origin(out.read_json("run.json"), record.jobs.values())]
    out.write("README.md", "\n".join([*text, "", *_cut(record), "", *made]) + "\n")


def _ordered(rows: list[Row]) -> list[Row]:
    """Rows in the study's order of settings and methods."""
    settings, methods = list(SETTINGS), list(METHODS)
    return sorted(
        rows,
        key=lambda row: (
            settings.index(problem_of(row)),
            methods.index(str(row["method"])),
            row["seed"],
            row["round"],
        ),
    )


def _as_often(rows: list[Row]) -> list[str]:
    """The contenders that were run on every problem that the default has, with most of its seeds."""
    repeats = {
        method: {(problem_of(row), row["seed"]) for row in rows if row["method"] == method}
        for method in CONTENDERS
    }
    default = repeats[cbo_results.OURS]
    problems = {problem for problem, _ in default}
    return [
        method
        for method, each in repeats.items()
        if problems <= {problem for problem, _ in each} and len(each & default) >= MOST * len(default)
    ]


def _cut(record: RoundsRecord) -> list[str]:
    """What the whole study has and this record has not."""
    counts = Counter((" ".join(key[:2]), key[2]) for key in record.jobs if int(key[3]) not in FRESH_SEEDS)
    fewer, missing = [], []
    for name in SETTINGS:
        line = {method: counts.get((name, method), 0) for method in COMPARED}
        short = [f"{method} {count}" for method, count in line.items() if count < len(SEEDS)]
        if not any(line.values()):
            missing.append(name)
        elif short:
            alike = len(set(line.values())) == 1
            told = f"every method {min(line.values())}" if alike else ", ".join(short)
            fewer.append(f"- {name}: {told}")
    text = ["## What was cut", ""]
    text += [f"Of {len(SEEDS)} seeds there are fewer here:", "", *fewer] if fewer else []
    text += [*([""] if fewer else []), f"Not run: {'; '.join(missing)}."] if missing else []
    return text if len(text) > 2 else ["Every setting has the paper's four seeds or more, for every method."]
