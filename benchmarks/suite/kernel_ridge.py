"""Rows: fits and decisions by conditional mean embeddings, and the default, beside NumPy and scikit-learn.

The world is the bank's loan: two context variables, one covariate, one action; 1,000 rows unless stated.

    cme fit          the published estimator at given widths: two factorisations; the package solves for two
                     targets, the smoothed region and its indicator
                     (`500 rows`: d context variables, whose distances are the leading term)
    cme decide       after the fit, 20 starts and 100 fixed steps, the same in both
                     (`20 cases`: N rows, whose kernel matrix times the weights of each case is the leading
                     term)
    fit and decide, cme
                     decision=cme as it stands (joint metrics by evidence, caution, adaptive steps, support,
                     sensitivity), beside fit and decisions of the published algorithm with widths given
    fit and decide, cme_stack (the default)
                     the same of what `rehearse` takes if no method is named: two estimators of success,
                     weighted by held-out scores
    ridge            one factorisation, beside `sklearn.kernel_ridge.KernelRidge`

Source: Du et al. (2026), Alg. 1; Pedregosa et al. (2011) for scikit-learn.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from sklearn.kernel_ridge import KernelRidge

from benchmarks.kernel import LAMBDA, RATE, STARTS, STEPS, WIDTHS, Examples, decide, examples, nested
from benchmarks.suite.job import Job
from benchmarks.suite.limits import cholesky_rate
from benchmarks.suite.measuring import Contest, Quality
from benchmarks.suite.plain.embedding import PlainEmbedding
from rehearsal_torch.cli.build import tasked
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from rehearsal_torch.training.fit import fit

ROWS, CASES = (500, 1000, 2000), (1, 20, 1000)
WIDE, LARGER = (16, 256, 4096), (1000, 2000, 4000)
EQUATIONS = "the same equations, whose condition is below 1e4: rounding"


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    rows, cases = ((60, 90), (1, 4)) if small else (ROWS, CASES)
    peer, learn = "published algorithm, NumPy", "scikit-learn KernelRidge"
    targets = "ours solves for two targets"
    for count in rows:
        yield Job("cme fit", peer, "N", count, partial(fitted, count), targets, 3)
        yield Job("ridge", learn, "N", count, partial(ridge, count), targets, 3)
    kept = "theirs keeps the kernel matrix of the covariates, which ours computes again in every call"
    for count in cases:
        size = rows[1]
        yield Job("cme decide", peer, "cases", count, partial(decided, size, count), kept, 1)
    for count in (60, 90) if small else LARGER:
        make = partial(decided, count, cases[1])
        yield Job(f"cme decide, {cases[1]} cases", peer, "N", count, make, kept, 2)
    few = 60 if small else 500
    for count in (3, 5) if small else WIDE:
        make = partial(fitted_wide, few, count)
        yield Job(f"cme fit, {few} rows", peer, "d", count, make, targets, 1)
    more = "ours also chooses widths, and gives interval, baseline, support and sensitivity"
    stacked = f"{more}; it fits two estimators, and each to folds of the rows as well"
    yield Job("fit and decide, cme", peer, "cases", cases[1], partial(whole, "cme", rows[1], cases[1]), more)
    for count in cases[1:]:
        name = "fit and decide, cme_stack (the default)"
        yield Job(name, peer, "cases", count, partial(whole, "cme_stack", rows[1], count), stacked)


def fitted(rows: int) -> Contest:
    """Both stages of the published estimator."""
    # Two factorisations.
    facts = {"gflop": 2 * rows**3 / 3 / 1e9}
    made = _fit(examples(Loan(size=SampleSize(rows=rows))), WIDTHS)
    return replace(made, facts=lambda *_: facts | {"cholesky_gflops": cholesky_rate(rows)})


def fitted_wide(rows: int, contexts: int) -> Contest:
    """The same of made-up rows with so many context variables."""
    stream = torch.Generator().manual_seed(0)
    x, u, a, noise = (
        torch.randn(rows, width, dtype=torch.float64, generator=stream) for width in (contexts, 1, 1, 1)
    )
    w = torch.sigmoid(x.mean(-1, keepdim=True) * contexts**0.5 + u - a + 0.3 * noise)
    given = (x, u, u[:, :0], a, torch.cat([w, (w > 0.5).double()], -1))
    # Distances of rows grow with the square root of their number of variables.
    return _fit(given, (1.2 * contexts**0.5, *WIDTHS[1:]))


def _fit(given: Examples, widths: tuple[float, float, float]) -> Contest:
    x, u, _, a, targets = (each.numpy() for each in given[:5])
    w, rows = np.ascontiguousarray(targets[:, 0]), len(targets)

    def ours() -> ProductRidge:
        part = ProductRidge(fixed=widths)
        part.solve(*given)
        return part

    def quality(part: ProductRidge, plain: PlainEmbedding) -> Quality:
        # In the rows w - K alpha = N lambda alpha.
        errors = [
            rows * LAMBDA * float(np.sqrt((alpha**2).mean()))
            for alpha in (part.coefficients[0, :, 0].numpy(), plain.alpha)
        ]
        return Quality("RMSE of w in the rows", *errors, 1e-9, EQUATIONS, higher=False)

    return Contest(ours, lambda: PlainEmbedding(x, u, a, w, widths), quality)


def ridge(rows: int) -> Contest:
    """One kernel ridge regression of the same rows at the same width."""
    given = examples(Loan(size=SampleSize(rows=rows)))
    x, u, _, a, targets = given[:5]
    joint = torch.cat([x / WIDTHS[0], u / WIDTHS[1]], -1)
    blocks = (joint, u[:, :0], u[:, :0], a / WIDTHS[2], targets, *given[5:])
    inputs, w = torch.cat([joint, a / WIDTHS[2]], -1).numpy(), np.ascontiguousarray(targets[:, 0].numpy())

    def ours() -> np.ndarray:
        part = ProductRidge(fixed=(1.0, 1.0, 1.0))
        part.solve(*blocks)
        return part.coefficients[0, :, 0].numpy()

    def theirs() -> np.ndarray:
        return KernelRidge(alpha=rows * LAMBDA, kernel="rbf", gamma=0.5).fit(inputs, w).dual_coef_

    def quality(one: np.ndarray, other: np.ndarray) -> Quality:
        errors = [rows * LAMBDA * float(np.sqrt((alpha**2).mean())) for alpha in (one, other)]
        return Quality("RMSE of w in the rows", *errors, 1e-9, EQUATIONS, higher=False)

    def facts(*_: object) -> dict[str, float]:
        return {"cholesky_gflops": cholesky_rate(rows), "gflop": rows**3 / 3 / 1e9}

    return Contest(ours, theirs, quality, facts=facts)


def decided(rows: int, count: int) -> Contest:
    """Fixed steps from fixed starts, after the fit."""
    world = Loan(size=SampleSize(rows=rows, contexts=count))
    surrogate = fit(nested(world, "fixed widths"), world.observations())
    cases = [world.case(index) for index in range(count)]
    plain, contexts, bounds = _plain(world, count)

    def theirs() -> list[float]:
        return [plain.decide(row, *bounds, STARTS, STEPS, RATE)[0] for row in contexts]

    def quality(one: list[float], other: list[float]) -> Quality:
        values = float(np.mean(one)), float(np.mean(other))
        return Quality("mean J", *values, 1e-9, "the same starts and steps: rounding")

    return Contest(
        lambda: decide(surrogate, cases, RATE),
        theirs,
        quality,
        repeat=3 if count > 100 else None,
        facts=lambda one, other: {"largest_difference": float(np.abs(np.subtract(one, other)).max())},
    )


def whole(method: str, rows: int, count: int) -> Contest:
    """Fit and decisions of a method of the configuration, judged by the truth."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        sizes = [f"dataset.size.rows={rows}", f"dataset.size.contexts={count}"]
        config = compose("config", ["dataset=bank", *sizes, "seed=0", f"decision={method}"])
    world = instantiate(config.dataset, _convert_="all")
    tasked(config, world)
    table, cases = world.observations(), [world.case(index) for index in range(count)]
    _, contexts, bounds = _plain(world, count)
    given = examples(world)
    x, u, _, a, targets = (each.numpy() for each in given[:5])
    w, actions = np.ascontiguousarray(targets[:, 0]), table.columns(("A2",))
    mean, deviation = float(actions.mean()), float(actions.std())

    def ours() -> list[Decision]:
        torch.manual_seed(0)
        surrogate = instantiate(config.surrogate, _convert_="all")
        fit(surrogate, table)
        objective, search = (instantiate(config[part], _convert_="all") for part in ("objective", "search"))
        parts = [cases[at : at + search.batch_size] for at in range(0, count, search.batch_size)]
        return [
            each for some in parts for each in search.batch_search(objective_for(objective, surrogate, some))
        ]

    def theirs() -> list[np.ndarray]:
        plain = PlainEmbedding(x, u, a, w, WIDTHS)
        return [plain.decide(row, *bounds, STARTS, STEPS, RATE)[1] for row in contexts]

    def quality(one: list[Decision], other: list[np.ndarray]) -> Quality:
        reached = [
            float(world.score(case, each)["probability"]) for case, each in zip(cases, one, strict=True)
        ]
        settings = torch.from_numpy(np.stack(other)) * deviation + mean
        expected = world.probability(world.task.given(cases), ("A2",), settings)
        because = "ours chooses widths and is cautious; theirs is given widths, and is not"
        return Quality("mean true P", float(np.mean(reached)), float(expected.mean()), None, because)

    return Contest(ours, theirs, quality, repeat=3)


def _plain(world: Loan, count: int) -> tuple[PlainEmbedding, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The fitted reference, standardised contexts and bounds."""
    x, u, _, a, targets = (each.numpy() for each in examples(world)[:5])
    scaled = fit(nested(world, "fixed widths"), world.observations()).scaler.standardised
    contexts = scaled(world.task.context, world.task.given([world.case(index) for index in range(count)]))
    lower, upper = scaled(("A2",), torch.tensor([[0.0], [1.0]], dtype=torch.float64)).numpy()
    return PlainEmbedding(x, u, a, targets[:, 0], WIDTHS), contexts.numpy(), (lower, upper)
