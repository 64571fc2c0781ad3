"""What docs/generated.py adds to the site: every public name, and every key of a problem file."""

import runpy

import rehearsal_torch
from rehearsal_torch.problems.json_schema import FORMS
from tests.places import ROOT

GENERATED = runpy.run_path(str(ROOT / "docs/generated.py"))


def test_every_public_name_and_every_key_is_on_a_page():
    assert sorted(" ".join(GENERATED["API"].values()).split()) == sorted(rehearsal_torch.__all__)
    for question, form in FORMS.items():
        text = GENERATED["table"](question)
        assert [line for line in text.splitlines() if line.endswith("|  |")] == []
        assert [name for name in form.model_fields if f"| `{name}` |" not in text] == []
    assert "| `variables.NAME.` `offered` |" in GENERATED["table"]("cases")
