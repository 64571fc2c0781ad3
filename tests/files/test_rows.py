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
