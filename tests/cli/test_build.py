"""What the data set tells a surrogate of."""

import pytest
from omegaconf import OmegaConf

from rehearsal_torch.cli.build import build, problem_of, surrogate_of, tasked
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.main import CONF
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run import method_of
from rehearsal_torch.problems.episodes.machines import Machines
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble

NOISE = {"_target_": "rehearsal_torch.problems.causal.noise.ModalNoise", "sigma": 0.1}
SIZE = {"_target_": "rehearsal_torch.problems.world_size.Rounds"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "count"), [("ride_hailing", 3), ("bermuda", 5), ("two_stores", 3), ("manage", 0)]
)
def test_graphs_that_may_be_true_are_told(dataset, count):
    config, _ = composed(CONF, [f"dataset={dataset}", "surrogate=structural_posterior"], multirun=False)
    problem = problem_of(config)
    model = surrogate_of(config, problem)
    assert len(config.surrogate.hypotheses) == count
    assert [each.graph for each in model.hypotheses] == list(problem.hypotheses or [problem.task.graph])


def test_a_graph_that_is_chosen_stays():
    config, _ = composed(
        CONF, ["dataset=bermuda", "surrogate=structural_posterior", "surrogate.hypotheses=[]"], multirun=False
    )
    problem = problem_of(config)
    assert [each.graph for each in surrogate_of(config, problem).hypotheses] == [problem.task.graph]


def test_a_file_with_a_key_of_an_earlier_version_is_told_the_new_one():
    node = {"_target_": "rehearsal_torch.search.sequences.astar.AStar", "time_limit_s": 5.0}
    with pytest.raises(UserError, match=r"search\.time_limit_s is called search\.budget_s now"):
        build(OmegaConf.create({"search": node}), "search")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sigma": 0.1}, r"dataset\.sigma is called dataset\.noise\.sigma now"),
        ({"rounds": 5}, r"dataset\.rounds is called dataset\.size\.rounds now"),
        (
            {"noise": 0.1},
            r"dataset: noise: expected a ModalNoise, in a configuration noise\.sigma, .*; got 0.1",
        ),
        ({"noise": None}, r"dataset: noise: expected a ModalNoise, .*; got None"),
        ({"size": 100}, r"dataset: size: expected a Rounds, .*; got 100"),
        (
            {"noise": {**NOISE, "sigma": -1.0}},
            r"dataset: noise\.sigma: expected a number of at least 0; got -1\.0\.$",
        ),
        (
            {"noise": {**NOISE, "weights": [0.5, 0.75]}},
            r"noise\.weights: expected positive numbers with the sum 1; got .*, with the sum 1\.25\.$",
        ),
        (
            {"size": {**SIZE, "rounds": 0}},
            r"dataset: size\.rounds: expected a whole number from 1 to 134217728; got 0\.$",
        ),
    ],
)
def test_wrong_noise_and_sizes_are_one_sentence(changed, message):
    node = {"_target_": "rehearsal_torch.problems.causal.dropwave.Dropwave", **changed}
    with pytest.raises(UserError, match=message):
        build(OmegaConf.create({"dataset": node}), "dataset")


def machines(*more):
    return composed(CONF, ["dataset=machines", "dataset.machines=40", *more], multirun=False)[0]


@pytest.mark.parametrize("decision", ["branch_and_bound", "greedy", "astar", "exhaustive"])
def test_episodes_with_a_task_bring_their_columns_and_their_reward(decision):
    config = machines(f"decision={decision}")
    problem = problem_of(config)
    model = surrogate_of(config, problem)
    member = model.first if isinstance(model, TransitionEnsemble) else model
    assert member.varying == ("wear", "temperature", "vibration")
    assert member.static == ("age", "model=B", "model=C")
    assert member.contextual == ()
    assert (member.levels.names, member.levels.count) == (("service", "load"), 3)
    reward = method_of(config).objective.keywords["reward"]
    assert (reward.reads, reward.reads_doses) == (problem.roles.names[:3], ("service", "load"))


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


def test_the_experiment_takes_weights_in_the_place_of_the_reward_of_the_task():
    config, _ = composed(CONF, ["+experiment=own_episodes", "dataset=machines"], multirun=False)
    tasked(config, Machines(machines=40))
    assert method_of(config).objective.keywords["reward"].reads_doses == ("service", "load")
    typed = ["+experiment=own_episodes", "dataset=machines", "objective.reward.weights={wear: -1}"]
    config, _ = composed(CONF, typed, multirun=False)
    tasked(config, Machines(machines=40))
    assert method_of(config).objective.keywords["reward"].weights == {"wear": -1.0}


def test_a_column_that_the_episodes_lack_is_refused():
    config = machines("decision=greedy", "surrogate.member.varying=[waer]")
    with pytest.raises(UserError, match=r"expected columns of the data set; got waer\..*wear, temperature"):
        surrogate_of(config, problem_of(config))


def test_patients_keep_their_columns_and_their_reward():
    config, _ = composed(CONF, ["dataset=sepsis_simulated", "dataset.patients=30"], multirun=False)
    model = surrogate_of(config, problem_of(config))
    assert "GCS" in model.names
    assert "SOFA" not in model.names
    assert method_of(config).objective.keywords["reward"].name == "organ SOFA"


def test_a_search_that_needs_a_smooth_reward_says_so_before_the_fit():
    from rehearsal_torch.cli.run import build as built_run
    from rehearsal_torch.cli.run import suits

    run = built_run(machines("decision=astar"))
    with pytest.raises(
        UserError, match="expected a reward with a Lipschitz constant, such as weights of states"
    ):
        suits(run, run.surrogate())
    smooth = built_run(machines("decision=astar", "objective.reward.weights={wear: -1}"))
    suits(smooth, smooth.surrogate())
