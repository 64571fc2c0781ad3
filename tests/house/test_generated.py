"""What docs/generated.py adds to the site: every public name, and every key of a problem file."""

import importlib.util

import rehearsal_torch
from rehearsal_torch.problems.json_schema import FORMS
from tests.places import ROOT

SPEC = importlib.util.spec_from_file_location("generated", ROOT / "docs/generated.py")
GENERATED = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GENERATED)


def test_the_page_of_the_api_has_every_public_name_once():
    names = " ".join(GENERATED.API.values()).split()
    assert sorted(names) == sorted(rehearsal_torch.__all__)


def test_the_page_of_keys_has_every_key_of_every_question():
    for question, form in FORMS.items():
        text = GENERATED.table(question)
        assert [name for name in form.model_fields if f"| `{name}` |" not in text] == []
    assert "| `variables.NAME.` `offered` |" in GENERATED.table("cases")
    assert "| `rules.` `support` |" in GENERATED.table("sequence")
