"""Worlds by seed: every seed draws another world, with one trait that strains decisions from tables.

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
    """The trait of the world of a seed; the last one is that of the seeds that are left."""
    block, place = divmod(seed, BLOCK)
    many = [trait for trait in traits[:-1] for _ in range(EACH)]
    many += [traits[-1]] * (BLOCK - len(many))
    return many[numpy_generator(block, _TRAITS).permutation(BLOCK)[place]]


@dataclass(frozen=True)
class Term:
    """A part of a mechanism.

    Attributes:
        parents: One standardised parent whose shape it is, or two whose product it is.
        weight: Its standard deviation beside that of the other terms, with a sign.
    """

    parents: tuple[str, ...]
    shape: str
    weight: float

    def __call__(self, latent: Mapping[str, Tensor]) -> Tensor:
        """The unweighted term at standardised parents."""
        shaped = SHAPES[self.shape](latent[self.parents[0]])
        return shaped * latent[self.parents[1]] if len(self.parents) == 2 else shaped


@dataclass(frozen=True)
class Mechanism:
    """v before its unit, from its standardised parents.

    Attributes:
        groups: Terms by what they stand for, each with its share of the variance.
        noise: The name of the distribution of the noise.
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
        named = [name for _, terms in self.groups for term in terms for name in term.parents]
        named += [part[0] for part in (self.scale_by, self.turns, self.chosen) if part]
        return list(dict.fromkeys(named))


@dataclass(frozen=True)
class Recipe:
    """What a seed has drawn.

    Attributes:
        trait: The trait.
        mechanisms: Variable to its mechanism, causes first.
        kinds: Variable to ``binary``, ``levels``, ``count`` or ``class``, of those that are not continuous.
        units: Variable to location and scale of its column.
        context: The variables that are known before deciding.
        actions: Those that may be set.
        outcome: The outcome.
        reach: Share of the range of its rows by which the box of an action reaches beyond them, at the lower
            and the upper end.
        desired: Share of desired rows.
        inside: Whether the outcome is desired in an interval, not above a bound.
        rows: Number of rows.
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
        """What a variable depends on: its parents, and those of an action that is compared with what experts
        would choose.
        """
        mechanism = self.mechanisms[name]
        chosen = [] if mechanism.chosen is None else self.mechanisms[mechanism.chosen[0]].parents
        return [*mechanism.parents, *chosen]


def recipe(seed: int, trait: Trait | None = None, alone: bool = False) -> Recipe:
    """The world of a seed; `trait` and `alone` as in `DrawnWorld`."""
    trait = dealt(seed, TRAITS) if trait is None else trait
    draw = numpy_generator(seed, _RECIPE)

    def some(names: Sequence[str], chance: float) -> list[str]:
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
    context = tuple(f"x{place + 1}" for place in range(int(draw.integers(1, 5))))
    if trait == "kinds":
        context += CLASSES.columns
    causes = tuple(f"u{place + 1}" for place in range(int(draw.integers(0, 4))))
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
        parents = some(context, 0.6)
        groups = ((explained, terms(parents, plain)),) if parents else ()
        mechanisms[name] = Mechanism(groups, distribution())
    known, most = (*context, *causes), 0.6 if alone else 0.8
    for name in actions:
        explained = float(draw.uniform(*((0.95, 0.995) if trait == "determined" else (0.1, most))))
        parents = some(known, 0.8) or [known[-1]]
        mechanisms[name] = Mechanism(((explained, terms(parents, plain)),), distribution())
        if trait not in ("determined", "turning") and draw.random() < 0.25 and not alone:
            kinds[name] = "levels"
    middle = actions
    if mediated:
        others = some(context, 0.3)
        share = float(draw.uniform(0.3, 0.8))
        groups = ((share, terms([actions[0], *others], ("linear", "saturating"))),)
        mechanisms["m"] = Mechanism(groups, distribution())
        middle = ("m", *actions[1:])
    before, effect = draw.uniform(0.1, 0.45), draw.uniform(0.1, 0.5)
    acting = terms(middle, plain if alone else (*plain, "hill"))
    if draw.random() < 0.3 and not alone:
        acting += (Term((middle[0], known[0]), "linear", float(draw.choice([-0.7, 0.7]))),)
    outcome = Mechanism(
        ((float(before), terms(some(known, 0.8) or list(known), plain)), (float(effect), acting)),
        distribution(),
    )
    if trait == "null":
        outcome = replace(outcome, groups=(outcome.groups[0], (0.0, acting)))
    if trait == "noise":
        outcome = replace(
            outcome, scale_by=(actions[0], float(draw.uniform(0.3, 0.8) * draw.choice([-1, 1])))
        )
    if trait == "turning":
        slope = -float(draw.uniform(2, 4))
        first = Term((middle[0],), "linear", 1.0)
        outcome = replace(
            outcome, groups=(outcome.groups[0], (float(effect), (first,))), turns=(middle[0], 1.9, slope)
        )
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
    """The world of a seed.

    Args:
        trait: Its trait in place of the one that the seed has; None for that.
        alone: Whether its trait is the only thing that strains decisions.
        own_rows: Whether the number of observations is that which the seed has drawn, not that of the size.
        seed: Which world, and its observations and contexts.
        validation: See `RehearsalWorld`.

    Raises:
        ValueError: if there is no such trait.
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
        self.recipe = found = recipe(seed, trait, alone)
        self._moments: dict[tuple[str, ...], tuple[Tensor, Tensor]] = {}
        self._edges: dict[str, Tensor] = {}
        order = tuple(found.mechanisms)
        pilot = torch.from_numpy(numpy_generator(seed, _PILOT).standard_normal((len(order) + 1, PILOT)))
        values = self._follow(order, pilot, {})
        graph = RehearsalGraph.of(
            {_variable(name): dict.fromkeys(map(_variable, found.causes(name))) for name in found.mechanisms}
        )
        bounds = {name: self._bounds(name, values[name]) for name in found.actions}
        region = {found.outcome: self._wanted(values[found.outcome])}
        codings = (CLASSES,) if CLASSES.columns[0] in order else ()
        graph = expanded(graph, {each.name: each for each in codings})
        task = task_of(graph, found.context, bounds, region, [found.actions])
        task = replace(task, unit="unit" if found.in_unit > 1 else None, codings=codings)
        size = replace(setting("size", size, SampleSize), **({"rows": found.rows} if own_rows else {}))
        super().__init__(task, order, size, seed, validation)
        self.details = {"trait": found.trait, "alone": alone, "source": "drawn by seed"}

    def reseeded(self, seed: int) -> Self:
        """The world of another seed."""
        return type(self)(*self._asked, seed, self.validation)

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Observations; with the column ``unit`` where rows belong together."""
        normals = torch.from_numpy(stream.standard_normal((len(self.order) + 1, count)))
        if self.recipe.in_unit == 1:
            values = self._follow(self.order, normals, {})
            return Table.observed(self.order, torch.stack([values[name] for name in self.order], -1))
        unit = torch.arange(count) // self.recipe.in_unit
        normals[-1] = normals[-1][unit]
        values = self._follow(self.order, normals, {})
        columns = [*(values[name] for name in self.order), unit.double()]
        return Table.observed((*self.order, "unit"), torch.stack(columns, -1))

    def solved(self, normals: Tensor, fixed: Mapping[str, Tensor], stream: np.random.Generator) -> Tensor:
        """The variables of rows of units of their own."""
        peculiar = torch.from_numpy(stream.standard_normal((1, len(normals))))
        values = self._follow(self.order, torch.cat([normals.T, peculiar]), fixed)
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
        values, reached = self._best(contexts, names, grid.expand(-1, len(contexts), -1))
        free = torch.tensor([name not in box.levels for name in box.names])
        around = torch.cartesian_prod(*[torch.linspace(-1, 1, 9, dtype=torch.float64) for _ in names])
        step = free * box.width / (points - 1)
        for finer in (1.0, 0.2) if bool(free.any()) else ():
            near = box.project(values + finer * step * around.reshape(-1, 1, len(names)))
            others, better = self._best(contexts, names, near)
            improved = better > reached
            values = torch.where(improved.unsqueeze(-1), others, values)
            reached = torch.where(improved, better, reached)
        return values, reached

    def _best(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """The best of some values, (n, B, k), in each case: few draws find five, all of them the best."""
        places = self._share(contexts, names, values, DRAWS // 8).topk(min(5, len(values)), dim=0).indices
        some = values.gather(0, places.unsqueeze(-1).expand(-1, -1, len(names)))
        reached = self._share(contexts, names, some, DRAWS)
        best, case = reached.argmax(0), torch.arange(len(contexts))
        return some[best, case], reached[best, case]

    def _share(self, contexts: Tensor, names: Sequence[str], values: Tensor, draws: int) -> Tensor:
        shape = values.shape[:-1]
        rows = torch.cat([contexts.expand(*shape, -1), values.to(contexts)], -1).double()
        rows = rows.reshape(-1, rows.shape[-1])
        points = sobol(len(self.order) + 1, self.seed).draw(draws, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
        normals = torch.special.ndtri(points).T
        found = []
        for part in rows.split(max(1, 2**18 // draws)):
            fixed = dict(zip((*self.task.context, *names), part.T.unsqueeze(-1), strict=True))
            outcome = self._follow(self.order, normals, fixed)[self.recipe.outcome]
            found.append(self.desired(outcome.unsqueeze(-1)).double().mean(-1).expand(len(part)))
        return torch.cat(found).reshape(shape)

    def _follow(
        self, order: Sequence[str], normals: Tensor, fixed: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The variables, one after the other, from standard normal numbers, (d + 1, n), the last ones for
        what is peculiar to units. The first call, with the pilot sample, sets means, deviations and edges.
        """
        values: dict[str, Tensor] = {}
        latent: dict[str, Tensor] = {}
        signals: dict[str, Tensor] = {}
        for name, own in zip(order, normals[:-1], strict=True):
            location, scale = self.recipe.units[name]
            if name in fixed:
                values[name] = fixed[name].to(own)
                signals[name] = self._signal(name, latent, own)
            else:
                if self.recipe.kinds.get(name) == "class":
                    # One normal number decides of all indicators.
                    own = normals[order.index(CLASSES.columns[0])]
                plain = self._latent(name, own, normals[-1], latent, signals)
                values[name] = (
                    self._valued(name, plain) if name in self.recipe.kinds else location + scale * plain
                )
            latent[name] = self._standard((name, "value"), (values[name] - location) / scale)
        return values

    def _signal(self, name: str, latent: Mapping[str, Tensor], own: Tensor) -> Tensor:
        """What the parents contribute, before noise."""
        whole = torch.zeros_like(own)
        for place, (share, terms) in enumerate(self.recipe.mechanisms[name].groups):
            parts = [
                term.weight * self._standard((name, str(place), str(number)), term(latent))
                for number, term in enumerate(terms)
            ]
            total = torch.stack(torch.broadcast_tensors(*parts)).sum(0)
            whole = whole + math.sqrt(share) * self._standard((name, str(place)), total)
        return whole

    def _latent(
        self,
        name: str,
        own: Tensor,
        peculiar: Tensor,
        latent: Mapping[str, Tensor],
        signals: dict[str, Tensor],
    ) -> Tensor:
        """A variable before its unit."""
        mechanism = self.recipe.mechanisms[name]
        signals[name] = value = self._signal(name, latent, own)
        noise = NOISES[mechanism.noise](own)
        if mechanism.scale_by is not None:
            parent, rate = mechanism.scale_by
            noise = noise * torch.exp(rate * latent[parent].clamp(-3, 3))
        explained = sum(share for share, _ in mechanism.groups)
        value = value + math.sqrt(max(1 - explained, 0.0)) * noise
        if mechanism.turns is not None:
            parent, place, slope = mechanism.turns
            value = value + slope * (latent[parent] - place).clamp_min(0.0)
        if mechanism.chosen is not None:
            parent, loss = mechanism.chosen
            # The action's own signal is what experts would choose here, whatever is set.
            value = value - loss * (latent[parent] - signals[parent]).square()
        if name == self.recipe.outcome and self.recipe.peculiar:
            value = value + self.recipe.peculiar * peculiar
        return value

    def _valued(self, name: str, plain: Tensor) -> Tensor:
        """The value of a variable that is not continuous."""
        kind = self.recipe.kinds[name]
        if kind == "count":
            return torch.exp(0.8 + 0.7 * plain.clamp_max(5.0)).floor()
        if kind == "class":
            code = torch.bucketize(torch.special.ndtr(plain), plain.new_tensor(CLASS_SHARES))
            return (code == CLASSES.columns.index(name) + 1).to(plain)
        if name not in self._edges:
            shares = (0.4,) if kind == "binary" else (0.3, 0.55, 0.8)
            if name == self.recipe.outcome:
                top = 1 - self.recipe.desired
                shares = (top,) if kind == "binary" else (top / 3, 2 * top / 3, top)
            self._edges[name] = torch.quantile(plain, torch.tensor(shares, dtype=plain.dtype))
        return torch.bucketize(plain.contiguous(), self._edges[name]).to(plain)

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

    def _wanted(self, values: Tensor) -> tuple[float | None, float | None]:
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
