"""Problem files that ask for trials: the task they stand for, and their faults, each with its line."""

import pytest

from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from rehearsal_torch.problems.trials.trials_file import OwnTrials, trials_problem
from rehearsal_torch.problems.trials.user_experiments import causal_task
from tests.problems.conftest import TRIALS, changed, experiments

TASK = {
    "graph": {
        "parents": {
            "temperature": ["valve", "ambient"],
            "yield": ["temperature", "dose"],
            "waste": ["temperature", "dose"],
        }
    },
    "actions": {"valve": [0, 1], "dose": {"values": [0, 1, 2, 5]}},
    "reward": {"weights": {"yield": 1, "waste": -0.2}},
    "limits": {"normals": [[2, 1]], "offsets": [6]},
}


def test_it_stands_for_the_task_of_the_same_parts(trials):
    found, task = trials_problem(trials()), causal_task(TASK)
    plain, expected = found.task.to_plain(), task.to_plain()
    assert {part: plain[part] for part in ("actions", "reward", "limits")} == {
        part: expected[part] for part in ("actions", "reward", "limits")
    }
    assert set(found.task.graph.edges) == set(task.graph.edges)
    assert set(found.task.nodes) == set(task.nodes)
    assert len(found.rows.frame) == 8
    assert (found.fixed, found.method, found.tolerance) == ({}, None, None)
    assert trials_problem(trials(tolerance={"dose": 0.5})).tolerance == {"dose": 0.5}


def test_without_data_there_are_no_experiments_and_a_note_says_what_to_do(trials):
    found = trials_problem(trials(data=None))
    assert found.rows.frame.empty
    assert "add the line data: experiments.csv" in found.rows.notes[0]


def test_the_best_experiment_so_far_is_named(trials):
    table = experiments()
    reward = table["yield"] - 0.2 * table["waste"]
    best = table.loc[reward.idxmax()]
    assert OwnTrials(trials()).counted() == (
        f"8 experiments of experiments.csv; the best reward so far is {reward.max():.6g}, at valve "
        f"{best.valve:.6g}, dose {best.dose:g}"
    )
    assert OwnTrials(trials(data=None)).counted() == "0 experiments of problem.yaml (no data yet)"


def test_every_variable_has_a_row_with_what_may_be_set(trials):
    _, *rows = OwnTrials(trials()).variable_rows()
    found = {row[0]: row[1:] for row in rows}
    assert found["valve"][-1] == "0 to 1"
    assert found["dose"] == ("action", "ml", "0", "5", "0, 1, 2, 5")
    assert found["temperature"][:2] == ("other", "degrees")


def test_doubts_have_their_line(trials, tmp_path):
    assert OwnTrials(trials(limits=None)).found.warnings == []
    (beyond,) = OwnTrials(trials()).found.warnings
    assert beyond.startswith("line 2, data: experiments.csv, line 2: [0.51")
    assert "violates the limits" in beyond
    (few,) = OwnTrials(trials(data=None)).found.warnings
    assert "a model needs 5 completed experiments, and there are 0" in few
    table = experiments()
    table["dose"] = 2.0
    table.loc[0, "valve"] = 1.5
    table.to_csv(tmp_path / "experiments.csv", index=False)
    about = {**TRIALS["variables"], "smell": "other"}
    graph = [*TRIALS["graph"], "temperature -> smell"]
    table.assign(smell=1.0).to_csv(tmp_path / "experiments.csv", index=False)
    told = OwnTrials(trials(variables=about, graph=graph)).found.warnings
    assert any("experiments.csv, line 2: valve may be set within [0, 1]; got 1.5" in each for each in told)
    assert any("variables.dose: it was 2 in all experiments" in each for each in told)
    assert any("variables.smell: no directed path leads from this other" in each for each in told)
    assert all(each.startswith("line ") for each in told)


def test_rows_that_wait_are_told_of_and_the_lines_of_the_others_stay(trials, tmp_path):
    file = trials(limits=None)
    table = experiments()
    table.loc[3, "valve"] = 1.5
    measured = ["ambient", "temperature", "waste", "yield"]
    table.loc[[1, 2], measured] = None
    table.to_csv(tmp_path / "experiments.csv", index=False)
    problem = OwnTrials(file)
    assert problem.counted().startswith("6 experiments of experiments.csv, 2 running; ")
    assert "2 rows without a value of yield or waste wait" in problem.facts().notes[-1]
    (outside,) = problem.found.warnings
    assert "experiments.csv, line 5: valve may be set within [0, 1]; got 1.5" in outside


def test_the_next_experiment_has_the_context_of_the_file_and_a_design_needs_none(trials, tmp_path):
    ambient = changed(TRIALS, "ambient", role="context")
    with pytest.raises(ProblemError, match=r"context: expected the values .* \{ambient: \.\.\.\}; got none"):
        OwnTrials(trials(**ambient))
    path = trials(**ambient, context={"ambient": 17.5})
    problem = OwnTrials(path)
    assert (problem.task.context, float(problem.case(0).given["ambient"])) == (("ambient",), 17.5)
    assert float(OwnTrials(path, context={"ambient": 3}).case(0).given["ambient"]) == 3
    proposed = problem.with_proposals([{"valve": 0.5, "dose": 2.0, "ambient": 17.5}])
    (tmp_path / "experiments.csv").write_text(proposed)
    waiting = OwnTrials(path).facts().waiting
    assert waiting.settings("pending").tolist() == [[0.5, 2.0, 17.5]]
    for more, names in (({}, ("valve", "dose")), ({"context": {"ambient": 3}}, ("valve", "dose", "ambient"))):
        assert OwnTrials(trials(**ambient, data=None, **more)).to_begin().names == names


def test_what_begins_with_a_name_in_quotes_is_advised_to_be_quoted_as_a_whole(trials):
    file = trials(reward="yield")
    text, reward = file.read_text(encoding="utf-8"), '"the yield" - 0.2*waste'
    for value in (reward, reward.replace('"', "`"), reward.replace('"', "")):
        file.write_text(text.replace("reward: yield", f"reward: {value}"), encoding="utf-8")
        with pytest.raises(ProblemError) as caught:
            trials_problem(file)
        advised = reward if value[0] == "t" else value
        assert f"'{advised}'" in str(caught.value)
