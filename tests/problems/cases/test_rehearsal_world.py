"""What a rehearsal world adds to its law: contexts, references and scores, on one that is solved by hand."""

import math

import pytest
import torch
from scipy.stats import norm

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.cases.gaussian_region_probability import Disc
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.spaces.box import Alteration

DOUBLE = torch.float64
TASK = RehearsalTask.of(
    {
        "graph": {"parents": {"a": ["x"], "b": [], "y": ["x", "a", "b"]}},
        "context": ["x"],
        "box": {"a": [-1, 1], "b": [0, 2]},
        "region": {"y": [0, None]},
        "candidates": [["a"], ["b"]],
    }
)


class Toy(RehearsalWorld):
    """x ~ N(0, 1), a = x + N(0, 1), b = N(0, 1), y = x + a - 2 b + N(0, 1); y >= 0 is desired."""

    asked = 0

    def draw(self, count, stream):
        x, e, b, f = torch.from_numpy(stream.standard_normal((count, 4))).T
        a = x + e
        return Table.observed(("x", "a", "b", "y"), torch.stack([x, a, b, x + a - 2 * b + f], -1))

    def rehearse(self, context, names, values, count):
        rows = self.draw(count, numpy_generator(7)).values.clone()
        for name, value in zip(names, values, strict=True):
            rows[:, ("x", "a", "b", "y").index(name)] = value
        rows[:, 0] = context
        marks = torch.tensor([name in names for name in ("x", "a", "b", "y")]).expand(count, 4)
        return Table(("x", "a", "b", "y"), rows, marks.clone())

    def probability(self, contexts, names, values):
        x, a = contexts[..., 0], values[..., 0] if "a" in names else contexts[..., 0]
        b = values[..., 0] if "b" in names else 0.0
        spread = math.sqrt(1 + ("a" not in names) + 4 * ("b" not in names))
        return torch.special.ndtr((x + a - 2 * b) / spread)

    def optimal(self, contexts, names):
        type(self).asked += 1
        best = torch.full((len(contexts), 1), 1.0 if names == ("a",) else 0.0, dtype=DOUBLE)
        return best, self.probability(contexts, names, best)


def truth(world, index):
    """No action, and the best of both sets, by hand."""
    x = float(world.case(index).given["x"])
    options = norm.cdf([2 * x / math.sqrt(6), (x + 1) / math.sqrt(5), 2 * x / math.sqrt(2)])
    return options[0], max(options)


def setting(name="a", value=0.5):
    return Decision(Alteration((name,), torch.tensor([value], dtype=DOUBLE)), 0.0)


NOTHING = Decision(None, 0.0)


def test_contexts_depend_on_seed_and_index_alone():
    world = Toy(TASK)
    values = [float(world.case(index).given["x"]) for index in range(20)]
    assert len(set(values)) == world.count() == 20
    assert [float(Toy(TASK, SampleSize(50, 30)).case(i).given["x"]) for i in range(20)] == values
    assert float(world.reseeded(1).case(0).given["x"]) != values[0]
    assert world.case(3).feasible == {"a": (-1.0, 1.0), "b": (0.0, 2.0)}
    assert world.given([world.case(0), world.case(5)]).tolist() == [[values[0]], [values[5]]]
    for index in (-1, 20):
        with pytest.raises(IndexError, match=rf"expected a case in 0 ... 19; got {index}"):
            world.case(index)


@pytest.mark.parametrize(("share", "kept"), [(0.0, 100), (0.25, 75), (0.999, 1)])
def test_rows_are_shared_between_fit_and_validation(share, kept):
    world = Toy(TASK, SampleSize(100), validation=share)
    whole, table, held = (
        Toy(TASK, SampleSize(rows=100)).observations(),
        world.observations(),
        world.held_out(),
    )
    assert len(table) == kept
    assert torch.equal(table.values, whole.values[:kept])
    if share:
        assert torch.equal(held.values, whole.values[kept:])
    else:
        assert len(held) == 50, "other rows of the same law"
        assert not torch.equal(held.values[:25], whole.values[:25])


@pytest.mark.parametrize("index", range(5))
def test_a_score_says_how_much_of_the_oracles_gain_was_reached(index):
    world = Toy(TASK)
    case, (nothing, best) = world.case(index), truth(world, index)
    x = float(case.given["x"])
    assert world.optimum(case) == pytest.approx(best)
    assert world.score(case, NOTHING) == pytest.approx(
        {"probability": nothing, "no_action": nothing, "oracle": best, "share": 0.0}
    )
    found = world.score(case, setting("a", 0.5))
    reached = norm.cdf((x + 0.5) / math.sqrt(5))
    assert found["probability"] == pytest.approx(reached)
    assert found["share"] == pytest.approx((reached - nothing) / (best - nothing))


def test_where_there_is_next_to_nothing_to_gain_there_is_no_share():
    class Idle(Toy):
        def optimal(self, contexts, names):
            nothing = self.probability(contexts, (), contexts[:, :0])
            return contexts, nothing + (5e-4 if names == ("a",) else -0.5)

    found = Idle(TASK).score(Idle(TASK).case(0), NOTHING)
    assert math.isnan(found["share"])
    assert found["oracle"] - found["no_action"] == pytest.approx(5e-4)


def test_the_oracle_may_do_nothing():
    class Harmful(Toy):
        def optimal(self, contexts, names):
            return contexts, torch.zeros(len(contexts), dtype=DOUBLE)

    world = Harmful(TASK)
    assert world.optimum(world.case(0)) == pytest.approx(truth(world, 0)[0])


def test_an_answer_is_one_row_whose_noise_is_the_rounds():
    world = Toy(TASK)
    for index in (0, 3):
        case = world.case(index)
        row = world.respond(case, setting("a", 0.5))
        several = world.rehearse(world.given([case])[0], ("a",), torch.tensor([0.5]), index + 1)
        assert torch.equal(row.values, several.values[-1:])
        assert row.altered.tolist() == [[False, True, False, False]]
        assert not world.respond(case, NOTHING).altered.any()


def test_success_is_that_all_rows_are_as_desired_also_where_a_disc_is_wanted():
    def rows(*values):
        table = torch.zeros(len(values), 4, dtype=DOUBLE)
        table[:, 3] = torch.tensor(values)
        return Table.observed(("x", "a", "b", "y"), table)

    world = Toy(TASK)
    assert world.verdict(rows(0.0, 3.0)).success
    assert not world.verdict(rows(0.0, -0.1)).success
    disc = Toy(TASK, wanted=Disc(("y",), (1.0,), 0.5))
    assert disc.desired(torch.tensor([[1.4], [0.4], [1.6]], dtype=DOUBLE)).tolist() == [True, False, False]
