"""Episodes in memory: the model of the command line, asked in the words of the task."""

import polars as pl
import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import fit
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.verbs.methods import RequestError
from tests.cli.test_run import configured
from tests.toys.pumps import SMALL, fitted, table, task, told


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.mark.slow
def test_it_is_the_model_that_the_command_line_fits(model, tmp_path):
    table().to_csv(tmp_path / "pumps.csv", index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task(), sort_keys=False))
    typed = ["+experiment=own_episodes", f"path={tmp_path}/pumps.csv", f"dataset.task={tmp_path}/task.yaml"]
    run = build(configured(*typed, "seed=3", *(f"{key}={value}" for key, value in SMALL.items())))
    typed_in = fit(run, RunFolder(tmp_path / "run")).state_dict()
    mine = model.surrogate.state_dict()
    assert mine.keys() == typed_in.keys()
    assert all(torch.equal(mine[name], typed_in[name]) for name in mine)


def test_cases_are_the_units_that_nothing_was_learnt_from(model):
    learnt = {each.identity for each in model.problem.episodes("train")}
    assert len(model.cases) == model.problem.count() == len(model.problem.splits["test"])
    assert not learnt & {each.identity for each in model.cases}


@pytest.mark.slow
def test_it_looks_back_as_the_verb_does_in_the_words_of_the_task(model):
    case = model.cases[0]
    found = model.look_back(case, 2)
    plain = rt.look_back(
        model.surrogate, case, 2, reward=model.reward, seed=3, records=model.problem.observations()
    )
    assert told(found) == told(plain)
    assert found.words.subject == "pump"
    assert found.summary().startswith(f"Pump {case.identity}: ")
    assert str(found).splitlines()[0] == found.summary()
    by_name = model.look_back(case.identity, 2)
    assert told(by_name) == told(found)


@pytest.mark.slow
def test_levels_have_their_names_in_the_frame(model):
    found = next(each for each in (model.look_back(one, 3) for one in model.cases) if each.alteration)
    frame = found.to_frame()
    assert set(frame["from/valve"]) | set(frame["to/valve"]) <= {"shut", "half", "open"}
    assert all(isinstance(each, float) for each in frame["to/oil"])
    assert any(each in found._repr_html_() for each in ("shut", "half", "open"))


@pytest.mark.slow
def test_units_that_were_learnt_from_can_be_asked_for_by_name(model):
    name = model.problem.episodes("train")[0].identity
    assert model.look_back(name, 1).case.identity == model.look_back(int(name), 1).case.identity == name
    with pytest.raises(RequestError, match=r"unit: expected the name of a pump, .* got float"):
        model.look_back(3.0)
    with pytest.raises(RequestError, match=r"there is no pump 'p7': Did you mean 7\?"):
        model.look_back("p7")
    with pytest.raises(RequestError, match="there is no pump 'other': the table has 30, such as '1'"):
        model.look_back("other")


def test_frames_of_other_libraries_are_the_same(model):
    again = rt.learn_episodes(pl.DataFrame(table()), task(), seed=3, **SMALL)
    mine, other = model.surrogate.state_dict(), again.surrogate.state_dict()
    assert all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"task": task(units="pump")}, TaskError, "units"),
        ({"method": "care"}, RequestError, "care"),
        ({"seed": -1}, RequestError, "seed: expected a whole number of at least 0; got -1"),
        ({"dataset.seed": 1}, RequestError, "is the argument `seed`: give it there"),
        ({"certificate.level": 1}, RequestError, "cannot be set here"),
        ({"dataset._target_": "os.system"}, RequestError, "'dataset._target_' says what is built"),
        ({"dataset.horizon": "x"}, ValueError, "horizon: expected a whole number of at least 2; got 'x'"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_fitted(given, error, said):
    with pytest.raises(error, match=said):
        rt.learn_episodes(**{"table": table(), "task": task(), **given})
