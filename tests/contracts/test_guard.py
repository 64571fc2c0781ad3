"""One contract over every pair of objective and search: when the answer must be "no", or comes with a
warning."""

from dataclasses import replace

import pytest
import torch
from hydra.utils import instantiate

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.problems.problem import Facts
from rehearsal_torch.search.search import Search
from rehearsal_torch.spaces.box import Alteration
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import PAIRS, choices, configuration, learnt

WORLD = chain()
# Neither a nor m leads to y any more; in the table y depends on both.
CUT = replace(WORLD.task, graph=RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["x"]}))
# m leads nowhere, a still does; in the table y depends on m, whatever a is.
HALF = replace(WORLD.task, graph=RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["a", "x"]}))
ACTING = {pair: surrogate for pair, surrogate in PAIRS.items() if pair[1] != "no_action"}
PUBLISHED = {pair for pair in ACTING if configuration("search", pair[1]).get("declines", True) is False}
every = pytest.mark.parametrize("pair", ACTING, ids="-".join)


@pytest.fixture(scope="module")
def models():
    made = {}

    def of(surrogate, task):
        key = surrogate, task.graph.edges
        if key not in made:
            made[key] = learnt(surrogate, task, WORLD.table(60))
        return made[key]

    return of


def decide(model, pair, cases, declines=None):
    objective, search = (
        instantiate(configuration(group, option), _convert_="all")
        for group, option in zip(("objective", "search"), pair, strict=True)
    )
    if declines is not None:
        search.declines = declines
    made = objective_for(objective, model, cases)
    return ruled(made, search.batch_search(made), search.declines)


def test_presets_that_reproduce_a_publication_warn_and_no_others():
    assert {search for _, search in PUBLISHED} == {"informative_published", "projection_newton_published"}
    assert (
        choices("cme_published")[2] == "projected_ascent"
    )  # its own file sets declines to false, see tests/conf


@pytest.mark.slow
@every
def test_what_leads_to_no_outcome_is_refused_and_the_contradiction_is_named(pair, models):
    model = models(ACTING[pair], CUT)
    for decision in decide(model, pair, WORLD.cases(3), declines=True):
        assert decision.undecided
        assert decision.alteration is None
        assert "the graph has no directed path from a, m to y" in decision.reason.text
        assert any("in the observations they depend on it" in text for text in decision.warnings)


@pytest.mark.slow
@every
def test_a_set_that_leads_nowhere_is_not_chosen_where_another_one_does(pair, models):
    for decision in decide(models(ACTING[pair], HALF), pair, WORLD.cases(3), declines=True):
        assert decision.alteration is None or decision.alteration.names != ("m",)
        assert any("setting m cannot change y" in text for text in decision.warnings)


@pytest.mark.slow
@every
def test_rounds_that_learn_and_published_presets_are_only_warned(pair, models):
    cases = WORLD.cases(3)
    for decision in decide(models(ACTING[pair], CUT), pair, cases, declines=False):
        if decision.alteration is not None:
            assert any("the graph has no directed path" in text for text in decision.warnings)


@pytest.mark.slow
@every
def test_nothing_is_recommended_that_is_not_above_doing_nothing(pair, models):
    # Whatever is set lies at one end of its range, where success is rarer than with nothing altered.
    stuck = [
        RehearsalCase(each.identity, each.given, {"a": (-0.999, -0.99), "m": (-0.999, -0.99)})
        for each in WORLD.cases(4)
    ]
    for decision in decide(models(ACTING[pair], WORLD.task), pair, stuck, declines=True):
        assert decision.status == "leave"
        assert decision.reason
    for decision in decide(models(ACTING[pair], WORLD.task), pair, stuck, declines=False):
        if decision.alteration is not None and decision.estimate.point <= decision.baseline.point:
            assert any("no better than doing nothing" in text for text in decision.warnings)


@pytest.mark.slow
@every
def test_where_present_values_are_known_a_decision_is_compared_with_these(pair, models):
    model, cases = models(ACTING[pair], WORLD.task), WORLD.cases(4)
    first = decide(model, pair, cases, declines=True)
    acted = [index for index, each in enumerate(first) if each.alteration is not None]
    there = [
        replace(cases[index], present=dict(zip(each.names, each.values.tolist(), strict=True)))
        for index in acted
        for each in [first[index].alteration]
    ]
    found = decide(model, pair, there, declines=True) if there else []
    for index, case, again in zip(acted, there, found, strict=True):
        # What is there already is no gain, and nothing else is recommended that is not better.
        if again.alteration is None:
            assert "no better than leaving" in again.reason.text or again.undecided
        elif again.estimate is not None:
            assert again.unchanged is None or again.unchanged.point < again.estimate.point
            assert again.unchanged is not None or set(again.alteration.names) - set(case.present)
            if again.alteration.names == first[index].alteration.names and again.unchanged is not None:
                assert again.unchanged.point == pytest.approx(first[index].estimate.point, abs=0.02)


@pytest.mark.slow
@every
def test_a_case_and_an_action_beyond_the_observations_are_named(pair, models):
    far = [
        RehearsalCase(
            "far", {"x": torch.tensor(40.0, dtype=torch.float64)}, {"a": (30.0, 31.0), "m": (30.0, 31.0)}
        )
    ]
    for declines in (True, False):
        for decision in decide(models(ACTING[pair], WORLD.task), pair, far, declines=declines):
            assert any(text.startswith("x is 40; the observations lie between") for text in decision.warnings)
            if decision.alteration is not None:
                assert any(
                    f"{decision.alteration.names[0]} is set to 3" in text for text in decision.warnings
                )
                assert any(text.startswith("few rows are like this case") for text in decision.warnings)


def test_a_decision_among_the_observations_bears_no_warning_of_leaving_them(models):
    pair = ("gaussian_success", "projection_newton")
    near = [
        RehearsalCase(
            "near", {"x": torch.tensor(0.0, dtype=torch.float64)}, {"a": (-0.1, 0.1), "m": (-0.1, 0.1)}
        )
    ]
    (decision,) = decide(models(ACTING[pair], WORLD.task), pair, near, declines=False)
    assert not {"range", "support", "graph", "refuted_graph"} & {each.kind for each in decision.findings}


class Stubborn(Search):
    """Somebody else's search: keeps to the documented fields, and asks nobody."""

    def __init__(self, name="a", value=0.5):
        self.name, self.value = name, value

    def __call__(self, objective):
        return Decision(Alteration((self.name,), torch.tensor([self.value], dtype=torch.float64)), 1.0)


class World:
    """Just enough of a problem for the loop."""

    kind = "rehearse"

    def facts(self):
        return Facts()

    def count(self):
        return 1

    def case(self, index):
        return WORLD.cases(1)[0]

    def cases(self, indices):
        return [self.case(index) for index in indices]

    def observations(self):
        return WORLD.table(60)

    def score(self, one_case, decision):
        return {}


def test_the_loop_asks_for_searches_that_do_not(models):
    objective = instantiate(configuration("objective", "gaussian_success"), _convert_="all")

    def of_one(model, one_case):
        return objective_for(objective, model, [one_case])

    (each,) = rounds(World(), models("linear_structural", CUT), of_one, Stubborn())
    assert each.decision.undecided
    (each,) = rounds(World(), models("linear_structural", WORLD.task), of_one, Stubborn())
    assert each.decision.alteration is not None
    # Without a wrapper, too: the objective is one for several situations, the search one for a single one.
    (each,) = rounds(World(), models("linear_structural", CUT), objective, Stubborn())
    assert each.decision.undecided


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("y", 1.5, "y may not be set"), ("x", 0.0, "x may not be set"), ("a", 7.0, "may be set within")],
)
def test_the_loop_takes_nothing_that_may_not_be_set(models, name, value, words):
    objective = instantiate(configuration("objective", "gaussian_success"), _convert_="all")
    with pytest.raises(ValueError, match=words):
        list(rounds(World(), models("linear_structural", WORLD.task), objective, Stubborn(name, value)))
