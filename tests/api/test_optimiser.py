import copy
import gzip
import inspect
import itertools
import json
import math
import warnings
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.api.trial_method import METHOD, trial_method
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.data.trials.trial import TrialError, TrialWarning
from rehearsal_torch.data.trials.trial_store import TrialFileError
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.monte_carlo import FUNCTIONS, MonteCarlo
from rehearsal_torch.objectives.objective import class_of
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch, recommend
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from tests.toys.causal_toys import WrittenLaw, WrittenModel

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}
QUICK = AcquisitionSearch(screened=64, starts=4, steps=20)
PLAIN = partial(ExogenousModel, phi="homoskedastic", components=1)


def system(action):
    x = action["a"] ** 2
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2, "unread": 7.0}


def optimiser(task=TASK, surrogate=PLAIN, **rest):
    return CausalOptimiser(task, surrogate=surrogate, search=QUICK, initial=6, **rest)


def told(made, rounds):
    for _ in range(rounds):
        (action,) = made.ask()
        made.tell(action, system(action))
    return made


def test_a_model_of_the_reward_alone_knows_no_errors_of_nodes():
    made = told(CausalOptimiser({**TASK, "errors": {"X": 0.1}}, method="sobol_actions"), 6)
    assert made.recommend().predicted == pytest.approx(made.table.columns(["Y"]).mean(), abs=5)


@pytest.mark.slow
def test_asking_and_telling_finds_the_best_action():
    made = told(optimiser(objective=partial(ConfidenceBound, beta=1.0)), 14)
    action, predicted = made.recommend()
    assert system(action)["Y"] > 0.98
    assert predicted == pytest.approx(1.0, abs=0.05)
    assert made.pending == []
    assert len(made.table) == 14


@pytest.mark.slow
def test_one_fit_serves_all_questions_until_a_trial_is_completed():
    made = told(optimiser(), 7)
    before = made._fit.fits
    (action,) = made.ask()
    first = made.recommend()
    made.model().surrogate.condition(model_rows(made, 6))
    assert made.recommend() == first
    assert made._fit.fits == before + 1
    made.tell(action, system(action))
    assert made.recommend() != first
    assert made._fit.fits == before + 2


def model_rows(made, count):
    table = made.table
    return type(table)(table.names, table.values[:count], table.altered[:count])


def test_the_same_seed_asks_the_same_and_another_seed_something_else():
    first, second, third = (told(optimiser(seed=seed), 6).table.values for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["graph", "independent", "black_box"])
def test_a_batch_is_spread_out(structure):
    made = told(
        optimiser(
            surrogate=partial(PLAIN, structure=structure), objective=partial(ConfidenceBound, beta=4.0)
        ),
        7,
    )
    batch = made.ask(3)
    assert made.pending == batch
    apart = [
        max(abs(one["a"] - other["a"]), abs(one["b"] - other["b"]) / 2)
        for one, other in itertools.combinations(batch, 2)
    ]
    assert min(apart) > 1e-3
    for action in reversed(batch):
        made.tell(action, system(action))
    assert made.pending == []
    # What is pending counts, whether it was asked for at once or one by one.
    again = told(
        optimiser(
            surrogate=partial(PLAIN, structure=structure), objective=partial(ConfidenceBound, beta=4.0)
        ),
        7,
    )
    for action in batch:
        assert again.ask() == [pytest.approx(action, abs=1e-4)]
    again.forget()
    assert again.pending == []


@pytest.mark.bench
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_batch_is_spread_out_by_pending_points(function, monkeypatch):
    given, plain = [], MonteCarlo.__init__

    def noted(self, model, case, *, pending=None, **rest):
        given.append((len(model.visited()), None if pending is None else len(pending)))
        plain(self, model, case, pending=pending, **rest)

    monkeypatch.setattr(MonteCarlo, "__init__", noted)
    made = told(optimiser(objective=partial(MonteCarlo, function=function, members=16)), 7)
    failed = made.ask()[0]
    made.fail(failed)
    batch = [failed, *made.ask(3)]
    # Failed and pending actions are told to the objective, and nothing is imputed.
    assert given[-4:] == [(7, None), (7, 1), (7, 2), (7, 3)]
    apart = [
        max(abs(one["a"] - other["a"]), abs(one["b"] - other["b"]) / 2)
        for one, other in itertools.combinations(batch, 2)
    ]
    assert min(apart) > 1e-3


def test_limits_are_kept_from_the_first_action_on():
    made = optimiser({**TASK, "limits": {"normals": [[1.0, 1.0]], "offsets": [1.0]}})
    for action in made.ask(6):
        assert action["a"] + action["b"] <= 1 + 1e-6
        made.tell(action, system(action))
    assert sum(made.ask()[0].values()) <= 1 + 1e-6


@pytest.mark.slow
def test_a_known_reward_is_not_learnt():
    made = told(optimiser({**TASK, "reward": {"targets": {"X": 0.5, "Y": 0.0}}}), 12)
    action, predicted = made.recommend()
    nodes = system(action)
    assert predicted == pytest.approx(-((nodes["X"] - 0.5) ** 2 + nodes["Y"] ** 2) / 2, abs=0.02)
    assert predicted > -0.02


def test_other_faults_are_named(tmp_path):
    made = optimiser()
    with pytest.raises(ValueError, match="Z: altered, but not a node of the task"):
        made.tell({"a": 0.5, "b": 0.5}, {"X": 0.0, "Y": 0.0}, altered=["Z"])
    with pytest.raises(ValueError, match="at least 5 rows"):
        made.model()
    for action in made.ask(6):
        made.tell(action, {"X": 0.25, "Y": action["a"]})
    for again in (made.model, made.recommend):
        with pytest.raises(
            ValueError, match=r"no model can be fitted yet: X was 0\.25 in all 6 experiments;"
        ):
            again()
    (tmp_path / "short.csv").write_text("a,b,X\n" + "0.1,0.2,0.3\n" * 6, encoding="utf-8")
    with pytest.raises(TableError, match="Y"):
        made.read(tmp_path / "short.csv")


@pytest.fixture
def fresh():
    return CausalOptimiser(TASK, surrogate=Written, objective=PosteriorMean, search=Stubborn())


class Written(WrittenModel):
    """A model that learns nothing and costs nothing."""

    def __init__(self, task):
        law = WrittenLaw(lambda inputs: -(inputs - 0.5).square().sum(-1), lambda inputs: inputs.sum(-1))
        super().__init__(task, {"X": law, "Y": law})

    def parts(self, table):
        self.tried = table.columns(self.task.actions)
        return iter(())


class Stubborn:
    """A search that proposes one action, whatever was asked before."""

    def __init__(self, a=0.3, b=0.7):
        self.values = {"a": a, "b": b}

    def __call__(self, objective):
        return Decision(
            Alteration(tuple(self.values), torch.tensor(list(self.values.values()), dtype=torch.float64)), 0.0
        )


def apart(trials, slack=1e-4):
    """Whether all trials that are pending or failed differ from each other."""
    kept = [
        (trial.settings["a"], trial.settings["b"] / 2)
        for trial in trials
        if trial.state in ("pending", "failed")
    ]
    return all(
        max(abs(one[0] - other[0]), abs(one[1] - other[1])) > slack
        for one, other in itertools.combinations(kept, 2)
    )


@pytest.mark.parametrize("count", [1, 8])
def test_any_number_can_be_asked_for_on_a_fresh_task(fresh, count):
    asked = fresh.ask(count)
    assert len(asked) == count
    assert fresh.pending == asked
    assert [each.trial for each in asked] == list(range(1, count + 1))
    assert apart(fresh.trials)
    one_by_one = CausalOptimiser(TASK, surrogate=Written, objective=PosteriorMean, search=Stubborn())
    assert [one_by_one.ask()[0] for _ in range(count)] == asked


def test_what_is_not_given_is_that_of_the_method(fresh):
    assert (fresh.surrogate, fresh.objective) == (Written, PosteriorMean)
    assert isinstance(fresh.search, Stubborn)
    plain, other = CausalOptimiser(TASK, seed=3), CausalOptimiser(TASK, surrogate=Written, method="ucb")
    assert isinstance(plain.surrogate(plain.task), ExogenousModel)
    assert isinstance(plain.search, AcquisitionSearch)
    assert plain.search.seed == 3
    assert other.surrogate is Written
    assert class_of(other.objective) is MonteCarlo
    assert class_of(CausalOptimiser(TASK, method="mcbo").objective) is not MonteCarlo


def test_the_start_design_goes_on_while_nothing_can_be_fitted(fresh):
    for action in fresh.ask(5):
        fresh.tell(action, {"X": 0.25, "Y": action["a"]})
    (sixth,) = fresh.ask()  # X has not varied yet
    fresh.tell(sixth, {"X": 0.5, "Y": 0.0})
    assert fresh.ask() == [{"a": 0.3, "b": 0.7}]


@pytest.mark.parametrize(
    ("ran", "nodes"),
    [
        (lambda place: {"a": place / 10, "b": 0.5}, lambda place: {"X": place, "Y": 0.0}),
        (lambda place: {"a": place / 10, "b": 0.5}, lambda place: {"X": 0.5, "Y": place}),
        (lambda place: {"a": 0.5, "b": 0.5}, lambda place: {"X": place, "Y": place}),
    ],
)
def test_experiments_that_tell_nothing_ask_on_beyond_the_start(ran, nodes):
    made = CausalOptimiser(TASK)
    for place in range(8):
        made.tell(None, nodes(place), ran=ran(place))
    asked = made.ask(3)
    assert len({tuple(each.values()) for each in asked}) == 3
    assert apart(made.trials[8:])


def test_of_few_settings_all_are_asked_and_their_number_is_told(fresh):
    few = {**TASK, "actions": {"a": {"values": [0, 1]}, "b": {"values": [0, 1, 2]}}}
    made = optimiser(few)
    for _ in range(2):
        with pytest.warns(
            TrialWarning, match="6 of 9 experiments are proposed, since .* all 6 settings that"
        ):
            asked = made.ask(9)
        assert len({tuple(each.values()) for each in asked}) == len(asked) == 6
        for each in asked:
            made.tell(each, system(each))


def test_what_adds_up_to_one_is_asked_in_different_compositions():
    limits = {"normals": [[1, 1, 1], [-1, -1, -1]], "offsets": [1, -1]}
    actions = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    made = CausalOptimiser({"graph": ["{a b c} -> Y"], "actions": actions, "reward": "Y", "limits": limits})
    asked = torch.tensor([list(each.values()) for each in [*made.ask(6), *made.ask(3, fixed={"a": 0.2})]])
    torch.testing.assert_close(asked.sum(-1), torch.ones(9), rtol=0, atol=1e-6)
    assert torch.pdist(asked).min() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_batch_of_mixtures_is_of_different_compositions(function):
    limits = {"normals": [[1, 1], [-1, -1]], "offsets": [1, -1]}
    task = {"graph": ["{a b} -> Y"], "actions": {"a": [0, 1], "b": [0, 1]}, "reward": "Y", "limits": limits}
    made = optimiser(task, objective=partial(MonteCarlo, function=function))
    for number, action in enumerate(made.ask(6)):
        made.tell(action, {"Y": math.sin(5 * action["a"]) + 0.1 * (-1) ** number})
    batch = torch.tensor([list(each.values()) for each in made.ask(6)])
    torch.testing.assert_close(batch.sum(-1), torch.ones(6), rtol=0, atol=1e-6)
    assert float(torch.pdist(batch[:, :1]).mean()) > 0.02


def test_rounded_settings_are_the_trials_that_were_asked(tmp_path):
    made = optimiser(file=tmp_path / "s.json")
    asked = made.ask(3)
    rounded = [{name: round(each, 2) for name, each in action.items()} for action in asked]
    made.tell(rounded[0], system(rounded[0]))
    made.read(pd.DataFrame([rounded[1] | system(rounded[1]), rounded[2] | {"state": "failed"}]))
    assert [each.state for each in made.trials] == ["completed", "completed", "failed"]
    assert [each.settings for each in made.trials] == rounded
    wide = CausalOptimiser.load(tmp_path / "s.json", tolerance={"a": 0.2, "b": 0.5})
    (action,) = wide.ask()
    near = {"a": min(action["a"] + 0.15, 1.0), "b": action["b"] * 0.8}
    assert wide.tell(near, system(near)).id == action.trial
    (tmp_path / "problem.yaml").write_text(
        "question: trials\nvariables:\n  a: {role: action, range: [0, 1]}\n  Y: outcome\n"
        "graph: [a -> Y]\ntolerance: 0.3\n"
    )
    written = CausalOptimiser(tmp_path / "problem.yaml")
    (action,) = written.ask()
    assert written.tell({"a": action["a"] - 0.25}, {"Y": 1.0}).id == action.trial


@pytest.mark.parametrize("name", ["X", "state"])
def test_all_trials_are_written_and_read_with_their_states(tmp_path, name):
    task = {**TASK, "graph": {"parents": {name: ["a"], "Y": [name, "b"]}}}
    made, again = optimiser(task), optimiser(task)
    nodes = {name: 0.25, "Y": 1.5}
    first, second, third, _ = made.ask(4)
    made.tell(first, nodes, altered=(name,))
    made.fail(second, nodes={"Y": 2.0})
    made.abandon(third)
    made.write(tmp_path / "t.csv")
    again.read(tmp_path / "t.csv")
    known = {"completed": 1, "pending": 1} | ({} if name == "state" else {"failed": 1, "abandoned": 1})
    assert {each: sum(one.state == each for one in again.trials) for each in known} == known
    assert len(again.trials) == sum(known.values())
    assert again.trials[0].altered == (name,)
    for before in made.trials if name == "X" else ():
        (after,) = [each for each in again.trials if each.state == before.state]
        assert (after.settings, after.nodes) == (before.settings, before.nodes)


def test_constraints_are_stored_and_a_setting_that_keeps_them_is_sought(tmp_path):
    parts = {"surrogate": Written, "objective": MonteCarlo, "search": QUICK}
    made = CausalOptimiser({**TASK, "constraints": "X <= 1"}, file=tmp_path / "t.json", initial=5, **parts)
    for action in made.ask(5):
        made.tell(action, system(action))
    best = CausalOptimiser.load(tmp_path / "t.json", **parts).recommend()
    assert best.feasible
    assert "X <= 1 with" in str(best)
    assert copy.copy(best).constraints == best.constraints
    # Moved alone, an action still keeps them: X is a squared, with noise.
    narrow = CausalOptimiser.load(tmp_path / "t.json", {**TASK, "constraints": "X <= 0.1"}, **parts)
    assert narrow.recommend().nearly["a"][1] ** 2 <= 0.1 < best.nearly["a"][1] ** 2
    tight = {**TASK, "constraints": "X <= -2 with 90 %"}
    never = CausalOptimiser.load(tmp_path / "t.json", tight, **parts)
    with pytest.warns(TrialWarning, match="no setting is known to keep"):
        never.ask()
    assert (never.recommend().feasible, never.recommend().nearly) == (False, {})
    assert "no setting is known to keep" in str(never.recommend())


def test_all_failures_ask_on_and_never_the_same(fresh):
    for _ in range(12):
        (action,) = fresh.ask()
        fresh.fail(action, "the pump stopped")
    assert len({tuple(trial.settings.values()) for trial in fresh.trials}) == 12
    assert apart(fresh.trials)
    assert len(fresh.table) == 0


def test_what_a_search_proposes_twice_is_asked_once(fresh):
    for action in fresh.ask(6):
        fresh.tell(action, system(action))
    first, second, third = fresh.ask(3)
    assert first == {"a": 0.3, "b": 0.7}
    assert apart(fresh.trials)
    fresh.fail(first)
    fresh.abandon(second)
    fresh.tell(third, system(third))
    assert fresh.ask() != [first]
    fresh.abandon(1)
    assert len(fresh.table) == 6
    fresh.forget()
    assert fresh.pending == []


def test_an_ask_that_fails_leaves_nothing_behind(tmp_path):
    class Broken:
        def __call__(self, objective):
            raise ValueError("no luck")

    made = CausalOptimiser(
        TASK, surrogate=Written, objective=PosteriorMean, search=Broken(), file=tmp_path / "trials.json"
    )
    for action in made.ask(5):
        made.tell(action, system(action))
    before, text = made.trials, (tmp_path / "trials.json").read_text()
    with pytest.raises(ValueError, match="no luck"):
        made.ask(3)
    assert made.trials == before
    assert (tmp_path / "trials.json").read_text() == text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": math.nan, "b": 0.5}, "cannot be set|finite"),
        ({"a": 7.0, "b": 0.5}, "cannot be set"),
        ({"a": 0.5}, r"gave no value for \['b'\]"),
    ],
)
def test_what_cannot_be_set_is_never_suggested(fresh, values, message):
    for action in fresh.ask(6):
        fresh.tell(action, system(action))
    fresh.search.values = values
    with pytest.raises(ValueError, match=message):
        fresh.ask()
    assert fresh.pending == []
    fresh.search = lambda objective: Decision(None, 0.0, reason=Finding("no_gain", "nothing to gain"))
    with pytest.raises(ValueError, match="nothing to gain"):
        fresh.ask()


def test_a_recommendation_is_a_number(fresh):
    for action in fresh.ask(6):
        fresh.tell(action, {"X": action["a"], "Y": action["b"]})
    action, expected = fresh.recommend()
    assert set(action) == {"a", "b"}
    assert math.isfinite(expected)
    nothing = WrittenLaw(lambda inputs: inputs.sum(-1) * math.nan, lambda inputs: inputs.sum(-1))
    fresh.surrogate = lambda task: WrittenModel(task, {"X": nothing, "Y": nothing})
    with pytest.raises(ValueError, match="expected a finite value for at least one of"):
        fresh.recommend()


def test_an_expected_reward_that_is_no_number_is_not_recommended(fresh, monkeypatch):
    for action in fresh.ask(6):
        fresh.tell(action, {"X": action["a"], "Y": action["b"]})

    def infinite(objective, seed):
        return replace(recommend(objective, seed), predicted=math.inf)

    monkeypatch.setattr("rehearsal_torch.api.optimiser.recommend", infinite)
    with pytest.raises(ValueError, match="nothing is recommended: its expected reward is inf"):
        fresh.recommend()


RUN, SEEN = {"a": 0.5, "b": 0.5}, {"X": 0.0, "Y": 0.0}


@pytest.mark.parametrize(
    ("action", "nodes", "rest", "said"),
    [
        ({"a": 1.5, "b": 0.5}, SEEN, {}, "a may be set within [0, 1]; got 1.5"),
        (RUN, {"X": True, "Y": None}, {}, "number; got True\n- Y: expected a finite number; got None"),
        (RUN, {"X": 0.0, "y": 0.0}, {}, "Y: no value for this node; did you mean 'y'?"),
        ([0.5, 0.5], SEEN, {}, "expected a trial's number, a trial, or settings (name to value); got list"),
        (True, SEEN, {}, "got bool True"),
        (RUN, [0.0, 1.0], {}, "nodes: expected name to value, such as {'X': ..., 'Y': ...}; got list"),
        (RUN, SEEN, {"altered": "X"}, "altered: expected names of nodes, such as ['X']; got 'X'"),
        (RUN, SEEN, {"altered": torch.tensor(0.5)}, "altered: expected names of nodes"),
        (RUN, SEEN, {"ran": {"a": 1}}, "b: no value for this action"),
        (9, SEEN, {}, "no trial has the number 9; there are trials 1 to 2"),
        (None, SEEN, {}, "got None without ran="),
    ],
)
def test_every_fault_of_a_report_is_named_and_changes_nothing(fresh, action, nodes, rest, said):
    fresh.ask(2)
    before = fresh.trials
    with pytest.raises(TrialError) as caught:
        fresh.tell(action, nodes, **rest)
    assert said in str(caught.value)
    assert fresh.trials == before


@pytest.mark.parametrize("count", [0, 1001, True, 2.5, None])
def test_a_count_is_a_whole_number(fresh, count):
    with pytest.raises(ValueError, match=r"count: expected (at (least|most) .* actions?|a whole number)"):
        fresh.ask(count)


def test_what_was_not_measured_beside_the_reward_is_none_or_nan(fresh):
    first, second = fresh.ask(2)
    assert fresh.tell(first, {"X": None, "Y": 1.0}).nodes == {"Y": 1.0}
    fresh.observe(second, {"X": 0.2})
    assert fresh.tell(second, pd.Series({"X": math.nan, "Y": 0.5})).nodes == {"X": 0.2, "Y": 0.5}
    assert fresh.table.columns(["X"]).isnan().tolist() == [[True], [False]]
    for nodes in ({"Y": 1.0}, {"X": 0.2, "Y": None}):
        with pytest.raises(TrialError):
            fresh.tell(first, nodes)


def test_a_report_can_be_corrected(fresh):
    actions = fresh.ask(3)
    for action in reversed(actions):
        fresh.tell(action, system(action))
    in_order = [
        list(row)
        for row in zip(*(fresh.table.columns([name])[:, 0].tolist() for name in ("a", "b")), strict=True)
    ]
    assert in_order == [list(action.values()) for action in actions]
    fresh.tell(2, {"X": 9.0, "Y": -9.0}, altered=["X"])
    assert fresh.table.values[1, 2:].tolist() == [9.0, -9.0]
    assert fresh.table.altered[1].tolist() == [True, True, True, False]
    assert fresh.tell(fresh.trials[1], {"X": 8.0, "Y": -9.0}).altered == ()
    # Settings that were told are run once more, not corrected.
    assert fresh.tell(actions[0], {"X": 1.0, "Y": 1.0}).id == 4
    fresh.fail(2, "the sensor was broken")
    assert fresh.abandon(4, "a mistake") == fresh.trials[3]
    assert len(fresh.table) == 2
    assert [trial.state for trial in fresh.trials] == ["completed", "failed", "completed", "abandoned"]
    fresh.tell(4, {"X": 1.0, "Y": 1.0})
    assert fresh.trials[3].reason == ""


@pytest.mark.parametrize("rows", [0, 5])
def test_a_table_of_any_length_is_taken_up(tmp_path, fresh, rows):
    for _ in range(rows):
        (action,) = fresh.ask()
        fresh.tell(action, system(action))
    fresh.write(tmp_path / "past.csv.gz")
    lines = gzip.decompress((tmp_path / "past.csv.gz").read_bytes()).decode().splitlines()
    assert lines[0] == "a,b,X,Y"
    assert len(lines) == 1 + rows
    assert (tmp_path / "past.csv.gz").read_bytes()[4:8] == bytes(4), "the same bytes at any time"
    other = CausalOptimiser(TASK, surrogate=Written, objective=PosteriorMean, search=Stubborn())
    other.read(tmp_path / "past.csv.gz")
    assert torch.equal(other.table.values, fresh.table.values)
    assert other.ask(3) == fresh.ask(3)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 7])
def test_a_file_of_trials_goes_on_at_any_length(tmp_path, rows):
    with_file = optimiser(file=tmp_path / "trials.json")
    without = optimiser()
    for made in (with_file, without):
        for number in range(rows):
            (action,) = made.ask()
            if number == 2:
                made.fail(action, "spilt")
            else:
                made.tell(action, system(action))
        made.ask(2)
    loaded = CausalOptimiser.load(tmp_path / "trials.json", surrogate=PLAIN, search=QUICK)
    assert loaded.trials == with_file.trials == without.trials
    assert loaded.ask(2) == without.ask(2)
    without.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "trials.json").read_bytes()


@pytest.mark.slow
def test_narrower_bounds_keep_the_history(tmp_path):
    wide = optimiser(
        {**TASK, "limits": {"normals": [[1.0, 1.0]], "offsets": [2.9]}}, file=tmp_path / "trials.json"
    )
    for action in wide.ask(8):
        wide.tell(action, system(action))
    wide.ask(2)
    task = {
        **TASK,
        "actions": {"a": [0, 0.5], "b": [0, 1]},
        "limits": {"normals": [[1.0, 1.0]], "offsets": [0.9]},
    }
    made = CausalOptimiser.load(tmp_path / "trials.json", task, PLAIN, search=QUICK)
    assert len(made.table) == 8
    for action in (*made.ask(2), made.recommend()[0]):
        made.task.check_action(torch.tensor(list(action.values()), dtype=torch.float64))
    # What was asked under the wide bounds, and run as it was asked, needs no further word.
    before = made.pending[0]
    assert made.tell(dict(before), system(before)).id == before.trial
    with pytest.raises(TrialFileError, match="another process changed the task"):
        wide.ask()


def test_a_file_and_what_is_given_agree(tmp_path):
    file = tmp_path / "trials.json"
    CausalOptimiser(TASK, seed=3, file=file).ask()
    assert CausalOptimiser(file=file).seed == 3
    other = {"actions": {"a": [0, 1], "c": [0, 2]}, "graph": {"parents": {"X": ["a"], "Y": ["X", "c"]}}}
    for wrong, message in (
        ({"seed": 4}, "was started with seed=3; got seed=4"),
        ({"initial": 7}, "was started with initial=6; got initial=7"),
        ({"task": {**TASK, **other}}, "c: no value of this action in trial 1"),
    ):
        with pytest.raises(TrialFileError, match=message):
            CausalOptimiser(file=file, **wrong)
    assert json.loads(file.read_text())["seed"] == 3


def test_a_table_read_again_adds_nothing_and_says_so(tmp_path):
    made = CausalOptimiser(TASK, file=tmp_path / "s.json")
    for action in made.ask(6):
        made.tell(action, system(action))
    made.write(tmp_path / "exp.csv")
    for _ in range(2):
        again = CausalOptimiser.load(tmp_path / "s.json")
        with pytest.warns(TrialWarning, match="6 of 6 rows equal trials that are recorded already"):
            again.read(tmp_path / "exp.csv")
        assert len(again.table) == 6


def test_what_is_warned_of_points_to_the_line_that_asked_and_names_three_rows(fresh):
    frame = pd.DataFrame({"a": [0.5, 1.5, 1.6, 1.7, 1.8], "b": 0.5, "X": 0.0, "Y": 1.0})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh.read(frame.iloc[:4])
        fresh.read(frame)
        fresh.ask()
        near = {name: value + 1e-3 for name, value in fresh.pending[0].items()}
        fresh.tell(near, {"X": 0.0, "Y": 1.0})
    three, again, four, beside = caught
    assert {(each.category, each.filename) for each in caught} == {(TrialWarning, __file__)}
    assert "row 3: a may be set within [0, 1]; got 1.7: " in str(three.message)
    assert "more)" not in str(three.message)
    assert "4 of 5 rows equal trials that are recorded already" in str(again.message)
    assert "(and 1 more): kept as observations" in str(four.message)
    assert "got 1.8" not in str(four.message)
    assert "is close to it and stays pending" in str(beside.message)


def test_experiments_come_from_a_frame_and_leave_in_one():
    made = told(CausalOptimiser(TASK), 6)
    frame = made.to_frame()
    assert list(frame.columns) == [*made.task.actions, *made.task.nodes]
    for form in (frame, made.to_frame("polars"), made.to_frame("pyarrow")):
        again = CausalOptimiser(TASK)
        again.read(form)
        assert torch.equal(again.table.values, made.table.values)
        assert torch.equal(again.table.altered, made.table.altered)
    with pytest.warns(TrialWarning, match="the data frame: 6 of 6 rows equal trials that are recorded"):
        again.read(frame)
    with pytest.raises(TableError, match=r"the data frame: (?s:.*)missing or infinite in line 2"):
        again.read(frame.assign(a=None))


def test_rows_without_a_result_are_pending_trials_until_they_are_filled_in(tmp_path):
    """They were faults."""
    made = told(optimiser(file=tmp_path / "s.json"), 6)
    frame = made.to_frame()
    blank = pd.DataFrame({"a": [0.25, 0.75], "b": [1.0, 0.5], "X": [0.0625, None], "Y": [None, None]})
    both = pd.concat([frame, blank.astype(float)], ignore_index=True)
    for _ in range(2):
        with pytest.warns(TrialWarning, match="6 of 6 rows equal trials that are recorded already"):
            made.read(both)
        assert made.pending == [{"a": 0.25, "b": 1.0}, {"a": 0.75, "b": 0.5}]
    assert len(made.table) == 6
    (action,) = made.ask()
    assert action not in ({"a": 0.25, "b": 1.0}, {"a": 0.75, "b": 0.5})
    both.loc[6, "Y"] = 0.9
    with pytest.warns(TrialWarning, match="6 of 7 rows"):
        made.read(both)
    assert len(made.table) == 7
    assert [each.trial for each in made.pending] == [8, 9]
    (tmp_path / "problem.yaml").write_text(
        "question: trials\ndata: t.csv\nvariables:\n  a: {role: action, range: [0, 1]}\n"
        "  b: {role: action, range: [0, 2]}\n  X: other\n  Y: outcome\ngraph: [a -> X, '{X b} -> Y']\n"
    )
    both.to_csv(tmp_path / "t.csv", index=False)
    for _ in range(2):
        again = CausalOptimiser(tmp_path / "problem.yaml", file=tmp_path / "p.json")
        assert len(again.table) == 7
        assert again.pending == [{"a": 0.75, "b": 0.5}]


MIXED = {**TASK, "actions": {"a": {"values": [0, 0.2, 0.6, 1]}, "b": [0, 2]}}


@pytest.mark.slow
def test_levels_are_asked_recommended_and_learnt_from_in_any_case(tmp_path):
    file = tmp_path / "trials.json"
    made = optimiser(MIXED, file=file)
    # An experiment at none of the levels is history.
    with pytest.warns(
        TrialWarning, match=r"a may be set to 0, 0\.2, 0\.6, 1; got 0\.5.*kept as an observation"
    ):
        made.tell(None, system({"a": 0.5, "b": 1.0}), ran={"a": 0.5, "b": 1.0})
    with pytest.raises(TrialError, match=r"a may be set to 0, 0\.2, 0\.6, 1; got 0\.5: take one of these"):
        made.tell({"a": 0.5, "b": 1.1}, system({"a": 0.5, "b": 1.1}))
    told(made, 6)
    recommended = made.recommend()
    made.ask(2)
    made.fail(made.ask()[0], "broke")
    assert made.recommend() == recommended, "nothing was measured"
    # The same trials, read back: the same next actions and the same recommendation.
    made.save(tmp_path / "copy.json")
    again = CausalOptimiser.load(tmp_path / "copy.json", surrogate=PLAIN, search=QUICK)
    assert again.task.box.levels == {"a": (0.0, 0.2, 0.6, 1.0)}
    assert again.recommend() == recommended
    assert again.ask(2) == made.ask(2)
    settings_ = [trial.asked for trial in made.trials if trial.asked is not None]
    assert {each["a"] for each in settings_} <= {0.0, 0.2, 0.6, 1.0}
    assert len({tuple(each.values()) for each in settings_}) == len(settings_)
    assert made.recommend().action["a"] in (0.0, 0.2, 0.6, 1.0)


def test_a_task_of_levels_alone_is_asked_to_its_end():
    made = optimiser({**TASK, "actions": {"a": {"values": [0, 1]}, "b": {"values": [0, 1.2, 2]}}})
    asked = made.ask(6)
    assert {tuple(each.values()) for each in asked} == set(itertools.product((0.0, 1.0), (0.0, 1.2, 2.0)))
    with pytest.raises(ValueError, match="nothing is left to try"):
        made.ask()
    for each in asked:
        made.tell(each, system(each))
    assert made.recommend().action == {"a": 0.0, "b": 1.2}
    made.tell(made.ask()[0], system(made.pending[0]))
    assert len(made.table) == 7


@pytest.mark.slow
def test_fixed_actions_keep_their_value_and_the_others_are_the_best_with_it():
    made = optimiser(objective=partial(ConfidenceBound, beta=1.0))
    begun = made.ask(2, fixed={"b": 0.3})
    assert [each["b"] for each in begun] == [0.3, 0.3]
    assert begun[0]["a"] != begun[1]["a"]
    for each in begun:
        made.tell(each, system(each))
    told(made, 10)
    case = RehearsalCase("12", {}, made.task.box.bounds())
    believed = PosteriorMean(made.model().surrogate, case)
    grid = torch.linspace(0, 1, 401, dtype=torch.float64)
    for name, value in (("a", 0.9), ("b", 0.5)):
        fixed = made.recommend(fixed={name: value})
        assert fixed.action[name] == value
        at, points = (
            torch.tensor([list(fixed.action.values())]).double(),
            torch.full((401, 2), value).double(),
        )
        points[:, 1 if name == "a" else 0] = grid * (2 if name == "a" else 1)
        with torch.no_grad():
            assert float(believed(at)) >= float(believed(points).max()) - 1e-3
            assert fixed.predicted == pytest.approx(float(believed.expected(at)), abs=1e-2)
    assert made.recommend(fixed={"a": 0.9, "b": 0.1}).action == {"a": 0.9, "b": 0.1}
    searched = made.ask(2, fixed={"b": 0.5})
    assert [each["b"] for each in searched] == [0.5, 0.5]
    assert searched[0]["a"] != searched[1]["a"]
    # Nothing is kept of it.
    assert made.ask()[0]["b"] != 0.5


def test_of_the_runners_up_only_those_with_the_fixed_values_count():
    made = told(optimiser(), 8)
    for a in (0.4, 0.9):
        made.tell(None, system({"a": a, "b": 0.5}), ran={"a": a, "b": 0.5})
    assert made.recommend(fixed={"b": 0.5}).runner_up in ({"a": 0.4, "b": 0.5}, {"a": 0.9, "b": 0.5})
    assert made.recommend(fixed={"b": 0.25}).runner_up is None


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"c": 1.0}, "fixed: c: the task has no such action; there are"),
        ({"b": 2.5}, r"fixed: b may be set within \[0, 2\]; got 2.5"),
        ({"a": 0.5}, r"fixed: a may be set to 0, 0\.2, 0\.6, 1; got 0\.5"),
        ({"b": float("nan")}, "fixed: b: expected a finite number; got nan"),
        ("b=1", "fixed: actions: expected name to value"),
    ],
)
def test_what_cannot_be_fixed_is_refused_and_nothing_is_asked(fixed, message):
    made = optimiser(MIXED)
    for call in (lambda: made.ask(fixed=fixed), lambda: made.recommend(fixed=fixed)):
        with pytest.raises(ValueError, match=message):
            call()
    assert made.trials == ()


def test_the_parts_of_the_default_are_the_classes_with_their_own_defaults():
    model, objective, search = trial_method(METHOD)
    assert (model.func, objective.func) == (ExogenousModel, MonteCarlo)
    for factory in (model, objective):
        defaults = {name: each.default for name, each in inspect.signature(factory.func).parameters.items()}
        assert factory.keywords
        assert {name: defaults[name] for name in factory.keywords} == factory.keywords
    assert [search(seed).seed for seed in (0, 3)] == [0, 3]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ucb", "eifn", "qlognei", "sobol_actions"])
def test_another_method_is_chosen_by_name(method, tmp_path):
    file = tmp_path / "trials.json"
    made = told(rt.CausalOptimiser(TASK, initial=6, seed=2, method=method, file=file), 6)
    model, objective, search = trial_method(method)
    parts = rt.CausalOptimiser.load(file, None, model, objective, search(2))
    assert rt.CausalOptimiser.load(file, method=method).surrogate.keywords == made.surrogate.keywords
    again = parts.ask()
    parts.forget()
    assert made.ask() == again
    assert set(made.recommend()[0]) == {"a", "b"}


def test_the_task_may_be_a_file(tmp_path):
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK), encoding="utf-8")
    assert rt.CausalOptimiser(tmp_path / "task.yaml").ask(3) == rt.CausalOptimiser(TASK).ask(3)


def test_parts_that_are_given_win():
    search = AcquisitionSearch(screened=64, starts=4, steps=20)
    made = rt.CausalOptimiser(TASK, surrogate=ExogenousModel, search=search, method="ucb")
    assert made.surrogate is ExogenousModel
    assert made.search is search
    assert made.objective.keywords["function"] == "qucb"


def test_a_method_of_another_job_begins_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"'cme' decides for cases of a table .* choose one of excbo, "):
        rt.CausalOptimiser(TASK, method="cme", file=tmp_path / "trials.json")
    assert not list(tmp_path.iterdir())
