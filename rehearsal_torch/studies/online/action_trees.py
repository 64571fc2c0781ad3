"""Continuous actions by trees with smoothing (CATS).

    leaves cut the range of an action into K bins; a linear classifier in each node of the tree sends a
    context to the bin of least expected cost; the action is uniform within a bandwidth of the bin's centre,
    or, with probability epsilon, anywhere

The nodes learn from costs weighted by the inverse of the density with which the action was drawn. The
implementation is that of Vowpal Wabbit (`--cats`); needs `pip install "rehearsal-torch[rl]"`.

A tree has one action. Where a round alters one of m variables, the ranges of all m are laid end to end, [0,
m], and the tree chooses variable and value at once. Where it alters all of a single candidate set, each
variable has a tree of its own, and all learn from the same reward. Both readings are ours; Qin et al. (2023)
say nothing of it.

A tree that knows nothing goes to its first bin, over and over, but for exploration. So that it does not
matter which variable comes first and which end of its range is the lower, order and directions are drawn once
a run; `shuffled=False` does not.

Source: Majzoubi et al. (2020), Alg. 1 and 2.
"""

from importlib import import_module
from typing import Any, final

import numpy as np

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.studies.online.agent import Agent


@final
class ActionTrees(Agent):
    """CATS.

    Args:
        bins: K for each variable, a power of 2; the tree of m variables has the next power of 2 from m K on.
        bandwidth: Of smoothing, in shares of a variable's range.
        epsilon: Share of rounds that explore.
        shuffled: Whether order and directions are drawn.

    Raises:
        ValueError: if K is no power of 2, or bandwidth or epsilon is outside (0, 1).
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
            ValueError: where a set of several variables stands beside others: a tree has one action.
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
            seen, _ = environment.reset()
            words = "| " + " ".join(f"x{place}:{value:.6f}" for place, value in enumerate(seen))
            drawn = [tree.predict(words) for tree in trees]
            _, reward, *_ = environment.step(_point(code, [action for action, _ in drawn], order, signs))
            for tree, (action, density) in zip(trees, drawn, strict=True):
                tree.learn(f"ca {action:.6f}:{-reward:g}:{density:.6g} {words}")
        for tree in trees:
            tree.finish()

    def _tree(self, width: float, seed: int) -> Any:
        leaves = 1 << (round(self.bins * width) - 1).bit_length()
        told = (
            f"--cats {leaves} --min_value 0 --max_value {width:g} --bandwidth {self.bandwidth:g} --epsilon "
            f"{self.epsilon:g} --random_seed {seed + 1}"
        )
        return import_module("vowpalwabbit").Workspace(f"{told} --quiet")


def _point(code: AlterationCode, actions: list[float], order: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The point of the cube that an action in [0, m], or one in [0, 1] for each variable, stands for.

    Args:
        code: The cube.
        actions: One, or one for each variable.
        order: Where each stretch of [0, m] leads, among the variables.
        signs: 1 or -1 for each variable: whether its range is run through upwards.
    """
    if not code.choices:
        return (signs * (2 * np.asarray(actions) - 1)).astype(np.float32)
    stretch = min(int(actions[0]), code.choices - 1)
    place = int(order[stretch])
    point = np.zeros(code.size, dtype=np.float32)
    point[: code.choices] = -1.0
    point[code.candidates.index((code.names[place],))] = 1.0
    point[code.choices + place] = signs[place] * (2 * (actions[0] - stretch) - 1)
    return point
