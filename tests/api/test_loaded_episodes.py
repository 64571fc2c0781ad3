"""Saved models of episodes: what a damaged or hostile card is told, and runs that fitted such a model."""

import copy

import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.checkpoint import CheckpointError
from rehearsal_torch.cli.verbs.train import fit
from rehearsal_torch.files.bounded_yaml import opened, sealed
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.run_folder import RunFolder
from tests.methods.test_run_parts import configured
from tests.toys.pumps import SMALL, fitted, table, task, told


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fitted().save(tmp_path_factory.mktemp("saved") / "pumps")


@pytest.mark.slow
def test_a_run_of_episodes_is_loaded_with_its_task(tmp_path, folder):
    table(effect=25.0).to_csv(tmp_path / "pumps.csv", index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task(), sort_keys=False))
    typed = ["+experiment=own_episodes", f"path={tmp_path}/pumps.csv", f"dataset.task={tmp_path}/task.yaml"]
    run = build(configured(*typed, "seed=3", *(f"{key}={value}" for key, value in SMALL.items())))
    fit(run, RunFolder(tmp_path / "run"))
    found, saved = rt.load(tmp_path / "run"), rt.load(folder)
    assert isinstance(found, rt.EpisodeModel)
    assert (found.reading, found.words, found.method) == (saved.reading, saved.words, "closed_form")
    units = saved.read(table(units=2, seed=9))
    assert told(found.look_back(units[0], 2)) == told(saved.look_back(units[0], 2))


def test_the_folder_is_that_of_a_checkpoint(folder):
    names = {each.name for each in folder.iterdir()}
    assert names == {"card.yaml", "config.yaml", "weights.safetensors"}
    card = rt.card(folder)
    assert card["reading"]["task"]["variables"]["valve"]["levels"] == ["shut", "half", "open"]
    known = {"method": "closed_form", "changes": 3, "settings": {}}
    assert card["looking"] == sealed(known)
    assert set(card["reading"]["amounts"]) == {"oil"}


def changed(part="reading", **values):
    """A change by somebody who seals it again."""

    def change(card):
        card[part] = sealed({**opened(card[part], part), **values})

    return change


def with_settings(settings):
    return changed("looking", settings=settings)


def other_actions(card):
    found = opened(card["reading"], "reading")
    found["task"]["variables"]["lever"] = found["task"]["variables"].pop("oil")
    card["reading"] = sealed({**found, "amounts": {}})


def sealed_other_order(card):
    found = opened(card["reading"], "reading")
    found["task"]["variables"] = dict(reversed(found["task"]["variables"].items()))
    card["reading"] = sealed(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(task={"unit": "pump"}), "reading: time: missing; expected"),
        (changed(amounts={"oil": "x"}), "reading: expected a task, step"),
        (changed(amounts={"valve2": 1.0}), "reading: amounts: 'valve2' is no action"),
        (other_actions, r"the data have no \['oil'\]"),
        (sealed_other_order, r"expected the actions \['valve', 'oil'\]; got \['oil', 'valve'\]"),
        (with_settings({"search.budget_s": "x"}), "looking: "),
        (with_settings({"objective.changes": 9}), "looking: settings: 'objective.changes' is none"),
        (with_settings({"search.budget_s": "${oc.env:HOME}"}), "none of which says what is built"),
    ],
)
def test_cards_that_do_not_belong_here_are_refused(folder, tmp_path, change, said):
    card = copy.deepcopy(rt.card(folder))
    change(card)
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(card, sort_keys=False))
    with pytest.raises(CheckpointError, match=said):
        rt.load(tmp_path)


def test_a_checkpoint_whose_card_says_nothing_of_episodes_is_its_surrogate(folder, tmp_path):
    card = {key: value for key, value in rt.card(folder).items() if key != "reading"}
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(card, sort_keys=False))
    assert isinstance(rt.load(tmp_path), rt.Surrogate)
