"""Saved models: the same decisions from a folder, and folders that are refused."""

import hashlib
from dataclasses import replace

import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.checkpoint import FILES, CheckpointError
from rehearsal_torch.surrogates.surrogate import Surrogate
from tests.api.test_rehearse import CASES, SMALL, TASK, plain
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture
from tests.places import ROOT


@pytest.fixture(scope="module")
def model(frame):  # noqa: F811
    return rt.learn(frame, TASK, method="care", seed=3)


@pytest.fixture
def folder(model, tmp_path):
    return model.save(tmp_path / "model")


def rewritten(folder, **changes):
    """Writes another method.yaml, with a card that names it."""
    content = yaml.safe_load((folder / "method.yaml").read_text()) | changes
    text = yaml.safe_dump(content)
    (folder / "method.yaml").write_text(text)
    card = yaml.safe_load((folder / "card.yaml").read_text())
    card["method_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "card.yaml").write_text(yaml.safe_dump(card))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "settings"), [("care", {}), ("outcome_regression", SMALL)])
def test_a_loaded_model_decides_the_same_to_the_last_bit(frame, tmp_path, method, settings):  # noqa: F811
    made = rt.learn(frame, TASK, method=method, seed=3, **settings)
    found = rt.load(made.save(tmp_path / "model"))
    expected = plain(made.decide(CASES))
    assert all(each["sensitivity"]["covariate"] == "U1" for each in expected)
    assert plain(found.decide(CASES)) == expected
    again = rt.load(found.save(tmp_path / "again"))
    assert plain(again.decide(CASES)) == expected
    for name in FILES:
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_folder_holds_five_files_and_the_card_can_be_read(model, folder):
    assert {each.name for each in folder.iterdir()} == FILES
    card = rt.card(folder)
    blank = dict.fromkeys(("config_sha256", "weights_sha256", "method_sha256"), "")
    assert card | blank == {**model.card, **blank}
    assert model.save(folder) == folder
    assert [each.name for each in folder.parent.iterdir()] == ["model"]


def test_a_checkpoint_without_a_method_is_a_surrogate_as_before():
    assert isinstance(rt.load(ROOT / "checkpoints" / "two_stores"), Surrogate)


def test_another_task_is_refused_by_name_and_other_bounds_are_taken(folder):
    with pytest.raises(CheckpointError, match=r"fitted for another question\. context: .*X2"):
        rt.load(folder, task=TASK | {"context": ["X1"]})
    narrow = rt.load(folder, task=TASK | {"box": {"A2": [0, 0.1]}})
    assert narrow.decide(CASES).to_frame()["set/A2"].max() <= 0.1 + 1e-9
    again = rt.load(narrow.save(folder.with_name("narrow")))
    assert again.task.box.bounds() == {"A2": (0.0, 0.1)}
    assert plain(again.decide(CASES)) == plain(narrow.decide(CASES))


def test_folders_with_other_files_are_never_replaced(model, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"holds notes\.txt, which is not part of a saved model"):
        model.save(tmp_path)
    with pytest.raises(CheckpointError, match="expected the name of a folder for the model"):
        model.save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_state_that_cannot_be_saved_leaves_nothing(model, tmp_path):
    nodes = {**model.nodes, "surrogate": {**model.nodes["surrogate"], "_target_": "os.system"}}
    with pytest.raises(CheckpointError, match="which is not a surrogate or part"):
        replace(model, nodes=nodes).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_mixed_folders_are_refused(folder, tmp_path, frame):  # noqa: F811
    other = rt.learn(frame, TASK, method="care", seed=4).save(tmp_path / "other")
    text = (folder / "method.yaml").read_text()
    (folder / "method.yaml").write_text((other / "method.yaml").read_text())
    with pytest.raises(
        CheckpointError, match=r"method\.yaml is not the file that card\.yaml was written for"
    ):
        rt.load(folder)
    (folder / "method.yaml").unlink()
    with pytest.raises(CheckpointError, match=r"method\.yaml is missing .*: fetch the whole folder again"):
        rt.load(folder)
    (folder / "method.yaml").write_text(text)
    assert rt.load(folder).seed == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"search": {"_target_": "os.system", "command": "touch x"}}, "search asks to build 'os.system'"),
        (
            {"search": {"_target_": "rehearsal_torch.run_folder.RunFolder"}},
            "not a class of rehearsal_torch.search",
        ),
        ({"objective": {"_target_": "rehearsal_torch.search.search.Path"}}, "objective asks to build"),
        ({"search": {"steps": 3}}, "search asks to build None"),
        ({"search": {"_args_": [], "_target_": "x"}}, r"search: unknown instruction \['_args_'\]"),
        (
            {"search": {"_target_": "rehearsal_torch.search.search.NoAction", "a": {"b": "${oc.env:HOME}"}}},
            r"search\.a: unknown instruction in",
        ),
        ({"search": 3}, "search: expected a dict"),
        ({"seed": "one", "objective": None}, "objective: expected a dict; seed: expected a int"),
        ({"seed": 10**400}, "seed: expected a whole number of at most 8796093022207; got one of 1329 bits"),
        ({"seed": -1}, "seed: expected a whole number of at least 0; got -1: fetch the model again"),
        ({"strengths": [{"altered": ["A2"], "covariates": {"X1": 0.5}}]}, "strengths: expected altered"),
        ({"strengths": [3]}, "strengths: expected altered variables"),
        ({"units": ["kg"]}, "units: expected a dict"),
        ({"units": {"A2": 3}}, "units: expected names of variables with texts"),
        ({"left": None}, "left: expected a str"),
        ({"search": {"_target_": "rehearsal_torch.spaces.box.Box"}}, "not a class of rehearsal_torch.search"),
    ],
)
def test_folders_that_ask_for_other_things_are_refused_before_anything_is_built(
    folder, changes, words, tmp_path
):
    rewritten(folder, **changes)
    with pytest.raises(CheckpointError, match=words):
        rt.load(folder)
    assert not (tmp_path / "x").exists()


def test_a_search_of_another_family_is_refused(folder):
    rewritten(folder, search={"_target_": "rehearsal_torch.search.alterations.information_gain.Informative"})
    words = "Informative maximises a SuccessProbability; the objective is a GaussianSuccess"
    with pytest.raises(ValueError, match=words):
        rt.load(folder)
