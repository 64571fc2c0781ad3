"""A campaign by commands: what is proposed, reported, corrected, recommended and kept."""

import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from rehearsal_torch.api.campaign import open_campaign
from rehearsal_torch.console_command import main
from tests.problems.conftest import TRIALS, experiments, trials  # noqa: F401
from tests.scripts.typing_in import surroundings

FILE, LIST = "problem.yaml", "problem.next.csv"


@pytest.fixture
def campaign(trials, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    experiments().to_csv("experiments.csv", index=False)
    return trials


def states():
    return {trial.id: trial.state for trial in open_campaign(FILE).trials[8:]}


def filled(rows):
    table = pd.read_csv(LIST, dtype=str)
    for row, values in rows.items():
        for name, value in values.items():
            table.loc[row, name] = value
    table.to_csv(LIST, index=False)


RESULT = {"ambient": "16", "temperature": "33", "waste": "0.4", "yield": "4.5"}


def test_a_list_is_filled_in_told_and_goes_on(campaign, capsys):
    campaign()
    assert main(["suggest", FILE, "count=3", "fixed.dose=2"]) == 0
    out = capsys.readouterr().out
    assert "dose (ml)" in out
    assert f" {FILE} {LIST}\n" in out
    assert pd.read_csv(LIST)["trial"].tolist() == [9, 10, 11]
    assert (pd.read_csv(LIST)["dose"] == 2).all()
    # What was typed into the list survives further proposals, also with a comma for the decimals.
    filled({0: {**RESULT, "valve": "0.5"}, 1: {"state": "failed", "reason": "no steam"}, 2: {"waste": "1"}})
    text = pd.read_csv(LIST, dtype=str).to_csv(index=False, sep=";").replace(".", ",")
    Path(LIST).write_text(text, encoding="utf-8")
    assert main(["suggest", FILE]) == 0
    assert pd.read_csv(LIST, sep=";", decimal=",")["yield"].tolist()[0] == 4.5
    capsys.readouterr()
    assert main(["tell", FILE, LIST]) == 0
    out = capsys.readouterr().out
    assert (
        "Trial 9 is completed, at valve 0.5, dose 2: ambient 16, temperature 33, yield 4.5, waste 0.4." in out
    )
    assert "Trial 10 is failed (no steam)" in out
    assert "Waiting for a result: trials 11 and 12." in out
    assert states() == {9: "completed", 10: "failed", 11: "pending", 12: "pending"}
    assert pd.read_csv(LIST, sep=";", decimal=",")["trial"].tolist() == [11, 12]
    # What is told again adds nothing.
    assert main(["tell", FILE, "trial=9", *(f"{name}={value}" for name, value in RESULT.items())]) == 0
    assert "Nothing new is recorded." in capsys.readouterr().out


def test_what_is_typed_into_the_list_is_kept_or_said(campaign, capsys):
    campaign()
    assert main(["suggest", FILE, "count=2"]) == 0
    rows = pd.read_csv(LIST, dtype=object).rename(columns={"temperature": "Temperature"})
    rows.loc[2] = {"trial": "3", "yield": "4.25"}
    rows.loc[0, ["valve", "yield", "waste", "Temperature"]] = "47.5", "4", "1", "31"
    rows.to_csv(LIST, index=False)
    assert main(["status", FILE]) == 0
    kept = pd.read_csv(LIST)
    assert (kept["yield"].tolist()[::2], kept["Temperature"][0]) == ([4, 4.25], 31)
    assert main(["tell", FILE, LIST]) == 0
    assert "not read: Temperature; there are no values of ambient, t" in (out := capsys.readouterr().out)
    assert "trial 9: valve may be set within [0, 1]; got 47.5" in out
    assert open_campaign(FILE).trials[2].nodes["yield"] == 4.25
    assert pd.read_csv(LIST)["trial"].tolist() == [10]
    Path(LIST).write_text(Path(LIST).read_text().replace("trial", "nr"))
    assert main(["status", FILE]) == 2
    assert "expected a column trial with the numbers" in " ".join(capsys.readouterr().err.split())
    Path(LIST).write_text("")
    assert (main(["status", FILE]), pd.read_csv(LIST)["trial"].tolist()) == (0, [10])


def test_results_are_told_by_number_or_settings_corrected_and_withdrawn(campaign, capsys):
    campaign()
    assert main(["suggest", FILE, "count=2"]) == 0
    asked = open_campaign(FILE).pending[0]
    settings = [f"valve={asked['valve']:.3f}", f"dose={asked['dose']:g}"]
    assert main(["tell", FILE, *settings, "yield=4", "waste=1", "ambient=16"]) == 0
    assert "Nothing is learnt of temperature, and of what it acts on" in capsys.readouterr().out
    assert main(["tell", FILE, "trial=9", "temperature=31", "yield=3.9"]) == 0
    assert main(["tell", FILE, "trial=3", "state=abandoned", "reason=leaked"]) == 0
    # The table of the problem file holds the third experiment still, and does not bring it back.
    trial = open_campaign(FILE).trials[8]
    assert dict(trial.nodes) == {"ambient": 16, "temperature": 31, "yield": 3.9, "waste": 1}
    assert trial.ran == {"valve": float(settings[0][6:]), "dose": asked["dose"]}
    assert open_campaign(FILE).trials[2].state == "abandoned"
    assert len(open_campaign(FILE).trials) == 10


@pytest.mark.slow
def test_recommendations_are_kept_with_what_became_of_them(campaign, capsys):
    campaign()
    assert main(["recommend", FILE]) == 0
    assert "expected reward" in capsys.readouterr().out
    (past,) = open_campaign(FILE).recommendations
    assert (past.recommendation.after, past.reward) == (8, pytest.approx(past.reward))
    settings = [f"{name}={value:.4g}" for name, value in past.recommendation.action.items()]
    assert main(["tell", FILE, *settings, *(f"{name}={value}" for name, value in RESULT.items())]) == 0
    again = open_campaign(FILE).recommendations[0]
    assert again.trials[-1] == 9
    campaign(reward="3*yield - waste")
    assert "tried for another reward in trial" in str(open_campaign(FILE).recommendations[0])
    campaign()
    # A question of what would be best with a dose of 0 is no recommendation.
    assert main(["recommend", FILE, "fixed.dose=0"]) == 0
    assert len(open_campaign(FILE).recommendations) == 1
    assert main(["status", FILE]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "9 trials: 9 completed; the largest reward so far is" in out
    assert "What became of each recommendation:" in out


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["suggest", FILE, "count=0"], "count=0: expected a whole number from 1 to 1000"),
        (["suggest", FILE, "fixed.dose=3"], "dose may be set to 0, 1, 2, 5; got 3"),
        (["suggest", FILE, "fixed.dose=much"], "fixed.dose=much: expected a number"),
        (["suggest", FILE, "cuont=3"], "Did you mean count?"),
        (["suggest", "experiments.csv"], "this is a table, and a campaign has a problem file"),
        (["suggest", "no.yaml"], "no.yaml"),
        (["suggest", FILE, "second.yaml"], "expected one file; got 2"),
        (["tell", FILE], "either a table of results, or one result"),
        (["suggest", FILE, "dose=2"], "Choose from context.NAME, count, fixed.NAME, method."),
        (["tell", FILE, "trial=99", "yield=1"], "trial=99: expected the number of one of 9 trials"),
        (["tell", FILE, "trial=2", "yield=9,5"], "Write yield=9.5, with a decimal point"),
        (["tell", FILE, "trial=2", "yeild=1"], "Did you mean yield?"),
        (["tell", FILE, "trial=2", "yield=high"], "yield=high: expected a number"),
        (["tell", FILE, "valve=0.5", "yield=1"], "expected trial=NUMBER, or all settings; dose missing"),
        (["tell", FILE, "trial=2"], "expected a measurement, such as"),
        (["tell", FILE, "absent.csv"], "absent.csv"),
        (["tell", FILE, "trial=9", "state=stopped"], "stopped, and nothing was measured"),
        (["status", "trials.json"], "trials.json"),
    ],
)
def test_slips_are_one_paragraph_and_record_nothing(campaign, capsys, typed, words):
    campaign()
    open_campaign(FILE).ask()
    before = Path("problem.trials.json").read_text()
    assert main(typed) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert Path("problem.trials.json").read_text() == before


@pytest.mark.slow
def test_an_action_that_comes_later_is_proposed_and_pending_trials_go_on(campaign, capsys):
    campaign()
    assert main(["suggest", FILE]) == 0
    stirring = {"role": "action", "range": [0, 600], "before": 300}
    variables = {**TRIALS["variables"], "stirring": stirring}
    graph = [*TRIALS["graph"], "stirring -> yield"]
    campaign(variables={**variables, "stirring": stirring | {"before": None}}, graph=graph)
    assert main(["suggest", FILE]) == 2
    assert "no column 'stirring' in experiments.csv" in (error := capsys.readouterr().err)
    assert "or write what it was, before: NUMBER" in error
    campaign(variables=variables, graph=graph)
    assert main(["suggest", FILE]) == 0
    assert main(["tell", FILE, "trial=9", *(f"{name}={value}" for name, value in RESULT.items())]) == 0
    *_, told, asked = open_campaign(FILE).trials
    assert told.settings["stirring"] == 300 != asked.settings["stirring"]
    campaign(variables=variables, graph=graph, fixed={"stirring": 250})
    assert main(["suggest", FILE]) == 0
    assert open_campaign(FILE).pending[-1]["stirring"] == 250
    campaign()
    assert main(["status", FILE]) == 2
    assert "stirring: the task has no such action" in " ".join(capsys.readouterr().err.split())


def test_proposals_and_experiments_so_far_have_their_costs(campaign, capsys):
    campaign(cost=10, variables={**TRIALS["variables"], "dose": {**TRIALS["variables"]["dose"], "cost": 3}})
    open_campaign(FILE)
    assert main(["suggest", FILE, "fixed.dose=5"]) == 0
    assert "cost" in (out := capsys.readouterr().out)
    assert " 25 " in out
    campaign = open_campaign(FILE)
    assert campaign.spent == 80 + 3 * experiments()["dose"].sum()
    assert main(["status", FILE]) == 0
    words = f"The experiments so far cost {campaign.spent:g}, and what waits for a result costs 25 more."
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_killed_command_loses_no_trial(campaign):
    campaign()
    code = (
        "import os, signal\nfrom rehearsal_torch.cli.verbs import trials\n"
        "trials.write_list = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from rehearsal_torch.console_command import main\nmain(['suggest', 'problem.yaml', 'count=2'])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=surroundings(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert states() == {9: "pending", 10: "pending"}
    assert main(["status", FILE]) == 0
    assert pd.read_csv(LIST)["trial"].tolist() == [9, 10]


def test_a_running_experiment_is_told_in_parts_and_may_be_stopped(campaign, capsys):
    campaign()
    assert main(["suggest", FILE]) == 0
    assert main(["tell", FILE, "trial=9", "temperature=33", "ambient=16"]) == 0
    assert "rest=SHARE" in capsys.readouterr().out
    # Nothing new is told, but what was advised is asked.
    assert main(["tell", FILE, "trial=9", "temperature=33", "rest=0.8"]) == 0
    out = capsys.readouterr().out
    assert "trial 9 would end at" in out
    assert "Finishing it for 80 % of an experiment" in out
    assert main(["tell", FILE, "trial=9", "state=stopped", "reason=too hot"]) == 0
    assert "Trial 9 is stopped (too hot)" in capsys.readouterr().out
    assert open_campaign(FILE).trials[8].nodes == {"ambient": 16, "temperature": 33}
