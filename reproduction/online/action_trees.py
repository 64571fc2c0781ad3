"""Continuous actions by trees with smoothing (CATS).

    the leaves of a binary tree divide the range of an action into K bins; a linear classifier in each node
    leads a context to the bin with the smallest expected cost; the action is uniform within a bandwidth
    around the centre of the bin or, with probability epsilon, uniform over the whole range

The nodes learn from costs weighted by the inverse density of the action. The implementation is that of Vowpal
Wabbit (`--cats`); needs `pip install "rehearsal-torch[rl]"`.

A tree has a one-dimensional action. If a round alters one of m variables, their ranges are concatenated to
[0, m], so that one tree selects both variable and value. If it alters all variables of a single candidate
set, each variable has its own tree, and all trees learn from the same reward. Qin et al. (2023) do not
describe this; both constructions are ours.

An untrained tree selects its first bin except for exploration. To avoid a preference for the first variable
and for the lower end of a range, order and directions are drawn once per run, unless `shuffled=False`.

Source: Majzoubi et al. (2020), Alg. 1 and 2.
"""

from importlib import import_module
from typing import Any, final

import numpy as np

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.seeding import numpy_generator
from reproduction.online.agent import Agent


@final
class ActionTrees(Agent):
    """CATS.

    Args:
        bins: K for each variable, a power of 2; a tree of m variables has m K bins, rounded up to a power
            of 2.
        bandwidth: Half-width of the smoothing, as a fraction of a variable's range.
        epsilon: Probability of exploration.
        shuffled: Whether order and directions of the variables are drawn at random.

    Raises:
        ValueError: if K is not a power of 2, or bandwidth or epsilon is outside (0, 1).
    """

    def __init__(
        self, bins: int = 8, bandwidth: float = 0.125, epsilon: float = 0.05, shuffled: bool = True
    ) -> None:
        if bins < 2 or bins & (bins - 1) or not 0 < bandwidth < 1 or not 0 < epsilon < 1:
            raise ValueError(
                f"expected a power of 2 of bins, and bandwidth and epsilon in (0, 1); got {bins}, "
                f"{bandwidth} and {epsilon}"
            )
        self.bins, self.bandwidth, self.epsilon, self.shuffled = bins, bandwidth, epsilon, shuffled

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`.

        Raises:
            ValueError: for several candidate sets of which one has several variables.
        """
        code: AlterationCode = environment.unwrapped.code
        if code.choices and any(len(names) > 1 for names in code.candidates):
            raise ValueError(
                "expected candidate sets of one variable each, or a single one; got "
                f"{[list(names) for names in code.candidates]}"
            )
        ranges = [float(code.choices)] if code.choices else [1.0] * len(code.names)
        order, signs = np.arange(len(code.names)), np.ones(len(code.names))
        if self.shuffled:
            stream = numpy_generator(seed)
            order, signs = stream.permutation(order), stream.choice([-1.0, 1.0], len(signs))
        trees = [self._tree(width, seed + place) for place, width in enumerate(ranges)]
        for _ in range(rounds):
            context, _ = environment.reset()
            features = "| " + " ".join(f"x{place}:{value:.6f}" for place, value in enumerate(context))
            drawn = [tree.predict(features) for tree in trees]
            _, reward, *_ = environment.step(_point(code, [action for action, _ in drawn], order, signs))
            for tree, (action, density) in zip(trees, drawn, strict=True):
                tree.learn(f"ca {action:.6f}:{-reward:g}:{density:.6g} {features}")
        for tree in trees:
            tree.finish()

    def _tree(self, width: float, seed: int) -> Any:
        leaves = 1 << (round(self.bins * width) - 1).bit_length()
        options = (
            f"--cats {leaves} --min_value 0 --max_value {width:g} --bandwidth {self.bandwidth:g} --epsilon "
            f"{self.epsilon:g} --random_seed {seed + 1}"
        )
        return import_module("vowpalwabbit").Workspace(f"{options} --quiet")


def _point(code: AlterationCode, actions: list[float], order: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The point of the environment's cube for the actions of the trees."""
    if not code.choices:
        return (signs * (2 * np.asarray(actions) - 1)).astype(np.float32)
    stretch = min(int(actions[0]), code.choices - 1)
    place = int(order[stretch])
    point = np.zeros(code.size, dtype=np.float32)
    point[: code.choices] = -1.0
    point[code.candidates.index((code.names[place],))] = 1.0
    point[code.choices + place] = signs[place] * (2 * (actions[0] - stretch) - 1)
    return point
