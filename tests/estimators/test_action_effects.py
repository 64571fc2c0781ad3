import pytest
import torch

from rehearsal_torch.estimators.action_effects import ActionEffects, dose_features


def drawn(rows: int, seed: int, beta: float = 0.4, quadratic: float = 1.0):
    """Features (n, 4) of which two are the state, doses that depend on them, scales, and residuals: the first
    output moves with the first dose times the second state and with the second dose given at all."""
    stream = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    state, other = 0.2 * normal(rows, 2), (normal(rows, 2) > 0).double() - 0.5
    wish = torch.sigmoid(2 * state[:, :1] - other[:, :1] + normal(rows, 2))
    doses = torch.where(wish > 0.5, wish, 0.0)
    scales = 0.05 * (1 + state[:, :1].abs()).expand(-1, 2) * torch.tensor([1.0, 2.0], dtype=torch.float64)
    effect = beta * doses[:, 0] * state[:, 1] + 0.1 * beta * (doses[:, 1] > 0)
    confounded = quadratic * (state[:, 0].square() - 0.3 * state[:, 0] + other[:, 1] * state[:, 1])
    residuals = torch.stack([effect + confounded, confounded], -1) + scales * normal(rows, 2)
    return torch.cat([state, other], -1), doses, residuals, scales


def test_terms_that_made_the_data_are_found_and_no_others():
    made = ActionEffects(2, 2)
    made.solve(*drawn(20_000, 1))
    # Of (a, a^2, 1[a > 0]) of two doses times (1, s, t): the first times t, and whether the second is given.
    assert made.coefficients[0].nonzero().tolist() == [[0, 2], [5, 0]]
    assert not bool(made.coefficients[1].any())
    assert made.coefficients[0, 0, 2].item() == pytest.approx(0.4, abs=0.02)
    assert made.coefficients[0, 5, 0].item() == pytest.approx(0.04, abs=0.004)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_selected_where_doses_do_nothing(seed):
    """Doses and residuals share a quadratic of the state, which is no effect of the doses. Of 36 terms in 10
    draws one with |t| > 4 is expected in 2 % of all runs."""
    made = ActionEffects(2, 2)
    made.solve(*drawn(5000, 100 + seed, beta=0.0))
    assert not bool(made.coefficients.any())


def test_the_estimate_is_weighted_least_squares_of_the_selected_terms():
    features, doses, residuals, scales = drawn(3000, 3)
    made = ActionEffects(2, 2)
    made.solve(features, doses, residuals, scales)
    chosen = made.coefficients[0].flatten().nonzero()[:, 0]
    assert len(chosen)
    state = torch.nn.functional.pad(features[:, :2], (1, 0), value=1.0)
    terms = (dose_features(doses).unsqueeze(-1) * state.unsqueeze(-2)).flatten(1)[:, chosen]
    pairs = [features[:, i] * features[:, j] for i in range(4) for j in range(i, 4)]
    columns = torch.cat([torch.ones(3000, 1), features, torch.stack(pairs, -1), terms], -1)
    weight = 1 / scales[:, :1]
    plain = torch.linalg.lstsq(columns * weight, residuals[:, :1] * weight, driver="gelsd").solution
    torch.testing.assert_close(
        plain[-len(chosen) :, 0], made.coefficients[0].flatten()[chosen], rtol=1e-6, atol=1e-9
    )


def test_maps_and_values_agree_and_the_number_of_terms_is_bounded():
    features, doses, residuals, scales = drawn(20_000, 1)
    made = ActionEffects(2, 2, max_terms=1)
    assert torch.equal(made(features[:3, :2], doses[:3]), torch.zeros(3, 2, dtype=torch.float64))
    made.solve(features, doses, residuals, scales)
    assert made.coefficients.count_nonzero(dim=(1, 2)).tolist() == [1, 0]
    matrices, shifts = made.maps(doses[:50])
    expected = (matrices @ features[:50, :2].unsqueeze(-1))[..., 0] + shifts
    torch.testing.assert_close(made(features[:50, :2], doses[:50]), expected)
    made.clear()
    assert not made.fitted
    assert not made.maps(doses[:5])[0].any()


@pytest.mark.parametrize("rows", [10, 20, 40, 80])
def test_small_tables_have_no_spurious_effects(rows):
    """The controls take up degrees of freedom: with few rows left, nothing can be told from noise."""
    made, found = ActionEffects(2, 2), 0
    for seed in range(10):
        made.solve(*drawn(rows, 200 + seed, beta=0.0))
        found += int(made.coefficients.count_nonzero())
    assert found <= 2
