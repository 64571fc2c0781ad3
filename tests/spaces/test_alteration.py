import pytest
import torch

from rehearsal_torch.spaces.alteration import Alteration


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
