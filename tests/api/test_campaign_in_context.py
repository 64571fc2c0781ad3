"""A campaign with a context and a constraint, by the list that is filled in: both meet in every step."""

import numpy as np
import pytest

from rehearsal_torch.api.campaign import list_file, open_campaign, read_list, write_list
from rehearsal_torch.console_command import main

PROBLEM = """
question: trials
variables:
  valve: {role: action, range: [0, 1]}
  ambient: context
  heat: other
  yield: outcome
graph: ["{valve ambient} -> heat", "heat -> yield"]
constraints: heat <= 0.7 with 80 %
context: {ambient: 0.2}
"""


@pytest.mark.slow
def test_what_is_listed_is_reported_recommended_and_judged_in_its_context(tmp_path, capsys):
    """Settings with a context were compared with those of the box alone."""
    (tmp_path / "problem.yaml").write_text(PROBLEM, encoding="utf-8")
    optimiser = open_campaign(tmp_path / "problem.yaml")
    optimiser.ask(8)
    write_list(optimiser, tmp_path / "problem.yaml")
    frame = read_list(tmp_path / "problem.yaml").frame
    noise = 0.02 * np.random.default_rng(0).normal(size=(2, 8))
    frame["heat"] = frame["valve"] * (1 - frame["ambient"]) + noise[0]
    frame["yield"] = 2 * frame["heat"] + noise[1]
    frame.to_csv(list_file(tmp_path / "problem.yaml"), index=False)
    assert len(optimiser.read(list_file(tmp_path / "problem.yaml"))) == 8
    best = optimiser.recommend()
    assert best.feasible
    assert best.context == {"ambient": 0.2}
    assert 0.8 * best.action["valve"] < 0.7
    (past,) = optimiser.recommendations
    assert past.recommendation.action == {**best.action, "ambient": 0.2}
    assert main(["recommend", str(tmp_path / "problem.yaml"), "context.ambient=0.3"]) == 0
    assert "ambient was 0.2 to 0.2 in experiments: at 0.3 claims are guesses" in capsys.readouterr().out
    assert optimiser.recommendations[-1].recommendation.action["ambient"] == 0.3
    # More heat would bring more, and is not allowed.
    assert optimiser.stopping().high < 0.3
    assert all(row.low <= row.measured <= row.high for row in optimiser.left_out())
    (tmp_path / "problem.yaml").write_text(PROBLEM.replace("context: {ambient: 0.2}", ""), encoding="utf-8")
    assert main(["status", str(tmp_path / "problem.yaml")]) == 0
    assert "depends on ambient: type context.ambient=..." in " ".join(capsys.readouterr().out.split())
    assert main(["status", str(tmp_path / "problem.yaml"), "context.ambiant=0.2"]) == 2


def test_commands_take_a_context_and_ask_for_it(tmp_path, capsys):
    file = tmp_path / "problem.yaml"
    file.write_text(PROBLEM.replace("context: {ambient: 0.2}", ""), encoding="utf-8")
    assert (main(["suggest", str(file)]), "Type context.ambient=..." in capsys.readouterr().err) == (2, True)
    assert main(["suggest", str(file), "count=2", "context.ambient=0.4"]) == 0
    assert read_list(file).frame["ambient"].tolist() == [0.4, 0.4]
