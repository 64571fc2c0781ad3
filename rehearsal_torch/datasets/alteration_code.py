"""Alterations as points of a cube, for agents that know no names.

An agent answers with a point of [-1, 1]^(m + k), m candidate sets and k variables that stand in some of them: the largest of
the first m numbers chooses the set, and the others are the values, -1 the lower and 1 the upper bound; those of variables
outside the set are ignored. With a single candidate set there is nothing to choose, and m = 0.

Source: Qin et al. (2023), Sec. 6 (reinforcement learning on the same task; how an agent's action is read is our choice).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.spaces.alteration import Alteration


class AlterationCode:
    """The cube of a task's alterations.

    Args:
        task: Who plays which part.

    Attributes:
        choices: m.
        names: The k variables.
        size: m + k.
    """

    def __init__(self, task: RehearsalTask) -> None:
        self.candidates = task.candidates
        self.names = tuple(name for name in task.box.names if any(name in names for names in task.candidates))
        self.box = task.box.only(self.names)
        self.choices = len(self.candidates) if len(self.candidates) > 1 else 0
        self.size = self.choices + len(self.names)

    def decode(self, point: Sequence[float] | Tensor) -> Alteration:
        """The alteration that a point stands for; points outside the cube are moved to its surface.

        Raises:
            ValueError: if the point has another size, or is not a number somewhere.
        """
        numbers = torch.as_tensor(point, dtype=torch.float64).detach().reshape(-1)
        if len(numbers) != self.size or not bool(numbers.isfinite().all()):
            raise ValueError(f"expected {self.size} finite numbers, {self.choices} for the set and one each for {list(self.names)}; got {numbers.tolist()}")
        names = self.candidates[int(numbers[: self.choices].argmax())] if self.choices else self.candidates[0]
        values = self.box.lower + (numbers[self.choices :].clamp(-1.0, 1.0) + 1) / 2 * self.box.width
        return Alteration(names, values[[self.names.index(name) for name in names]])

    def encode(self, alteration: Alteration) -> Tensor:
        """A point that stands for an alteration of a candidate set, (m + k,); variables outside the set are in the middle.

        Raises:
            ValueError: if it alters no candidate set.
        """
        if tuple(alteration.names) not in self.candidates:
            raise ValueError(f"expected an alteration of one of {[list(names) for names in self.candidates]}; got {list(alteration.names)}")
        point = torch.zeros(self.size, dtype=torch.float64)
        if self.choices:
            point[: self.choices] = -1.0
            point[self.candidates.index(tuple(alteration.names))] = 1.0
        for name, value in zip(alteration.names, alteration.values, strict=True):
            place = self.names.index(name)
            width = self.box.width[place].clamp_min(1e-300)
            point[self.choices + place] = 2 * (value - self.box.lower[place]) / width - 1
        return point
