"""The search for the best action."""

import torch

from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.spaces.box import Box

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
