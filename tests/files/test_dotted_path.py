import pytest

from rehearsal_torch.files.dotted_path import defined_in, found_at, mappings
from rehearsal_torch.run_folder import RunFolder


def test_what_a_module_defines_is_found():
    assert defined_in("rehearsal_torch.run_folder.RunFolder", ["rehearsal_torch"]) is RunFolder
    assert found_at("rehearsal_torch.run_folder.Path").__module__ == "pathlib"


@pytest.mark.parametrize(
    "target",
    ["rehearsal_torch.run_folder.Path", "rehearsal_torch.run_folder.RunFolder.lock",
    "rehearsal_torch.run_folder._cells",
     "rehearsal_torch_too.run_folder.RunFolder",
     "os.mkdir", "rehearsal_torch", "rehearsal_torch.none.Thing", "", "..", 3, None],
)  # fmt: skip
def test_nothing_else_is(target):
    assert defined_in(target, ["rehearsal_torch"]) is None


def test_every_mapping_has_a_place():
    plain = {"a": {"b": 1}, "c": [{"d": 2}, 3, [{"e": {}}]]}
    places = [place for place, _ in mappings(plain, "top")]
    assert places == ["top", "top.a", "top.c[0]", "top.c[2][0]", "top.c[2][0].e"]
    assert [place for place, _ in mappings([{"a": {}}])] == ["[0]", "[0].a"]
    assert list(mappings("text")) == []
