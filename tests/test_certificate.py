import math
import zlib

import numpy as np
import pytest
import torch
import yaml
from scipy.stats import binom, norm

from rehearsal_torch.certificate import (
    CredibleBound,
    PacBound,
    fewest_models,
    pac_bound,
    quantiles,
    sample_seed,
)
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.drifting_scm import DriftingLinear
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import CONF
from tests.toys.linear_truth import chain, managing
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
    assert (middle.lower, middle.upper) == (middle.hoeffding_lower, middle.hoeffding_upper)
    assert (edge.lower, edge.upper) == (edge.scenario_lower, edge.scenario_upper)
    assert edge.hoeffding_upper > 1
    assert edge.hoeffding_lower < edge.scenario_lower


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 10**6])
@pytest.mark.parametrize("delta", [1e-12, 0.05, 0.9])
def test_edge_cases_give_an_interval(n, delta):
    nothing, everything = pac_bound(0, n, delta), pac_bound(n, n, delta)
    assert (nothing.scenario_upper, nothing.upper) == (1.0, 1.0)
    assert (everything.scenario_lower, everything.lower) == (0.0, 0.0)
    for failures in {0, 1, n // 2, n - 1, n}:
        found = pac_bound(failures, n, delta)
        assert 0 <= found.lower <= found.share <= found.upper <= 1
        mirrored = pac_bound(n - failures, n, delta)
        assert (mirrored.lower, mirrored.upper) == pytest.approx((1 - found.upper, 1 - found.lower), abs=1e-9)


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
    assert {type(value) for key, value in said.items() if key != "of"} <= {float, int}
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


NOTHING = Decision(None, 0.0)


def setting(**values):
    return Decision(Alteration(tuple(values), torch.tensor(list(values.values()), dtype=torch.float64)), 0.0)


def only(surrogate, case):
    """What a certificate reads of an objective: its one case."""
    return Candidates([case], [], surrogate)


@pytest.fixture(scope="module")
def route():
    world = RideHailing(size=SampleSize(rows=30, contexts=3))
    return world, fit(StructuralPosterior(world.task, world.hypotheses), world.observations())


def test_truths_drawn_from_the_posterior_are_held_at_the_nominal_share():
    toy, stream = Toy((0.6, 0.4), (1.0, 0.2), (0.3, 0.5)), torch.Generator().manual_seed(3)
    held, reached = [], []
    for index, case in enumerate(toy_cases(60)):
        value = -3 + 6 * (index % 20) / 19
        said = CredibleBound(models=399, seed=5)(toy, only(toy, case), setting(a=value))
        graph = (torch.rand(4000, generator=stream) < 0.4).long()
        slope = torch.tensor([1.0, 0.2])[graph] + torch.tensor([0.3, 0.5])[graph] * torch.randn(
            4000, generator=stream
        )
        true = torch.from_numpy(norm.cdf(2.5 - slope * value) - norm.cdf(0.5 - slope * value))
        held.append(((said["truth_lower"] <= true) & (true <= said["truth_upper"])).double().mean())
        reached.append((said["truth_least"] <= true).double().mean())
    assert float(torch.stack(held).mean()) == pytest.approx(0.95, abs=0.01)
    assert float(torch.stack(reached).mean()) == pytest.approx(0.95, abs=0.01)


def test_few_models_hold_the_nominal_share_too():
    # With K = 39 the ends are the smallest and the largest draw: the rank of a further one is uniform.
    draws = torch.rand(39, 20000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    true = torch.rand(20000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    lower, upper = quantiles(draws, torch.tensor([0.025, 0.975], dtype=torch.float64))
    assert torch.equal(lower, draws.amin(0))
    assert torch.equal(upper, draws.amax(0))
    assert float(((lower <= true) & (true <= upper)).double().mean()) == pytest.approx(0.95, abs=0.005)
    assert (fewest_models(0.95), fewest_models(0.5), fewest_models(0.99)) == (39, 3, 199)


def test_quantiles_interpolate_between_order_statistics():
    draws = torch.tensor([3.0, 0.0, 1.0, 2.0], dtype=torch.float64)
    orders = torch.tensor([0.0, 0.2, 0.3, 0.5, 0.8, 1.0], dtype=torch.float64)
    assert quantiles(draws, orders).tolist() == pytest.approx([0.0, 0.0, 0.5, 1.5, 3.0, 3.0])


def plain(model, surrogate, k, context, altered):
    """Mean and standard deviation of the rating in model k, one equation and one noise term at a time."""
    index, start = next((index, span.start) for index, span in model.blocks if span.start <= k < span.stop)
    hypothesis = surrogate.hypotheses[index]
    mean, loads = {**context, **altered}, {name: {} for name in (*context, *altered)}
    for equation in hypothesis.under(tuple(altered)):
        draws = model.equation_draws(index, equation)
        for row, name in enumerate(equation.members):
            weights = draws.weights[k - start, :, row].tolist()
            mean[name] = float(draws.intercept[k - start, row]) + sum(
                weight * mean[parent] for weight, parent in zip(weights, equation.parents, strict=True)
            )
            load = {}
            for weight, parent in zip(weights, equation.parents, strict=True):
                for source, size in loads[parent].items():
                    load[source] = load.get(source, 0.0) + weight * size
            for column, source in enumerate(equation.members):
                load[source] = load.get(source, 0.0) + float(draws.root[k - start, row, column])
            loads[name] = load
    return mean["rating"], math.sqrt(sum(size**2 for size in loads["rating"].values()))


@pytest.mark.parametrize("altered", [{}, {"recommend": -0.7}, {"discount": 1.2}], ids=str)
def test_the_batch_equals_a_loop_over_models(route, altered):
    world, surrogate = route
    case = world.case(0)
    context = dict(zip(world.task.context, world.task.given([case])[0].tolist(), strict=True))
    seen = []
    certificate = CredibleBound(models=41, level=0.5, seed=2)
    said = certificate(surrogate, only(surrogate, case), setting(**altered) if altered else NOTHING)

    model = surrogate.sampled(41, 8 * sample_seed(2, case) + 6)
    for k in range(41):
        mean, std = plain(model, surrogate, k, context, altered)
        seen.append(norm.cdf((1.0 - mean) / std) - norm.cdf((0.8 - mean) / std))
    expected = quantiles(
        torch.tensor(seen, dtype=torch.float64), torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    ).tolist()
    assert [said[key] for key in ("truth_lower", "truth_median", "truth_upper")] == pytest.approx(
        expected, abs=1e-7
    )
    assert said["truth_least"] == pytest.approx(expected[1], abs=1e-7), "of level 1/2: the median"
    assert said["truth_std"] == pytest.approx(float(torch.tensor(seen, dtype=torch.float64).std()), abs=1e-7)


def test_responses_with_a_models_noise_are_its_scenarios(route):
    world, surrogate = route
    models, contexts = surrogate.sampled(25, 3), world.task.given([world.case(0), world.case(1)])
    for names in ((), ("recommend",), ("discount",)):
        response = models.responses(names)
        actions = torch.full((2, len(names)), 0.4, dtype=torch.float64)
        noise = torch.einsum("kyd,dk->ky", response.noise, models._noise)
        made = response.base(contexts) + (actions @ response.action.mT) + noise.unsqueeze(-2)
        rows = models.scenarios(contexts, names).only(world.task.outcomes).rows(actions)
        assert torch.allclose(made.movedim(0, 1), rows, atol=1e-12)
        assert torch.allclose(response.covariance, response.noise @ response.noise.mT)


def test_the_bound_of_the_posterior_mean_stands_beside_it_and_is_that_of_pac_bound(route):
    world, surrogate = route
    case, decision = world.case(2), setting(recommend=-0.5)
    said = CredibleBound(n=500, delta=0.1, seed=4)(surrogate, only(surrogate, case), decision)
    alone = PacBound(n=500, delta=0.1, seed=4)(surrogate, only(surrogate, case), decision)
    assert {key: said[key] for key in alone} == alone
    assert set(said) - set(alone) == {
        "truth_of",
        "truth_lower",
        "truth_upper",
        "truth_least",
        "truth_median",
        "truth_std",
        "models",
        "level",
    }
    assert said["of"].startswith("posterior mean")
    assert said["truth_of"].startswith("true probability")
    assert {type(value) for key, value in said.items() if not key.endswith("of")} <= {float, int}
    assert said["truth_upper"] - said["truth_lower"] > said["upper"] - said["lower"], "few rows"


@pytest.mark.parametrize("world", [managing(), chain()], ids=["two outcomes", "one outcome"])
def test_linear_models_are_bounded_without_scenarios(world):
    (case,) = world.cases(1)
    names = world.task.candidates[0]
    wide, narrow = (
        CredibleBound()(model, only(model, case), setting(**dict.fromkeys(names, 0.5)))
        for model in (fit(LinearStructural(world.task, draws=0), world.table(count)) for count in (40, 4000))
    )
    assert "lower" not in wide, "scenarios of the posterior mean are not drawn from linear models"
    assert narrow["truth_std"] < 0.3 * wide["truth_std"]
    assert wide["truth_lower"] <= narrow["truth_median"] <= wide["truth_upper"]


def test_two_outcomes_agree_with_counting():
    world = managing()
    model = fit(LinearStructural(world.task), world.table(60))
    (case,) = world.cases(1)
    names = world.task.candidates[0]
    decision = setting(**dict.fromkeys(names, 0.5))
    said = CredibleBound(seed=3)(model, only(model, case), decision)

    drawn = model.responses(names, 400, 8 * sample_seed(3, case) + 6)
    stream = torch.Generator().manual_seed(0)
    noise = torch.linalg.cholesky(drawn.covariance) @ torch.randn(
        400, len(world.task.outcomes), 2000, generator=stream, dtype=torch.float64
    )
    middle = drawn.base(world.task.given([case]))[:, 0] + drawn.action @ decision.alteration.values
    region = world.task.region
    outcomes = (middle.unsqueeze(-1) + noise).mT
    share = (outcomes @ region.normals.mT <= region.offsets).all(-1).double().mean(-1)
    ends = quantiles(share, share.new_tensor([0.025, 0.5, 0.975])).tolist()
    assert [said[key] for key in ("truth_lower", "truth_median", "truth_upper")] == pytest.approx(
        ends, abs=0.03
    )


def test_without_a_posterior_it_is_refused_in_one_paragraph():
    world = chain()
    model = DriftingLinear(world.task)
    with pytest.raises(ValueError, match="DriftingLinear, which has none: choose surrogate=") as caught:
        CredibleBound().check(model)
    assert "\n" not in str(caught.value)
    CredibleBound().check(LinearStructural(world.task))
    PacBound().check(Toy())
