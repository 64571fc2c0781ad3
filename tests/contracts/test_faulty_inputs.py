"""What goes wrong before or while deciding under a posterior of rehearsal models: told by name, refused, or
borne."""

import math

import pytest
import torch

from rehearsal_torch.certificate import PacBound
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.cases.changing_world import FollowedStore, TwoStores
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.information_gain import Informative
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.training.surrogate_fit import fit

STORES = FollowedStore(size=SampleSize(rows=40), seed=0)
TABLE = STORES.observations()


def changed(name, values):
    """The stores' rows with another column in place of one."""
    columns = TABLE.values.clone()
    columns[:, TABLE.names.index(name)] = torch.as_tensor(values, dtype=torch.float64)
    return Table(TABLE.names, columns, TABLE.altered)


def decided(table, regression="conjugate", hypotheses=STORES.hypotheses, case=None, search=None):
    model = fit(StructuralPosterior(STORES.task, hypotheses, regression=regression), table)
    objective = SuccessProbability.for_cases(
        model,
        [case or STORES.case(0)],
        search_scenarios=300,
        validation_scenarios=300,
        test_scenarios=200,
        information_models=40,
    )
    decision = (search or Informative(0.3, iterations=1))(objective)
    return decision, PacBound(200)(model, objective, decision)


SINGULAR = {
    "a cause that copies another": changed("rival", TABLE.columns(["price"])[:, 0]),
    "an outcome without noise": changed(
        "customers", 2 * TABLE.columns(["price"])[:, 0] + TABLE.columns(["advert"])[:, 0]
    ),
    "units far apart": changed("advert", 1e9 * TABLE.columns(["advert"])[:, 0]),
    "two rows again and again": Table(TABLE.names, TABLE.values[:2].repeat(10, 1), TABLE.altered[:20]),
    "no more rows than parameters": Table(TABLE.names, TABLE.values[:10], TABLE.altered[:10]),
}


@pytest.mark.slow
@pytest.mark.parametrize("regression", ["conjugate", "ridge"])
@pytest.mark.parametrize("table", SINGULAR.values(), ids=SINGULAR)
def test_singular_rows_still_give_a_decision_or_a_refusal(table, regression):
    decision, bound = decided(table, regression)
    # Where nothing is altered, that is what is certified.
    said = (decision.baseline if decision.alteration is None else decision.estimate).point
    assert math.isfinite(decision.value)
    assert 0 <= bound["lower"] <= said + 0.15
    assert said - 0.15 <= bound["upper"] <= 1
    if decision.alteration is None:
        assert "nothing found reaches tau=0.3" in decision.reason.text
        assert all(share < 0.3 for share in decision.trace["most_probable"].values())
    else:
        STORES.case(0).check(decision.alteration)


PLAIN = STORES.hypotheses[1].to_plain()


def test_hypotheses_may_be_written_as_parents():
    parents = {child: STORES.hypotheses[1].parents(child) for child in STORES.task.graph.names}
    written = StructuralPosterior(STORES.task, [{"parents": parents}])
    assert written.equations == StructuralPosterior(STORES.task, [PLAIN]).equations


def setting(name, value):
    return Decision(Alteration((name,), torch.tensor([value], dtype=torch.float64)), 0.0)


@pytest.mark.parametrize(
    "world",
    [STORES, TwoStores(size=SampleSize(10, 2)), RideHailing(size=SampleSize(10, 2))],
    ids=["stores", "changing", "route"],
)
def test_no_world_and_no_certificate_takes_what_may_not_be_set(world):
    name, (lower, upper) = next(iter(world.task.box.bounds().items()))
    case, outcome = world.case(1), world.task.outcomes[0]
    model = fit(StructuralPosterior(world.task, world.hypotheses), world.observations())
    objective = SuccessProbability.for_cases(
        model, [case], search_scenarios=20, validation_scenarios=20, test_scenarios=20, information_models=5
    )

    def asked():
        return (
            lambda d: world.respond(case, d),
            lambda d: world.score(case, d),
            lambda d: PacBound(20)(model, objective, d),
        )

    wrong = [
        (setting(name, upper + 0.1), "may be set within"),
        (setting(name, lower - 0.1), "may be set within"),
    ]
    # An outcome that could be set would always be as desired.
    wrong += [
        (setting(outcome, 1.0), f"{outcome} may not be set"),
        (setting("nobody", 1.0), "nobody may not be set"),
    ]
    with pytest.raises(ValueError, match="expected finite numbers"):
        setting(name, float("nan"))
    for ask in asked():
        for decision, message in wrong:
            with pytest.raises(ValueError, match=message):
                ask(decision)
        ask(setting(name, upper))
        ask(setting(name, lower))


def test_a_search_stays_within_what_the_situation_allows():
    ahead = STORES.case(0)
    narrow = RehearsalCase("narrow", ahead.given, {"price": (1.9, 2.0), "advert": (0.0, 0.0)})
    for fallback in ("drop", "most_probable"):
        decision, _ = decided(TABLE, case=narrow, search=Informative(0.99, fallback, iterations=1))
        narrow.check(decision.alteration)
        assert "nothing found reaches tau=0.99" in decision.trace["dropped"]


@pytest.mark.parametrize("regression", ["conjugate", "ridge"])
def test_a_tau_that_nothing_reaches_is_refused_with_what_comes_nearest(regression):
    decision, bound = decided(TABLE, regression, search=Informative(1.0))
    nearest, share = max(decision.trace["most_probable"].items(), key=lambda item: item[1])
    assert decision.alteration is None
    assert (
        decision.reason.text
        == f"nothing found reaches tau=1; the most probable, {nearest}, reaches {share:.3f}: lower tau if "
        "that is enough"
    )
    assert list(decision.trace["would_set"]) == [nearest]
    assert bound["share"] == pytest.approx(decision.baseline.point, abs=0.1)
