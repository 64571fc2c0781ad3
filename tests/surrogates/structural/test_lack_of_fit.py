import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.drifting_scm import DriftingLinear
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural

GRAPH = {"parents": {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}}


def task(region=(1.0, None)):
    return RehearsalTask.of(
        {"graph": GRAPH, "context": ["x"], "box": {"a": [-2, 2]}, "region": {"y": list(region)}}
    )


def rows(outcome, seed=0, count=500):
    stream = np.random.default_rng([seed, 5])
    x = stream.normal(size=count)
    u = 0.5 * x + stream.normal(size=count)
    # How an action is chosen is no part of what an alteration leads to.
    a = np.sin(2 * u) + stream.exponential(size=count)
    y = outcome(x, u, a, stream)
    return Table.observed(("x", "u", "a", "y"), torch.tensor(np.stack([x, u, a, y], 1)))


def linear(x, u, a, stream):
    return x + u - a + stream.normal(size=len(x))


def found(outcome, surrogate=LinearStructural, region=(1.0, None), seed=0):
    model, table = surrogate(task(region)), rows(outcome, seed)
    for part, examples in model.parts(table):
        if part is not model.overlap:
            part.solve(*examples)
    return model.misfit()


SURROGATES = pytest.mark.parametrize("surrogate", [LinearStructural, StructuralPosterior, DriftingLinear])


@SURROGATES
def test_linear_rows_refute_nothing(surrogate):
    assert sum(found(linear, surrogate, seed=seed) is not None for seed in range(15)) <= 1


@SURROGATES
@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (lambda x, u, a, s: linear(x, u, a, s) + 0.5 * a * u, "in a straight line"),
        (lambda x, u, a, s: x + u - a + s.normal(size=len(x)) * np.exp(0.3 * a), "not the same everywhere"),
        (lambda x, u, a, s: x + u - a + s.exponential(size=len(x)), "not normal"),
    ],
    ids=["form", "spread", "shape"],
)
def test_what_is_refuted_is_said(surrogate, outcome, words):
    finding = found(outcome, surrogate)
    assert finding.kind == "bad_fit"
    assert words in finding.text
    assert finding.numbers["p_value"] < 1e-4


def test_the_claim_without_an_action_is_compared_with_the_rows_in_the_region_that_is_asked_about():
    def yes(x, u, a, stream):
        return (stream.random(len(x)) < 0.02 + 0.04 * np.clip(a, 0, 2)).astype(float)

    model, table = LinearStructural(task((0.5, None))), rows(yes, count=2000)
    for part, examples in model.parts(table):
        if part is not model.overlap:
            part.solve(*examples)
    assert "without an action they claim" in model.misfit().text
    model.adopt(task((-50.0, None)))
    assert "without an action they claim" not in model.misfit().text


def test_what_the_rows_refute_is_at_most_may():
    gain = Estimate(0.3, "difference", 0.2, 0.4, 0.95)
    sure = Decision(Alteration(("a",), torch.ones(1)), 0.5, gain=gain)
    assert sure.status == "do"
    assert sure.told([Finding("bad_fit", "linear equations do not fit the rows")]).status == "may"
