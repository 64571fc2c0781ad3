import pytest
import torch

from rehearsal_torch.spaces.box import Alteration, setting_text


def test_names_and_values_agree():
    made = Alteration(["a", "b"], torch.zeros(4, 2))
    assert made.names == ("a", "b")
    assert Alteration((), torch.zeros(0)).names == ()


@pytest.mark.parametrize(
    ("names", "values", "sentence"),
    [
        (("a",), torch.zeros(2), r"shape \(\.\.\., 1\)"),
        (("a",), torch.tensor(1.0), r"got \(\)"),
        (("a", "a"), torch.zeros(2), "each variable once"),
    ],
)
def test_contradictions_are_refused(names: tuple[str, ...], values: torch.Tensor, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Alteration(names, values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (-3.0, "-3"),
        (1e7 + 0.7, "10000000.7"),
        (1.6e9 + 0.25, "1600000000.25"),
        (1e-7, "1e-07"),
        (12345.0, "12345"),
    ],
)
def test_a_setting_keeps_its_digits_behind_an_offset(value, text):
    assert setting_text(value) == text
