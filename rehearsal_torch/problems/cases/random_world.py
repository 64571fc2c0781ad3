"""Worlds of tables drawn by seed, each with one trait that strains decisions.

Of twenty seeds in a row three worlds have each of the traits

    determined    experts decide: R2(action | what comes before it) is at least .95; in half of them what they
                  choose is the optimum
    noise         the noise of the outcome grows or shrinks with the action
    units         rows belong together: some twenty rows share what is peculiar to their unit
    turning       the effect turns where the rows end, and the box reaches beyond them
    kinds         a yes/no outcome, a count or some levels; a context of yes/no, levels and three classes
    null          no action has any effect, though the graph allows one

and two have none (`plain`). Everything else is drawn as well: causes of action and outcome that are known in
the rows only, how strong they are, the shapes of mechanisms (linear, saturating, a threshold, a hill, a
product), the distributions of noises, a second action, a mediator, levels of an action, the number of rows
(300 to 3,000), and the share of desired rows (.3 to 60 %; 2 to 60 % of outcomes that are not continuous). A
trait alone has linear effects, normal noises, and one action, set within the rows, of whose variance at most
.6 is determined.

Each variable is, before its unit,

    v = sqrt(R2) s(parents) + sqrt(1 - R2) e,      s a weighted sum of shapes of the standardised parents,

s and e with mean 0 and standard deviation 1 over a pilot sample, so that weights mean the same everywhere. An
outcome divides its variance among what is known before, the actions, and noise. The truth is a share of 2^13
points of a scrambled Sobol sequence, the same for all actions of a world: its error is below .012.

Worlds with seeds below 1000 are for building methods, those from 1000 on for reporting.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.task_codings import expanded
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.rehearsal_world import StructuralWorld, task_of
from rehearsal_torch.problems.world_size import SampleSize, setting
from rehearsal_torch.seeding import numpy_generator, sobol

Trait = Literal["determined", "noise", "units", "turning", "kinds", "null", "plain"]
TRAITS: tuple[Trait, ...] = get_args(Trait)
# Seeds in a row among which the traits are dealt out, and how many get each of them.
BLOCK, EACH = 20, 3
PILOT, DRAWS = 4000, 2**13
# Points of the grid of one action, and of each of two.
GRID = {1: 121, 2: 25}
# Purposes of the generators of a world.
_TRAITS, _RECIPE, _PILOT = 41, 42, 43
# A context of three classes without an order, of these shares.
CLASSES, CLASS_SHARES = Coding("w", ("A", "B", "C"), reference="A"), (0.45, 0.8)

Shape = Callable[[Tensor], Tensor]
SHAPES: Mapping[str, Shape] = {
    "linear": lambda z: z,
    "saturating": lambda z: torch.tanh(1.5 * z),
    "threshold": lambda z: torch.sigmoid(6 * (z - 0.4)),
    "hill": lambda z: -(z - 0.5).square(),
}
NOISES: Mapping[str, Shape] = {
    "normal": lambda n: n,
    "heavy tails": lambda n: torch.sinh(0.8 * n) / 1.134,
    "skewed": lambda n: (torch.exp(0.6 * n) - 1.197) / 0.790,
    "uniform": lambda n: (torch.special.ndtr(n) - 0.5) * math.sqrt(12),
}


def dealt(seed: int, traits: Sequence[Any]) -> Any:
    """The trait of the world of a seed; the last trait fills what is left of a block of seeds."""
    block, position = divmod(seed, BLOCK)
    deck = [trait for trait in traits[:-1] for _ in range(EACH)]
    deck += [traits[-1]] * (BLOCK - len(deck))
    return deck[numpy_generator(block, _TRAITS).permutation(BLOCK)[position]]


@dataclass(frozen=True)
class Term:
    """A part of a mechanism: the shape of a parent, or a product of two; `weight` is its deviation."""

    parents: tuple[str, ...]
    shape: str
    weight: float

    def __call__(self, latent: Mapping[str, Tensor]) -> Tensor:
        """The unweighted term at standardised parents."""
        value = SHAPES[self.shape](latent[self.parents[0]])
        return value * latent[self.parents[1]] if len(self.parents) == 2 else value


@dataclass(frozen=True)
class Mechanism:
    """A variable before its unit of measurement, as a function of its standardised parents.

    Attributes:
        groups: Terms by what they stand for, each with its share of the variance.
        scale_by: The parent that scales the noise, and the logarithm of the factor per standard deviation.
        turns: The parent whose effect turns, the place, and the change of the slope beyond it.
        chosen: The parent that experts choose, and what is lost per squared deviation from their choice.
    """

    groups: tuple[tuple[float, tuple[Term, ...]], ...]
    noise: str = "normal"
    scale_by: tuple[str, float] | None = None
    turns: tuple[str, float, float] | None = None
    chosen: tuple[str, float] | None = None

    @property
    def parents(self) -> list[str]:
        """The parents, each once, in order."""
        names = [name for _, terms in self.groups for term in terms for name in term.parents]
        names += [effect[0] for effect in (self.scale_by, self.turns, self.chosen) if effect]
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Recipe:
    """The structure and parameters that a seed has drawn.

    Attributes:
        mechanisms: Variable to its mechanism, causes first.
        kinds: Variable to ``binary``, ``levels``, ``count`` or ``class``, of those that are not continuous.
        units: Variable to location and scale of its column.
        reach: By which share of the range of its rows an action's box exceeds them, at both ends.
        desired: Share of desired rows.
        inside: Whether the outcome is desired in an interval, not above a bound.
        in_unit: Rows of a unit; 1 where every row stands alone.
        peculiar: Standard deviation of what is peculiar to a unit, of the outcome before its unit.
    """

    trait: Trait
    mechanisms: Mapping[str, Mechanism]
    kinds: Mapping[str, str]
    units: Mapping[str, tuple[float, float]]
    context: tuple[str, ...]
    actions: tuple[str, ...]
    outcome: str
    reach: tuple[float, float]
    desired: float
    inside: bool
    rows: int
    in_unit: int = 1
    peculiar: float = 0.0

    def causes(self, name: str) -> list[str]:
        """A variable's parents, and those of the action if it is compared with what experts would choose."""
        mechanism = self.mechanisms[name]
        chosen = [] if mechanism.chosen is None else self.mechanisms[mechanism.chosen[0]].parents
        return [*mechanism.parents, *chosen]


def recipe(seed: int, trait: Trait | None = None, alone: bool = False) -> Recipe:
    """The world of a seed; `trait` and `alone` as in `DrawnWorld`."""
    trait = dealt(seed, TRAITS) if trait is None else trait
    draw = numpy_generator(seed, _RECIPE)

    def sample(names: Sequence[str], chance: float) -> list[str]:
        drawn = [name for name in names if draw.random() < chance]
        classes = set(CLASSES.columns)
        return [name for name in names if name in drawn or (name in classes and classes & set(drawn))]

    def terms(parents: Sequence[str], shapes: Sequence[str]) -> tuple[Term, ...]:
        return tuple(
            Term((name,), str(draw.choice(shapes)), float(draw.uniform(0.4, 1) * draw.choice([-1, 1])))
            for name in parents
        )

    def distribution() -> str:
        drawn = str(draw.choice(list(NOISES), p=[0.55, 0.15, 0.15, 0.15]))
        return "normal" if alone else drawn

    plain = ("linear",) if alone else ("linear", "linear", "saturating", "threshold")
    context = tuple(f"x{i + 1}" for i in range(int(draw.integers(1, 5))))
    if trait == "kinds":
        context += CLASSES.columns
    causes = tuple(f"u{i + 1}" for i in range(int(draw.integers(0, 4))))
    actions = ("a1", "a2") if draw.random() < 0.2 and not alone else ("a1",)
    mediated = draw.random() < 0.2 and trait not in ("determined", "turning") and not alone
    kinds: dict[str, str] = {}
    mechanisms: dict[str, Mechanism] = {}
    for place, name in enumerate(context):
        mechanisms[name] = Mechanism((), distribution())
        if name in CLASSES.columns:
            kinds[name] = "class"
        elif trait == "kinds" and place < 2:
            kinds[name] = ("binary", "levels")[place]
    for name in causes:
        explained = float(draw.uniform(0, 0.5))
        parents = sample(context, 0.6)
        groups = ((explained, terms(parents, plain)),) if parents else ()
        mechanisms[name] = Mechanism(groups, distribution())
    inputs, largest = (*context, *causes), 0.6 if alone else 0.8
    for name in actions:
        explained = float(draw.uniform(*((0.95, 0.995) if trait == "determined" else (0.1, largest))))
        parents = sample(inputs, 0.8) or [inputs[-1]]
        mechanisms[name] = Mechanism(((explained, terms(parents, plain)),), distribution())
        if trait not in ("determined", "turning") and draw.random() < 0.25 and not alone:
            kinds[name] = "levels"
    middle = actions
    if mediated:
        inputs_of_m = sample(context, 0.3)
        share = float(draw.uniform(0.3, 0.8))
        groups = ((share, terms([actions[0], *inputs_of_m], ("linear", "saturating"))),)
        mechanisms["m"] = Mechanism(groups, distribution())
        middle = ("m", *actions[1:])
    before, effect = draw.uniform(0.1, 0.45), draw.uniform(0.1, 0.5)
    effects = terms(middle, plain if alone else (*plain, "hill"))
    if draw.random() < 0.3 and not alone:
        effects += (Term((middle[0], inputs[0]), "linear", float(draw.choice([-0.7, 0.7]))),)
    outcome = Mechanism(
        ((float(before), terms(sample(inputs, 0.8) or list(inputs), plain)), (float(effect), effects)),
        distribution(),
    )
    if trait == "null":
        outcome = replace(outcome, groups=(outcome.groups[0], (0.0, effects)))
    if trait == "noise":
        rate = float(draw.uniform(0.3, 0.8) * draw.choice([-1, 1]))
        outcome = replace(outcome, scale_by=(actions[0], rate))
    if trait == "turning":
        slope = -float(draw.uniform(2, 4))
        first = Term((middle[0],), "linear", 1.0)
        turning = (outcome.groups[0], (float(effect), (first,)))
        outcome = replace(outcome, groups=turning, turns=(middle[0], 1.9, slope))
    if trait == "determined" and draw.random() < 0.5:
        # What determines the choice matters for the outcome through it.
        loss = float(draw.uniform(0.8, 2.0))
        outcome = replace(outcome, groups=outcome.groups[:1], chosen=(actions[0], loss))
    mechanisms["y"] = outcome
    if trait == "kinds":
        kinds["y"] = str(draw.choice(["binary", "count", "levels"]))
    units = {
        name: (0.0, 1.0) if name in kinds else (float(draw.normal() * 10), float(10 ** draw.uniform(-1, 2)))
        for name in mechanisms
    }
    low, high = draw.uniform(0, 0.2, 2) * (not alone)
    rare = 0.02 if kinds.get("y") else 0.003
    return Recipe(
        trait,
        mechanisms,
        kinds,
        units,
        context,
        actions,
        "y",
        (float(low), float(draw.uniform(0.4, 0.9) if trait == "turning" else high)),
        float(math.exp(draw.uniform(math.log(rare), math.log(0.6)))),
        bool(draw.random() < 0.2) and "y" not in kinds and not alone,
        int(math.exp(draw.uniform(math.log(300), math.log(3000)))),
        int(draw.integers(10, 31)) if trait == "units" else 1,
        float(draw.uniform(0.3, 0.6)) if trait == "units" else 0.0,
    )


class DrawnWorld(StructuralWorld):
    """The world of a seed; ValueError if there is no such trait.

    Args:
        trait: Its trait in place of the one that the seed has; None for that.
        alone: Whether its trait is the only thing that strains decisions.
        own_rows: Whether the number of observations is that which the seed has drawn, not that of the size.
        seed: Which world, and its observations and contexts.
        validation: See `RehearsalWorld`.
    """

    def __init__(
        self,
        trait: Trait | None = None,
        alone: bool = False,
        own_rows: bool = True,
        size: SampleSize = SampleSize(contexts=10),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        if trait is not None and trait not in TRAITS:
            raise ValueError(f"trait: expected one of {', '.join(TRAITS)}; got {trait!r}")
        self._asked = (trait, alone, own_rows, size)
        self.recipe = drawn = recipe(seed, trait, alone)
        self._moments: dict[tuple[str, ...], tuple[Tensor, Tensor]] = {}
        self._edges: dict[str, Tensor] = {}
        order = tuple(drawn.mechanisms)
        pilot = torch.from_numpy(numpy_generator(seed, _PILOT).standard_normal((len(order) + 1, PILOT)))
        values = self._solve(order, pilot, {})
        causes = {_variable(name): dict.fromkeys(map(_variable, drawn.causes(name))) for name in order}
        bounds = {name: self._bounds(name, values[name]) for name in drawn.actions}
        region = {drawn.outcome: self._desired_interval(values[drawn.outcome])}
        codings = (CLASSES,) if CLASSES.columns[0] in order else ()
        graph = expanded(RehearsalGraph.of(causes), {coding.name: coding for coding in codings})
        task = task_of(graph, drawn.context, bounds, region, [drawn.actions])
        task = replace(task, unit="unit" if drawn.in_unit > 1 else None, codings=codings)
        size = replace(setting("size", size, SampleSize), **({"rows": drawn.rows} if own_rows else {}))
        super().__init__(task, order, size, seed, validation)
        self.details = {"trait": drawn.trait, "alone": alone, "source": "drawn by seed"}

    def reseeded(self, seed: int) -> Self:
        """The world of another seed."""
        return type(self)(*self._asked, seed, self.validation)

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Observations; with the column ``unit`` where rows belong together."""
        normals = torch.from_numpy(stream.standard_normal((len(self.order) + 1, count)))
        if self.recipe.in_unit == 1:
            values = self._solve(self.order, normals, {})
            return Table.observed(self.order, torch.stack([values[name] for name in self.order], -1))
        unit = torch.arange(count) // self.recipe.in_unit
        normals[-1] = normals[-1][unit]
        values = self._solve(self.order, normals, {})
        columns = [*(values[name] for name in self.order), unit.double()]
        return Table.observed((*self.order, "unit"), torch.stack(columns, -1))

    def solved(self, normals: Tensor, fixed: Mapping[str, Tensor], stream: np.random.Generator) -> Tensor:
        """The variables of rows of units of their own."""
        peculiar = torch.from_numpy(stream.standard_normal((1, len(normals))))
        values = self._solve(self.order, torch.cat([normals.T, peculiar]), fixed)
        return torch.stack([values[name].expand(len(normals)) for name in self.order], -1)

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """The share of desired draws, (B, |X|), (..., B, k) -> (..., B)."""
        return self._share(contexts, names, values, DRAWS)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The best of a grid that gets finer twice around its best point, or of all levels."""
        box, points = self.task.box.only(names), GRID[min(len(names), 2)]
        axes = [
            torch.tensor(box.levels[name], dtype=torch.float64)
            if name in box.levels
            else torch.linspace(*box.bounds()[name], points, dtype=torch.float64)
            for name in box.names
        ]
        grid = torch.cartesian_prod(*axes).reshape(-1, 1, len(names))
        values, shares = self._best(contexts, names, grid.expand(-1, len(contexts), -1))
        free = torch.tensor([name not in box.levels for name in box.names])
        offsets = torch.cartesian_prod(*[torch.linspace(-1, 1, 9, dtype=torch.float64) for _ in names])
        step = free * box.width / (points - 1)
        for factor in (1.0, 0.2) if bool(free.any()) else ():
            nearby = box.project(values + factor * step * offsets.reshape(-1, 1, len(names)))
            finer_values, finer_shares = self._best(contexts, names, nearby)
            improved = finer_shares > shares
            values = torch.where(improved.unsqueeze(-1), finer_values, values)
            shares = torch.where(improved, finer_shares, shares)
        return values, shares

    def _best(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """The best of some values, (n, B, k), in each case: few draws find five, all of them the best."""
        top = self._share(contexts, names, values, DRAWS // 8).topk(min(5, len(values)), dim=0).indices
        candidates = values.gather(0, top.unsqueeze(-1).expand(-1, -1, len(names)))
        shares = self._share(contexts, names, candidates, DRAWS)
        best, case = shares.argmax(0), torch.arange(len(contexts))
        return candidates[best, case], shares[best, case]

    def _share(self, contexts: Tensor, names: Sequence[str], values: Tensor, draws: int) -> Tensor:
        shape = values.shape[:-1]
        rows = torch.cat([contexts.expand(*shape, -1), values.to(contexts)], -1).double()
        rows = rows.reshape(-1, rows.shape[-1])
        points = sobol(len(self.order) + 1, self.seed).draw(draws, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
        normals = torch.special.ndtri(points).T
        shares = []
        for block in rows.split(max(1, 2**18 // draws)):
            fixed = dict(zip((*self.task.context, *names), block.T.unsqueeze(-1), strict=True))
            outcome = self._solve(self.order, normals, fixed)[self.recipe.outcome]
            shares.append(self.desired(outcome.unsqueeze(-1)).double().mean(-1).expand(len(block)))
        return torch.cat(shares).reshape(shape)

    def _solve(self, order: Sequence[str], normals: Tensor, fixed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The variables in order, from standard normal numbers, (d + 1, n), the last ones for the units' own.
        The first call, with the pilot sample, sets means, deviations and edges.
        """
        values: dict[str, Tensor] = {}
        latent: dict[str, Tensor] = {}
        signals: dict[str, Tensor] = {}
        for name, normal in zip(order, normals[:-1], strict=True):
            location, scale = self.recipe.units[name]
            if name in fixed:
                values[name] = fixed[name].to(normal)
                signals[name] = self._signal(name, latent, normal)
            else:
                if self.recipe.kinds.get(name) == "class":
                    # One normal number decides of all indicators.
                    normal = normals[order.index(CLASSES.columns[0])]
                smooth = self._latent(name, normal, normals[-1], latent, signals)
                is_discrete = name in self.recipe.kinds
                values[name] = self._discrete(name, smooth) if is_discrete else location + scale * smooth
            latent[name] = self._standard((name, "value"), (values[name] - location) / scale)
        return values

    def _signal(self, name: str, latent: Mapping[str, Tensor], like: Tensor) -> Tensor:
        """What the parents contribute, before noise."""
        signal = torch.zeros_like(like)
        for group, (share, terms) in enumerate(self.recipe.mechanisms[name].groups):
            parts = [
                term.weight * self._standard((name, str(group), str(number)), term(latent))
                for number, term in enumerate(terms)
            ]
            total = torch.stack(torch.broadcast_tensors(*parts)).sum(0)
            signal = signal + math.sqrt(share) * self._standard((name, str(group)), total)
        return signal

    def _latent(
        self,
        name: str,
        normal: Tensor,
        peculiar: Tensor,
        latent: Mapping[str, Tensor],
        signals: dict[str, Tensor],
    ) -> Tensor:
        """A variable before its unit of measurement."""
        mechanism = self.recipe.mechanisms[name]
        signals[name] = value = self._signal(name, latent, normal)
        noise = NOISES[mechanism.noise](normal)
        if mechanism.scale_by is not None:
            parent, rate = mechanism.scale_by
            noise = noise * torch.exp(rate * latent[parent].clamp(-3, 3))
        explained = sum(share for share, _ in mechanism.groups)
        value = value + math.sqrt(max(1 - explained, 0.0)) * noise
        if mechanism.turns is not None:
            parent, turning_point, slope = mechanism.turns
            value = value + slope * (latent[parent] - turning_point).clamp_min(0.0)
        if mechanism.chosen is not None:
            parent, loss = mechanism.chosen
            # The action's own signal is what experts would choose here, whatever is set.
            value = value - loss * (latent[parent] - signals[parent]).square()
        if name == self.recipe.outcome and self.recipe.peculiar:
            value = value + self.recipe.peculiar * peculiar
        return value

    def _discrete(self, name: str, smooth: Tensor) -> Tensor:
        """The value of a variable that is not continuous."""
        kind = self.recipe.kinds[name]
        if kind == "count":
            return torch.exp(0.8 + 0.7 * smooth.clamp_max(5.0)).floor()
        if kind == "class":
            code = torch.bucketize(torch.special.ndtr(smooth), smooth.new_tensor(CLASS_SHARES))
            return (code == CLASSES.columns.index(name) + 1).to(smooth)
        if name not in self._edges:
            shares = (0.4,) if kind == "binary" else (0.3, 0.55, 0.8)
            if name == self.recipe.outcome:
                top = 1 - self.recipe.desired
                shares = (top,) if kind == "binary" else (top / 3, 2 * top / 3, top)
            self._edges[name] = torch.quantile(smooth, torch.tensor(shares, dtype=smooth.dtype))
        return torch.bucketize(smooth.contiguous(), self._edges[name]).to(smooth)

    def _standard(self, key: tuple[str, ...], values: Tensor) -> Tensor:
        """Values less the mean of the pilot sample, over its standard deviation."""
        if key not in self._moments:
            self._moments[key] = values.mean(), values.std().clamp_min(1e-9)
        mean, deviation = self._moments[key]
        return (values - mean) / deviation

    def _bounds(self, name: str, values: Tensor) -> Any:
        if name in self.recipe.kinds:
            return {"values": values.unique().tolist()}
        low, high = torch.quantile(values, torch.tensor([0.005, 0.995], dtype=values.dtype)).tolist()
        below, above = self.recipe.reach
        return (low - below * (high - low), high + above * (high - low))

    def _desired_interval(self, values: Tensor) -> tuple[float | None, float | None]:
        """The interval in which the outcome is desired."""
        share = self.recipe.desired
        if self.recipe.kinds.get(self.recipe.outcome) in ("binary", "levels"):
            return float(values.max()) - 0.5, None
        if self.recipe.inside:
            start = 0.85 * (1 - share)
            ends = torch.quantile(values, torch.tensor([start, start + share], dtype=values.dtype)).tolist()
            return ends[0], ends[1]
        bound = float(torch.quantile(values, 1 - share))
        return (bound + 0.5 if self.recipe.outcome in self.recipe.kinds else bound), None


def _variable(name: str) -> str:
    """The variable of a column: the class of which it is an indicator, else itself."""
    return CLASSES.name if name in CLASSES.columns else name
