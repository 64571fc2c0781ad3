"""What a run asked, read back from its folder."""

import json

import pytest

from rehearsal_torch.evaluation.recorded_run import read
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.run_folder import RunFolder


def recorded(path, run, *kinds):
    """A folder whose run.json holds `run`, and whose decisions are of some kinds."""
    folder = RunFolder(path)
    folder.write_json("run.json", run)
    each = {"status": "no_action", "value": 0.0, "given": {}}
    lines = [{"index": index, **each, **({"kind": kind} if kind else {})} for index, kind in enumerate(kinds)]
    folder.write("decisions.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return read(path)


def test_run_json_says_what_was_asked(tmp_path):
    assert recorded(tmp_path, {"kind": "optimise"}).kind == "optimise"


def test_where_an_earlier_version_wrote_run_json_its_decisions_say_it(tmp_path):
    assert recorded(tmp_path, {"seed": 0}, "rehearse", "rehearse").kind == "rehearse"
    assert recorded(tmp_path, {"kind": None}, "look_back").kind == "look_back"
    assert recorded(tmp_path, {}, None).kind is None


@pytest.mark.parametrize(
    ("run", "kinds", "words"),
    [
        ({"kind": "ponder"}, [], r"run\.json: kind: expected rehearse, optimise or look_back; got ponder"),
        ({}, ["ponder"], r"decisions\.jsonl: kind: expected .*; got ponder: restore"),
        ({}, ["optimise", "rehearse"], "expected decisions of one kind; got optimise and rehearse"),
    ],
)
def test_what_is_no_kind_is_refused(tmp_path, run, kinds, words):
    with pytest.raises(PlainFileError, match=words):
        recorded(tmp_path, run, *kinds)
