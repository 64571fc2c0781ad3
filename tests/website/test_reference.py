"""The API reference names every public name where it is defined, and every module once."""

import re

import pytest

import rehearsal_torch
from tests.house.layers import PACKAGE, ROOT, modules
from website.reference import pages, public, rooms

FOUND = {name: (path, summary) for name, path, summary in public(ROOT / PACKAGE)}


def test_every_public_name_is_listed_where_it_is_defined():
    assert list(FOUND) == list(rehearsal_torch.__all__)
    for name, (path, summary) in FOUND.items():
        assert path == f"{getattr(rehearsal_torch, name).__module__}.{name}"
        assert summary.endswith((".", ",", ";", ":")) or summary, f"{name} has no docstring"


def test_every_module_stands_in_one_room():
    listed = [module for each in rooms(ROOT / PACKAGE).values() for module in each]
    paths = [path for path in modules() if path.name not in ("__init__.py", "__main__.py")]
    expected = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_pages_link_names_to_modules_that_have_a_page():
    made = pages(ROOT / PACKAGE)
    documented = {found for text in made.values() for found in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    for path, _ in FOUND.values():
        assert f"][{path}] |" in made["index.md"]
        assert path.rpartition(".")[0] in documented


def test_a_name_from_nowhere_is_an_error(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").write_text("__all__ = ['Till']\n")
    with pytest.raises(KeyError, match="Till"):
        list(public(tmp_path / "shop"))
