"""What a page reads of a run folder, and which folders are none."""

import json
import shutil

import pytest
import yaml

from rehearsal_torch.explorer.open_run import checkpoint_of, existing, opened, recorded
from rehearsal_torch.user_error import RequestWarning, UserError
from tests.house.desk import PROBLEM, laid_out
from tests.scripts.typing_in import called
from tests.toys.explored import CASES, run_folder, small_model


@pytest.fixture
def run(tmp_path):
    return run_folder(tmp_path / "run")


def test_a_run_is_read(run):
    of = recorded(existing(run))
    assert of.run.kind == "rehearse"
    assert checkpoint_of(run, of.run.config) == run / "checkpoint"


def test_the_checkpoint_that_a_run_was_given_is_found(run, tmp_path):
    shutil.move(run / "checkpoint", tmp_path / "elsewhere")
    assert checkpoint_of(run, {"checkpoint": str(tmp_path / "elsewhere")}) == tmp_path / "elsewhere"
    with pytest.raises(UserError, match="holds no checkpoint; it decided with gone, which is not there"):
        checkpoint_of(run, {"checkpoint": "gone"})


def test_the_model_of_a_run_decides_as_the_run_did(run):
    found = opened(run)
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]
    for line, x in zip(lines, CASES.values(), strict=True):
        with pytest.warns(RequestWarning, match="bounds: a model does not keep"):
            (again,) = found.model.decide({"x": x})
        assert again.to_dict()["alteration"] == line["alteration"]
        assert again.estimate.to_dict() == pytest.approx(line["estimate"], abs=1e-9)
        assert again.sensitivity.covariate == line["sensitivity"]["covariate"]
        assert again.sensitivity.yardstick == pytest.approx(line["sensitivity"]["yardstick"])
    assert (found.model.name, found.model.seed, found.notes) == ("care", 0, ())
    assert found.material.card["caution"] == "these rows were simulated"


@pytest.mark.slow
def test_a_run_of_imputed_tables_answers_with_pooled_claims(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    laid_out(tmp_path)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[lines[0].split(",").index("m")] = ""
    (tmp_path / "table.csv").write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n")
    (tmp_path / "problem.yaml").write_text(PROBLEM + "missing: {impute: 2}\n")
    typed = ["+experiment=own_problem", "path=problem.yaml", "decision=care", "limit=1", "out=run"]
    answer = called(tmp_path, "decide", *typed)
    assert answer.code == 0, answer.err
    (line,) = map(json.loads, (tmp_path / "run/decisions.jsonl").read_text().splitlines())
    found = opened(tmp_path / "run").model.what_if(line["given"], line["alteration"])
    assert found.estimate.to_dict() == pytest.approx(line["estimate"], abs=1e-6)
    assert found.estimate.level == 0.95


def test_a_saved_model_is_one_too(tmp_path):
    found = opened(small_model().save(tmp_path / "saved"))
    assert found.model.what_if({"x": 0.1}, {"a": 0.2}) == small_model().what_if({"x": 0.1}, {"a": 0.2})
    assert found.material.card["rows"] == 120
    assert found.material.run.decisions == []


def test_what_the_answers_leave_out_is_noted(tmp_path):
    run = run_folder(tmp_path / "run", claims="cross_fitted", graphs="graphs.yaml")
    assert [text.split()[0] for text in opened(run).notes] == ["The", "The"]
    assert "claims=cross_fitted" in opened(run).notes[0]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: (run / "sweep.json").write_text("{}"), "is the folder of a sweep"),
        (lambda run: (run / "run.json").write_text('{"kind": "look_back"}'), "It holds episodes"),
        (lambda run: (run / "run.json").write_text('{"kind": "optimise"}'), "It holds trials"),
        (lambda run: (run / "run.json").write_text("{"), "run.json"),
        (lambda run: edit(run, learn=True), "is an online run"),
        (lambda run: edit(run, seed=None), "config.yaml has no seed"),
        (lambda run: edit(run, objective={"_target_": "os.system"}), "nothing was built"),
    ],
)
def test_other_folders_are_refused_in_a_paragraph(run, damage, words):
    damage(run)
    with pytest.raises((UserError, ValueError), match=words):
        opened(run)


def edit(run, **changes):
    config = yaml.safe_load((run / "config.yaml").read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (run / "config.yaml").write_text(yaml.safe_dump(kept))
