"""A linear structural model: its closed forms against rows drawn equation by equation."""

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural, equations
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing


def clique(context=("x",)):
    """x -> {u, v} -> y with u <-> v; u or v or both may be set."""
    return RehearsalTask.of(
        {
            "graph": {"parents": {"u": ["x"], "v": ["x"], "y": ["u", "v"]}, "bidirected": [["u", "v"]]},
            "context": list(context),
            "box": {"u": [-1, 1], "v": [-1, 1]},
            "region": {"y": [0, 1]},
            "candidates": [["u"], ["v"], ["u", "v"]],
        }
    )


def clique_rows(count, altered=None, seed=0):
    """v follows u: 0.5 x + 0.8 u + noise; u is x + noise."""
    g = torch.Generator().manual_seed(seed)
    x, e, f, h = torch.randn(4, count, generator=g, dtype=torch.float64)
    u = x + 0.7 * e if altered is None else torch.rand(count, generator=g, dtype=torch.float64) * 2 - 1
    v = 0.5 * x + 0.8 * u + 0.3 * f
    y = 0.1 + u - v + 0.2 * h
    touched = torch.zeros(count, 4, dtype=torch.bool)
    touched[:, 1] = altered is not None
    return Table(("x", "u", "v", "y"), torch.stack([x, u, v, y], -1), touched)


@pytest.mark.parametrize("world", [managing(), chain()], ids=["two outcomes", "one outcome"])
def test_what_follows_an_alteration_is_what_the_world_does(world):
    model = fit(LinearStructural(world.task), world.table(40000))
    (one_case,) = world.cases(1, seed=4)
    given = model.task.given([one_case])
    for names in ((), *world.task.candidates):
        values = torch.linspace(0.3, 0.9, len(names)).double()
        rows = torch.from_numpy(
            world.draw(
                40000,
                9,
                {name: float(value) for name, value in one_case.given.items()},
                dict(zip(names, values.tolist(), strict=True)),
            )
        )
        outcome = rows[:, [world.names.index(name) for name in world.task.outcomes]]
        response = model.response(names)
        mean = response.base(given) + values @ response.action.mT
        assert torch.allclose(mean[0], outcome.mean(0), atol=0.05)
        assert torch.allclose(
            response.covariance, outcome.T.cov().reshape(len(world.task.outcomes), -1), rtol=0.1, atol=0.03
        )


def test_a_context_is_seen_and_speaks_of_its_causes():
    # hidden -> x, hidden -> y: x tells of hidden although nothing leads from x to y.
    task = RehearsalTask.of(
        {
            "graph": {"parents": {"x": ["hidden"], "y": ["hidden", "a"]}},
            "context": ["x"],
            "box": {"a": [-1, 1]},
            "region": {"y": [0, 1]},
        }
    )
    g = torch.Generator().manual_seed(0)
    hidden, e, f, a = torch.randn(4, 20000, generator=g, dtype=torch.float64)
    x, y = hidden + e, hidden + 0.5 * a + 0.1 * f
    model = fit(
        LinearStructural(task), Table.observed(("hidden", "x", "a", "y"), torch.stack([hidden, x, a, y], -1))
    )
    response = model.response(("a",))
    assert float(response.context) == pytest.approx(0.5, abs=0.02)
    assert float(response.covariance) == pytest.approx(0.51, abs=0.02)


def test_the_rest_of_a_clique_follows_its_altered_members_by_parameters_of_its_own():
    task = clique()
    model = fit(LinearStructural(task), clique_rows(2000))
    assert {(each.altered, each.members) for each in model.equations if each.altered} == {
        (("u",), ("v",)),
        (("v",), ("u",)),
    }
    (response,) = (model.response(("u",)),)
    # y = .1 + u - (.5 x + .8 u + noise) + noise
    assert float(response.action) == pytest.approx(0.2, abs=0.05)
    assert float(response.context) == pytest.approx(-0.5, abs=0.06)
    assert float(response.covariance) == pytest.approx(0.3**2 + 0.2**2, abs=0.01)
    # Both set: nothing of the clique is left to follow.
    assert torch.allclose(model.response(("u", "v")).action, torch.tensor([[1.0, -1.0]]).double(), atol=0.05)
    # Nothing set: the clique's own equation, members jointly normal given x.
    assert float(model.response().context) == pytest.approx(1 - 1.3, abs=0.06)


def test_altered_rows_teach_the_equation_under_alteration_once_there_are_enough():
    observed, rounds = clique_rows(300), clique_rows(200, altered=True, seed=1)
    few = Table(rounds.names, rounds.values[:5], rounds.altered[:5])
    equation = next(each for each in LinearStructural(clique()).equations if each.altered == ("u",))
    assert len(equation.rows(observed + few)) == 305
    assert len(equation.rows(observed + rounds)) == 200
    own = next(each for each in LinearStructural(clique()).equations if set(each.members) == {"u", "v"})
    assert len(own.rows(observed + rounds)) == 300


def test_models_of_several_sets_are_those_of_each_and_share_what_is_drawn(monkeypatch):
    world, asked = managing(), []
    made, sets = fit(LinearStructural(world.task), world.table(100)), ((), ("raw_cost",), ("raw_cost",))
    each = [made.linear_models_of([names])[0] for names in sets]
    draw = LinearStructural.drawn
    monkeypatch.setattr(LinearStructural, "drawn", lambda self, one: asked.append(one) or draw(self, one))
    for one, other in zip(made.linear_models_of(sets), each, strict=True):
        assert (one.names, one.altered) == (other.names, other.altered)
        for field in ("weights", "intercept", "covariance"):
            assert torch.equal(getattr(one, field), getattr(other, field))
    assert len(asked) == len(set(asked)) < sum(len(made.under(names)) for names in sets)
    assert fit(LinearStructural(world.task, draws=0), world.table(100)).linear_models_of(sets) == [None] * 3


def test_responses_are_kept_until_the_model_changes():
    world = managing()
    made, sets = fit(LinearStructural(world.task), world.table(100)), ((), ("raw_cost",))

    def responses():
        return made.kept("responses", lambda: made.responses_of(sets))

    kept = responses()
    assert responses() is kept is not made.kept("others", lambda: made.responses_of(sets))
    for names, (response, likely) in zip(sets, kept, strict=True):
        asked = world.task.context, world.task.outcomes
        assert torch.equal(response.covariance, made.response(names).covariance)
        assert torch.equal(likely.constant, made.linear_models_of([names])[0].response(*asked).constant)
    made.mechanisms[0].intercept += 1.0
    shifted = responses()
    assert not torch.equal(shifted[0][1].constant, kept[0][1].constant)
    fit(made, world.table(200))
    assert not torch.equal(responses()[0][0].covariance, shifted[0][0].covariance)
    made.draws = 0
    assert responses()[1][1] is None


def test_bad_input_is_refused():
    world = chain()
    rows = world.table(100)
    with pytest.raises(ValueError, match="may not be altered"):
        fit(LinearStructural(world.task), rows).response(("y",))


def test_the_indicators_of_an_action_are_altered_together():
    classes = [f"c{each}" for each in range(20)]
    task = RehearsalTask.of(
        {
            "graph": ["x -> {drug y}", "drug -> y"],
            "context": ["x"],
            "box": {"drug": {"values": classes}},
            "region": "y >= 0",
            "codings": {"drug": {"classes": classes, "reference": "c0"}},
        }
    )
    # One equation for all of them, which none replaces when they are set, and not one for every subset.
    assert [(each.members, each.altered) for each in equations(task)] == [
        (("x",), ()),
        (tuple(f"drug={each}" for each in classes[1:]), ()),
        (("y",), ()),
    ]
