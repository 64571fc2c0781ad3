"""What the study of avoiding undesired futures runs: which methods, in which worlds, under which settings.

    table1          every method in every world                          table1.csv
    scalability     exact, landmarks, random features at many N          table2.csv
    eta             the sharpness of the desirability                     table3.csv
    lambdas         the grid of ridges                                    table4.csv
    learning_curve  our method at growing N                               learning_curve.csv
    sensitivity     fixed widths against chosen ones                      sensitivity.csv

A job is what ``scripts/decide.py +experiment=auf dataset=... decision=... seed=...`` does, with the overrides
it lists.

Source: Du et al. (2026), Sec. 4 and App. E.3, Tab. 1 to 4.
"""

from collections.abc import Sequence

from rehearsal_torch.studies.record import Job

WORLDS = ("bermuda", "lin_syn1", "nhanes", "bank", "non_syn1", "non_syn2")
METHODS = ("none", "cme", "cme_published", "qwz23_offline", "micns", "care", "grad_rh")
FILES = {
    "table1": "table1.csv",
    "scalability": "table2.csv",
    "eta": "table3.csv",
    "lambdas": "table4.csv",
    "learning_curve": "learning_curve.csv",
    "sensitivity": "sensitivity.csv",
}
SHARPNESS = (3, 5, 10, 20, 50)
FACTORS = (0.2, 0.5, 1.0, 2.0, 5.0)
LAMBDA = 0.001
ROWS = (200, 500, 1000, 2000, 4000)
WIDTHS = (0.5, 1.0, 2.0, 4.0)
HARD = "non_syn1"


def jobs(
    stage: str, seeds: Sequence[int], worlds: Sequence[str] = WORLDS, methods: Sequence[str] = METHODS
) -> list[Job]:
    """A stage's jobs, seed by seed, so that a study that ends early has as many seeds everywhere.

    Args:
        stage: One of `FILES`.
        seeds: Which seeds.
        worlds: Which worlds, where the stage has several.
        methods: Which methods, where the stage has several.
    """
    makers = {
        "table1": _table1,
        "scalability": _scalability,
        "eta": _eta,
        "lambdas": _lambdas,
        "learning_curve": _learning_curve,
        "sensitivity": _sensitivity,
    }
    found = []
    for seed in seeds:
        found += makers[stage](seed, worlds, methods)
    return found


def _table1(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:
    return [
        Job("table1", world, method, "", seed, (f"decision={method}",))
        for world in worlds
        for method in methods
    ]


def _scalability(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:  # noqa: ARG001
    """The largest sizes run for the first seed only: they measure time."""
    found = []
    for rows in (1000, 5000, 20_000, 100_000):
        if rows > 5000 and seed > 0:
            continue
        ways = [
            ("cme_nystrom", "rank=100", "surrogate.estimator.rank=100"),
            ("cme_nystrom", "rank=200", "surrogate.estimator.rank=200"),
        ]
        ways += [("cme_fourier", "features=500", "surrogate.estimator.features=500"), ("cme", "", "")]
        if rows <= 5000:
            ways = [("cme_published", "", ""), *ways]
        if 5000 <= rows <= 20_000:
            ways.append(("cme_published", "conjugate gradients", "surrogate=nested_ridge_cg"))
        for method, told, override in ways:
            overrides = (f"decision={method}", f"dataset.rows={rows}", *([override] if override else []))
            found.append(
                Job(
                    "scalability",
                    HARD,
                    method,
                    " ".join([f"rows={rows}", *([told] if told else [])]),
                    seed,
                    overrides,
                )
            )
    return found


def _eta(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:  # noqa: ARG001
    return [
        Job("eta", HARD, method, f"eta={eta}", seed, (f"decision={method}", f"surrogate.sharpness={eta}"))
        for method in ("cme", "cme_published")
        for eta in SHARPNESS
    ]


def _lambdas(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:  # noqa: ARG001
    found = []
    for first in FACTORS:
        for second in FACTORS:
            overrides = [
                f"surrogate.estimator.lambda_h={first * LAMBDA:g}",
                f"surrogate.estimator.lambda_x={second * LAMBDA:g}",
            ]
            settings = ("decision=cme_published", "surrogate.sharpness=10", *overrides)
            found.append(
                Job(
                    "lambdas",
                    HARD,
                    "cme_published",
                    f"lambda_h={first:g} lambda_x={second:g}",
                    seed,
                    settings,
                )
            )
    return found


def _learning_curve(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:  # noqa: ARG001
    return [
        Job("learning_curve", world, "cme", f"rows={rows}", seed, ("decision=cme", f"dataset.rows={rows}"))
        for world in worlds
        for rows in ROWS
    ]


def _sensitivity(seed: int, worlds: Sequence[str], methods: Sequence[str]) -> list[Job]:  # noqa: ARG001
    """The published estimator under widths that are the same in all worlds, and under those that
    leave-one-out chooses; median widths are in table 1.
    """
    found = []
    for world in worlds:
        for width in WIDTHS:
            overrides = (
                "decision=cme_published",
                f"surrogate.estimator.fixed=[{width:g},{width:g},{width:g}]",
            )
            found.append(Job("sensitivity", world, "cme_published", f"widths={width:g}", seed, overrides))
        overrides = ("decision=cme_published", "surrogate.estimator.widths=leave_one_out")
        found.append(Job("sensitivity", world, "cme_published", "widths=leave_one_out", seed, overrides))
    return found
