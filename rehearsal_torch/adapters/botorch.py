"""A causal world as a test function of BoTorch.

    f(a) = E[r | a]     `evaluate_true`, `f(a, noise=False)`
    f(a) + noise        the reward of one experiment, `f(a)`

The noise is that of the nodes, propagated through the system, so it depends on the action and need not be
Gaussian. Functions are to be maximised; `negate` turns them into minimisation problems, as BoTorch's own do.

Source: the protocol of BoTorch's `SyntheticTestFunction`; Balandat et al. (2020).
"""

from botorch.test_functions.synthetic import SyntheticTestFunction
from torch import Tensor

from rehearsal_torch.problems.causal.world import CausalWorld


class WorldFunction(SyntheticTestFunction):
    """The expected reward of a causal world, as a test function.

    Args:
        world: The causal system.
        negate: Whether to negate the function, for minimisation.

    Attributes:
        dim: Number of actions.
        bounds: (2, dim), lower and upper bounds of the actions.
        optimal_value: The largest expected reward (the minimum of its negative under `negate`).
        optimizers: (1, dim), an action that attains it.
    """

    _is_minimization_by_default = False
    _check_grad_at_opt = False

    def __init__(self, world: CausalWorld, negate: bool = False) -> None:
        self.dim = len(world.task.actions)
        self.continuous_inds = list(range(self.dim))
        self._bounds = list(world.task.box.bounds().values())
        self._optimal_value = world.optimal_value
        self._optimizers = [tuple(world.optimal_action.tolist())]
        super().__init__(negate=negate)
        self.world, self._calls = world, 0

    def _evaluate_true(self, X: Tensor) -> Tensor:
        """E[r | a] of actions, (..., dim) -> (...)."""
        return self.world.expected(X)

    def forward(self, X: Tensor, noise: bool = True) -> Tensor:
        """Rewards, (..., dim) -> (...): of one simulated experiment each, or expected. The n-th call with
        noise returns the same rewards in every process.

        Args:
            X: Actions.
            noise: Whether to simulate noisy experiments instead of returning the expected rewards.
        """
        if not noise:
            return super().forward(X, noise=False)
        self._calls += 1
        flat = X.reshape(-1, self.dim)
        nodes = self.world.simulate(flat, self.world.noise_rows(len(flat), self.world.stream(3, self._calls)))
        rewards = self.world.rewards(nodes).reshape(X.shape[:-1])
        return -rewards if self.negate else rewards
