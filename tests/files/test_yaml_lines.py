"""Lines of the keys of a YAML text."""

from rehearsal_torch.files.yaml_lines import line_at, lines_of

TEXT = """# a comment
data: t.csv

variables:
  a: {role: action, range: [0,
       1]}
  "two words.x": other
graph:
  - a -> b
  - b -> c
"""


def test_every_key_and_entry_has_its_line():
    lines = lines_of(TEXT)
    assert lines["data"] == 2
    assert lines["variables.a"] == lines["variables.a.role"] == lines["variables.a.range[0]"] == 5
    assert lines["variables.a.range[1]"] == 6
    assert lines["variables.'two words.x'"] == 7
    assert (lines["graph"], lines["graph[0]"], lines["graph[1]"]) == (8, 9, 10)


def test_a_path_that_does_not_exist_has_the_line_of_what_would_hold_it():
    lines = lines_of(TEXT)
    assert line_at(lines, "variables.a.levels[3]") == 5
    assert line_at(lines, "variables.b") == 4
    assert line_at(lines, "graph[7].x") == 8
    assert line_at(lines, "desired") is None
    assert lines_of("just text") == {}
    assert lines_of("") == {}
