"""Rows: what a person calls for decisions on a table, beside plain NumPy, a script and PyPI's `rehearsal`.

    model.decide      `care` and `micns` on a chain x -> a -> m -> y with x -> y (an interval to reach, three
                      candidate sets, 1,000 rows), beside the closed forms in NumPy, all cases in one array;
                      beside PyPI's package, whose `suggest` takes one case; and `care` beside NumPy with the
                      same claims, by the same drawn models (`plain.claims`). One case is a dictionary
    rt.learn          `care` on the same rows, beside one least squares a variable
    learn and decide  the default on the bank's loan, 1,000 rows, beside the published estimator with median
                      widths, whose objective on a grid of actions is one matrix product for all cases, and
                      beside that of PyPI's package
    rehearsal decide  the whole command for 20 cases, beside a script that reads the same files, fits a
                      quadratic regression of each outcome with scikit-learn and tries a grid of actions

Each side starts from data frames or files, and is judged by the true probability after its decisions. Ours
also checks cases, graph and support, gives intervals, and keeps a record of each decision.

Source: Du et al. (2026), Eq. (5)-(10); Qin et al. (2025b), Alg. 2; Du et al. (2024), Eq. 6-9.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtr

import rehearsal_torch as rt
from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality, Timed
from benchmarks.suite.plain.claims import Affine, PlainClaims
from benchmarks.suite.plain.embedding import PlainEmbedding
from benchmarks.suite.plain.linear import PlainModel, cheapest, fitted, most_probable
from rehearsal_torch.data.decision import Alteration, Decision
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse

WEIGHTS = {"x": {}, "a": {"x": 0.8}, "m": {"a": 1.5}, "y": {"m": 1.0, "x": -0.7}}
CHAIN = {
    "graph": {"parents": {child: list(parents) for child, parents in WEIGHTS.items()}},
    "context": ["x"],
    "box": {"a": [-1.0, 1.0], "m": [-1.0, 1.0]},
    "region": {"y": [1.0, 2.0]},
    "candidates": [["a"], ["m"], ["a", "m"]],
}
BANK = {
    "graph": {"parents": {child: list(each.parents) for child, each in Loan.table.equations.items()}},
    "context": ["X1", "X2"],
    "box": {"A2": [0.0, 1.0]},
    "region": {"Y1": [0.6, None], "Y2": [0.3, None]},
}
PROBLEM = """
data: rows.csv
variables: {X1: context, X2: context, U1: other, A2: {role: action, range: [0, 1]}, Y1: outcome, Y2: outcome}
graph: ["{X1 X2 U1} -> A2", "{X2 U1 A2} -> Y1", "{U1 A2} -> Y2"]
desired: Y1 >= 0.6 and Y2 >= 0.3
cases: cases.csv
"""
NUMPY, KIT, CLAIMS = "closed form, NumPy", "PyPI's rehearsal", "the same claims, NumPy"
GRID = "published estimator on a grid, NumPy"
MORE = "ours also checks each case, gives an interval and a baseline, and keeps a record of each decision"
CHECKS = "ours also checks cases, support and hidden causes, and keeps a record of each decision"
APART = "different estimators, judged by the truth"
SCRIPT = Path(__file__).with_name("plain") / "quadratic_script.py"


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    rows, cases = (80, (1, 4)) if small else (1000, (1, 20, 1000))
    for count in cases:
        yield Job("care, model.decide", NUMPY, "cases", count, partial(linear, "care", rows, count), MORE, 1)
        yield Job(
            "micns, model.decide", NUMPY, "cases", count, partial(linear, "micns", rows, count), MORE, 1
        )
        yield Job(
            "care, model.decide, same claims",
            CLAIMS, "cases", count, partial(same_claims, rows, count), CHECKS, 1,
        )  # fmt: skip
        for method in ("care", "micns"):
            name, make = f"{method}, model.decide, beside a package", partial(beside_kit, method, rows, count)
            yield Job(name, KIT, "cases", count, make, MORE, 1, needs="rehearsal")
    yield Job("care, rt.learn", "least squares, NumPy", "rows", rows, partial(learnt, rows), MORE)
    for count in cases[1:]:
        name = "the default, learn and decide"
        yield Job(name, GRID, "cases", count, partial(default, rows, count, published), MORE)
        name = "the default, learn and decide, beside a package"
        make = partial(default, rows, count, kit_embedding)
        yield Job(name, KIT, "cases", count, make, MORE, needs="rehearsal")
    name = "rehearsal decide problem.yaml"
    yield Job(name, "a script, scikit-learn", "rows", rows, partial(command, rows, cases[1]), MORE)


def chain(count: int, seed: int) -> pd.DataFrame:
    """Rows of the chain, with noise of standard deviation .3 (.2 of x)."""
    stream, columns = np.random.default_rng(seed), {}
    for name, parents in WEIGHTS.items():
        mean = sum((weight * columns[parent] for parent, weight in parents.items()), np.zeros(count))
        columns[name] = mean + (0.3 if parents else 0.2) * stream.normal(size=count)
    return pd.DataFrame(columns)


def chance(contexts: np.ndarray, settings: list[dict[str, float]]) -> float:
    """The mean true probability of 1 <= y <= 2 after settings of a and m, one for each context."""
    total = 0.0
    for x, setting in zip(contexts[:, 0], settings, strict=True):
        a = setting.get("a", 0.8 * x)
        m = setting.get("m", 1.5 * a)
        free = 0.0 if "m" in setting else 0.3**2 + (0.0 if "a" in setting else (1.5 * 0.3) ** 2)
        std = np.sqrt(0.3**2 + free)
        total += ndtr((2.0 - m + 0.7 * x) / std) - ndtr((1.0 - m + 0.7 * x) / std)
    return total / len(settings)


def linear(method: str, rows: int, count: int) -> Contest:
    """Decisions of a linear method, after the fit."""
    table, cases = chain(rows, 0), chain(count, 1)[["x"]]
    model, plain = rt.learn(table, CHAIN, method=method), _plain(table)
    contexts, observed, asked = cases.to_numpy(), table[["x"]].to_numpy(), _asked(cases)

    def theirs() -> Any:
        return most_probable(plain, contexts) if method == "care" else cheapest(plain, contexts, observed)

    def quality(found: rt.Decisions, expected: Any) -> Quality:
        sets = [
            dict(zip(plain.sets[which], expected.actions[which][place], strict=True))
            for place, which in enumerate(expected.which)
        ]
        ours = chance(contexts, [_set(each) for each in found])
        because = "ours weighs 48 drawn models and may decline, theirs takes the fitted one"
        return Quality("mean true P", ours, chance(contexts, sets), None, because)

    return Contest(lambda: model.decide(asked), theirs, quality)


def _asked(cases: pd.DataFrame) -> Any:
    """The cases as a user has them; one of them as a dictionary."""
    return cases.iloc[0].to_dict() if len(cases) == 1 else cases


def same_claims(rows: int, count: int) -> Contest:
    """The linear method's decisions beside a reference that says the same of them."""
    cases = chain(count, 1)[["x"]]
    model, contexts, asked = rt.learn(chain(rows, 0), CHAIN, method="care"), cases.to_numpy(), _asked(cases)
    sets = ((), *model.task.candidates)
    models = [
        (_affine(AffineResponse(*(each[None] for each in vars(fitted).values()))), _affine(drawn))
        for fitted, drawn in model.surrogate.responses_of(sets)
    ]
    boxes = [(box.lower.numpy(), box.upper.numpy()) for box in map(model.task.box.only, sets[1:])]
    plain = PlainClaims(models, boxes, (1.0, 2.0))

    def quality(found: rt.Decisions, expected: dict[str, np.ndarray]) -> Quality:
        claims = [(each.estimate.point, each.estimate.lower, each.estimate.upper) for each in found]
        wanted = np.stack([expected[name] for name in ("claim", "lower", "upper")], -1)
        apart = float(np.abs(np.array(claims) - wanted).max())
        return Quality("largest difference of claims and ends", apart, 0.0, 1e-9, "the models are the same")

    return Contest(lambda: model.decide(asked), lambda: plain(contexts), quality)


def _affine(response: AffineResponse) -> Affine:
    context, action, constant = (
        each[:, 0].numpy() for each in (response.context, response.action, response.constant)
    )
    return Affine(context, action, constant, response.covariance[:, 0, 0].sqrt().numpy())


def learnt(rows: int) -> Contest:
    """The fit of the linear method."""
    table = chain(rows, 0)

    def quality(model: Any, plain: PlainModel) -> Quality:
        weight = float(model.surrogate.linear_model().weights[2, 3])
        return Quality("weight of m in y", weight, float(plain.weights[2, 3]), 0.02, "ours has a weak prior")

    return Contest(lambda: rt.learn(table, CHAIN, method="care"), lambda: _plain(table), quality)


def beside_kit(method: str, rows: int, count: int) -> Contest:
    """A linear method's decisions beside those of PyPI's package, after both fits."""
    from rehearsal.core import AlterationDomain, AUFTask, DesiredRegion
    from rehearsal.methods.care import CARERehearsal
    from rehearsal.methods.micns import MICNSRehearsal

    table, cases = chain(rows, 0), chain(count, 1)[["x"]]
    task = AUFTask(
        ("x",), ("a", "m"), ("y",), DesiredRegion.from_intervals({"y": (1.0, 2.0)}),
        AlterationDomain({"a": (-1.0, 1.0), "m": (-1.0, 1.0)}), CHAIN["graph"]["parents"],
        tuple(map(tuple, CHAIN["candidates"])), tuple(WEIGHTS),
    )  # fmt: skip
    kind = CARERehearsal if method == "care" else MICNSRehearsal
    kit = kind(seed=0).fit({name: table[name].to_numpy() for name in table}, task)
    model, contexts, asked = rt.learn(table, CHAIN, method=method), cases.to_numpy(), _asked(cases)

    def theirs() -> list[dict[str, float]]:
        return [dict(kit.suggest({"x": float(x)}, task).alterations) for x in contexts[:, 0]]

    def quality(found: rt.Decisions, expected: list[dict[str, float]]) -> Quality:
        values = chance(contexts, [_set(each) for each in found]), chance(contexts, expected)
        return Quality("mean true P", *values, None, APART)

    return Contest(lambda: model.decide(asked), theirs, quality, repeat=3 if count > 100 else None)


Rates = Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]


def default(rows: int, count: int, reference: Rates) -> Contest:
    """The default method, from data frames to decisions."""
    world = Loan(size=SampleSize(rows=rows, contexts=count))
    table, cases = _frames(world, count)

    def ours() -> np.ndarray:
        return _rates(rt.learn(table, BANK).decide(cases))

    return Contest(ours, lambda: reference(table, cases), partial(_judged, world, count), repeat=3)


def published(table: pd.DataFrame, cases: pd.DataFrame) -> np.ndarray:
    """The interest rates of the published estimator with median widths, on a grid: cases -> (B,)."""
    mean, std = table.mean(), table.std()
    scaled, asked = (table - mean) / std, (cases - mean[cases.columns]) / std[cases.columns]
    eta, inside = 10.0, 1.0
    for name, bound in (("Y1", 0.6), ("Y2", 0.3)):
        inside = inside * ndtr(eta * (scaled[name] - (bound - mean[name]) / std[name]))
    blocks = (scaled[["X1", "X2"]].to_numpy(), scaled[["U1"]].to_numpy(), scaled[["A2"]].to_numpy())
    plain = PlainEmbedding(*blocks, np.asarray(inside))
    grid = np.linspace(0.0, 1.0, 201)
    values = plain.values(asked.to_numpy(), ((grid - mean["A2"]) / std["A2"])[:, None])
    return grid[values.argmax(1)]


def kit_embedding(table: pd.DataFrame, cases: pd.DataFrame) -> np.ndarray:
    """The interest rates of the kernel method of PyPI's package: cases -> (B,)."""
    from rehearsal.core import AlterationDomain, AUFTask, DesiredRegion
    from rehearsal.methods.cme import CMERehearsal

    region = DesiredRegion([[-1.0, 0.0], [0.0, -1.0]], [-0.6, -0.3])
    order = ("X1", "X2", "U1", "A2", "Y1", "Y2")
    task = AUFTask(
        ("X1", "X2"), ("A2",), ("Y1", "Y2"), region, AlterationDomain({"A2": (0.0, 1.0)}),
        BANK["graph"]["parents"], (("A2",),), order,
    )  # fmt: skip
    kit = CMERehearsal(seed=0).fit({name: table[name].to_numpy() for name in order}, task)
    rows = cases.to_dict("records")
    return np.array([kit.suggest(row, task).alterations["A2"] for row in rows])


def command(rows: int, count: int) -> Contest:
    """The whole command, from files to files, beside a script; process seconds of the child."""
    world = Loan(size=SampleSize(rows=rows, contexts=count))
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    table, cases = _frames(world, count)
    table.to_csv(folder / "rows.csv", index=False)
    cases.to_csv(folder / "cases.csv", index=False)
    (folder / "problem.yaml").write_text(PROBLEM, encoding="utf-8")

    def ours() -> Timed:
        out = tempfile.mkdtemp(prefix="run-", dir=folder)
        decide = ["-m", "rehearsal_torch", "decide", "problem.yaml", f"out={out}", "workers=1", "quiet=true"]
        seconds = _child(decide, folder)
        return Timed(pd.read_csv(Path(out) / "table.csv")["set/A2"].to_numpy(), seconds)

    def theirs() -> Timed:
        seconds = _child([str(SCRIPT)], folder)
        return Timed(pd.read_csv(folder / "answers.csv")["A2"].to_numpy(), seconds)

    return Contest(ours, theirs, partial(_judged, world, count), repeat=3, units=0)


def _child(arguments: list[str], folder: Path) -> float:
    before = os.times()
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=True, capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def _plain(table: pd.DataFrame) -> PlainModel:
    bounds = {name: (low, high) for name, (low, high) in CHAIN["box"].items()}
    return fitted(table, WEIGHTS, ("x",), "y", (1.0, 2.0), bounds, tuple(map(tuple, CHAIN["candidates"])))


def _frames(world: Loan, count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return world.observations().to_frame(), pd.DataFrame(
        [{name: float(x) for name, x in world.case(at).given.items()} for at in range(count)]
    )


def _set(decision: Decision) -> dict[str, float]:
    alteration = decision.alteration
    return {} if alteration is None else dict(zip(alteration.names, alteration.values.tolist(), strict=True))


def _rates(decisions: rt.Decisions) -> np.ndarray:
    """The interest rates; NaN where nothing is set."""
    return np.array([_set(each).get("A2", np.nan) for each in decisions])


def _judged(world: Loan, count: int, ours: np.ndarray, theirs: np.ndarray) -> Quality:
    def reached(rates: np.ndarray) -> float:
        nothing = Decision(None, 0.0)
        made = [
            nothing if np.isnan(rate) else Decision(Alteration(("A2",), torch.tensor([rate])), 0.0)
            for rate in rates
        ]
        return float(
            np.mean([world.score(world.case(at), each)["probability"] for at, each in enumerate(made)])
        )

    assert len(ours) == len(theirs) == count
    return Quality("mean true P", reached(ours), reached(theirs), None, APART)
