import pytest
import torch

from rehearsal_torch.problems.trials.global_maximum import best_action, highest
from rehearsal_torch.spaces.box import Box

PEAKS = torch.tensor([[0.31, -0.77, 0.12], [2.0, 0.4, -0.9]], dtype=torch.float64)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_peaks_inside_and_beyond_the_box(width):
    box = Box(tuple("abc"[:width]), [-1.0] * width, [1.0] * width)
    wanted = box.project(PEAKS[:, :width])
    found, value = highest(lambda points: (-(points - PEAKS[:, :width]).square().sum(-1)).exp(), box, 2)
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-3)
    torch.testing.assert_close(
        value, (-(wanted - PEAKS[:, :width]).square().sum(-1)).exp(), rtol=0, atol=1e-5
    )


def test_the_higher_of_two_hills_is_found_though_it_is_the_narrower():
    box = Box(("a", "b"), [-1.0, -1.0], [1.0, 1.0])
    broad, narrow = (
        torch.tensor([-0.5, 0.0], dtype=torch.float64),
        torch.tensor([0.5333, 0.4777], dtype=torch.float64),
    )

    def value(points):
        return (
            0.8 * (-(points - broad).square().sum(-1)).exp()
            + (-(points - narrow).square().sum(-1) / 0.004).exp()
        )

    found, _ = highest(value, box, 1)
    torch.testing.assert_close(found[0], narrow, rtol=0, atol=5e-3)


def test_a_plateau_is_no_obstacle():
    found, value = highest(
        lambda points: torch.zeros(points.shape[:-1], dtype=torch.float64), Box(("a",), [0.0], [1.0]), 3
    )
    assert found.shape == (3, 1)
    assert (value == 0).all()


def test_too_many_variables_are_refused():
    with pytest.raises(ValueError, match="not feasible"):
        highest(lambda points: points.sum(-1), Box(tuple("abcd"), [0.0] * 4, [1.0] * 4), 1)


BOX = Box.of({"a": (-2.0, 4.0), "b": (0.0, 10.0)})


def test_it_finds_the_higher_of_two_hills():
    peaks = torch.tensor([[0.0, 2.0], [3.0, 8.0]], dtype=torch.float64)

    def value(actions):
        return (
            torch.tensor([1.0, 1.2]) * torch.exp(-4 * ((actions[..., None, :] - peaks) ** 2).sum(-1))
        ).sum(-1)

    action, reached = best_action(value, BOX)
    torch.testing.assert_close(action, peaks[1], rtol=0, atol=1e-4)
    assert reached == float(value(action[None])[0])
    again, _ = best_action(value, BOX)
    assert torch.equal(action, again)


def test_it_stops_at_the_bounds_and_takes_starts():
    action, reached = best_action(lambda actions: actions.sum(-1), BOX, spread=2, refined=1)
    assert action.tolist() == [4.0, 10.0]
    assert reached == 14.0
    # A needle that only the start knows of.
    needle = torch.tensor([1.2345, 6.789], dtype=torch.float64)
    action, reached = best_action(
        lambda actions: (1 - 1e8 * ((actions - needle) ** 2).sum(-1)).clamp_min(0) + 0 * actions.sum(-1),
        BOX,
        needle[None],
    )
    assert reached == 1.0
