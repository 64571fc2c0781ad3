"""The folder of a study's results."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.results_folder import agree, note, own


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    assert own(tmp_path / "new").path == tmp_path / "new"
    (tmp_path / "table.csv").touch()
    with pytest.raises(UserError, match=r"contains no study \(table\.csv\)"):
        own(tmp_path)
    with pytest.raises(UserError, match="this is a file"):
        own(tmp_path / "table.csv")
    RunFolder(tmp_path).write_json("run.json", {"commands": []})
    assert own(tmp_path).path == tmp_path


def test_rows_of_one_protocol_are_not_mixed_with_those_of_another(tmp_path):
    out = RunFolder(tmp_path)
    facts = agree(out, {"rounds": 3}, ["a.b=1"])
    assert facts == {"rounds": 3, "extra": ["a.b=1"]}
    note(out, ["study=cbo", "rounds=3"], facts)
    assert agree(out, {"rounds": 3}, ["a.b=1"]) == facts
    for rounds, extra in ((4, ["a.b=1"]), (3, [])):
        with pytest.raises(UserError, match=r"were made with rounds=3 a\.b=1\. Choose another out="):
            agree(out, {"rounds": rounds}, extra)


def test_every_command_is_noted_once_and_facts_stay(tmp_path):
    out = RunFolder(tmp_path)
    note(out, ["study=cbo", "stages=[main]"], {"rounds": 3})
    note(out, ["study=cbo", "stages=[main]"], {})
    note(out, ["study=cbo", "worlds='dropwave unit'"], {}, seed=2)
    told = out.read_json("run.json")
    assert [command.partition("study=cbo ")[2] for command in told["commands"]] == [
        "'stages=[main]'",
        """'worlds='"'"'dropwave unit'"'"''""",
    ]
    assert (told["rounds"], told["seed"], told["script"]) == (3, 2, "reproduce")
