"""A room is heated so that its temperature falls between 20 and 22 degrees: classes of your own."""

import math

import numpy as np
import torch

import rehearsal_torch as rt
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.search import BatchSearch, Budget, checked_budget, chosen
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate

LOW, HIGH, NOISE = 20.0, 22.0, 0.8
TASK = {
    "graph": {"parents": {"heating": ["outside"], "room": ["outside", "heating"]}},
    "context": ["outside"],
    "box": {"heating": [0, 10]},
    "region": {"room": [LOW, HIGH]},
}


def inside(mean, std):
    """P(20 <= y <= 22) for a normal y."""
    below = [0.5 * (1 + torch.erf((bound - mean) / (std * math.sqrt(2)))) for bound in (LOW, HIGH)]
    return below[1] - below[0]


class HeatedRoom(RehearsalWorld):
    """room = 14 + outside / 2 + heating + noise; people heat more when it is cold."""

    def __init__(self, rows=200, contexts=5, seed=0):
        super().__init__(rt.RehearsalTask.of(TASK), SampleSize(rows, contexts), seed)

    def draw(self, count, stream):
        outside = stream.normal(0.0, 3.0, count)
        heating = 5 - outside / 2 + stream.normal(0.0, 1.5, count)
        room = 14 + outside / 2 + heating + stream.normal(0.0, NOISE, count)
        values = np.stack([outside, heating, room], -1)
        return rt.Table.observed(("outside", "heating", "room"), torch.from_numpy(values))

    def rehearse(self, context, names, values, count):
        noise = self.stream(3)
        cold = torch.full((count,), float(context[0]), dtype=torch.float64)
        usual = 5 - cold / 2 + torch.tensor(noise.normal(0.0, 1.5, count))
        heating = torch.full_like(cold, float(values[0])) if names else usual
        room = 14 + cold / 2 + heating + torch.tensor(noise.normal(0.0, NOISE, count))
        marks = torch.zeros(count, 3, dtype=torch.bool)
        marks[:, 1] = bool(names)
        return rt.Table(("outside", "heating", "room"), torch.stack([cold, heating, room], -1), marks)

    def probability(self, contexts, names, values):
        cold = contexts[:, 0]
        if not names:
            return inside(torch.full_like(cold, 19.0), math.hypot(1.5, NOISE))
        return inside(14 + cold / 2 + values[..., 0], NOISE)

    def optimal(self, contexts, names):
        best = (7 - contexts / 2).clamp(0.0, 10.0)
        return best, self.probability(contexts, names, best)


class Line(Solved):
    """Least squares: weights and the standard deviation of the residuals."""

    def __init__(self):
        super().__init__()
        self.register_fitted("weights", "std")

    def solve(self, *examples):
        inputs, outputs = examples
        inputs = torch.nn.functional.pad(inputs, (1, 0), value=1.0)
        self.weights = torch.linalg.lstsq(inputs, outputs).solution
        self.std = (outputs - inputs @ self.weights).std(0)

    def forward(self, inputs):
        return (torch.nn.functional.pad(inputs, (1, 0), value=1.0) @ self.weights)[..., 0]


class TwoLines(RehearsalSurrogate):
    """The outcome given context and action, and given the context alone."""

    def __init__(self, task):
        super().__init__(task)
        self.acting, self.waiting = Line(), Line()

    def parts(self, table):
        observed = table.unaltered(self.task.outcomes)
        outcome = observed.columns(self.task.outcomes)
        yield self.overlap, self.overlap.examples(table)
        yield self.acting, (observed.columns((*self.task.context, *self.task.box.names)), outcome)
        yield self.waiting, (observed.columns(self.task.context), outcome)


class InsideProbability(AlterationObjective):
    """P(20 <= room <= 22) by the two lines, for altering one candidate set."""

    def __init__(self, model, cases, names):
        super().__init__(cases, names)
        self.model, self.given = model, model.task.given(cases)

    def __call__(self, actions):
        given = self.given.expand(*actions.shape[:-1], -1)
        return inside(self.model.acting(torch.cat([given, actions], -1)), self.model.acting.std)

    def starts(self, count):
        return torch.linspace(0, 10, count, dtype=torch.float64).unsqueeze(-1)

    def appraise(self, actions):
        baseline = inside(self.model.waiting(self.given), self.model.waiting.std)
        pairs = zip(self(actions).tolist(), baseline.tolist(), strict=True)
        return [Appraisal(chance(done), chance(without)) for done, without in pairs]


class Grid(BatchSearch[Candidates[InsideProbability]]):
    """Tries evenly spaced values."""

    kind = "rehearse"

    def __init__(self, points=101, budget_s=None):
        self.points, self.budget_s = points, checked_budget(budget_s)

    def batch_search(self, objective):
        budget = Budget(self.budget_s)
        actions, values = [], []
        for one in objective.sets:
            steps = torch.linspace(0, 1, self.points, dtype=torch.float64).reshape(-1, 1, 1)
            tried = one.lower + steps * (one.upper - one.lower)
            best = one(tried).argmax(0)
            actions.append(tried[best, torch.arange(len(best))])
            values.append(one(actions[-1]))
        return chosen(objective, actions, torch.stack(values), "grid", budget)
