import pytest
import torch
from torch import Tensor, nn

from rehearsal_torch.data.trainable_part import Solved, forget, in_words


class Range(Solved):
    def __init__(self) -> None:
        super().__init__()
        self.register_fitted("lower")
        self.register_fitted("upper")
        self.register_buffer("shape_known", torch.zeros(2))
        self.lower: Tensor
        self.upper: Tensor

    def solve(self, *examples: Tensor) -> None:
        (rows,) = examples
        self.lower, self.upper = rows.amin(0), rows.amax(0)


def test_what_fitting_learns_is_loaded_in_the_size_it_had():
    part, other = Range(), Range()
    part.solve(torch.rand(5, 3))
    assert other.lower.shape == (0,)
    outer, another = nn.Sequential(part), nn.Sequential(other)
    another.load_state_dict(outer.state_dict())
    assert torch.equal(other.lower, part.lower)
    assert torch.equal(other.upper, part.upper)
    assert other.lower.dtype == torch.float32


def test_loading_still_refuses_what_does_not_fit():
    state = Range().state_dict()
    del state["upper"]
    with pytest.raises(RuntimeError, match="upper"):
        Range().load_state_dict(state)
    with pytest.raises(RuntimeError, match="shape_known"):
        Range().load_state_dict({**Range().state_dict(), "shape_known": torch.zeros(3)})


def test_a_fitted_part_shares_no_memory_with_the_state_it_loaded():
    part, other = Range(), Range()
    part.solve(torch.rand(5, 3))
    other.load_state_dict(part.state_dict())
    part.lower += 1
    assert not torch.equal(other.lower, part.lower)


def test_a_part_that_forgets_is_as_before_the_fit_and_leaves_its_state_to_others():
    part = Range()
    part.solve(torch.rand(5, 3))
    state = part.state_dict()
    forget(nn.Sequential(part))
    assert not part.fitted
    assert part.shape_known.shape == (2,)
    part.load_state_dict(state, assign=True)
    assert part.lower.data_ptr() == state["lower"].data_ptr()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("models.0.mechanism.blind", "model 1 of the ensemble"),
        ("mechanism", "the model"),
        ("", "the model"),
        ("part", "the model"),
        ("encoder.first", "the part encoder.first of the model"),
    ],
)
def test_a_part_is_called_by_what_it_is(name, words):
    assert in_words(name) == words
