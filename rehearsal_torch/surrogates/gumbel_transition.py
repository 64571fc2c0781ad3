"""Gumbel-max transitions between discrete states: a smoothed count model with counterfactuals.

The probability of the next state j after state s and action a is a posterior mean under a Dirichlet prior
around that of s under any action, itself with a prior around q, the share of j in all next states, plus one,

    p(j | s) = (n_sj + b q_j) / (n_s + b),        p(j | s, a) = (n_saj + c p(j | s)) / (n_sa + c),

with the powers of two b and c of the best leave-one-out likelihood. A state that was never left is absorbing.
With s' = argmax_j log p(j | s, a) + g_j and independent standard Gumbel g, an observed step restricts g,
sampled top-down: the largest of log p + g is standard Gumbel, and belongs to s'; the others are truncated at
it. Each member is one such sample for all steps of an episode. The best of many sequences is best for these
samples too, so that few members claim too much; no claim includes the uncertainty of the counts.

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
POWERS, MOST, ROWS = 16, 1000, 4096  # powers of two; the most states, or members; rows at a time


class TransitionCounts(Solved):
    """`counts`, rows of s, a, j and n_saj, (K, 4); `values` of the S states; and the `weights` b and c."""

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states
        self.register_fitted(counts=("K", 4), values=(states,), weights=(2,))

    def solve(self, *examples: Tensor) -> None:
        """Counts s, a, j with values of s and j, (n,) each; ValueError if a number is no state."""
        state, action, after, *values = (column.double() for column in examples)
        ends = torch.cat([state, after]).long()
        if int(ends.min()) < 0 or int(ends.max()) >= self.states:
            raise ValueError(f"{STATE}: expected numbers of {self.states} states, from 0")
        moves, n = torch.stack((state, action, after), -1).unique(dim=0, return_counts=True)
        self.counts = torch.cat([moves, n.unsqueeze(-1)], -1)
        scores = torch.full((self.states,), float(values[0].min()), dtype=torch.float64)
        scores[ends] = torch.cat(values)
        self.values = scores.cummax(0).values  # of states that did not occur, that of one before
        (n_saj, n_sj, q), best = self.cells(), -torch.inf
        states, actions, next_states = moves.long().unbind(-1)
        total, departures = n_saj.sum(-1)[states, actions].double(), n_sj.sum(-1)[states] - 1
        same_moves, q = n_sj[states, next_states] - 1, q[next_states]
        for b, c in torch.cartesian_prod(*[2.0 ** torch.arange(POWERS).double()] * 2):
            prior = (same_moves + b * q) / (departures + b)
            likelihood = float((n * ((n - 1 + c * prior) / (total - 1 + c)).log()).sum())
            if likelihood > best:
                best, self.weights = likelihood, torch.stack((b, c))

    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """n_saj, (S, A, S) float32, n_sj, (S, S), and q, (S,)."""
        state, action, after = self.counts[:, :3].long().unbind(-1)
        n_saj = torch.zeros(self.states, LEVELS**2, self.states)
        n_saj[state, action, after] = self.counts[:, 3].float()
        n_sj = n_saj.sum(1).double()
        return n_saj, n_sj, (n_sj.sum(0) + 1) / (n_sj.sum() + self.states)


class GumbelTransition(EpisodeSurrogate):
    """A model of ``state``, ``SOFA`` and levels of two drugs, with `count` noise samples of each episode."""

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
        """The input columns."""
        return Columns((STATE, VALUE, *DRUGS))

    def parts(self, table: Table) -> Fits:
        """The counts of transitions (`data.episode.transitions`)."""
        state, value = table.columns((STATE, VALUE)).T
        after, next_value = table.columns((next_name(STATE), next_name(VALUE))).T
        yield self.table, (state, self.levels.digitise(table.columns(DRUGS)), after, value, next_value)

    @torch.no_grad()
    def trajectory(self, episode: Episode) -> EquationTrajectory:
        """The episode's steps under every action, the members side by side, (T, M)."""
        self.require_fitted()
        n_actions, n_states, (b, c) = LEVELS**2, self.table.states, self.table.weights
        counts, n_sj, q = self.table.cells()
        prior = (n_sj + b * q) / (n_sj.sum(-1, keepdim=True) + b)
        prior[n_sj.sum(-1) == 0] = (torch.eye(n_states) + 1e-9 * q)[n_sj.sum(-1) == 0]

        def logits(pairs: Tensor) -> Tensor:
            n_saj = counts.flatten(0, 1)[pairs].double()
            return ((n_saj + c * prior[pairs // n_actions]) / (n_saj.sum(-1, keepdim=True) + c)).log()

        states, actions = episode.columns((STATE,)), self.levels.digitise(episode.columns(DRUGS))
        after, steps = states[1:, 0].long(), torch.arange(len(states) - 1)
        observed = logits(states[:-1, 0].long() * n_actions + actions[:-1]).unsqueeze(1)
        shape = (len(after), self.members, n_states + 1)
        uniform = torch.rand(shape, generator=stream(self.seed, episode.identity), dtype=torch.float64)
        top, rest = (-(-uniform.clamp(1e-300, 1 - 1e-16).log()).log()).tensor_split([1], -1)
        noise = -torch.logaddexp(-top, -(rest + observed)) - observed
        noise[steps, :, after] = top[..., 0] - observed[steps, 0, after].unsqueeze(-1)
        memo = torch.full((len(after), self.members * n_states * n_actions), -1, dtype=torch.int32)
        member = torch.arange(self.members) * n_states * n_actions

        def move(state: Tensor, time: int, action: Tensor) -> Tensor:
            keys = member + state.long() * n_actions + action.unsqueeze(-1)
            for missing in keys[memo[time, keys] < 0].unique().split(ROWS):
                members, pairs = missing // (n_states * n_actions), missing % (n_states * n_actions)
                memo[time, missing] = (logits(pairs) + noise[time, members]).argmax(-1).int()
            return memo[time, keys].double()

        return EquationTrajectory(states.expand(-1, self.members), actions, n_actions, move)
