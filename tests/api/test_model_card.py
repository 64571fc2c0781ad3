import yaml

from rehearsal_torch.api.rehearsal_model import LIMITS, UNMEASURED, model_card
from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.reporting.no_action_score import UntouchedScore
from tests.api.test_rehearse import TASK
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture


def test_it_says_data_task_use_and_limits(frame):  # noqa: F811
    problem = RehearsalTable(frame, TASK, frame)
    card = model_card(problem, "care", 3, {"objective.level": 0.9})
    assert yaml.safe_load(yaml.safe_dump(card)) == card
    assert (card["method"], card["seed"], card["settings"]) == ("care", 3, {"objective.level": 0.9})
    assert card["data_fingerprint"] == problem.observations().fingerprint()
    assert card["data"]["ranges"]["X1"] == [frame["X1"].min(), frame["X1"].max()]
    assert card["data"]["context"] == ["X1", "X2"]
    assert card["limits"] == list(LIMITS)
    assert card["held_out"] == UNMEASURED
    assert card["commit"] == commit()
    assert set(card["versions"]) == {"python", "rehearsal-torch", "torch", "numpy"}


def test_a_measured_score_is_on_it(frame):  # noqa: F811
    score = UntouchedScore(20, *(Interval(mean, mean, mean, 20) for mean in (0.2, 0.25, 0.05)))
    held_out = model_card(RehearsalTable(frame, TASK, frame), "care", 0, {}, score)["held_out"]
    assert held_out["brier"] == {"rows": 20, "own": 0.2, "constant": 0.25}
    assert held_out["in words"] == score.line()
