"""Claims about trials: what is recorded of networks and campaigns, and what the command does with seeds."""

import math
from types import SimpleNamespace

import pytest
import torch
from scipy.stats import norm

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.trial import Recommended
from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.problems.trials.random_network import DrawnNetwork
from reproduction.calibration import network_claims
from reproduction.calibration.jobs import layouts
from reproduction.calibration.network_claims import COLUMNS, WORLDS, campaign_row, main, network_rows, typed
from reproduction.calibration.network_tables import EQUAL, FEW, NETWORK, ONE, REPORT
from reproduction.plan import Job, jobs, study
from reproduction.run import defaults


class Learner:
    """An optimiser that keeps what it is told, asks for the upper corner and recommends what was best."""

    def __init__(self, task, seed, initial, further=None):
        self.task, self.told, self.further = (
            CausalTask.of(task) if isinstance(task, dict) else task,
            [],
            further,
        )
        self.given = (seed, initial)

    def tell(self, action, nodes, ran=None):
        self.told.append((dict(action or ran), nodes))

    def ask(self):
        return [dict(zip(self.task.actions, self.task.box.upper.tolist(), strict=True))]

    def recommend(self):
        means = {}
        for action, nodes in self.told:
            means.setdefault(tuple(action.items()), []).append(nodes["Y"])
        means = sorted(means, key=lambda key: -sum(means[key]) / len(means[key]))
        first, second = (dict(each) for each in means[:2])
        beside = {"runner_up": second, "runner_up_predicted": 0.9, "chance": 0.7}
        found = Recommended(first, 1.0, 0.5, **beside, tried=True)
        if self.further:
            found.__dict__.update(self.further)
        return found


def kept(learners, **further):
    def make(task, seed, initial):
        learners.append(Learner(task, seed, initial, further))
        return learners[-1]

    return make


def test_a_network_is_told_its_start_design_and_every_round_and_compared_with_the_truth(monkeypatch):
    monkeypatch.setattr(network_claims, "LOOKED", (0, 2))
    learners = []
    rows, world = network_rows(4, 3, kept(learners)), DrawnNetwork(seed=4)
    (learner,) = learners
    assert learner.given == (4, world.initial)
    assert [row["round"] for row in rows] == [0, 2, 3]
    told = torch.tensor([list(action.values()) for action, _ in learner.told], dtype=torch.float64)
    design = world.observations()
    assert len(told) == len(design) + 3
    torch.testing.assert_close(told[: len(design)], design.columns(world.task.actions))
    assert [nodes["Y"] for _, nodes in learner.told[: len(design)]] == design.columns(["Y"])[:, 0].tolist()
    # The upper corner three times, with another noise each time.
    assert len({nodes["Y"] for _, nodes in learner.told[-3:]}) == 3
    true = world.expected(told)
    for row, count in zip(rows, (len(design), len(design) + 2, len(design) + 3), strict=True):
        assert row["tried"] == pytest.approx(float(true[:count].max()))
        assert float(row["true"]) in true[:count].tolist()
        assert (row["low"], row["high"]) == pytest.approx(
            (1 - 0.5 * norm.ppf(0.975), 1 + 0.5 * norm.ppf(0.975))
        )
        assert row["held"] == (row["low"] <= row["true"] <= row["high"])
        assert (row["optimum"], row["reach"]) == (world.optimal_value, world.reach)
        assert row["silent"] == 1.0
    assert math.isnan(rows[0]["seconds"])
    assert rows[1]["seconds"] >= 0


@pytest.mark.parametrize(("contradicted", "silent"), [((), 1.0), (("Y",), 0.0)])
def test_intervals_and_residuals_are_those_that_the_recommendation_has(contradicted, silent):
    row = network_rows(1, 1, kept([], std=1e9, contradicted=contradicted))[0]
    assert (row["high"] - row["low"], row["held"], row["silent"]) == (
        pytest.approx(2e9 * norm.ppf(0.975)),
        1.0,
        silent,
    )


def test_the_chance_of_two_means_has_the_closed_form():
    learners, better = [], []
    rows = [campaign_row(FEW, 3, place, kept(learners)) for place in range(20)]
    for row, learner in zip(rows, learners, strict=True):
        found = learner.recommend()
        first, second = (
            torch.tensor(
                [nodes["Y"] for action, nodes in learner.told if action == each], dtype=torch.float64
            )
            for each in (found.action, found.runner_up)
        )
        assert min(len(first), len(second)) >= 3
        assert max(len(first), len(second)) <= 10
        z = norm.ppf(row["exact"])
        # The difference of the means over z is s sqrt(1 / m_1 + 1 / m_2), here with s as it is estimated.
        spread = math.sqrt(float(first.var() * (len(first) - 1) + second.var() * (len(second) - 1)))
        spread /= math.sqrt(len(first) + len(second) - 2)
        pooled = float(first.mean() - second.mean()) / spread / math.sqrt(1 / len(first) + 1 / len(second))
        assert 0.4 < pooled / z < 2.5
        better.append(row["better"])
    assert set(better) == {0.0, 1.0}
    assert sum(better) > 10


def test_of_equal_settings_none_is_better_and_a_dial_has_no_closed_form():
    for place in range(5):
        equal, dial = (campaign_row(kind, 2, place, kept([])) for kind in (EQUAL, ONE))
        assert equal["true"] == 0.0
        assert equal["exact"] >= 0.5
        assert math.isnan(equal["better"])
        assert dial["better"] in (0.0, 1.0)
        assert math.isnan(dial["exact"])


def test_the_command_keeps_rows_and_does_not_run_what_is_finished(tmp_path, capsys):
    out = tmp_path / "rows.csv"
    words = ["--seeds", "1", "2", "--rounds", "1", "--worlds", NETWORK, FEW, "--out", str(out)]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "| networks | 1 | 1 | 1 |" in told.out
    assert "2/2" in told.err
    rows = typed(read_rows(out, COLUMNS))
    assert [(row["dataset"], row["round"]) for row in rows] == [(NETWORK, 0), (NETWORK, 1)] + [(FEW, 0)] * 5
    assert rows[0]["low"] < rows[0]["claimed"] < rows[0]["high"]
    assert rows[0]["true"] <= rows[0]["optimum"]
    assert main(words) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (told.out, "")
    # Other rounds are other jobs.
    assert main([*words[:3], "--rounds", "2", *words[5:]]) == 0
    assert "2/2" in capsys.readouterr().err


def test_the_command_refuses_seeds_that_are_for_reporting(tmp_path, capsys):
    assert main(["--seeds", "999", "1001", "--out", str(tmp_path / "rows.csv")]) == 2
    assert "for reporting alone" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_first_networks_of_a_report_go_on_twice_as_long(monkeypatch):
    rounds = {}
    monkeypatch.setattr(
        network_claims, "network_rows", lambda seed, count, make: rounds.update({seed: count}) or []
    )
    for seed in (0, 40, 1000, 1019, 1020, 1059, 1060, 1079, 1080):
        network_claims.rows_of({"rounds": 50, "overrides": []}, Job("trials", NETWORK, "", "excbo", seed))
    assert rounds == {0: 50, 40: 50, 1000: 100, 1019: 100, 1020: 50, 1059: 50, 1060: 100, 1079: 100, 1080: 50}
    with pytest.raises(ValueError, match="no overrides of trials"):
        network_claims.rows_of({"overrides": ["a=1"]}, SimpleNamespace())


def test_two_reports_of_sixty_networks_are_planned():
    planned = jobs(study("calibration"), network_claims.TRIALS)
    assert sorted({job.seed for job in planned}) == [*range(1000, 1000 + 2 * REPORT)]
    assert {job.world for job in planned} == set(WORLDS)
    assert layouts(defaults("calibration"))[network_claims.TRIALS].columns == COLUMNS
