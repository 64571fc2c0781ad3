"""What the data set tells a surrogate of."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.methods.instantiate import (
    gives_way,
    problem_of,
    surrogate_of,
    tasked,
    trainer_of,
    with_roles,
)
from rehearsal_torch.methods.run_parts import build as run_of
from rehearsal_torch.methods.run_parts import method_of
from rehearsal_torch.objectives.change_rules import ChangeRules
from rehearsal_torch.objectives.imputation_success import ImputedSuccess
from rehearsal_torch.objectives.objective import class_of
from rehearsal_torch.problems.sequences.four_hour_table import CONTEXTUAL, DOSES, STATIC, VARYING
from rehearsal_torch.problems.sequences.machine_maintenance import Machines
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.user_error import UserError
from tests.toys.pumps import TASK, roles_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "count"), [("ride_hailing", 3), ("bermuda", 5), ("two_stores", 3), ("manage", 0)]
)
def test_graphs_that_may_be_true_are_told(dataset, count):
    config, _ = composed([f"dataset={dataset}", "surrogate=structural_posterior"], multirun=False)
    problem = problem_of(config)
    model = surrogate_of(config, problem)
    assert len(config.surrogate.hypotheses) == count
    assert [each.graph for each in model.hypotheses] == list(problem.hypotheses or [problem.task.graph])


@pytest.mark.slow
def test_a_graph_that_is_chosen_stays():
    config, _ = composed(
        ["dataset=bermuda", "surrogate=structural_posterior", "surrogate.hypotheses=[]"], multirun=False
    )
    problem = problem_of(config)
    assert [each.graph for each in surrogate_of(config, problem).hypotheses] == [problem.task.graph]


def machines(*more):
    return composed(["dataset=machines", "dataset.machines=40", *more], multirun=False)[0]


def test_episodes_with_a_task_bring_their_columns_and_their_reward():
    config = machines("decision=branch_and_bound")
    problem = problem_of(config)
    model = surrogate_of(config, problem)
    member = model.first if isinstance(model, TransitionEnsemble) else model
    assert member.varying == ("wear", "temperature", "vibration")
    assert member.static == ("age", "model=B", "model=C")
    assert member.contextual == ()
    assert (member.levels.names, member.levels.count) == (("service", "load"), 3)
    reward = method_of(config).objective.keywords["reward"]
    assert (reward.reads, reward.reads_doses) == (problem.roles.names[:3], ("service", "load"))


def test_the_rules_of_a_task_are_those_of_the_search_unless_others_are_typed():
    config = machines("decision=closed_form")
    problem = problem_of(config)
    problem.roles = replace(problem.roles, rules={"most_levels": 1, "support": 3})
    tasked(config, problem)
    rules = method_of(config).objective.keywords["rules"]
    assert rules == ChangeRules(support=3, most_levels=1, named=["service", "load"])
    config = machines("decision=closed_form", "objective.rules.support=5", "objective.rules.boluses=[load]")
    tasked(config, problem)
    rules = method_of(config).objective.keywords["rules"]
    assert rules == ChangeRules(support=5, most_levels=1, boluses=["load"], named=["service", "load"])


@pytest.mark.parametrize("decision", ["closed_form", "branch_and_bound"])
def test_the_order_of_a_task_is_told_to_the_closed_form(decision):
    config = machines(f"decision={decision}")
    problem = problem_of(config)
    problem.roles = replace(problem.roles, order=("wear", "vibration"))
    model = surrogate_of(config, problem)
    closed = model.closed if decision == "branch_and_bound" else model
    assert closed.halves.told == (0, 2)


def test_columns_and_a_reward_of_ones_own_are_kept():
    config = machines(
        "decision=greedy",
        "reward=linear",
        "objective.reward.weights={wear: -1}",
        "surrogate.member.varying=[wear]",
    )
    model = surrogate_of(config, problem_of(config))
    assert model.names == ("wear",)
    assert model.first.static == ("age", "model=B", "model=C")
    assert method_of(config).objective.keywords["reward"].weights == {"wear": -1.0}


@pytest.mark.slow
def test_the_experiment_takes_weights_in_the_place_of_the_reward_of_the_task():
    config, _ = composed(["+experiment=own_episodes", "dataset=machines"], multirun=False)
    tasked(config, Machines(machines=40))
    assert method_of(config).objective.keywords["reward"].reads_doses == ("service", "load")
    typed = ["+experiment=own_episodes", "dataset=machines", "objective.reward.weights={wear: -1}"]
    config, _ = composed(typed, multirun=False)
    tasked(config, Machines(machines=40))
    assert method_of(config).objective.keywords["reward"].weights == {"wear": -1.0}


def test_a_column_that_the_episodes_lack_is_refused():
    config = machines("decision=greedy", "surrogate.member.varying=[waer]")
    with pytest.raises(UserError, match=r"expected columns of the data set; got waer\..*wear, temperature"):
        surrogate_of(config, problem_of(config))


def test_patients_keep_their_columns_and_their_reward():
    config, _ = composed(["dataset=sepsis_simulated", "dataset.patients=30"], multirun=False)
    model = surrogate_of(config, problem_of(config))
    assert "GCS" in model.names
    assert "SOFA" not in model.names
    assert method_of(config).objective.keywords["reward"].name == "SOFA"


@pytest.mark.slow
def test_a_search_that_needs_a_smooth_reward_says_so_before_the_fit():
    from rehearsal_torch.methods.run_parts import build as built_run
    from rehearsal_torch.methods.run_parts import suits

    run = built_run(machines("decision=astar"))
    with pytest.raises(
        UserError, match="expected a reward with a Lipschitz constant, such as weights of states"
    ):
        suits(run, run.surrogate())
    smooth = built_run(machines("decision=astar", "objective.reward.weights={wear: -1}"))
    suits(smooth, smooth.surrogate())


@pytest.fixture
def with_gaps(tmp_path):
    """A problem file whose table has missing cells, to be imputed twice."""
    random = np.random.default_rng(0)
    x, a = random.normal(size=(2, 60))
    rows = pd.DataFrame({"x": x, "a": a, "y": x + a + 0.2 * random.normal(size=60)})
    rows.loc[[3, 9, 30], "y"] = np.nan
    rows.to_csv(tmp_path / "table.csv", index=False)
    text = """
data: table.csv
variables: {x: context, a: {role: action, range: [-1, 1]}, y: outcome}
graph: [x -> a, "{x a} -> y"]
desired: y >= 1
cases: [{x: 0.1}, {x: 1.5}]
missing: {impute: 2}
"""
    (tmp_path / "problem.yaml").write_text(text)
    return tmp_path / "problem.yaml"


def of_problem(path, *more):
    typed = ["dataset=problem", f"path={path}", *more]
    config, _ = composed(typed, multirun=False)
    return config


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decision", "member", "search"),
    [
        ("outcome_regression", "OutcomeRegression", "SampledRefinement"),
        ("care", "LinearStructural", "ProjectedAscent"),
        ("none", "LinearStructural", "NoAction"),
    ],
)
def test_a_method_of_imputed_tables_has_a_model_for_each(with_gaps, decision, member, search):
    run = run_of(of_problem(with_gaps, f"decision={decision}"))
    surrogate = run.surrogate()
    assert [type(each).__name__ for each in surrogate.each] == [member] * 2
    assert class_of(run.objective) is ImputedSuccess
    assert type(run.search).__name__ == search
    assert run.config["surrogate"]["count"] == 2
    assert "task" not in run.config["surrogate"]["member"]
    again = run_of(of_problem(with_gaps, f"decision={decision}"))
    tasked(OmegaConf.create(dict(again.config)), again.problem)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["decision=micns"], "this decision has ChanceCost"),
        (["decision=care", "claims=cross_fitted"], "claims=cross_fitted: folds of imputed tables"),
    ],
)
def test_methods_that_are_not_pooled_are_refused_before_a_fit(with_gaps, more, words):
    with pytest.raises(UserError, match=words):
        run_of(of_problem(with_gaps, *more))


def test_without_missing_cells_the_method_stays(with_gaps):
    with_gaps.write_text(with_gaps.read_text().replace("{impute: 2}", "complete"))
    assert type(run_of(of_problem(with_gaps, "decision=cme")).surrogate()).__name__ == "NestedRidge"


def test_gpus_are_named_by_their_numbers():
    typed = ["+experiment=sepsis", "trainer=gpu", "trainer.devices=[1,3]"]
    config, _ = composed(typed, multirun=False)
    assert trainer_of(config, None).devices == [1, 3]


SEPSIS = {
    "varying": list(VARYING[:-1]),
    "static": list(STATIC),
    "contextual": list(CONTEXTUAL),
    "doses": list(DOSES),
    "levels": 5,
}


def test_a_task_takes_the_place_of_what_was_not_set_to_something_else():
    own = roles_of(TASK).surrogate_settings()
    for brought in (SEPSIS, {**SEPSIS, "varying": list(VARYING)}, dict.fromkeys(SEPSIS)):
        assert with_roles(brought, own) == own
    kept = with_roles({**SEPSIS, "varying": ["flow"], "levels": 3}, own)
    assert kept == {name: own[name] for name in ("static", "contextual", "doses")}


def test_a_reward_gives_way_only_if_it_is_that_of_patients():
    columns = ("flow", "heat")
    assert gives_way(None, columns)
    assert gives_way({"_target_": "x.LinearReward", "weights": None}, columns)
    assert gives_way({"components": {"lungs": {"paO2 / FiO2_1": {"< 300": 2}}}}, columns)
    assert gives_way({"weights": None, "components": None, "costs": None}, columns)
    assert not gives_way({"weights": None, "components": None, "costs": {"oil": 1}}, columns)
    assert not gives_way({"weights": {"flow": 1}}, columns)
    assert not gives_way({"weights": {"flow": 1}, "components": None, "costs": None}, columns)
    assert not gives_way({"components": {"hot": {"heat": {"> 1": 2}}}}, columns)
    assert not gives_way({"components": {"x": {"unheard_of": {"> 1": 2}}}}, columns)
    # A table that has a column of this name keeps the score.
    assert not gives_way({"components": {"lungs": {"paO2": {"< 300": 2}}}}, ("paO2",))
