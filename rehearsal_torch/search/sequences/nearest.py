"""Among sequences of equal return, one near to what was done: changes that gain nothing are undone.

A search finds some sequence with the largest return; others may have the same one, since a change may have no
effect. Starting from the sequence found, two kinds of steps lead back towards the observed actions:

    a whole action    the observed action takes the place of a changed one
    a single dose     one dose of a changed action becomes that of the observed one, where the action with
                      these doses may be chosen

All of them, at most k (p + 1) sequences for k changes of p doses, are evaluated in one batch. Those whose
return equals that of the sequence found, up to the tolerance of the search, are taken: all together if that
holds for them jointly, else the first, with whole actions first. This is repeated until none is left.
Differences do not add up, since the return is always compared with that of the sequence found. A sequence on
which all members of an ensemble agree (`objectives.guard`) is not exchanged for one on which they do not.

Where a step back gains, as it may after a search that has proven nothing, it is not taken: the answer stays
that of the search. Another sequence with the same return and fewer changes, at other time steps, is not
looked for.
"""

import math

import torch
from torch import Tensor

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.sequences.return_record import taken


@torch.no_grad()
def nearest(objective: CounterfactualReturn, sequence: Tensor, equal: float) -> tuple[Tensor, float]:
    """Undoes the changes of a sequence that gain nothing.

    Args:
        objective: The objective that was searched.
        sequence: The sequence found, (H,) long.
        equal: The difference up to which two returns count as equal, in the reward's unit.

    Returns:
        The sequence, (H,) long, and the return of the one found minus its own, in the reward's unit: at most
        `equal` either way.
    """
    if not bool((sequence != objective.observed).any()):
        return sequence, 0.0
    judge, value = _Judge(objective, sequence, equal), None
    while True:
        options = _options(objective, sequence)
        if not len(options):
            break
        values, held = judge(options)
        places = held.nonzero()[:, 0]
        if not len(places):
            break
        joint = _joint(sequence, options[places])
        sequence, value = options[places[0]], values[places[0]]
        if len(places) > 1:
            values, held = judge(joint.unsqueeze(0))
            sequence, value = (joint, values[0]) if bool(held) else (sequence, value)
    return sequence, 0.0 if value is None else judge.found - float(value)


class _Judge:
    """Whether sequences are equally good as the one found."""

    def __init__(self, objective: CounterfactualReturn, sequence: Tensor, equal: float) -> None:
        self.objective, self.equal = objective, equal
        self.several = objective.surrogate.members > 1 and objective.agreement == "all"
        self.before = objective.member_returns(objective.observed) if self.several else None
        values, agreed = self._evaluated(sequence.unsqueeze(0))
        self.found, self.agreed = float(values), bool(agreed)

    def __call__(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (n,) and whether each is equally good, (n,) bool, of sequences (n, H)."""
        values, agreed = self._evaluated(sequences)
        if not math.isfinite(self.found):
            return values, torch.zeros_like(agreed)
        held = (values - self.found).abs() <= self.equal
        # Doing as was done needs nobody's agreement.
        same = (sequences == self.objective.observed).all(-1)
        return values, held & (agreed | same) if self.agreed else held

    def _evaluated(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (n,), and whether every member predicts a gain, (n,) bool."""
        states = self.objective.replay(sequences)
        values = self.objective.returns(states, sequences)
        if self.before is None:
            return values, torch.ones_like(values, dtype=torch.bool)
        rewards = self.objective.member_rewards(states).transpose(-2, -3)
        actions = sequences.unsqueeze(1).expand(-1, rewards.shape[1], -1)
        return values, (taken(rewards, actions).sum(-1) > self.before).all(-1)


def _options(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """The sequences one step back, (n, H) long: with a whole action undone, then with a single dose."""
    observed = objective.observed
    table = objective.surrogate.doses(torch.arange(objective.actions, device=observed.device))
    changed = (sequence != observed).nonzero()[:, 0].tolist()
    replaced = [(step, int(observed[step])) for step in changed]
    for step in changed:
        own, other = table[observed[step]], table[sequence[step]]
        differs = (own != other).nonzero()[:, 0].tolist()
        for dose in differs if len(differs) > 1 else ():
            wanted = other.clone()
            wanted[dose] = own[dose]
            fits = ((table == wanted).all(-1) & objective.choices[step]).nonzero()[:, 0]
            replaced += [(step, int(fits[0]))] if len(fits) else []
    options = sequence.repeat(len(replaced), 1)
    for row, (step, action) in enumerate(replaced):
        options[row, step] = action
    return options


def _joint(sequence: Tensor, options: Tensor) -> Tensor:
    """All steps back at once, (H,) long and (n, H) -> (H,) long; of several at one time step, the first."""
    joint = sequence.clone()
    for option in options.flip(0):
        step = option != sequence
        joint[step] = option[step]
    return joint
