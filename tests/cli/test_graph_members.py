"""The graphs that a run names: where its decisions stand, and runs that cannot be compared over graphs."""

import pandas as pd
import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.cli.graph_members import judged_by_graphs
from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.evaluation.overturning import graphs_overall
from rehearsal_torch.user_error import UserError
from tests.scripts.typing_in import lines
from tests.test_member_graphs import PARENTS, TABLE, TASK

CLASS = {"parents": PARENTS, "undirected": [["u", "a"]]}


def run_of(*typed):
    config, _ = composed(CONF, list(typed), multirun=False)
    return build(config)


@pytest.mark.slow
def test_runs_that_do_not_decide_with_one_graph_are_refused():
    run = run_of("+experiment=cbo", "decision=random_actions")
    with pytest.raises(UserError, match="only decisions for cases of a table"):
        judged_by_graphs(run, run.surrogate(), CLASS)
    run = run_of("+experiment=two_stores", "learn=false")
    with pytest.raises(UserError, match=r"weighs its candidate graphs itself(?s:.*)surrogate\.hypotheses"):
        judged_by_graphs(run, run.surrogate(), CLASS)
    run = run_of("+experiment=auf", "decision=care", "dataset.size.rows=50")
    with pytest.raises(UserError, match=r"expected \{parents"):
        judged_by_graphs(run, run.surrogate(), 3)


@pytest.mark.slow
def test_graphs_that_cannot_be_read_are_refused_before_a_fit(tmp_path):
    with pytest.raises(UserError, match=r"graphs: .*gone\.yaml: there is no such file"):
        run_of("+experiment=auf", "decision=care", f"graphs={tmp_path / 'gone.yaml'}")
    assert run_of("+experiment=auf", "decision=care", "graphs=[{parents: {Y1: [A2]}}]").config["graphs"]
    frame = pd.DataFrame(TABLE.values.numpy(), columns=list(TABLE.names))
    with pytest.raises(ValueError, match=r"graphs: expected \{parents"):
        rt.rehearse(frame, TASK, {"x": 0.5}, method="care", graphs=3)


@pytest.mark.slow
def test_command_and_python_say_the_same_of_every_decision(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(TABLE.values.numpy(), columns=list(TABLE.names))
    frame.to_csv("table.csv", index=False)
    frame[["x"]].head(3).to_csv("cases.csv", index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK.to_plain()))
    (tmp_path / "graphs.yaml").write_text(yaml.safe_dump(CLASS))
    typed = ["+experiment=own_table", "path=table.csv", "dataset.task=task.yaml", "decision=care"]
    typed += ["dataset.contexts=cases.csv", "graphs=graphs.yaml", "workers=1", f"out={tmp_path / 'run'}"]
    assert main(decide, typed) == 0
    written = [line["trace"]["graphs"] for line in lines(tmp_path / "run")]
    assert [each["stand"] for each in written] == [0.5] * 3
    found = rt.rehearse("table.csv", "task.yaml", "cases.csv", method="care", graphs=CLASS)
    assert [each.trace["graphs"] for each in found] == written
    own = rt.rehearse("table.csv", "task.yaml", "cases.csv", method="care")
    assert [each.alteration.values.tolist() for each in own] == [
        each.alteration.values.tolist() for each in found
    ]
    said = graphs_overall(lines(tmp_path / "run"))
    assert said.startswith("Of 2 graphs that may be true, better than no action under 50.0% (least 50.0%)")
    assert "under the worst graph (a -> u), by -" in said
