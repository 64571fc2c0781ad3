"""The file of a campaign: every digit comes back, and whatever is wrong is named."""

import pytest

from rehearsal_torch.data.trials.file import (
    FORMAT,
    Campaign,
    TrialFileError,
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
