"""How strong a hidden common cause would have to be to overturn a recommended action sequence.

A hidden cause of doses and next states shifts what a model takes for the effect of changing the doses of step
t by c_t, on state variable i and in the model's coordinates, by at most

    kappa(rho) sigma_i sqrt(c_t' S^-1 c_t),        kappa(rho) = rho / sqrt(1 - rho)

(`estimators.omitted_variable`), with sigma_i the standard deviation of the model's residuals, S the
covariance of the doses given the covariates, and rho the partial R^2 of the hidden cause with both. Nothing
is shifted at steps whose doses are those observed: the abducted noise already reproduces them. The changed
trajectory is rolled out again with shifts of this size at the changed steps,

    x_{t+1} = F_t(x_t, a'_t) +- kappa(rho) sigma sqrt(c_t' S^-1 c_t),

each sign chosen so that the shift alone does the most harm, summed over a grid of rho. The tipping strength
is the smallest rho of the grid at which the return no longer exceeds the observed one. Each changed action
has a tipping strength, too: the smallest rho at which, with shifts at its step alone, the sequence is no
better than with this action put back. Actions are put back from the last to the first
(`claims.sequence_rules`).

Limits. The signs are chosen one by one: other signs may do more harm together, so that a weaker hidden cause
may suffice. All states are granted the same rho, and signs may differ from step to step, as no single hidden
cause may manage. sigma is constant, although the noise of a model may depend on the state. Errors of the
estimate itself are not part of the shift.

Source: the bound of the bias is that of Cinelli and Hazlett (2020), see `estimators.omitted_variable`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.episode import next_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.sensitivity import HiddenCause
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.omitted_variable import Strength, bias_factor, precision, strongest
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate, sample
from rehearsal_torch.surrogates.transition import CheckedTransition

MOST_ROWS = 20_000  # More rows add nothing to variances
ROWS_PER_COLUMN = 2  # The least for a regression on the covariates
TRACE = "hidden_cause"  # The key of a trace that says why a recommendation has no strengths
NO_RECORDS = "not computed: the transitions to which the model was fitted were not given"
NO_MODEL = "not computed: the model is not one of transitions with doses"
ALTERED = "not computed: decisions altered some of the transitions"
# The strengths rho that are tried, and those that choose the signs.
GRID = torch.logspace(-4, -0.0044, 200, dtype=torch.float64)
SIGN_GRID = GRID[::8]


@dataclass(frozen=True)
class _Spread:
    """Variances of the observations."""

    precision: Tensor  # S^-1, (p, p), of doses as levels
    residual: Tensor  # sigma, (D,), in the coordinates of the trajectory
    strongest: Strength | None  # The strongest observed covariate


class SequenceOverturning:
    """Hidden causes that would overturn one model's decisions; `observations` loads its transitions."""

    def __init__(self, surrogate: Surrogate, observations: Callable[[], Table]) -> None:
        self.surrogate, self.observations = surrogate, observations

    @property
    def model(self) -> CheckedTransition | None:
        """The fitted transition model that claims are checked with: the surrogate's `claimant`, else the
        surrogate itself; None if it is no model of transitions with doses.
        """
        model = self.surrogate
        if isinstance(model, EpisodeSurrogate) and model.claimant is not None:
            model = model.claimant
        return model if isinstance(model, CheckedTransition) and model.dose_names else None

    def missing(self, names: Sequence[str]) -> list[str]:
        """The columns that transitions need and that are not among `names`."""
        assert self.model is not None
        first = self.model.first
        needed = (*first.rescale.names, *first.dose_names, *map(next_name, first.varying))
        return [name for name in needed if name not in names]

    @cached_property
    def spread(self) -> _Spread | str:
        """Variances of the observations, or why there are none."""
        if self.model is None:
            return NO_MODEL
        table, first = self.observations(), self.model.first
        if not len(table):
            return NO_RECORDS
        names = first.rescale.names
        if missing := self.missing(table.names):
            return f"not computed: the transitions have no column {missing}"
        if len(table.unaltered((*names, *first.dose_names))) < len(table):
            return ALTERED
        rows = sample(table, MOST_ROWS)
        columns = 1 + len(names) + len(names) * (len(names) + 1) // 2 + len(first.dose_names)
        if len(rows) < (minimum := ROWS_PER_COLUMN * columns):
            return f"not computed: there are {len(rows)} transitions; expected at least {minimum}"
        # Variances are those of rows, which lie on the CPU.
        device = rows.values.device
        parents, values = (column.to(device, torch.float64) for column in first.examples(rows))
        residuals = self.model.residuals(rows).to(device)
        observed_std = torch.stack([column[~column.isnan()].std(correction=0) for column in residuals.T])
        residual = residuals.std(0, correction=0).where(~residuals.isnan().any(0), observed_std)
        if bool((rows.columns(first.dose_names).std(0, correction=0) == 0).all()):
            return "not computed: no dose varies among the transitions"
        features, doses = parents.split([len(names), len(first.dose_names)], -1)
        yardstick = strongest(doses, features, values, names, first.varying)
        return _Spread(precision(doses, features), residual, yardstick)

    @torch.no_grad()
    def with_hidden_cause(self, objective: Objective, decision: Decision) -> Decision:
        """The decision with its tipping strength, or in its trace why there is none."""
        if decision.alteration is None or not isinstance(objective, CounterfactualReturn):
            return decision
        if isinstance(self.spread, str):
            return replace(decision, trace=decision.trace | {TRACE: self.spread})
        best, strength = self.spread.strongest, self.tipping(objective, decision)
        parts = self.part_tippings(objective, decision)
        if best is None:
            return replace(decision, hidden_cause=HiddenCause(_rounded(strength), parts=parts))
        entries = (best.covariate, _rounded(best.doses), best.state, _rounded(best.explained), parts)
        return _doubt_if_overturned(replace(decision, hidden_cause=HiddenCause(_rounded(strength), *entries)))

    def tipping(self, objective: CounterfactualReturn, decision: Decision) -> float:
        """The tipping strength of a decision that recommends a change, in (0, 1]."""
        sequence = objective.sequence(decision)
        return _tipping(objective, sequence, self._shift_radius(objective, sequence), objective.outcome())

    def part_tippings(self, objective: CounterfactualReturn, decision: Decision) -> dict[str, float]:
        """The tipping strength of each changed action, by its name."""
        sequence, strengths = objective.sequence(decision), dict[str, float]()
        radius = self._shift_radius(objective, sequence)
        for step in sorted(decision.actions(), reverse=True):
            step_radius, without = torch.zeros_like(radius), sequence.clone()
            step_radius[step : step + 1] = radius[step : step + 1]
            without[step] = objective.observed[step]
            tipping = _tipping(objective, sequence, step_radius, float(objective(without)))
            strengths[action_name(step)] = _rounded(tipping)
            sequence = without
        return strengths

    def _shift_radius(self, objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
        """sigma_i sqrt(c_t' S^-1 c_t) of each step and state, (T - 1, D); zero where nothing is changed."""
        assert isinstance(self.spread, _Spread)
        assert self.model is not None
        levels, steps = self.model.first.levels, objective.horizon - 1
        encoded = [levels.encoded(actions[:steps]) for actions in (sequence, objective.observed)]
        change = encoded[0] - encoded[1]
        squares = torch.einsum("tp,pq,tq->t", change, self.spread.precision.to(change), change)
        unmoved = [name in objective.surrogate.unmoved for name in objective.surrogate.names]
        residual = self.spread.residual.to(change).masked_fill(change.new_tensor(unmoved).bool(), 0.0)
        return squares.clamp_min(0.0).sqrt().unsqueeze(-1) * residual


def _tipping(objective: CounterfactualReturn, sequence: Tensor, radius: Tensor, outcome: float) -> float:
    """The strength at which a sequence, (H,) long, shifted by radii, (T - 1, D), loses to an outcome."""
    moves = (radius > 0).nonzero()
    if not len(moves):
        # Only the last action changes: it counts by its own dose, and moves no state.
        return 1.0
    shifts = radius.new_zeros(len(moves), len(SIGN_GRID), *radius.shape)
    for number, (time, state) in enumerate(moves.tolist()):
        shifts[number, :, time, state] = radius[time, state] * bias_factor(SIGN_GRID).to(radius)
    return_sums = [
        shifted_returns(objective, sequence, sign * shifts.flatten(0, 1)).view(len(moves), -1).sum(-1)
        for sign in (1.0, -1.0)
    ]
    # The sign with the lower returns does more harm.
    signs = torch.where(return_sums[0] <= return_sums[1], 1.0, -1.0).to(radius)
    worst = torch.zeros_like(radius)
    worst[moves[:, 0], moves[:, 1]] = signs
    worst_shifts = bias_factor(GRID).to(radius)[:, None, None] * (worst * radius)
    overturning = (~(shifted_returns(objective, sequence, worst_shifts) > outcome)).nonzero()
    return float(GRID[int(overturning[0, 0])]) if len(overturning) else 1.0


def shifted_returns(objective: CounterfactualReturn, sequence: Tensor, shifts: Tensor) -> Tensor:
    """The returns, (n,), of actions, (H,) long, with shifts added to every member's next states."""
    trajectory = objective.trajectory
    members = objective.surrogate.members
    states = [trajectory.states[:1].expand(len(shifts), -1)]
    for time in range(objective.horizon - 1):
        moved = trajectory.step(states[-1], time, sequence[time])
        states.append(moved + shifts[:, time].repeat(1, members).to(moved))
    return objective.returns(torch.stack(states, 1), sequence.expand(len(shifts), -1))


def _doubt_if_overturned(decision: Decision) -> Decision:
    """The decision, not told from zero if a cause as strong as the observed yardstick overturns it."""
    cause = decision.hidden_cause
    if decision.status != "do" or cause is None or cause.yardstick is None or cause.tipping > cause.yardstick:
        return decision
    strengths = {"tipping": cause.tipping, "yardstick": cause.yardstick}
    text = f"a hidden common cause as strong as {cause.covariate} would overturn it"
    return decision.told([Finding("hidden_cause", text, strengths)])


def _rounded(strength: float) -> float:
    """Six significant digits, so that the last bits of a sum do not show."""
    return float(f"{strength:.6g}")
