"""A world in foresight, and a surrogate in closed form: as unlike the episodes as the house allows.

Before each round a context c is seen; an action a is set; then y = c + 2 a + noise follows, and should be 1.
In the observations a hidden cause moves a and y together, so that the slope learnt from them is wrong until
decided rounds are added.
"""

from functools import partial

import torch

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, Objective, chance
from rehearsal_torch.problems.problem import World
from rehearsal_torch.search.search import BatchSearch, Budget, Search, chosen
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.surrogate import Surrogate

NAMES = ("c", "a", "y")


class LeastSquares(Solved):
    """y = w' (1, c, a)."""

    def __init__(self):
        super().__init__()
        self.register_fitted("weights")

    def solve(self, *examples):
        inputs, outputs = examples
        self.weights = torch.linalg.lstsq(inputs, outputs).solution


class LinearResponse(Surrogate):
    """One linear response."""

    def __init__(self):
        super().__init__()
        self.response, self.rows = LeastSquares(), []

    def parts(self, table):
        rows = table.unaltered(["y"])
        self.rows.append(len(rows))
        yield self.response, (self.inputs(rows.columns(["c"]), rows.columns(["a"])), rows.columns(["y"]))

    def inputs(self, context, action):
        return torch.cat([torch.ones_like(action), context.expand_as(action), action], -1)

    def forward(self, context, action):
        return self.inputs(context, action) @ self.response.weights


class NearOne(Objective):
    """Minus the squared distance of the expected y from 1, seen through a little noise of its own."""

    def __init__(self, surrogate, one_case, noise=0.0):
        self.surrogate, self.case, self.noise = surrogate, one_case, noise

    def __call__(self, actions):
        expected = self.surrogate(self.case.given["c"], actions)[..., 0]
        return -(expected - 1).square() + self.noise * torch.randn(())

    def starts(self, count):
        low, high = self.case.feasible["a"]
        return torch.linspace(low, high, count, dtype=torch.float64).unsqueeze(-1)


class Grid(Search[NearOne]):
    """The best of 401 points."""

    def __call__(self, objective):
        points = objective.starts(401)
        values = objective(points)
        best = int(values.argmax())
        return Decision(Alteration(("a",), points[best]), float(values[best]))


class NearOneTogether(AlterationObjective):
    """`NearOne` for B situations; the noise is drawn for the group as a whole."""

    def __init__(self, surrogate, some_cases, names=("a",), noise=0.0):
        super().__init__(some_cases, names)
        self.surrogate, self.contexts = (
            surrogate,
            torch.stack([one_case.given["c"] for one_case in some_cases]),
        )
        self.noise = noise * torch.randn(len(some_cases), dtype=torch.float64)

    def __call__(self, actions):
        return -(self.surrogate(self.contexts, actions)[..., 0] - 1 + self.noise).square()

    def starts(self, count):
        low, high = self.lower, self.upper
        return low + torch.linspace(0, 1, count, dtype=torch.float64)[:, None, None] * (high - low)

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]

    @classmethod
    def for_sets(cls, surrogate, some_cases, noise=0.0):
        return [cls(surrogate, some_cases, noise=noise)]

    @classmethod
    def for_cases(cls, surrogate, some_cases, **settings):
        # A surrogate that is none of a rehearsal task has no graph that a decision could be checked against.
        return Candidates(some_cases, cls.for_sets(surrogate, some_cases, **settings))


class GridTogether(BatchSearch[Candidates[NearOneTogether]]):
    """`Grid` for `batch_size` situations at once; `groups` are the sizes that it was handed."""

    def __init__(self, batch_size=256):
        self.batch_size, self.groups = batch_size, []

    def batch_search(self, objective):
        (one,) = objective.sets
        self.groups.append(len(objective.cases))
        points = one.starts(401)
        values, best = one(points).max(0)
        return chosen(objective, [points[best, torch.arange(len(best))]], values[None], "grid", Budget())


class Market(World):
    """The world of this module; `answered` counts its answers."""

    def __init__(self, seed=0):
        self.seed, self.answered = seed, 0
        generator = torch.Generator().manual_seed(seed)
        hidden, context, other = torch.randn(3, 40, 1, generator=generator, dtype=torch.float64)
        action = hidden + 0.5 * other
        self.table = Table.observed(
            NAMES, torch.cat([context, action, context + 2 * action - 3 * hidden], -1)
        )

    def observations(self):
        return self.table

    def held_out(self):
        return self.table

    def count(self):
        return 40

    def case(self, index):
        if not 0 <= index < self.count():
            raise IndexError(index)
        generator = torch.Generator().manual_seed(1000 * (self.seed + 1) + index)
        return RehearsalCase(
            f"round-{index}",
            {"c": torch.randn(1, generator=generator, dtype=torch.float64)},
            {"a": (-3.0, 3.0)},
        )

    def respond(self, one_case, decision):
        self.answered += 1
        c, a = one_case.given["c"], decision.alteration.values
        return Table(
            NAMES,
            torch.cat([c, a, self.outcome(one_case, decision)]).unsqueeze(0),
            torch.tensor([[False, True, False]]),
        )

    def outcome(self, one_case, decision):
        return one_case.given["c"] + 2 * decision.alteration.values

    def score(self, one_case, decision):
        return {"distance": abs(float(self.outcome(one_case, decision)) - 1)}

    def optimum(self, one_case):
        return 0.0

    def card(self):
        return {"rows": len(self.table)}


def near_one(noise=0.0):
    return partial(NearOne, noise=noise)


def near_ones(noise=0.0):
    return partial(NearOneTogether, noise=noise)
