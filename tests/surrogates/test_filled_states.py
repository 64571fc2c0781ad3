"""States that were measured in every fourth step and carried forward between: what is learnt of them.

    slow' = .95 slow + dose - 1/2 + .2 e,        fast' = .7 fast + .3 dose + .3 e

Learnt as measured, three of four steps say that no dose does anything. Masked, a dose has its effect on the
step after it, and the state persists as from one measurement to the next, .95^4 = .81.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.data.episode import transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.objectives.sequence_sensitivity import SequenceOverturning
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge
from rehearsal_torch.training.cross_validation import clinical_log_likelihood
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

KEPT, EVERY, STEPS = 0.95, 4, 13
TASK = {
    "unit": "pump",
    "time": "hour",
    "varying": ["slow", "fast"],
    "actions": {"dose": {"levels": 2}},
    "reward": {"weights": {"slow": 1}},
    "missing": {"carry": EVERY - 1},
}


def frame(units: int = 400, seed: int = 0, every: int = EVERY) -> pd.DataFrame:
    draws, rows = np.random.default_rng(seed), []
    slow, fast = draws.normal(size=(2, units))
    for hour in range(STEPS):
        dose = draws.integers(2, size=units)
        seen = slow if hour % every == 0 else np.nan
        row = {"pump": range(units), "hour": hour, "slow": seen, "fast": fast, "dose": dose}
        rows.append(pd.DataFrame(row))
        slow = KEPT * slow + dose - 0.5 + 0.2 * draws.normal(size=units)
        fast = 0.7 * fast + 0.3 * dose + 0.3 * draws.normal(size=units)
    return pd.concat(rows, ignore_index=True)


@pytest.fixture(scope="module")
def problems() -> dict[str, EpisodeTable]:
    return {each: EpisodeTable(frame(), TASK, masked=each == "mask") for each in ("learn", "mask")}


def fitted(kind: str, problem, epochs: int = 2):
    settings = problem.facts().surrogate
    table, held_out = problem.observations(), problem.held_out()
    if kind == "closed":
        return fit(TransitionRidge(**settings), table, held_out=held_out)
    torch.manual_seed(0)
    model = TransitionModel(**settings, mechanism=partial(LocationScale, hidden=16), effects=kind)
    return fit(model, table, Descent(max_epochs=epochs, learning_rate=1e-2, progress=False), held_out)


def learnt(model, problem: EpisodeTable) -> tuple[float, float]:
    """The mean effect of the dose on the next slow state, and what of a difference of it stays."""
    effects, stays = [], []
    for episode in problem.episodes("test")[:30]:
        trajectory = model.trajectory(episode)
        for time in range(trajectory.horizon - 1):
            state = trajectory.states[[time]]
            apart = torch.tensor([[0.05, 0.0]]).to(state)
            low, high = (trajectory.branch(each, time)[0] for each in (state - apart, state + apart))
            without, with_it = model.units(trajectory.branch(state, time)[0])[:, 0]
            effects.append(float(with_it - without))
            gone = model.units(high)[0, 0] - model.units(low)[0, 0]
            wide = (model.units(state + apart) - model.units(state - apart))[0, 0]
            stays.append(float(gone / wide))
    return float(np.mean(effects)), float(np.mean(stays))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["closed", "dense", "sparse"])
def test_the_effect_on_a_state_that_is_rarely_measured_is_that_of_a_step(problems, kind):
    masked, naive = (learnt(fitted(kind, each, 60), each) for each in (problems["mask"], problems["learn"]))
    assert masked[0] == pytest.approx(1.0, abs=0.1)
    # One standard error of least squares in the rows with a measurement is .03.
    assert masked[1] == pytest.approx(KEPT**EVERY, abs=0.1)
    assert naive[0] < 0.3
    assert naive[1] > 0.9


@pytest.mark.parametrize("kind", ["closed", "dense", "sparse"])
def test_nothing_is_made_of_the_values_in_masked_cells(problems, kind):
    """Neither by a fit nor by what judges it; those of the ends of ranges stay."""
    table = problems["mask"].observations()
    ends = torch.zeros(len(table), dtype=torch.bool)
    for place in range(len(table.names)):
        ends[table.values[:, place].argmin()] = ends[table.values[:, place].argmax()] = True
    other = table.values.where(~table.altered | ends.unsqueeze(1), table.values.mean(0))
    assert not other.equal(table.values)
    changed = Table(table.names, other, table.altered, units=table.units)
    if kind == "closed":  # within a step it takes the state for unchanged, whatever stands there
        first, second = (
            fit(TransitionRidge(**problems["mask"].facts().surrogate), each) for each in (table, changed)
        )
    else:
        first, second = (fitted(kind, _Given(problems["mask"], each)) for each in (table, changed))
    for name, tensor in first.state_dict().items():
        assert tensor.equal(second.state_dict()[name]), name
    first.check_noise(table, table)
    shares = first.predictable_noise.clone()
    first.check_noise(changed, changed)
    assert len(shares) == 2
    assert shares.equal(first.predictable_noise)
    if kind != "closed":
        assert first.log_likelihood(table).equal(first.log_likelihood(changed))
        assert first.log_likelihood(table).isfinite().all()
        assert clinical_log_likelihood(first, table).equal(clinical_log_likelihood(first, changed))
        assert all(np.isfinite(list(first.lipschitz(table).values())))


class _Given:
    """A problem with other rows to learn from."""

    def __init__(self, problem: EpisodeTable, table: Table) -> None:
        self.facts, self.held_out, self.table = problem.facts, problem.held_out, table

    def observations(self) -> Table:
        return self.table


def test_halves_of_an_ensemble_and_hidden_causes_know_the_mask(problems):
    settings, table = problems["mask"].facts().surrogate, problems["mask"].observations()
    member = partial(TransitionModel, **settings, mechanism=partial(LocationScale, hidden=8))
    model = TransitionEnsemble(member, 2)
    fit(model, table, Descent(max_epochs=2, progress=False), problems["mask"].held_out())
    assert len(model.predictable_noise) == len(model.closed.predictable_noise) == 2
    spread = SequenceOverturning(model, lambda: table).spread
    assert not isinstance(spread, str)
    assert spread.residual.isfinite().all()
    assert spread.strongest is not None


@pytest.mark.parametrize("kind", ["closed", "dense", "sparse"])
def test_a_mask_that_marks_nothing_changes_no_bit(kind):
    whole = frame(100, every=1)
    first, second = (fitted(kind, EpisodeTable(whole, TASK, masked=each)) for each in (False, True))
    for name, tensor in first.state_dict().items():
        assert tensor.equal(second.state_dict()[name]), name


def test_marks_of_transitions_are_those_of_the_next_step(problems):
    table, plain = (problems[filled].observations() for filled in ("mask", "learn"))
    assert table.values.equal(plain.values)
    assert not plain.altered.any()
    assert table.names == ("slow", "fast", "dose", "slow'", "fast'", "dose'")
    hours = torch.arange(1, STEPS).repeat(len(problems["mask"].episodes()))
    assert table.altered[:, 3].equal(hours % EVERY != 0)
    assert int(table.altered.sum()) == int(table.altered[:, 3].sum())
    assert transitions([problems["mask"].episodes()[0].first(3)]).altered.equal(table.altered[:2])
    assert table.fingerprint() != plain.fingerprint()
