"""Columns of numbers: what is read, and where a fault is said to stand."""

import gzip

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.reading import TableError, number_columns, table_file


def test_numbers_are_read_in_the_order_asked_for(tmp_path):
    (tmp_path / "table.csv").write_text('a, b,"c"\n1, 2.5,x\n-3e-1,4,y\n')
    frame = table_file(tmp_path / "table.csv")
    expected = torch.tensor([[2.5, 1.0], [4.0, -0.3]], dtype=torch.float64)
    torch.testing.assert_close(number_columns(frame, ["b", "a"], "table"), expected, rtol=0, atol=0)
    torch.testing.assert_close(
        number_columns(frame, ["b", "a"], "table", keep=[1]), expected[1:], rtol=0, atol=0
    )


def test_files_may_be_packed(tmp_path):
    with gzip.open(tmp_path / "table.csv.gz", "wt") as file:
        file.write("a\n1\n2\n")
    assert number_columns(table_file(tmp_path / "table.csv.gz"), ["a"], "table").flatten().tolist() == [
        1.0,
        2.0,
    ]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["1", "2", "3,5"], "expected numbers; got '3,5' in line 4"),
        ([1.0, None, 2.0], "1 of 3 values are missing or infinite in line 3"),
        ([1.0, 2.0, float("inf")], "missing or infinite in line 4"),
        ([2, 2, 2], "all 3 values are 2: a constant says nothing"),
    ],
)
def test_faults_say_where_they_stand(column, words):
    with pytest.raises(TableError) as told:
        number_columns(pd.DataFrame({"a": column}), ["a"], "table", varying=True)
    assert words in str(told.value)


def test_truth_values_count_as_numbers():
    assert number_columns(pd.DataFrame({"a": [True, False]}), ["a"], "table").flatten().tolist() == [1.0, 0.0]


def test_lines_are_those_of_the_file_when_rows_are_picked():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, None]})
    with pytest.raises(TableError, match="1 of 2 values are missing or infinite in line 5"):
        number_columns(frame, ["a"], "table", keep=[0, 3])
