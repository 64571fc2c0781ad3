import pytest

from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.rows import ends_incomplete, read_rows

WHOLE = "who,seed,value\nann,0,0.5\n\nbob,1,\n"


def test_rows_are_read_as_they_stand(tmp_path):
    assert read_rows(tmp_path / "none.csv", ("who",)) == []
    (tmp_path / "a.csv").write_text(f"{WHOLE}cid,2,")
    assert ends_incomplete(tmp_path / "a.csv")
    found = read_rows(tmp_path / "a.csv", ("who", "seed"), ("value",), ("seed",))
    assert [(row["who"], row["seed"], row["value"]) for row in found] == [
        ("ann", "0", "0.5"),
        ("bob", "1", ""),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WHOLE.replace("who", "name").encode(), r"expected the columns who; got 'name,seed,value'"),
        (WHOLE.replace("who", "seed").encode(), r"expected the columns who"),
        (WHOLE.replace("who,seed", "who,who").encode(), r"expected the columns seed"),
        (
            WHOLE.replace("bob,1,", "bob,1").encode(),
            r"line 4: expected 3 cells, as many as the header has; got 2",
        ),
        (WHOLE.replace("0.5", "hot").encode(), r"line 2, value: expected a number; got 'hot'"),
        (WHOLE.replace("bob,1", "bob,1.5").encode(), r"line 4, seed: expected a whole number; got '1.5'"),
        (WHOLE.replace("ann", '"ann').encode(), r"line \d: expected comma-separated cells"),
        (WHOLE.replace("ann", "a\0n").encode(), r"line 2"),
        (WHOLE.encode("utf-16"), r"expected text in UTF-8; it looks like UTF-16"),
    ],
)
def test_what_nobody_wrote_so_is_refused_by_line(tmp_path, content, said):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(PlainFileError, match=said):
        read_rows(tmp_path / "a.csv", ("who", "seed"), ("value",), ("seed",))
