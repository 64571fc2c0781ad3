"""What the check of trials says of the experiments, the variables and its doubts."""

from rehearsal_torch.problems.written.trials_check import counted, variable_rows, warned
from rehearsal_torch.problems.written.trials_file import OwnTrials
from tests.problems.written.conftest import TRIALS, experiments


def test_the_best_experiment_so_far_is_named(trials):
    table = experiments()
    reward = table["yield"] - 0.2 * table["waste"]
    best = table.loc[reward.idxmax()]
    assert counted(OwnTrials(trials())) == (
        f"8 experiments of experiments.csv; the best reward so far is {reward.max():.6g}, at valve "
        f"{best.valve:.6g}, dose {best.dose:g}"
    )
    assert counted(OwnTrials(trials(data=None))) == "0 experiments of problem.yaml (no data yet)"


def test_every_variable_has_a_row_with_what_may_be_set(trials):
    _, *rows = variable_rows(OwnTrials(trials()))
    found = {row[0]: row[1:] for row in rows}
    assert found["valve"][-1] == "0 to 1"
    assert found["dose"] == ("action", "ml", "0", "5", "0, 1, 2, 5")
    assert found["temperature"][:2] == ("other", "degrees")


def test_doubts_have_their_line(trials, tmp_path):
    assert warned(OwnTrials(trials(limits=None))) == []
    (beyond,) = warned(OwnTrials(trials()))
    assert beyond.startswith("line 2, data: experiments.csv, line 2: [0.51")
    assert "violates the limits" in beyond
    (few,) = warned(OwnTrials(trials(data=None)))
    assert "fewer than 5 experiments" in few
    table = experiments()
    table["dose"] = 2.0
    table.loc[0, "valve"] = 1.5
    table.to_csv(tmp_path / "experiments.csv", index=False)
    about = {**TRIALS["variables"], "smell": "other"}
    graph = [*TRIALS["graph"], "temperature -> smell"]
    table.assign(smell=1.0).to_csv(tmp_path / "experiments.csv", index=False)
    told = warned(OwnTrials(trials(variables=about, graph=graph)))
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
    assert counted(problem).startswith("6 experiments of experiments.csv; ")
    assert "2 rows without a value of yield and waste wait" in problem.facts().notes[-1]
    (outside,) = warned(problem)
    assert "experiments.csv, line 5: valve may be set within [0, 1]; got 1.5" in outside
