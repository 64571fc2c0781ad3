"""What judges the decisions of a run: models of rows that did not choose, and other graphs."""

import json

import pandas as pd
import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.cli.batch_decisions import claimed
from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.evaluation.overturning_sentences import graphs_overall
from rehearsal_torch.methods.run_parts import build, cross_fitted_claims, judged_by_graphs
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError
from tests.claims.test_graph_robustness import PARENTS, TABLE, TASK
from tests.scripts.typing_in import lines


def run_of(*typed):
    config, _ = composed(list(typed), multirun=False)
    return build(config)


def test_a_run_keeps_its_own_claims_unless_it_asks_for_others(tmp_path):
    assert claimed(run_of("+experiment=auf", "decision=care"), RunFolder(tmp_path)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_was_found_is_written_into_the_run_folder(tmp_path):
    typed = ("+experiment=auf", "decision=care", "dataset.size.rows=100", "claims=cross_fitted", "seed=3")
    lines: list[str] = []
    found = claimed(run_of(*typed), RunFolder(tmp_path), lines.append)
    assert found is not None
    facts = json.loads((tmp_path / "claims.json").read_text())
    assert facts == {"folds": 5, "optimism": found.optimism, "error": found.error}
    assert 0 <= found.optimism < 0.1
    rows = (tmp_path / "untouched.csv").read_text().splitlines()
    assert rows[0] == "unit,desired,predicted,constant"
    assert [row.split(",")[0] for row in rows[1:]] == [str(row) for row in range(100)]
    assert len(lines) == 5
    again = cross_fitted_claims(run_of(*typed))
    assert (again.optimism, again.error) == (found.optimism, found.error)


@pytest.mark.bench
def test_methods_without_an_interval_get_one():
    typed = ("+experiment=auf", "decision=grad_rh", "dataset.size.rows=150", "trainer.max_epochs=2")
    run = run_of(*typed, "objective.draws=100", "objective.evaluation_draws=200", "search.steps=5")
    from rehearsal_torch.decision_loop import rounds
    from rehearsal_torch.training.surrogate_fit import fit

    surrogate = fit(run.surrogate(), run.problem.observations(), run.trainer(None), run.problem.held_out())
    claims = cross_fitted_claims(run)
    each = next(rounds(run.problem, surrogate, run.objective, run.search, [0], claims=claims))
    estimate = each.decision.estimate
    assert estimate is not None
    assert estimate.lower is not None
    assert estimate.upper is not None
    assert estimate.lower < estimate.point < estimate.upper
    # The counting error alone is 1.96 sqrt(p (1 - p) / 200) on either side.
    half = 1.95 * (estimate.point * (1 - estimate.point) / 200) ** 0.5
    assert estimate.upper - estimate.lower >= min(half, 1 - estimate.point) + min(half, estimate.point)
    assert each.decision.baseline is not None


@pytest.mark.parametrize(
    ("typed", "there", "workers", "accelerator"),
    [
        (("trainer=cpu",), True, 3, "cpu"),
        (("trainer=gpu", "trainer.accelerator=auto"), True, 1, "gpu"),
        (("trainer=cpu", "trainer.devices=2"), False, 1, "cpu"),
    ],
)
def test_folds_that_train_on_gpus_are_fitted_in_one_process(monkeypatch, typed, there, workers, accelerator):
    asked, fits = [], []

    def noted(table, units, task, fitted, *rest, workers, **more):
        asked.append(workers)
        # A worker may have a GPU that this process has not.
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        fitted(table)
        fitted(table)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr("rehearsal_torch.methods.run_parts.cross_fitted", noted)
    monkeypatch.setattr(
        "rehearsal_torch.methods.run_parts.fit", lambda made, table, how, held_out: fits.append(how)
    )
    cross_fitted_claims(run_of("+experiment=auf", "decision=grad_rh", *typed), workers=3)
    assert asked == [workers]
    assert [each.accelerator for each in fits] == [accelerator] * 2
    assert fits[0].history is not fits[1].history


def test_other_problems_have_no_such_claims():
    with pytest.raises(UserError, match="claims=cross_fitted: these claims are those of alterations"):
        cross_fitted_claims(run_of("+experiment=sepsis", "dataset.patients=20"))


@pytest.mark.bench
@pytest.mark.parametrize(
    "typed",
    [
        (
            "+experiment=auf",
            "decision=grad_rh",
            "trainer.max_epochs=1",
            "search.steps=2",
            "objective.draws=20",
        ),
        ("+experiment=auf", "decision=outcome_regression"),
    ],
)
def test_folds_that_are_shared_change_no_bit(typed, monkeypatch):
    run = run_of(*typed, "dataset.size.rows=100")
    from rehearsal_torch.surrogates.surrogate import Surrogate
    from rehearsal_torch.training.surrogate_fit import fit

    alone = cross_fitted_claims(run)
    monkeypatch.setattr("rehearsal_torch.task_pool.PAYS", 0.0)
    shared = cross_fitted_claims(run, workers=2)
    assert (alone.optimism, alone.error, alone.score) == (shared.optimism, shared.error, shared.score)
    for one, other in zip(
        (*alone.complements, *alone.folds), (*shared.complements, *shared.folds), strict=True
    ):
        assert isinstance(other, Surrogate)
        first, second = one.state_dict(), other.state_dict()
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)
    surrogate = fit(run.surrogate(), run.problem.observations(), run.trainer(None), run.problem.held_out())
    from rehearsal_torch.decision_loop import rounds

    lines = [
        [
            each.line()
            for each in rounds(run.problem, surrogate, run.objective, run.search, range(3), claims=claims)
        ]
        for claims in (alone, shared)
    ]
    assert lines[0] == lines[1]


CLASS = {"parents": PARENTS, "undirected": [["u", "a"]]}


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
