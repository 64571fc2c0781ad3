"""Random closed forms of a step, and episodes of them."""

import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.mechanisms.bent_transition import BENDS, LATER, BentTransition
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge

DOUBLE = torch.float64


def fill(
    form: BentTransition, seed: int, held: int = 0, within: float = 0.5, size: float = 1.0, bent: float = 1.0
) -> BentTransition:
    """Random numbers for a form: the first `held` states are not moved by any action, `within` is the share
    of causes among the others, `size` multiplies effects of states, and `bent` those that are no lines.
    """
    stream, width, form.refits = torch.Generator().manual_seed(seed), form.outputs, 1

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=stream, dtype=DOUBLE)

    others = form._sizes["centre"][0] - width
    own, pairs = 1 + width + others, width * (width + 1) // 2
    marks = len(form.doses.names) * (form.doses.count - 1)
    form.centre, form.spread = draw(width + others), 0.5 + draw(width + others).abs()
    form.ends = torch.stack([-1.5 - draw(width).abs(), 1.5 + draw(width).abs()])
    form.early = draw(2, BENDS, width).clamp(-1.4, 1.4).sort(1).values
    form.late = draw(2, LATER, width).clamp(-1.4, 1.4).sort(1).values
    order = torch.cat([torch.arange(held), held + torch.randperm(width - held, generator=stream)])
    place = order.argsort()
    causes = (draw(width, width).abs() < within) & (place.unsqueeze(1) < place) & (place >= held)
    doses = torch.cat([draw(marks, 1, width), 0.2 * bent * draw(marks, own - 1, width)], 1)
    late = 0.4 * draw(width, 1 + LATER, width) * causes.unsqueeze(1)
    late[:, 1:] *= bent
    form.weights = torch.cat(
        [
            0.4 * size * draw(own, width),
            0.3 * size * bent * draw(BENDS * width, width),
            0.1 * size * bent * draw(pairs, width),
            doses.flatten(0, 1),
            0.1 * draw(width, width),
            late.flatten(0, 1),
        ]
    )
    # Of what they are alone, states forget a part.
    form.weights[1 : 1 + width] -= 0.4 * torch.eye(width).to(DOUBLE)
    form.refitted, form.kappa, form.reduced = form.weights.unsqueeze(0), draw(width).abs(), draw(width).abs()
    form.unmoved = (torch.arange(width) < held).to(DOUBLE)
    form.causes, form.order = causes.to(DOUBLE), order.to(DOUBLE)
    return form


def bent_form(seed: int, width: int = 3, others: int = 1, drugs: int = 1, levels: int = 3, **filled: float):
    """A form of given sizes."""
    doses = DoseLevels([f"drug{place}" for place in range(drugs)], levels).fix([list(range(levels))] * drugs)
    return fill(BentTransition(width, others, doses), seed, **filled)


def bent_episode(
    seed: int,
    horizon: int = 5,
    changes: int = 2,
    levels: int = 3,
    drugs: int = 1,
    width: int = 3,
    fixed: tuple[int, ...] = (),
    **filled: float,
) -> CounterfactualReturn:
    """An episode of a random form, with a linear reward of two states."""
    names, doses = [f"x{place}" for place in range(width)], [f"drug{place}" for place in range(drugs)]
    model, stream = (
        TransitionRidge(names, ["age"], [], doses, levels),
        torch.Generator().manual_seed(seed + 1),
    )
    model.rescale.fix({name: (-3.0, 5.0) for name in [*names, "age"]})
    model.levels.fix([list(range(levels))] * drugs)
    for form in model.halves.forms:
        fill(form, seed, **filled)
    states = 1 + 2 * torch.randn(horizon, width, generator=stream, dtype=DOUBLE)
    given = torch.randint(levels, (horizon, drugs), generator=stream).to(DOUBLE)
    values = torch.cat([states, torch.ones(horizon, 1, dtype=DOUBLE), given], 1)
    episode, shut = Episode(f"bent-{seed}", (*names, "age", *doses), values), torch.zeros(horizon)
    shut[[step for step in fixed if step < horizon]] = 1
    reward = LinearReward({"x0": -1.0, f"x{width - 1}": 0.5})
    return CounterfactualReturn(model, EpisodeCase(episode, shut.bool()), reward, changes)
