"""What is said of the memory before a long fit."""

import pytest

from rehearsal_torch.files import memory
from rehearsal_torch.files.memory import free, memory_note


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [("max", "5", 2_048_000), ("1000000", "400000", 600_000), (None, None, 2_048_000)],
)
def test_the_free_memory_is_that_of_the_machine_or_of_its_container(
    tmp_path, monkeypatch, limit, used, expected
):
    (tmp_path / "meminfo").write_text("MemTotal: 4000 kB\nMemAvailable:    2000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    for name, content in (("_LIMIT", limit), ("_USED", used)):
        monkeypatch.setattr(memory, name, tmp_path / name)
        if content is not None:
            (tmp_path / name).write_text(content)
    assert free() == expected


def test_only_fits_that_take_more_than_half_of_it_are_spoken_of(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 10_000_000_000)
    assert memory_note("rehearse", 3_000_000, 5) == ""
    words = memory_note("rehearse", 10_000_000, 5)
    assert words.startswith(
        "fits to 10,000,000 rows of 5 columns take about 13.5 GB, more than half of the 10"
    )
    assert memory_note("look_back", 10_000_000, 10) == ""
    assert memory_note("optimise", 10**9, 10) == ""
    monkeypatch.setattr(memory, "free", lambda: None)
    assert memory_note("rehearse", 10**9, 10) == ""
