"""Studies as data: every file of the package can be read, and a slip in one is named."""

import pytest
import yaml

from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.studies.study import STUDIES
from rehearsal_torch.studies.study_files import (
    FOLDER,
    published,
    read_published,
    read_study,
    read_texts,
    study,
    texts,
)
from tests.places import ROOT

SMALL = {
    "title": "One",
    "about": "A study.",
    "source": "ours",
    "out": "results",
    "unit": "job",
    "example": "a.b=1",
    "worlds": {"bank": ["dataset=bank"], "loan": {"setting": "s", "overrides": ["dataset=loan"]}},
    "methods": {"care": ["decision=care"], "micns": ["decision=micns"]},
    "groups": {"both": ["care", "micns"]},
    "seeds": [0, 1],
    "stages": {"first": {"about": "all", "jobs": [{"worlds": "all", "methods": "both"}]}},
    "options": {"rounds": {"meaning": "how many", "kind": "whole", "default": 3}},
}


def written(tmp_path, **changed):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changed}, sort_keys=False))
    return path


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_of_the_package_can_be_read(name):
    found = study(name)
    assert found.name == name
    assert found.stages
    assert all(stage.file or name == "cbo" for stage in found.stages.values())
    assert (ROOT / found.out / "README.md").is_file()
    assert "made" in texts(name)
    assert (FOLDER / name / "published.yaml").is_file() == (name not in ("calibration", "sepsis"))


@pytest.mark.parametrize("name", ["auf", "calibration", "cbo", "online"])
def test_methods_and_worlds_are_those_that_can_be_configured(name):
    found = study(name)
    decisions = {path.stem for path in (ROOT / "conf/decision").glob("*.yaml")}
    typed = {
        text.partition("=")[2]
        for method in found.methods.values()
        for text in method.overrides
        if text.startswith("decision=")
    }
    assert typed
    assert typed <= decisions
    worlds = {path.stem for path in (ROOT / "conf/dataset").glob("*.yaml")}
    taken = {text.partition("=")[2] for world in found.worlds.values() for text in world.overrides}
    for world in found.worlds.values():
        typed = [text.partition("=")[2] for text in world.overrides if text.startswith("dataset=")]
        named = "sepsis" in taken and world.dataset.startswith("sepsis, ")
        assert named or {*(typed or [world.dataset.removesuffix("_released")])} <= worlds


def test_a_study_is_what_its_file_says(tmp_path):
    found = read_study(written(tmp_path), "one")
    assert found.worlds["bank"].dataset == "bank"
    assert found.worlds["loan"].setting == "s"
    block = found.stages["first"].blocks[0]
    assert (block.worlds, block.methods) == (("bank", "loan"), ("care", "micns"))
    assert block.replaceable == {"worlds", "methods"}
    assert found.stages["first"].seeds == (0, 1)
    assert found.options["rounds"].default == 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"wolrds": {}}, "there is no 'wolrds': Did you mean worlds"),
        ({"title": 3}, "title: expected a string; got 3"),
        ({"methods": {"care": {"override": []}}}, "methods: care: there is no 'override': Did you mean"),
        ({"methods": {"care": [1]}}, "methods: care: overrides: expected a list of strings"),
        ({"groups": {"both": ["caer"]}}, "groups: both: there is no 'caer': Did you mean care"),
        ({"seeds": [-1]}, "seeds: expected a list of whole numbers"),
        ({"key": ["world", "sed"]}, "key: there is no 'sed': Did you mean seed"),
        ({"stages": {"first": {"jobs": []}}}, "stages: first: expected the keys about"),
        ({"stages": {"first": {"about": "x", "jobs": [{"world": "bank"}]}}}, "expected method or methods"),
        (
            {"stages": {"first": {"about": "x", "jobs": [{"world": "bank", "methods": ["cme"]}]}}},
            "jobs[0]: methods: there is no 'cme'",
        ),
        (
            {"stages": {"first": {"about": "x", "jobs": [{"world": "bank", "worlds": "all"}]}}},
            "expected world or worlds; got both",
        ),
        ({"worlds": {True: ["a=b"]}}, "worlds: expected strings as names; got True: put it in quotes"),
        ({"options": {"rounds": {"meaning": "x", "kind": "wohle"}}}, "kind: there is no 'wohle'"),
    ],
)
def test_a_slip_is_named(tmp_path, changed, words):
    with pytest.raises(PlainFileError) as error:
        read_study(written(tmp_path, **changed), "one")
    assert words in str(error.value)
    assert "study.yaml" in str(error.value)


def test_published_figures_are_finite_numbers(tmp_path):
    path = tmp_path / "published.yaml"
    path.write_text("source: x\ntable: {a: [1, .inf]}\n")
    with pytest.raises(PlainFileError, match=r"table: a\[1\]: expected a finite number or a string"):
        read_published(path)
    path.write_text("table: {}\n")
    with pytest.raises(PlainFileError, match="expected the keys source"):
        read_published(path)


def test_paragraphs_of_a_text_stand_on_one_line(tmp_path):
    path = tmp_path / "text.md"
    path.write_text("For readers.\n\n## one\n\nfirst\nline {x}\n\nsecond\n\n## two\n\nthird\n")
    assert read_texts(path) == {"one": "first line {x}\n\nsecond", "two": "third"}
    for text, words in (
        ("## one\n\n## two\n\nx\n", "one is empty"),
        ("## a\n\nx\n\n## a\n\ny\n", "a occurs twice"),
    ):
        path.write_text(text)
        with pytest.raises(PlainFileError, match=words):
            read_texts(path)


def test_what_was_published_of_avoiding_undesired_futures_agrees_with_itself():
    told = published("auf")
    assert set(told["table1"]) == set(study("auf").groups["paper"])
    for line in told["table1"].values():
        assert set(line) <= set(study("auf").methods)
        assert all(0 < mean < 1 and 0 < std < 0.5 for mean, std in line.values())
        assert line["cme"][0] > line["none"][0]
    assert set(told["table2"]) <= set(study("auf").methods)
    fits = [fit for line in told["table2"].values() for fit in line.values()]
    assert all(seconds > 0 and 0 < probability < 1 for seconds, probability in fits)
    assert told["table1"]["bermuda"]["care"] == [0.706, 0.065]
    assert [len(line) for line in told["table4"]] == [5] * 5
    # eta = 10 with both factors 1.
    assert told["table4"][2][2] == told["table3"]["eta=10"] == max(told["table3"].values())


def test_what_was_published_of_causal_bayesian_optimisation_never_falls():
    told = published("cbo")
    assert set(told["best"]) <= set(study("cbo").worlds)
    for line in told["best"].values():
        assert set(line) <= set(study("cbo").methods)
        for values in line.values():
            means = [mean for mean, _ in values]
            assert len(values) == len(told["rounds"])
            assert means == sorted(means), "the best so far"
            assert all(std > 0 for _, std in values)
    assert told["best"]["dropwave unit"]["excbo"][-1] == [0.89, 0.02]


def test_published_rehearsal_keeps_its_promise_to_within_its_noise_and_agents_do_not():
    told = published("online")
    assert set(told["table1"]) <= set(study("online").worlds)
    for line in told["table1"].values():
        assert set(line) <= set(study("online").methods)
        agents = [value for name, value in line.items() if name != "qwz23"]
        assert line["qwz23"] > float(told["tau"]) - 0.05
        assert max(agents) < line["qwz23"] / 2
    assert told["long"]["bermuda"]["ddpg"] > told["table1"]["bermuda"]["ddpg"]
    assert 0 < told["recommended"] < 1
