"""Illustrations of the study: a borrower (Fig. 3), a triangle (Fig. 5), the NHANES generator (Fig. 10).

The paper does not print the borrower's context. Among the contexts whose probabilities are close to the
printed ones (.664 with no action, .473 with the single estimator, .875 with the nested one) is (.1, .9): a
low credit score with a high debt.

Source: Du et al. (2026), Fig. 3, 5 and 10.
"""

import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from rehearsal_torch.data.scaling import Standardise
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.surrogates.kernel.nested_ridge import Desirability
from rehearsal_torch.surrogates.kernel.product_kernel_ridge import ProductRidge
from rehearsal_torch.user_error import UserError
from reproduction.auf import loan_panels, triangle_panel
from reproduction.page import FIGURES, Section, image, table
from reproduction.plan import published, texts

# Number of drawn outcomes of a panel, and the seeds of the fits.
DRAWS, SEEDS = 1500, range(5)
BORROWER = (0.1, 0.9)
RATES = torch.linspace(0, 1, 201, dtype=torch.float64)
# Figures that preparing NHANES writes.
NHANES_FIGURES = ("marginals", "correlations")


def estimated_probability(world: Loan, adjusted: bool) -> Tensor:
    """The published estimator's probability of a desired outcome at each rate for the borrower.

    Args:
        world: The source of the observations.
        adjusted: Whether the estimator adjusts for the covariate U1 (nested estimator) or not (single one).

    Returns:
        (n,) estimates at `RATES`.
    """
    observations, task = world.observations(), world.task
    scaler, desirability = Standardise(observations.names), Desirability(task.region)
    scaler.solve(observations.values)
    outcomes = observations.columns(task.outcomes)
    desirability.solve(outcomes)
    x, u, a = (
        scaler.standardised(names, observations.columns(names)) for names in (task.context, ("U1",), ("A2",))
    )
    estimator = ProductRidge()
    estimator.solve(x, u if adjusted else u[:, :0], u[:, :0], a, desirability.targets(outcomes), outcomes)
    prepared = estimator.prepare(
        scaler.standardised(task.context, torch.tensor([BORROWER], dtype=torch.float64))
    )
    return estimator.value(prepared, scaler.standardised(("A2",), RATES[:, None])[:, None])[:, 0].detach()


def loan() -> Section:
    """Fig. 3: the rate that either estimator selects for the borrower, and its true probability."""
    borrower = torch.tensor([BORROWER], dtype=torch.float64)
    truth = Loan().probability(borrower, ("A2",), RATES[:, None, None])[:, 0]
    no_action = float(Loan().probability(borrower, (), borrower.new_empty(1, 0)))
    single, nested = (
        [estimated_probability(Loan(seed=seed), adjusted) for seed in SEEDS] for adjusted in (False, True)
    )
    reached = {
        "single estimator": [float(truth[curve.argmax()]) for curve in single],
        "nested estimator": [float(truth[curve.argmax()]) for curve in nested],
    }
    # The seed whose single estimate reaches the median probability.
    seed = sorted(SEEDS, key=reached["single estimator"].__getitem__)[len(SEEDS) // 2]
    panels = loan_panels.Loan(
        RATES.numpy(),
        truth.numpy(),
        _outcomes(None),
        no_action,
        _selection(single[seed], truth),
        _selection(nested[seed], truth),
    )
    in_paper = published("auf")["loan"]
    rows = [{"": "no action", "true probability": f"{no_action:.3f}"}]
    rows += [{"": name, **_over_seeds(values)} for name, values in reached.items()]
    rows = [{**row, "paper": f"{in_paper[row['']]:.3f}"} for row in rows]
    rows.append({"": "best rate", "true probability": f"{float(truth.max()):.3f}"})
    return Section(
        [
            "## An estimate without adjustment misleads (Fig. 3)",
            texts("auf")["loan"].format(borrower=BORROWER, seed=seed),
            table(rows, ["", "true probability", "by seed", "paper"]),
        ],
        {"loan": loan_panels.draw(panels)},
    )


def triangle() -> Section:
    """Fig. 5: the probability of a triangle with the mean at its centroid, and with the best mean."""
    centroid, best = triangle_panel.success(0.0), triangle_panel.success(triangle_panel.best())
    text = texts("auf")["triangle"].format(centroid=centroid, best=best)
    return Section(
        ["## The centre of the region is not the best aim (Fig. 5)", text],
        {"triangle": triangle_panel.draw()},
    )


def generator(out: Path, nhanes: str) -> Section:
    """Fig. 10: how the NHANES generator compares with the participants.

    The numbers are part of the package; the figures need the participants' data.

    Args:
        out: The study's folder.
        nhanes: The folder written by preparing NHANES, whose figures are copied; empty keeps the figures that
            are there.

    Raises:
        UserError: if that folder lacks a figure.
    """
    from rehearsal_torch.problems.nhanes.nhanes_data import Nhanes

    card = dict(Nhanes().card())["generator"]
    validation = card["validation"]
    if nhanes:
        _copy_figures(Path(nhanes), out / FIGURES)
    rows = [
        {
            "generator": name,
            "correlation error": f"{one['correlation_mae']:.4f}",
            "share with desired outcomes": f"{one['desired']:.3f}",
        }
        for name, one in validation["readings"].items()
    ]
    rows += [
        {"generator": "paper", "correlation error": f"{validation['correlation_mae_paper']:.4f}"},
        {"generator": "participants", "share with desired outcomes": f"{validation['desired_real']:.3f}"},
    ]
    figures = [
        image(f"nhanes_{name}", f"NHANES {name}")
        for name in NHANES_FIGURES
        if (out / FIGURES / f"nhanes_{name}.svg").is_file()
    ]
    return Section(
        [
            "## The NHANES generator (Fig. 10)",
            texts("auf")["generator"].format(participants=card["participants"]),
            table(rows),
            *(figures or [texts("auf")["no_figures"]]),
        ]
    )


def _copy_figures(source: Path, folder: Path) -> None:
    missing = [f"{name}.svg" for name in NHANES_FIGURES if not (source / f"{name}.svg").is_file()]
    if missing:
        raise UserError(
            f"expected {', '.join(missing)} there",
            f"nhanes={source}",
            "Run python -m reproduction.nhanes first",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in NHANES_FIGURES:
        for ending in ("png", "svg"):
            shutil.copyfile(source / f"{name}.{ending}", folder / f"nhanes_{name}.{ending}")


def _selection(curve: Tensor, truth: Tensor) -> loan_panels.Selection:
    """The rate at the maximum of an estimate, (n,), with its outcomes and its true probability."""
    best = int(curve.argmax())
    rate = float(RATES[best])
    return loan_panels.Selection(curve.numpy(), rate, _outcomes(rate), float(truth[best]))


def _outcomes(rate: float | None) -> loan_panels.Array:
    """(m, 2), drawn outcomes at a rate; None for no action."""
    names = () if rate is None else ("A2",)
    values = torch.tensor([] if rate is None else [rate], dtype=torch.float64)
    drawn = Loan().rehearse(torch.tensor(BORROWER, dtype=torch.float64), names, values, DRAWS)
    return drawn.columns(("Y1", "Y2")).numpy()


def _over_seeds(values: Sequence[float]) -> dict[str, str]:
    return {
        "true probability": f"{statistics.fmean(values):.3f}",
        "by seed": ", ".join(f"{value:.3f}" for value in values),
    }
