"""Parquet and Feather files, and what is none."""

import sys
from decimal import Decimal

import pandas as pd
import pytest

from rehearsal_torch.data.reading import number_columns, number_faults
from rehearsal_torch.data.tables import columnar
from rehearsal_torch.data.tables.columnar import TableError, read_columnar

FRAME = pd.DataFrame(
    {
        "a": [1.5, 2.5],
        "yes": [True, False],
        "kind": pd.Categorical(["x", "y"]),
        "when": pd.to_datetime(["2024-01-02", "2024-01-03"]),
        "price": [Decimal("1.25"), Decimal("2.50")],
    }
)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_columns_are_numbers_or_text(tmp_path, name):
    getattr(FRAME, f"to_{name[2:]}")(tmp_path / name)
    frame = read_columnar(tmp_path / name).frame
    assert number_columns(frame, ["a", "yes", "price"], "t").tolist() == [[1.5, 1.0, 1.25], [2.5, 0.0, 2.5]]
    faults = number_faults(frame, ["kind", "when"])
    assert "kind: expected numbers; got 'x' in line 2" in faults[0]
    assert "when: expected numbers; got '2024-01-02T00:00:00' in line 2" in faults[1]


def test_damaged_notes_of_pandas_do_not_matter(tmp_path):
    FRAME[["a"]].to_feather(tmp_path / "t.feather")
    content = (tmp_path / "t.feather").read_bytes()
    assert b"pandas_version" in content
    (tmp_path / "t.feather").write_bytes(content.replace(b"pandas_version", b"pandas_\xcb\xcbrsion"))
    assert read_columnar(tmp_path / "t.feather").frame["a"].tolist() == [1.5, 2.5]


def test_an_index_without_a_name_is_no_column(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9]).to_parquet(tmp_path / "t.parquet")
    assert list(read_columnar(tmp_path / "t.parquet").frame.columns) == ["a"]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_damaged_and_large_files_are_refused(tmp_path, monkeypatch, name):
    FRAME.to_csv(tmp_path / name, index=False)
    with pytest.raises(TableError, match=f"{name} is not a (Parquet|Feather) file, or is damaged"):
        read_columnar(tmp_path / name)
    getattr(FRAME, f"to_{name[2:]}")(tmp_path / name)
    monkeypatch.setattr(columnar, "CELLS", 5)
    with pytest.raises(TableError, match="and 5 cells; there are more"):
        read_columnar(tmp_path / name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="pyarrow, which reads it, is not installed"):
        read_columnar(tmp_path / name)
