"""What draws say of actions and of no action: contracts that hold draw by draw."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.outcome.case_draws import LATER, CaseDraws, _pick_alternative
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.shared_draws import SharedDraws
from rehearsal_torch.training.surrogate_fit import fit
from tests.surrogates.outcome.test_outcome_regression import SMALL
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    levelled,
    levelled_table,
    sequential,
    sequential_table,
)

TINY = {**SMALL, "frequencies": 10, "evidence_rows": 40, "iterations": 3}


def fitted(task, table, **more):
    return fit(OutcomeRegression(task, **{**TINY, **more}), table)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def cases_of(model, contexts, which=0, many=False):
    return CaseDraws(model.draws(which, 3, 8, 4, 0), contexts, many=many)


def levels_of(model):
    """The levels of a, standardised, (3, 1)."""
    return model.scaler.standardised(("a",), torch.arange(3.0).double().unsqueeze(-1))


@pytest.mark.parametrize("context", [("x",), ("x", "u")])
def test_no_action_is_the_mixture_of_the_levels_at_every_point(context):
    model = fitted(levelled(context), levelled_table(150))
    cases = cases_of(model, drawn(4, len(context)))
    known, _, weights = cases.usual
    # p_kj of each level at the same points, (3, B, N, m, G).
    every = [
        cases.draws.success(torch.cat((known, level.expand(*known.shape[:-1], 1)), -1))
        for level in levels_of(model)
    ]
    mixture = sum(part * weights[..., place, None] for place, part in enumerate(every))
    torch.testing.assert_close(cases.none, mixture, rtol=0, atol=1e-12)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
    values = cases.values(levels_of(model).unsqueeze(1).expand(3, 4, 1))
    for found, part in zip(values.success, every, strict=True):
        torch.testing.assert_close(found, cases.draws.mean(part).flatten(-2), rtol=0, atol=1e-12)
    torch.testing.assert_close(values.none[0], cases.draws.mean(mixture).flatten(-2), rtol=0, atol=1e-12)


ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(0, 2), st.integers(-3, 3)),
    min_size=12,
    max_size=40,
)


@settings(max_examples=6, derandomize=True)
@given(ROWS, st.integers(0, 1000))
def test_with_all_parents_in_the_context_no_action_lies_between_the_levels(rows, seed):
    table = torch.tensor(rows, dtype=torch.float64)
    # Enough rows to be regressed, not all alike.
    table = table.repeat(3, 1) + torch.tensor([0.1, 0.1, 0.0, 0.1]) * drawn(3 * len(rows), 4, seed=seed)
    table[:3, 2] = torch.arange(3.0).double()
    model = fitted(levelled(("x", "u")), Table.observed(("x", "u", "a", "y"), table), iterations=1)
    cases = cases_of(model, drawn(3, 2, seed=seed))
    values = cases.values(levels_of(model).unsqueeze(1).expand(3, 3, 1))
    least, most = values.success.amin(0), values.success.amax(0)
    assert (values.none[0] >= least - 1e-9).all()
    assert (values.none[0] <= most + 1e-9).all()


@pytest.mark.parametrize("many", [False, True])
def test_worst_case_and_credit_are_bounds(many):
    model = fitted(confounded(), confounded_table(200))
    cases = cases_of(model, drawn(3, 1), many=many)
    values = cases.values(torch.linspace(-4, 4, 17, dtype=torch.float64)[:, None, None].expand(-1, 3, 1))
    assert ((values.success >= 0) & (values.success <= 1)).all()
    assert ((values.low >= 0) & (values.low <= values.success + 1e-12)).all()
    assert (values.credit <= values.gain + 1e-12).all()
    assert (values.beyond[[0, -1]] > values.beyond[8]).all(), "far from the rows, none is near"
    near = values.beyond == 0
    assert near.any()
    torch.testing.assert_close(values.low[near], values.success[near])
    torch.testing.assert_close(values.credit[near], values.gain[near])


def test_where_no_row_is_near_nothing_succeeds_in_the_worst_case():
    model = fitted(confounded(), confounded_table(200))
    # With as many points compared with the rows as there are.
    cases = CaseDraws(model.draws(0, 3, 8, 8, 0), drawn(2, 1))
    far = cases.values(torch.full((1, 2, 1), 60.0, dtype=torch.float64))
    assert far.beyond.tolist() == [[1.0, 1.0]]
    assert float(far.low.abs().max()) < 1e-12
    assert (far.credit <= 1e-12).all()


@pytest.mark.parametrize(
    ("task", "table"),
    [
        (confounded(candidates=[["a", "c"]]), confounded_table(150)),
        (levelled(), levelled_table(150)),
        (sequential(), sequential_table(150)),
    ],
    ids=["two", "levels", "between"],
)
def test_cases_beside_others_are_as_alone_and_many_actions_as_one(task, table):
    model = fitted(task, table)
    contexts, width = drawn(4, 1), len(task.candidates[0])
    actions = drawn(5, 4, width, seed=1)
    whole = cases_of(model, contexts).values(actions)
    many = cases_of(model, contexts, many=True).values(actions)
    for case in range(4):
        alone = cases_of(model, contexts[case : case + 1]).values(actions[:, case : case + 1])
        for name, found in vars(alone).items():
            torch.testing.assert_close(found[:, 0], vars(whole)[name][:, case], rtol=0, atol=1e-9)
    for name, found in vars(many).items():
        torch.testing.assert_close(found, vars(whole)[name], rtol=0, atol=1e-9)


def test_what_follows_the_first_action_is_accounted_for():
    model = fitted(sequential(), sequential_table(150))
    cases = cases_of(model, drawn(2, 1))
    known, usual, weights = cases.usual
    assert known.shape[-1] == 2, "x and v"
    assert usual.shape[-2:] == (1, 2)
    assert (weights == 1).all()
    # v is that of the first action that is usual, b that of this v: both vary.
    assert float(known[..., 1].std()) > 0.2
    paired = torch.stack((known[..., 1].flatten(), usual[..., 0, 1].flatten()))
    assert float(torch.corrcoef(paired)[0, 1]) > 0.5


def test_draws_of_outcomes_lie_in_the_region_as_often_as_is_said():
    model = fitted(confounded(), confounded_table(200))
    cases, region = CaseDraws(model.draws(0, 3, 64, 1, 0), drawn(1, 1)), model.outcome_kind.faces
    action = torch.full((1, 1), 0.5, dtype=torch.float64)
    said = cases.values(action.unsqueeze(0))
    for given_, expected in ((action, said.success), (None, said.none)):
        outcomes = cases.outcomes(given_, torch.Generator().manual_seed(0))
        assert outcomes.shape == (4 * 64 * 3, 1)
        assert float(region.desired(outcomes).double().mean()) == pytest.approx(
            float(expected.mean()), abs=0.06
        )


def test_what_is_usual_at_first_and_later_is_drawn_apart():
    """Both once had the same quantiles: of two independent coins, heads and tails hardly met."""
    coins = torch.arange(2.0).double().reshape(2, 1).expand(4, 64, 2, 1)
    even = torch.full((4, 64, 2), 0.5, dtype=torch.float64)
    first, later = _pick_alternative(coins, even), _pick_alternative(coins, even, LATER)
    assert float(first.mean()) == pytest.approx(0.5, abs=0.05)
    assert float(later.mean()) == pytest.approx(0.5, abs=0.05)
    assert float((first == later).double().mean()) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("many", [False, True])
def test_points_without_covariates_of_their_own_are_computed_once(monkeypatch, many):
    model, contexts = fitted(levelled(("x", "u")), levelled_table(150)), drawn(4, 2)
    actions = levels_of(model).unsqueeze(1).expand(3, 4, 1)
    single = cases_of(model, contexts, many=many)
    assert single.known.shape[-2] == single.none.shape[-2] == 1
    values = single.values(actions)
    outcomes = single.outcomes(actions[0], torch.Generator().manual_seed(0))
    monkeypatch.setattr(
        SharedDraws, "known", lambda draws, at: at[:, None, None].expand(-1, draws.blocks, 8, -1)
    )
    every = cases_of(model, contexts, many=many)
    assert every.known.shape[-2] == 8
    for name, value in vars(every.values(actions)).items():
        torch.testing.assert_close(getattr(values, name), value, rtol=0, atol=1e-12)
    assert torch.equal(outcomes, every.outcomes(actions[0], torch.Generator().manual_seed(0)))
