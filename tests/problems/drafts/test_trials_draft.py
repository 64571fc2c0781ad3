"""A first problem file of experiments: what is guessed, what is left to fill in, and that it is then read."""

import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.problems.drafts.draft_yaml import MARK
from rehearsal_torch.problems.drafts.problem_draft import trials_draft
from rehearsal_torch.problems.drafts.role_guesses import Source
from rehearsal_torch.problems.trials.trials_file import OwnTrials, trials_problem
from tests.problems.conftest import experiments


def drafted(frame):
    return trials_draft(Source(ReadTable(frame, "experiments.csv"), "experiments.csv", "problem.yaml"))[0]


def test_a_draft_is_complete_but_for_the_graph(tmp_path):
    experiments().to_csv(tmp_path / "experiments.csv", index=False)
    text = drafted(experiments().assign(note="warm"))
    assert "# note: left out: all 8 rows have one text" in text
    file = tmp_path / "problem.yaml"
    file.write_text(text)
    with pytest.raises(ProblemError) as caught:
        trials_problem(file)
    assert "graph: nothing is written there yet" in caught.value.faults[0]
    lines = [line.replace("  # - dose", "  - dose") for line in text.splitlines() if not line.startswith("#")]
    file.write_text("\n".join(lines).replace("graph: # <- fill in: the arrows; delete", "graph: #"))
    problem = trials_problem(file)
    assert problem.task.actions == ("dose",)
    assert problem.task.reward.names == ("yield",)
    assert yaml.safe_load(text)["variables"]["temperature"] == "other"


def uncommented(text):
    """The draft with all arrows, and with the limits."""
    text = text.replace(f"graph: {MARK}: the arrows; delete", "graph: #").replace("  # - ", "  - ")
    return text.replace("# limits:", "limits:")


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame,
        lambda frame: frame.rename(columns={"valve": "valve rate", "waste": "and", "yield": "the yield"}),
        lambda frame: frame.rename(columns={"valve": "2nd `rate`", "dose": "dose: ml", "waste": "yes"}),
        lambda frame: frame.rename(columns={"valve": "größe;{rate}", "dose": "#dose", "waste": "a->b"}),
        lambda frame: frame.rename(columns={"waste": 'called "waste"'}),
        lambda frame: frame.assign(waste=1.0, tried=2),
        lambda frame: frame.assign(dose=2.0),
        lambda frame: frame.assign(**{"yield": 1.0}),
        lambda frame: frame.assign(valve=-1e9 * frame["valve"], dose=1e-9 * frame["dose"]),
        lambda frame: frame.assign(on=[True, False] * 4, day="2024-03-01"),
        lambda frame: frame[["dose", "yield"]].head(1),
    ],
)
def test_every_suggestion_holds_once_the_comment_is_taken_away(tmp_path, change):
    frame = change(experiments())
    frame.to_csv(tmp_path / "experiments.csv", index=False)
    text = drafted(pd.read_csv(tmp_path / "experiments.csv"))
    (tmp_path / "problem.yaml").write_text(uncommented(text))
    problem = OwnTrials(tmp_path / "problem.yaml")
    assert len(problem.past) == len(frame)
    assert problem.task.limits is not None
    assert problem.counted().startswith(f"{len(frame)} experiment")
    assert not [each for each in problem.found.warnings if "no directed path" in each]


def test_rows_without_a_result_wait_and_what_is_empty_in_them_is_no_action(tmp_path):
    table = experiments()
    table.loc[[2, 7], ["ambient", "temperature", "waste", "yield"]] = None
    table[["temperature", "valve", "dose", "ambient", "waste", "yield"]].rename(
        columns={"temperature": "mixing rate", "valve": "inlet"}
    ).to_csv(tmp_path / "experiments.csv", index=False)
    text = drafted(pd.read_csv(tmp_path / "experiments.csv"))
    assert "# A problem of 6 experiments." in text
    assert "# 2 more wait for their result, and are not learnt from.\n" in text
    plain = yaml.safe_load(text)
    assert plain["reward"] == "yield"
    assert plain["variables"]["mixing rate"] == "other", "it is not known before"
    assert plain["variables"]["dose"]["role"] == "action"
    (tmp_path / "problem.yaml").write_text(uncommented(text))
    problem = OwnTrials(tmp_path / "problem.yaml")
    assert (len(problem.past), len(problem.waiting)) == (6, 2)


def test_texts_that_are_set_are_categories_and_decades_a_log_scale():
    frame = experiments().assign(
        dose=[0.01, 0.1, 1, 10, 100, 0.5, 5, 50], medium=["broth", "agar", "milk", "agar"] * 2
    )
    source = Source(
        ReadTable(frame, "experiments.csv"), "e.csv", "problem.yaml", {"action": ["dose", "medium"]}
    )
    text, _ = trials_draft(source)
    variables = yaml.safe_load(text)["variables"]
    assert variables["medium"] == {
        "role": "action",
        "kind": "categorical",
        "levels": ["agar", "broth", "milk"],
    }
    assert variables["dose"] == {"role": "action", "range": [0.01, 100], "scale": "log"}
    assert "# medium: left out: it has texts" in drafted(frame)
