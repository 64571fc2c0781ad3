"""The file of a campaign: every digit comes back, and whatever is wrong is named."""

import json

import pytest

from rehearsal_torch.data.trials.file import (
    FORMAT,
    Campaign,
    TrialFileError,
    campaign_of,
    read_campaign,
    write_campaign,
)
from rehearsal_torch.data.trials.trial import Trial

TRIALS = (
    Trial(id=1, state="completed", asked={"a": 0.1}, ran={"a": 1 / 3}, nodes={"Y": 1e-300}, altered=("Y",)),
    Trial(id=2, state="failed", asked={"a": 0.2}, reason="Überdruck"),
    Trial(id=4, state="completed", ran={"a": 5.0}, nodes={"Y": -0.0}),
    Trial(id=5, state="pending", asked={"a": 0.4}),
)
WHOLE = Campaign(task={"graph": {}}, seed=7, initial=5, trials=TRIALS)


@pytest.mark.parametrize("trials", [(), TRIALS[:1], TRIALS])
def test_what_is_written_comes_back_to_the_last_digit(tmp_path, trials):
    campaign = WHOLE.model_copy(update={"trials": trials})
    text = write_campaign(tmp_path / "new" / "trials.json", campaign)
    assert read_campaign(tmp_path / "new" / "trials.json") == (campaign, text)
    assert len(text.splitlines()) == 4 + len(trials)


def test_all_faults_are_named_with_trial_and_key():
    plain = json.loads(WHOLE.text())
    plain["trials"][0] |= {"nodes": {"Y": "hot"}, "colour": 1}
    plain["trials"][1] |= {"state": "running"}
    plain["trials"][3] |= {"asked": None}
    plain["initial"] = 3
    plain["seed"] = True
    with pytest.raises(TrialFileError) as caught:
        campaign_of(plain, "t.json")
    assert str(caught.value).splitlines() == [
        "t.json: 6 faults",
        "- seed: expected a whole number; got True",
        "- initial: expected at least 5; got 3",
        "- trial 1: nodes: Y: expected a finite number; got 'hot'",
        "- trial 1: colour: is not a key of this format",
        "- trial 2: state: expected one of pending, completed, failed, abandoned; got 'running'",
        "- trial 5: expected settings in `asked`, `ran` or both; got neither",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plain: plain["trials"].append(plain["trials"][0]), "order of their ids; 1 is repeated"),
        (lambda plain: plain["trials"].insert(0, 3), "trials, entry 1: expected an object, a trial; got 3"),
        (lambda plain: plain["trials"][0].pop("id"), "trials, entry 1: id: is missing"),
        (lambda plain: plain.pop("task"), "task: is missing"),
        (lambda plain: plain.update(trials={}), "trials: expected a list; got {}"),
        (
            lambda plain: plain.update(format="rehearsal-trials/2"),
            "it was written by another version of rehearsal_torch",
        ),
        (lambda plain: plain.update(initial=2**70), "initial: expected at most 1000000; got 1180591"),
        (lambda plain: plain.update(initial=10**400), "initial: expected at most 1000000; got 1000000"),
        (
            lambda plain: plain["trials"][0].update(id=10**400),
            "entry 1: id: expected at most 1000000; got 1",
        ),
        (
            lambda plain: plain["trials"][1].update(reason="\ud800"),
            "trial 2: expected whole signs",
        ),
        (lambda plain: plain["trials"][0].update(altered=["\ud800"]), "trial 1: expected whole signs"),
        (lambda plain: plain.update(format=1), "got the format 1: is it the right file"),
        (lambda plain: plain.pop("format"), "got an object with task, seed, initial, trials"),
    ],
)
def test_a_file_that_is_another_is_refused(change, message):
    plain = json.loads(WHOLE.text())
    change(plain)
    with pytest.raises(TrialFileError) as caught:
        campaign_of(plain, "t.json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as JSON"),
        ("[]", "expected a file of trials"),
        (WHOLE.text()[:-40], "cannot be read as JSON"),
        (WHOLE.text().replace("1e-300", "NaN"), "NaN"),
        (WHOLE.text().replace('"seed": 7', '"seed": 7, "seed": 8'), "'seed' occurs twice"),
        ("[" * 100_000, "levels of nesting"),
    ],
)
def test_damaged_files_are_told(tmp_path, text, message):
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    with pytest.raises(TrialFileError, match=message) as caught:
        read_campaign(tmp_path / "t.json")
    assert str(tmp_path / "t.json") in str(caught.value)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(TrialFileError, match=r"cannot be written .*nothing was recorded"):
        write_campaign(tmp_path / "taken.json", WHOLE)
    assert FORMAT.endswith("/1")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]
