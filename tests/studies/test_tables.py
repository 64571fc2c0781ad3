"""Tables and orders of rows."""

from rehearsal_torch.studies.tables import distinct, ordered, table


def test_cells_stand_below_their_headings_and_missing_ones_are_marked():
    rows = [{"world": "bank", "a": "1"}, {"world": "loan", "b": "2"}]
    assert table(rows) == [
        "| world | a | b |",
        "| --- | ---: | ---: |",
        "| bank | 1 | - |",
        "| loan | - | 2 |",
    ]
    assert table(rows, ["b", "world"])[0] == "| b | world |"


def test_each_item_once():
    assert distinct(["b", "a", "b"]) == ["b", "a"]


def test_rows_follow_the_lists_and_then_their_appearance():
    rows = [
        {"world": world, "seed": seed} for world, seed in (("z", 2), ("b", 1), ("y", 0), ("a", 4), ("b", 0))
    ]
    found = ordered(rows, (lambda row: row["world"], ["a", "b"]))
    assert [(row["world"], row["seed"]) for row in found] == [
        ("a", 4),
        ("b", 1),
        ("b", 0),
        ("z", 2),
        ("y", 0),
    ]


def test_the_first_order_decides_before_the_second():
    rows = [{"world": world, "method": method} for world in ("b", "a") for method in ("n", "m")]
    found = ordered(rows, (lambda row: row["world"], ["a", "b"]), (lambda row: row["method"], ["m", "n"]))
    assert [row["world"] + row["method"] for row in found] == ["am", "an", "bm", "bn"]
