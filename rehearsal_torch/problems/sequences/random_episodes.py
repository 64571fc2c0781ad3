"""Worlds of episodes drawn by seed, each with one trait that strains counterfactual inference.

Of twenty seeds in a row three worlds have each of the traits

    form          next states are no location-scale function of their noise: they saturate with it, a state
                  beyond a threshold adds a random amount to another one, or moves it within the same step
    noise         its scale depends on a state, it is a t with 3 degrees of freedom, or lognormal
    determined    at most 3 % of the actions are not determined by the recorded states
    hidden        a hidden cause moves actions and states
    null          no action has any effect, and none costs
    few           60 to 299 units

and two have none (`plain`). Everything else is drawn too: 2 to 6 states, 1 to 3 actions with named levels or
amounts, some of them useless, static columns, 8 to 20 steps, missed rows, rounding, 300 to 5,000 units, the
policy and its share of random actions (10 to 60 %), costs, and whether the reward weighs one or two states or
scores them. In standard deviations, with actions a,

    z' = r z + B f(z) + sum_j (a_j / top_j)^q_j (1 + c_j tanh z_k(j)) e_j + m + h + d eps,      eps ~ N(0, 1),

f the identity or 2 tanh(z / 2), m what is static and, in half of the worlds, the unit's own level, h the
hidden cause, constant over a unit or persistent by .8. Some actions act through another state, one or two
steps later. Policy and reward read what is recorded: location + scale z, perhaps rounded. In a missed step
the last action goes on; the truth is that of all steps.

The stated strength of the hidden cause is its weight in the equation of the rewarded state, and in the
policy's score of each action, as a multiple of the largest weight of an observed covariate there, the state's
own past left out. A pilot of other units, and no model, sets the effects: the two best changes are worth .3
to 2 standard deviations of the return (without what the length of an episode explains), that deviation is 1
to 5; drafts without such effects are drawn again. Truth is replayed with each unit's own noise. Worlds with
seeds below 1000 are for building methods, those from 1000 on for reporting.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (the question); Cinelli and Hazlett (2020), Sec. 4.4 (a
hidden cause beside an observed one); the worlds are ours.
"""

import math
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.size_limits import NUMBERS, bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.cases.random_world import dealt
from rehearsal_torch.problems.problem import SIMULATED, World
from rehearsal_torch.problems.sequences.sepsis_cohort import dose_options, recommended
from rehearsal_torch.problems.sequences.unit_splits import best_changed, episode_of, what_followed
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.seeding import numpy_generator

Trait = Literal["form", "noise", "determined", "hidden", "null", "few", "plain"]
TRAITS: tuple[Trait, ...] = get_args(Trait)
# Steps before the first that is shown; units of the pilot, and those whose best changes are sought in it.
BEFORE, PILOT, JUDGED = 10, 300, 40
MOST_SEQUENCES = 500_000  # The largest number of sequences that are enumerated for an optimum.
LEVELS = (("no", "yes"), ("none", "low", "high"), ("none", "low", "medium", "high"))
AMOUNTS, CLASSES = 5, np.array(["A", "B", "C"])  # Levels of an amount, and classes of a static column.
_RECIPE, _PILOT, _UNITS = 44, 45, 46  # Purposes of generators.
_short = np.vectorize(lambda number: float(f"{number:.4g}"), otypes=[float])


class Units(NamedTuple):
    """n units at T steps; those past the `horizon` (n,), and those `missed` (n, T), are not shown."""

    latent: Tensor  # z, (n, T, D)
    actions: Tensor  # numbers of levels, or amounts, (n, T, p)
    wish: Tensor  # the policy's score of each action, (n, T, p)
    shift: Tensor  # m + h, (n, T, D)
    noise: Tensor  # two of each state, (n, T, 2, D)
    missed: Tensor
    static: Tensor  # (n, q), the number of the class last
    horizon: Tensor


class DrawnProcess:
    """The process that a seed draws: how D states move under p actions, are recorded and rewarded.

    Attributes:
        stated: The strength of the hidden cause; 0 without one.
        levels: The names of each action's levels; empty for amounts.
        useful: Which actions have an effect, (p,).
        weights: Of recorded states in the reward, (D,), or, by limit, `points` of a score, (D, 3).
        costs: Of a step up, or of one unit of an amount, (p,).
        explored: Share of random actions.
    """

    def __init__(self, seed: int, trait: Trait | None = None) -> None:
        self.trait = dealt(seed, TRAITS) if trait is None else trait
        next(attempt for attempt in count() if self._draw(numpy_generator(seed, _RECIPE, attempt), seed))

    def _draw(self, draw: np.random.Generator, seed: int) -> bool:
        """Draws everything; whether the pilot finds it fit."""

        def some(low: float, high: float, *shape: int) -> Tensor:
            return torch.from_numpy(np.asarray(draw.uniform(low, high, shape)))

        def mask(chance: float, *shape: int) -> Tensor:
            return torch.from_numpy(np.asarray(draw.random(shape) < chance))

        def signed(low: float, high: float, *shape: int, above: float = 0.5) -> Tensor:
            return some(low, high, *shape) * (2 * mask(above, *shape).double() - 1)

        trait, (d, p, q) = self.trait, (int(draw.integers(*ends)) for ends in ((2, 7), (1, 4), (0, 4)))
        indices, rewarded = torch.arange(p), torch.arange(d) >= d - 1 - int(draw.random() < 0.4)
        self.units = int(10 ** (some(1.78, 2.477) if trait == "few" else some(2.478, 3.699)))
        self.longest = int(draw.integers(10, 21))
        self.shortest = self.longest if draw.random() < 0.25 else 8
        self.persistence = some(0.3, 0.8 if trait == "form" else 0.95, d)
        innovation, next_state = 1 - self.persistence, torch.arange(d - 1)
        coupling = signed(0.2, 0.7, d, d) * mask(0.35, d, d) * innovation
        coupling[next_state, next_state + 1] = signed(0.4, 0.8, d - 1) * innovation[1:].sqrt()
        coupling.fill_diagonal_(0)
        while float(torch.linalg.eigvals(coupling.abs() + self.persistence.diag()).abs().max()) > 0.97:
            coupling = 0.8 * coupling
        self.across, self.bent, harm = coupling, mask(0.4, d), signed(1, 1, d)
        for state in range(d - 2, -1, -1):  # 1 where more of a state is bad, through what it moves
            harm[state] = harm[state + 1] * coupling[state, state + 1].sign()
        self.useful = (mask(0.6, p) | (indices == int(draw.integers(p)))) & (trait != "null")
        target = (d - 1 - torch.from_numpy(draw.integers(0, 3, p))).clamp_min(0)
        effects = signed(0.2, 0.6, p, d) * mask(0.2, p, d)
        effects[indices, target] = -harm[target] * signed(0.5, 1, p, above=0.8)
        self.effects = effects * self.useful.unsqueeze(-1)
        self.levels = tuple(LEVELS[draw.integers(3)] if draw.random() < 0.65 else () for _ in range(p))
        self.counts = torch.tensor([len(names) or AMOUNTS for names in self.levels])
        self.named = torch.tensor([bool(names) for names in self.levels])
        self.tops = torch.where(self.named, self.counts - 1, (10 ** some(0.7, 2.3, p)).round())
        self.powers = torch.where(mask(0.3, p), 0.5, 1.0)
        self.partners, self.turns = draw.integers(0, d, p).tolist(), signed(0.4, 1.4, p) * mask(0.6, p)
        self.static = signed(0.2, 0.6, q, d) * mask(0.5, q, d) * innovation
        self.classed = f"s{q}" if q and draw.random() < 0.5 else ""
        self.own = some(0.4, 1.2, d) * innovation * mask(0.5)
        self.deviation = (1 - self.persistence**2).sqrt() * some(0.5, 1, d)
        self.noise = str(draw.choice(["scale", "tails", "skew"])) if trait == "noise" else "normal"
        self.rates = signed(0.5, 1, d) * (self.noise == "scale")
        strength = some(0.5, 1, 3) * (mask(0.5, 3) | (torch.arange(3) == int(draw.integers(3))))
        self.jump, self.within = 3 * strength[0] * signed(1, 1) * innovation[-1], strength[1] * signed(1, 1)
        self.cap = float(1 + strength[2]) if strength[2] else 1e3
        self.policy = signed(0, 0.4, p, d + q)
        self.policy[:, d - 1] = harm[-1] * some(0.6, 1.2, p)
        self.stated, self.lasting = float(10 ** some(-0.52, 0.3)) * (trait == "hidden"), draw.random() < 0.5
        strongest = torch.cat([coupling[:, -1], self.static[:, -1]]).abs().max()
        self.hit = self.stated * strongest * signed(1, 1, d) * (mask(0.3, d) | (torch.arange(d) == d - 1))
        self.urged = self.stated * self.policy.abs().amax(-1) * signed(1, 1, p)
        self.explored = float(some(0, 0.03) if trait == "determined" else some(0.1, 0.6))
        self.missed = float(some(0.03, 0.12) * mask(0.25))
        self.scale, self.rounded = 10 ** some(-1, 2, d), draw.random() < 0.4
        self.location = self.scale * torch.cat([some(0, 6, d - 2), some(0, 2, 2)])
        scored, worth = mask(0.3), torch.where(torch.arange(d) == d - 1, 1, some(0.3, 1, d)) * rewarded
        self.signs, self.weights = -harm * worth.sign(), -harm * worth / self.scale * ~scored
        self.points = worth.outer(torch.tensor([1, 2, 4]).double()) * scored
        self.thresholds = torch.full((p, AMOUNTS - 1), torch.inf, dtype=torch.float64)
        self.costs, paid = some(0, 0, p), some(0.1, 0.5, p) * mask(0.7, p) * mask(0.35) * (trait != "null")
        lowest, gain, deviation = some(0.3, 0.6, p), 10 ** some(-0.45, 0.18), 10 ** some(0, 0.7)
        return self._tune(seed, lowest, float(gain), float(deviation), paid)

    def recorded(self, latent: Tensor) -> Tensor:
        """What is recorded of states, (..., D) -> (..., D)."""
        values, unit = self.location + self.scale * latent, 10.0 ** self.scale.log10().floor() / 10
        return (values / unit).round() * unit if self.rounded else values

    def rewards(self, latent: Tensor, actions: Tensor) -> Tensor:
        """The reward of steps, (..., D), (..., p) -> (...)."""
        states, signs = self.recorded(latent), self.signs.unsqueeze(-1)
        beyond = signs * states.unsqueeze(-1) < signs * self.limits
        points = (beyond * self.points).amax(-1).sum(-1)
        return states @ self.weights - points - actions @ self.costs

    def move(self, state: Tensor, actions: Tensor, shift: Tensor, noise: Tensor) -> Tensor:
        """The next states, (n, D), after actions (n, p), with m + h, (..., D), and noises, (..., 2, D)."""
        strength = (actions / self.tops) ** self.powers
        strength = strength * (1 + self.turns * torch.tanh(state[..., self.partners]))
        bent = torch.where(self.bent, 2 * torch.tanh(state / 2), state)
        deviation = self.deviation * torch.exp(self.rates * torch.tanh(state.roll(1, -1)))
        drive = strength @ self.effects + shift + deviation * noise[..., 0, :]
        moved = self.persistence * state + bent @ self.across + drive
        if self.trait != "form":
            return moved
        moved[..., -1] += self.jump * torch.exp(0.5 * noise[..., 1, -1]) * (state[..., -2] > 0.3)
        moved[..., -1] += self.within * moved[..., -2].clamp_min(0)
        return self.cap * torch.tanh(moved / self.cap)

    def simulate(self, units: int, seed: int, purpose: int = _UNITS) -> Units:
        """Draws units, of which unit i is the same in any number."""
        (q, d), p, steps = self.static.shape, len(self.levels), BEFORE + self.longest
        streams = [numpy_generator(seed, purpose, unit) for unit in range(units)]
        normal = torch.from_numpy(np.stack([stream.standard_normal((steps + 1, 4, 8)) for stream in streams]))
        chance = torch.from_numpy(np.stack([stream.random((steps + 1, 8)) for stream in streams]))
        static = normal[:, 0, 1, :q].round(decimals=1)
        if self.classed:
            static[:, -1] = (3 * chance[:, 0, 1]).floor()
        cause = [normal[:, 0, 2, :1]]
        for innovation in normal[:, 1:-1, 0, 7:].unbind(1):
            cause.append(cause[-1] if self.lasting else 0.8 * cause[-1] + 0.6 * innovation)
        hidden = torch.stack(cause, 1)
        shift = (static @ self.static + normal[:, 0, 0, :d] * self.own).unsqueeze(1) + hidden * self.hit
        main, further = normal[:, 1:, 0, :d], normal[:, 1:, 1:, :d]
        if self.noise == "tails":
            main = main / further.square().sum(2).sqrt()
        elif self.noise == "skew":
            main = (torch.exp(0.8 * main - 0.32) - 1) / math.sqrt(math.exp(0.64) - 1)
        noise = torch.stack((main, further[:, :, 0]), 2)
        horizon = self.shortest + (chance[:, 0, 0] * (self.longest + 1 - self.shortest)).long()
        missed = chance[:, 1:, 6] < self.missed
        missed[:, : BEFORE + 1], missed[torch.arange(units), BEFORE + horizon - 1] = False, False
        missed[:, 2:] &= ~(missed[:, 1:-1] & missed[:, :-2])
        states, actions, scores = [torch.zeros_like(main[:, 0])], [main.new_zeros(units, p)], list[Tensor]()
        for step in range(steps):
            observed = (self.recorded(states[-1]) - self.location) / self.scale
            scores.append(torch.cat([observed, static], -1) @ self.policy.T + hidden[:, step] * self.urged)
            level = (scores[-1].unsqueeze(-1) > self.thresholds).sum(-1)
            exploration, dice = chance[:, step + 1, :p], chance[:, step + 1, 3 : 3 + p]
            level = torch.where(exploration < self.explored, (self.counts * dice).long(), level)
            spread = 0.15 * (self.trait != "determined") * normal[:, step + 1, 1 : 1 + p, 6]
            amount = (self.tops * level / (self.counts - 1) * spread.exp()).round(decimals=1)
            chosen = torch.where(self.named, level, amount)
            actions.append(torch.where(missed[:, step, None], actions[-1], chosen))
            states.append(self.move(states[-1], actions[-1], shift[:, step], noise[:, step]))
        parts = [torch.stack(columns, 1) for columns in (states[:-1], actions[1:], scores)]
        visible = (part[:, BEFORE:] for part in (*parts, shift, noise, missed))
        return Units._make((*visible, static, horizon))

    def followed(self, units: Units, unit: Tensor, actions: Tensor) -> Tensor:
        """Latent states (n, T, D) of units (n,), or of one unit (), under actions (n, T, p)."""
        states = [units.latent[unit, 0].expand(len(actions), -1)]
        for step in range(actions.shape[1] - 1):
            shift, noise = units.shift[unit, step], units.noise[unit, step]
            states.append(self.move(states[-1], actions[:, step], shift, noise))
        return torch.stack(states, 1)

    def _tune(self, seed: int, lowest: Tensor, gain: float, deviation: float, paid: Tensor) -> bool:
        """Fits limits, effects, costs and reward to a pilot; whether changes matter and actions vary."""
        tail = torch.tensor([0.5, 0.25, 0.08], dtype=torch.float64)
        for rounds_left in range(7, -1, -1):
            pilot = self.simulate(PILOT, seed, _PILOT)
            visible = torch.arange(self.longest) < pilot.horizon[:, None]
            latent, idle = pilot.latent[visible], (pilot.actions[visible] == 0).double().mean(0)
            for action, (levels, low) in enumerate(zip(self.counts.tolist(), lowest, strict=True)):
                shares = low + (1 - low) * torch.arange(levels - 1) / (levels - 1)
                self.thresholds[action, : levels - 1] = torch.quantile(pilot.wish[visible][:, action], shares)
            ends = torch.quantile(self.signs * self.recorded(latent), tail, dim=0).T
            self.limits = torch.from_numpy(_short(self.signs.unsqueeze(-1) * ends))
            rewards = self.rewards(pilot.latent, pilot.actions)
            return_std = float(((rewards - rewards[visible].mean()) * visible).sum(-1).std())
            best = self._gains(pilot).mean(0)
            effect_size, widest = float(best.sum()) / return_std, float(latent.std(0).max())
            if rounds_left and effect_size > 0:
                most = min(4.0, 3 / widest, 2.5 / float(self.effects.abs().max()))
                self.effects = self.effects * min(max((gain / effect_size) ** 0.8, 0.25), most)
                self.costs = paid * best[0] / self.tops
        rewards_and_costs = (self.weights, self.points, self.costs)
        self.weights, self.points, self.costs = (part * deviation / return_std for part in rewards_and_costs)
        matters = self.trait == "null" or 0.3 <= effect_size <= 2
        return matters and widest < 4 and float(idle.min()) > 0.1 and float(idle.max()) < 0.9

    def _gains(self, units: Units) -> Tensor:
        """Gains of return from the two best single changes, in different steps, of some units, (n, 2)."""
        ends = torch.cartesian_prod(*[torch.stack([top * 0, top]) for top in self.tops])
        ends, steps = ends.reshape(-1, len(self.tops)), torch.arange(self.longest)
        trials = units.actions[:JUDGED, None, None].repeat(1, self.longest, len(ends) + 1, 1, 1)
        trials[:, steps, 1:, steps] = ends
        unit = torch.arange(JUDGED).repeat_interleave(self.longest * (len(ends) + 1))
        actions = trials.flatten(0, 2)
        rewards = self.rewards(self.followed(units, unit, actions), actions)
        returns = (rewards * (steps < units.horizon[unit, None])).sum(-1).reshape(trials.shape[:3])
        return (returns.amax(-1) - returns[..., 0]).topk(2, dim=-1).values

    def task(self) -> dict[str, Any]:
        """The task of its tables, as plain data."""
        (q, d), score = self.static.shape, dict[str, Any]()
        states, columns = ([f"{letter}{i + 1}" for i in range(n)] for letter, n in (("x", d), ("s", q)))
        static = {name: {"values": CLASSES.tolist()} if name == self.classed else {} for name in columns}
        forms = [{"levels": list(names)} if names else {"unit": "mg"} for names in self.levels]
        costs = [{"cost": cost} if cost else {} for cost in self.costs.tolist()]
        for name, sign, limits, points in zip(states, self.signs, self.limits, self.points, strict=True):
            rules = zip(limits.tolist(), points.tolist(), strict=True)
            if bool(points.any()):
                score[name] = {name: {f"{'<' if sign > 0 else '>'} {at}": worth for at, worth in rules}}
        weights = {name: weight for name, weight in zip(states, self.weights.tolist(), strict=True) if weight}
        roles = {"unit": "unit", "time": "step", "varying": states, "static": static, "levels": AMOUNTS}
        actions = {f"a{place}": a | b for place, (a, b) in enumerate(zip(forms, costs, strict=True), 1)}
        reward = {"score": score} if score else {"weights": weights}
        missing = {"carry": 2} if self.missed else "refuse"
        return {**roles, "actions": actions, "reward": reward, "missing": missing}


class DrawnEpisodes(EpisodeTable, World):
    """The world of a seed, split by unit; ValueError if there is no such trait, an argument is out of range,
    or no case is left. `EpisodeTable` describes the arguments not listed here.

    Args:
        trait: Its trait in place of the one that the seed has; None for that.
        own_units: Whether the number of units is that which the seed has drawn, not `units`.
        seed: Which world, its units and the splits.
        changes: k of `optimum`.

    Attributes:
        drawn: The units; the identity of an episode is its place among them.
    """

    def __init__(
        self,
        trait: Trait | None = None,
        own_units: bool = True,
        units: int = 600,
        seed: int = 0,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        changes: int = 2,
    ) -> None:
        if trait is not None and trait not in TRAITS:
            raise ValueError(f"trait: expected one of {', '.join(TRAITS)}; got {trait!r}")
        bounded("changes", changes, NUMBERS, 0)
        bounded("units", units, NUMBERS)
        self.seed, self.changes, self.process = seed, changes, DrawnProcess(seed, trait)
        self.drawn = self.process.simulate(self.process.units if own_units else units, seed)
        self.stated = self.process.stated or None
        super().__init__(self.frame(), self.process.task(), seed, 2, None, horizon, split, keep_last)
        names = [action.name for action in self.roles.actions]
        self.levels = DoseLevels(names, self.roles.count)
        self.levels.solve(self.observations().columns(names))

    def frame(self) -> pd.DataFrame:
        """The table: a row for each step that is shown, levels and classes by name."""
        visible = (torch.arange(self.process.longest) < self.drawn.horizon[:, None]) & ~self.drawn.missed
        unit, step = visible.nonzero(as_tuple=True)
        columns: dict[str, Any] = {"unit": unit.numpy(), "step": step.numpy()}
        states, actions = (values[unit, step] for values in (self.drawn.latent, self.drawn.actions))
        parts = {"x": self.process.recorded(states), "s": self.drawn.static[unit], "a": actions}
        for letter, values in parts.items():
            columns |= {f"{letter}{number}": column for number, column in enumerate(values.T.numpy(), 1)}
        labels = {f"a{index}": np.array(names) for index, names in enumerate(self.process.levels, 1) if names}
        labels |= {self.process.classed: CLASSES} if self.process.classed else {}
        for name, texts in labels.items():
            columns[name] = texts[columns[name].astype(int)]
        return pd.DataFrame(columns)

    def true_returns(self, unit: int, actions: Tensor) -> Tensor:
        """The returns of a unit under sequences of numbers of levels and amounts, (n, T, p) -> (n,)."""
        latent = self.process.followed(self.drawn, torch.tensor(unit), actions)
        return self.process.rewards(latent, actions).sum(-1)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The true return as recorded and as recommended, and the difference, also as a share."""
        before, after = self.true_returns(*self._actions(case, decision)).tolist()
        share = (after - before) / abs(before) if before else 0.0
        scores = {"true_observed": before, "true_value": after}
        return {**scores, "true_gain": after - before, "true_improvement": share}

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The true transitions under the decision, the changed actions marked as altered."""
        unit, pair = self._actions(case, decision)
        latent = self.process.followed(self.drawn, torch.tensor(unit), pair[1:])[0]
        settings = self.roles.surrogate_settings()
        states = dict(zip(settings["varying"], self.process.recorded(latent).T, strict=True))
        doses = dict(zip(settings["doses"], pair[1].T, strict=True))
        return what_followed(episode_of(case), states, doses, pair[1] != pair[0])

    def optimum(self, case: DecisionContext) -> float:
        """The largest true return of at most `changes` changes; NaN for over `MOST_SEQUENCES` sequences."""
        episode = episode_of(case)
        unit, last = int(episode.identity), max(episode.horizon - self.keep_last, 0)
        options = dose_options(episode, self.levels)[:last, self.levels.selectable]
        changes, observed = min(self.changes, last), self.drawn.actions[unit, : episode.horizon]
        feasible = math.comb(last, changes) * options.shape[1] ** changes <= MOST_SEQUENCES
        returns = partial(self.true_returns, unit)
        return best_changed(returns, observed, list(options), changes) if feasible else math.nan

    def card(self) -> Mapping[str, Any]:
        """The card of a table, with the trait, the source and the caution of a simulation."""
        facts = {"source": f"drawn by seed {self.seed}", "trait": self.process.trait}
        return {**super().card(), **facts, "hidden cause": self.stated, "caution": SIMULATED}

    def _actions(self, case: DecisionContext, decision: Decision) -> tuple[int, Tensor]:
        """The unit, and its actions as recorded and as recommended, (2, T, p)."""
        episode = episode_of(case)
        past = self.drawn.actions[int(episode.identity), : episode.horizon]
        return int(episode.identity), torch.stack((past, recommended(episode, past, decision, self.levels)))
