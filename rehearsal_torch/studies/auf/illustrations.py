"""The two illustrations of the study: the borrower of Fig. 3 and the triangle of Fig. 5.

The paper does not print the borrower's context. Among those whose shares fit its figures (.664 with no
action, .473 misled, .875 nested) is (.1, .9): a low credit score with a high debt.

Source: Du et al. (2026), Fig. 3 and Fig. 5.
"""

import statistics

import torch
from matplotlib.figure import Figure
from torch import Tensor

from rehearsal_torch.data.scaling import Standardise
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.reporting.cross_table import as_markdown
from rehearsal_torch.studies.auf import loan_panels, triangle_panel
from rehearsal_torch.studies.study_files import texts
from rehearsal_torch.surrogates.kernel.nested_ridge import Desirability
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge

BORROWER, DRAWN, SEEDS = (0.1, 0.9), 1500, range(5)
RATES = torch.linspace(0, 1, 201, dtype=torch.float64)
PAPER = (0.664, 0.473, 0.875)


def believed(world: Loan, adjusted: bool) -> Tensor:
    """What the published estimator, with or without adjustment, makes of each rate for the borrower, (n,)."""
    table, task = world.observations(), world.task
    scaler, desirability = Standardise(table.names), Desirability(task.region)
    scaler.solve(table.values)
    outcomes = table.columns(task.outcomes)
    desirability.solve(outcomes)
    x, u, a = (scaler.shown(names, table.columns(names)) for names in (task.context, ("U1",), ("A2",)))
    estimator = ProductRidge()
    estimator.solve(x, u if adjusted else u[:, :0], u[:, :0], a, desirability.targets(outcomes), outcomes)
    prepared = estimator.prepare(scaler.shown(task.context, torch.tensor([BORROWER], dtype=torch.float64)))
    return estimator.value(prepared, scaler.shown(("A2",), RATES[:, None])[:, None])[:, 0].detach()


def illustrations() -> tuple[list[str], dict[str, Figure]]:
    """Lines of Markdown and figures; to be called within `drawing`."""
    borrower = torch.tensor([BORROWER], dtype=torch.float64)
    truth = Loan().probability(borrower, ("A2",), RATES[:, None, None])[:, 0]
    nothing = float(Loan().probability(borrower, (), borrower.new_empty(1, 0)))
    curves = {
        seed: {adjusted: believed(Loan(rows=1000, seed=seed), adjusted) for adjusted in (False, True)}
        for seed in SEEDS
    }
    reached = {
        adjusted: [float(truth[curves[seed][adjusted].argmax()]) for seed in SEEDS]
        for adjusted in (False, True)
    }
    # The seed whose single estimate does neither best nor worst.
    usual = sorted(SEEDS, key=lambda seed: reached[False][seed])[len(SEEDS) // 2]
    single, nested = _chosen(curves[usual][False], truth), _chosen(curves[usual][True], truth)
    drawn = loan_panels.Loan(RATES.numpy(), truth.numpy(), _outcomes(None), nothing, single, nested)
    body = [
        ["no action", f"{nothing:.3f}", "-", f"{PAPER[0]:.3f}"],
        ["single estimator", *_spread(reached[False]), f"{PAPER[1]:.3f}"],
        ["nested estimator", *_spread(reached[True]), f"{PAPER[2]:.3f}"],
        ["best rate", f"{float(truth.max()):.3f}", "-", "-"],
    ]
    said = texts("auf")["loan"].format(borrower=BORROWER, seed=usual)
    text = [
        "## An estimate without adjustment misleads (Fig. 3)",
        "",
        said,
        "",
        *as_markdown(["", "true probability", "by seed", "paper"], body),
    ]
    text += ["", "![loan](figures/loan.svg)", "", "## The centre of the region is no goal (Fig. 5)", ""]
    centre, best = triangle_panel.success(0.0), triangle_panel.success(triangle_panel.best())
    text += [
        texts("auf")["triangle"].format(centre=centre, best=best),
        "",
        "![triangle](figures/triangle.svg)",
    ]
    return text, {"loan": loan_panels.draw(drawn), "triangle": triangle_panel.draw()}


def _chosen(curve: Tensor, truth: Tensor) -> loan_panels.Chosen:
    best = int(curve.argmax())
    return loan_panels.Chosen(
        curve.numpy(), float(RATES[best]), _outcomes(float(RATES[best])), float(truth[best])
    )


def _outcomes(rate: float | None) -> loan_panels.Array:
    names, values = (
        ((), torch.empty(0, dtype=torch.float64))
        if rate is None
        else (("A2",), torch.tensor([rate], dtype=torch.float64))
    )
    table = Loan().rehearse(torch.tensor(BORROWER, dtype=torch.float64), names, values, DRAWN)
    return table.columns(("Y1", "Y2")).numpy()


def _spread(values: list[float]) -> list[str]:
    return [f"{statistics.fmean(values):.3f}", ", ".join(f"{value:.3f}" for value in values)]
