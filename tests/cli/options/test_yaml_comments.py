"""Comments, key by key."""

from rehearsal_torch.cli.options.yaml_comments import comments

TEXT = """\
# @package _global_
# What the file is for:
# in two lines.
_target_: lab.Ward  # the class
# How many.
# At least one.
rows: 3
beds: 4 # Not two.
name: "a # b"  # A hash inside quotes is none.
silent: 1

# Far away.

close: 2
# A part.
part:  # Of the ward.
  # Inside.
  depth: [1,
    2]  # Behind a list.
  deeper:
    # Below.
    last: null
"""


def test_a_key_has_the_comment_of_its_line_or_the_lines_above():
    found = comments(TEXT)
    assert found.header == "What the file is for: in two lines."
    assert found.keys == {
        ("_target_",): "the class",
        ("rows",): "How many. At least one.",
        ("beds",): "Not two.",
        ("name",): "A hash inside quotes is none.",
        ("part",): "Of the ward.",
        ("part", "depth"): "Behind a list.",
        ("part", "deeper", "last"): "Below.",
    }


def test_a_file_of_comments_alone_has_a_header():
    assert comments("# Nothing.\n{}\n") == comments("# Nothing.\n")
    assert comments("").header == ""
