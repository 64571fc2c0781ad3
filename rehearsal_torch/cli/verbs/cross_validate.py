"""The verb cross-validate: the held-out log-likelihood of a surrogate, and its loss through a constraint.

One job evaluates one surrogate, fold by fold. A sweep over Lipschitz constants ends with grid.csv: each
cell's held-out log-likelihood l, and its decrease in percent against that of the unconstrained cell, l_0,

    100 (l_0 - l) / |l_0|.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.
"""

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import sharing, teller
from rehearsal_torch.cli.run_summary import described
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.files.csv_rows import as_csv, read_rows
from rehearsal_torch.methods.run_parts import Run, build
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures.model_figures import draw_lipschitz
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.cross_validation import cross_validate as validated
from rehearsal_torch.training.cross_validation import percentage_decrease
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.user_error import UserError, as_user_error

TABLE = "folds.csv"
GRID = "grid.csv"


def work(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    """All folds of one surrogate; returns a sentence on them."""
    if (folder.path / TABLE).is_file():
        return "validated before"
    run = build(config)
    described(run.problem, folder, sweep)
    episodes = run.problem.facts().episodes
    if episodes is None:
        fault = f"cross-validation needs a data set of episodes; got {type(run.problem).__name__}"
        raise UserError(fault, "dataset", "Choose sepsis_simulated or mimic")
    # The patients of the training split; the test patients are not used.
    patients, builders = episodes("train"), (partial(_unfitted_model, run), partial(_stateless_trainer, run))
    context = sharing(config, False, sweep, teller(config, sweep))
    with as_user_error("cross-validation"), context as workers:
        scores = validated(patients, *builders, int(config.folds), run.seed, str(config.by), workers)
    rows = [asdict(score) for score in scores.folds]
    folder.write_metrics(
        [
            (row["fold"], f"held_out/{name}", float(value))
            for row in rows
            for name, value in row.items()
            if name not in ("fold", "train", "held_out")
        ]
    )
    folder.write(TABLE, as_csv(rows, "nan"))
    print(
        f"{len(rows)} folds by {scores.by}: held-out log-likelihood of a transition {scores.scaled:.4f} "
        f"+- {scores.std:.4f} in {folder.path}",
        flush=True,
    )
    return f"held-out log-likelihood {scores.scaled:.4f}"


def grid(sweep: Path) -> None:
    """Writes grid.csv of a sweep over Lipschitz constants, and its figure if a cell is unconstrained."""
    cells: dict[tuple[Any, Any], float] = {}
    jobs = [path for path in sweep.iterdir() if path.name.isdecimal() and (path / TABLE).is_file()]
    for path in sorted(jobs, key=lambda path: int(path.name)):
        mechanism = RunFolder(path).read_yaml("config.yaml")["surrogate"]["mechanism"]
        scores = [number(row["scaled"]) for row in read_rows(path / TABLE, ("scaled",), ("scaled",))]
        cell = mechanism["location_constant"], mechanism["scale_constant"]
        cells[cell] = fmean(scores) if scores else math.nan
    if not cells:
        return
    free = cells.get((None, None))
    decrease = {
        cell: None if free is None else percentage_decrease(value, free) for cell, value in cells.items()
    }
    columns = ("location_constant", "scale_constant", "log_likelihood", "decrease_percent")
    rows = [dict(zip(columns, (*cell, cells[cell], decrease[cell]), strict=True)) for cell in cells]
    RunFolder(sweep).write(GRID, as_csv(rows, "nan"))
    print(f"Written: {sweep / GRID}", flush=True)
    constrained = {cell: value for cell, value in decrease.items() if value is not None and None not in cell}
    if constrained:
        with drawing():
            save(draw_lipschitz(constrained), sweep / "figures", "lipschitz_grid")


def _unfitted_model(run: Run) -> Surrogate:
    """An unfitted model; the caller has seeded its initial weights."""
    model = run.surrogate(settled=False)
    if model.kind != "look_back":
        fault = f"cross-validation needs a transition model; got {type(model).__name__}"
        raise UserError(fault, "surrogate", "Choose transition or unconstrained")
    return model


def _stateless_trainer(run: Run) -> Descent:
    """A trainer that keeps no state, so that no fold resumes another."""
    trainer = run.trainer(None)
    if trainer is None:
        fault = "cross-validation trains in each fold"
        raise UserError(fault, "trainer", "Choose trainer=cpu or trainer=gpu")
    return trainer
