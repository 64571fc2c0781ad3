import zlib

import numpy as np
import pytest
import torch
import yaml
from scipy.stats import binom

from rehearsal_torch.certificate import PacBound, pac_bound, sample_seed
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.spaces.box import Alteration
from tests.places import CONF
from tests.toys.toy_posteriors import Toy, toy_cases


def objective_of(toy, test_scenarios=10):
    few = {"search_scenarios": 10, "validation_scenarios": 10, "information_models": 5, "entropy": "sampled"}
    return SuccessProbability.for_cases(toy, toy_cases(1), test_scenarios=test_scenarios, **few)


@pytest.mark.parametrize(
    ("failures", "lower", "upper"),
    [(300, 0.657053, 0.742947), (50, 0.916262, 0.973398), (0, 0.989459, 1.0), (1000, 0.0, 0.010541)],
)
def test_reference_values(failures, lower, upper):
    found = pac_bound(failures, 1000, 0.05)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-6)
    assert found.share == pytest.approx(1 - failures / 1000)


def test_the_parts_are_reported_apart_and_the_bound_is_their_meeting():
    middle, edge = pac_bound(300, 1000), pac_bound(5, 1000)
    assert (middle.lower, middle.upper) == middle.hoeffding
    assert (edge.lower, edge.upper) == edge.scenario
    assert edge.hoeffding[1] > 1
    assert edge.hoeffding[0] < edge.scenario[0]
    assert set(edge.to_dict()) == {
        "share",
        "lower",
        "upper",
        "hoeffding_lower",
        "hoeffding_upper",
        "scenario_lower",
        "scenario_upper",
    }


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 10**6])
@pytest.mark.parametrize("delta", [1e-12, 0.05, 0.9])
def test_edge_cases_give_an_interval(n, delta):
    nothing, everything = pac_bound(0, n, delta), pac_bound(n, n, delta)
    assert (nothing.scenario[1], nothing.upper) == (1.0, 1.0)
    assert (everything.scenario[0], everything.lower) == (0.0, 0.0)
    for failures in {0, 1, n // 2, n - 1, n}:
        found = pac_bound(failures, n, delta)
        assert 0 <= found.lower <= found.share <= found.upper <= 1
        mirrored = pac_bound(n - failures, n, delta)
        assert (mirrored.lower, mirrored.upper) == pytest.approx((1 - found.upper, 1 - found.lower), abs=1e-9)


@pytest.mark.parametrize(
    ("failures", "n", "delta"), [(0, 0, 0.05), (-1, 10, 0.05), (11, 10, 0.05), (1, 10, 0.0), (1, 10, 1.0)]
)
def test_impossible_counts_are_refused(failures, n, delta):
    with pytest.raises(ValueError, match="expected"):
        pac_bound(failures, n, delta)


@pytest.mark.parametrize("n", [10, 50, 1000])
def test_the_whole_interval_covers_for_every_probability_and_is_informative(n):
    # Exactly: summed over the binomial law of the failures, on a grid of probabilities.
    bounds = np.array([[(found := pac_bound(failures, n)).lower, found.upper] for failures in range(n + 1)])
    cover = np.array(
        [
            binom.pmf(np.arange(n + 1), n, 1 - p)[(bounds[:, 0] <= p) & (p <= bounds[:, 1])].sum()
            for p in np.linspace(0.001, 0.999, 999)
        ]
    )
    assert cover.min() >= 0.99, "as the module says; 0.95 was asked for"
    assert cover.min() <= 0.9999, "a bound that always holds says nothing"


@pytest.mark.slow
def test_decisions_under_a_posterior_are_certified():
    # The whole way: models, noise and failures drawn for each decision; what is covered is known in closed
    # form.
    toy, certify, hits = Toy((0.6, 0.4), (1.0, 0.2), (0.3, 0.5)), PacBound(n=200, seed=3), []
    objective = objective_of(toy)
    for index, one_case in enumerate(toy_cases(2000)):
        objective.cases = (one_case,)
        value = -3 + 6 * (index % 40) / 39
        said = certify(
            toy, objective, Decision(Alteration(("a",), torch.tensor([value], dtype=torch.float64)), 0.0)
        )
        hits.append(said["lower"] <= toy.success(value) <= said["upper"])
    assert np.mean(hits) >= 0.95
    assert np.mean(hits) <= 0.9999


def test_a_refusal_is_certified_as_altering_nothing_and_its_numbers_are_plain():
    toy = Toy()
    objective = objective_of(toy, 4000)
    said = PacBound(n=2000)(toy, objective, Decision(None, 0.0))
    assert said == PacBound(n=2000)(toy, objective, Decision(None, 0.0))
    assert said["share"] == pytest.approx(float(objective.sets[0].before), abs=0.04)
    assert {type(value) for value in said.values()} <= {float, int}
    assert (said["n"], said["delta"]) == (2000, 0.05)
    other = PacBound(n=2000, seed=1)(toy, objective, Decision(None, 0.0))
    assert other["failures"] != said["failures"]


def test_an_alteration_is_certified_at_its_own_value():
    toy = Toy()
    objective = objective_of(toy)
    for value in (-2.0, 1.5):
        said = PacBound(n=4000)(
            toy, objective, Decision(Alteration(("a",), torch.tensor([value], dtype=torch.float64)), 0.0)
        )
        # The standard error of a share of 4,000 is at most 0.008.
        assert said["share"] == pytest.approx(toy.success(value), abs=0.03)
        assert said["failures"] == round(4000 * (1 - said["share"]))
    with pytest.raises(ValueError, match=r"a may be set within \[-3, 3\]; got"):
        PacBound()(toy, objective, Decision(Alteration(("a",), torch.tensor([4.0]).double()), 0.0))


def test_a_surrogate_without_scenarios_is_named_before_anything_is_fitted():
    with pytest.raises(
        ValueError, match=r"draws scenarios; got Linear: choose surrogate=structural_posterior"
    ):
        PacBound().check(torch.nn.Linear(1, 1))
    assert PacBound().check(Toy()) is None


def test_samples_of_seeds_and_cases_never_meet():
    case = toy_cases(1)[0]
    (known,) = {sample_seed(0, case)}
    # CRC-32 of the name, which all 32 bits below the seed are for.
    assert known == zlib.crc32(case.identity.encode()) < 2**32
    assert sample_seed(3, case) == 3 * 2**32 + known
    assert PacBound().seed == 0


def test_the_defaults_are_those_of_the_configuration():
    made, conf = PacBound(), yaml.safe_load((CONF / "certificate/pac_bound.yaml").read_text())
    assert (made.n, made.delta) == (conf["n"], conf["delta"]) == (1000, 0.05)
