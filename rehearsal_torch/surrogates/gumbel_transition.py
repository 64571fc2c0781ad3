"""Transitions between numbered states, counted, with counterfactuals of the Gumbel-max model.

The probability of the next state j after state s and action a is a posterior mean under a Dirichlet prior
around that of s whatever was done, which has one around q, the share of j among all next states, one added,

    p(j | s) = (n_sj + b q_j) / (n_s + b),        p(j | s, a) = (n_saj + c p(j | s)) / (n_sa + c),

with the powers of two b and c that predict each row best from all others. A state never left is kept. With
s' = argmax_j log p(j | s, a) + g_j and independent standard Gumbel g, an observed step restricts g, which is
drawn from the top: the largest of log p + g is standard Gumbel, and belongs to s'; the others are Gumbel
numbers truncated at it. Each member is one such draw for all steps of an episode. The best of many sequences
is best for these draws too, so that few members claim too much; no claim says that counts are uncertain.

Source: Oberst and Sontag (2019), Sec. 3 and App. B; Maddison, Tarlow and Minka (2014), Sec. 3 (truncated
Gumbel numbers); Stone (1974) (prediction of each row from the others).
"""

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, next_name
from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Columns, Question
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.mechanism import EquationTrajectory
from rehearsal_torch.seeding import stream
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Fits

STATE, VALUE, DRUGS, LEVELS = "state", "SOFA", ("fluid", "vasopressor"), 5
POWERS, MOST, ROWS = 16, 1000, 4096  # Of two; states and members; rows at a time.


class TransitionCounts(Solved):
    """How often each next state followed each state and action: `counts`, rows of s, a, j and n_saj, (K, 4);
    `values` of the S states; and the `weights` b and c.
    """

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states
        self.register_fitted(counts=("K", 4), values=(states,), weights=(2,))

    def solve(self, *examples: Tensor) -> None:
        """Counts rows of s, a, j and the values of s and j, (n,) each; ValueError if a number is no state."""
        state, action, after, *values = (each.double() for each in examples)
        ends = torch.cat([state, after]).long()
        if int(ends.min()) < 0 or int(ends.max()) >= self.states:
            raise ValueError(f"{STATE}: expected numbers of {self.states} states, from 0")
        found, number = torch.stack((state, action, after), -1).unique(dim=0, return_counts=True)
        self.counts = torch.cat([found, number.unsqueeze(-1)], -1)
        known = torch.full((self.states,), float(values[0].min()), dtype=torch.float64)
        known[ends] = torch.cat(values)
        self.values = known.cummax(0).values  # of states that did not occur, that of one before
        (cells, seen, share), best = self.cells(), -torch.inf
        rows, done, came = found.long().unbind(-1)
        total, left = cells.sum(-1)[rows, done].double(), seen.sum(-1)[rows] - 1
        beside, share = seen[rows, came] - 1, share[came]
        for usual, own in torch.cartesian_prod(*[2.0 ** torch.arange(POWERS).double()] * 2):
            prior = (beside + usual * share) / (left + usual)
            fit = float((number * ((number - 1 + own * prior) / (total - 1 + own)).log()).sum())
            if fit > best:
                best, self.weights = fit, torch.stack((usual, own))

    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """n_saj, (S, A, S) float32, n_sj, (S, S), and q, (S,)."""
        state, action, after = self.counts[:, :3].long().unbind(-1)
        cells = torch.zeros(self.states, LEVELS**2, self.states)
        cells[state, action, after] = self.counts[:, 3].float()
        seen = cells.sum(1).double()
        return cells, seen, (seen.sum(0) + 1) / (seen.sum() + self.states)


class GumbelTransition(EpisodeSurrogate):
    """A model of numbered states, of which `count` draws of the noise are made for each episode, by `seed`.
    The columns are ``state``, 0 ... `states` - 1, ``SOFA``, which rises with it, and levels of two drugs.
    """

    names: tuple[str, ...] = (VALUE,)
    dose_names: tuple[str, ...] = DRUGS
    members: int = 0

    def __init__(self, states: int = 715, count: int = 100, seed: int = 0) -> None:
        super().__init__()
        bounded("states", states, MOST)
        bounded("count", count, MOST)
        self.seed, self.members, self.table = seed, count, TransitionCounts(states)
        self.levels = DoseLevels(DRUGS, LEVELS).fix([list(range(LEVELS))] * 2)

    def doses(self, actions: Tensor) -> Tensor:
        """(...) -> (..., 2), the levels of actions."""
        return self.levels.doses(actions)

    def state_scale(self) -> Tensor:
        """Infinite: numbers of states are no scale."""
        return torch.full((1,), torch.inf, dtype=torch.float64)

    def units(self, states: Tensor) -> Tensor:
        """The mean score over the members, (..., M) -> (..., 1)."""
        return self.member_units(states).mean(-2)

    def member_units(self, states: Tensor) -> Tensor:
        """The score of each member's state, (..., M) -> (..., M, 1)."""
        return self.table.values[states.long()].unsqueeze(-1)

    def question(self) -> Question:
        """The columns that it reads."""
        return Columns((STATE, VALUE, *DRUGS))

    def parts(self, table: Table) -> Fits:
        """The counts of transitions (`data.episode.transitions`)."""
        state, value = table.columns((STATE, VALUE)).T
        after, following = table.columns((next_name(STATE), next_name(VALUE))).T
        yield self.table, (state, self.levels.digitise(table.columns(DRUGS)), after, value, following)

    @torch.no_grad()
    def trajectory(self, episode: Episode) -> EquationTrajectory:
        """The episode's steps under every action, the members side by side, (T, M)."""
        self.require_fitted()
        every, size, (prior, weight) = LEVELS**2, self.table.states, self.table.weights
        counts, seen, share = self.table.cells()
        usual = (seen + prior * share) / (seen.sum(-1, keepdim=True) + prior)
        usual[seen.sum(-1) == 0] = (torch.eye(size) + 1e-9 * share)[seen.sum(-1) == 0]

        def logits(cells: Tensor) -> Tensor:
            here = counts.flatten(0, 1)[cells].double()
            return ((here + weight * usual[cells // every]) / (here.sum(-1, keepdim=True) + weight)).log()

        states, actions = episode.columns((STATE,)), self.levels.digitise(episode.columns(DRUGS))
        after, step = states[1:, 0].long(), torch.arange(len(states) - 1)
        own = logits(states[:-1, 0].long() * every + actions[:-1]).unsqueeze(1)
        shape = (len(after), self.members, size + 1)
        drawn = torch.rand(shape, generator=stream(self.seed, episode.identity), dtype=torch.float64)
        top, free = (-(-drawn.clamp(1e-300, 1 - 1e-16).log()).log()).tensor_split([1], -1)
        noise = -torch.logaddexp(-top, -(free + own)) - own
        noise[step, :, after] = top[..., 0] - own[step, 0, after].unsqueeze(-1)
        found = torch.full((len(after), self.members * size * every), -1, dtype=torch.int32)
        member = torch.arange(self.members) * size * every

        def move(here: Tensor, time: int, chosen: Tensor) -> Tensor:
            places = member + here.long() * every + chosen.unsqueeze(-1)
            for part in places[found[time, places] < 0].unique().split(ROWS):
                owner, cells = part // (size * every), part % (size * every)
                found[time, part] = (logits(cells) + noise[time, owner]).argmax(-1).int()
            return found[time, places].double()

        return EquationTrajectory(states.expand(-1, self.members), actions, every, move)
