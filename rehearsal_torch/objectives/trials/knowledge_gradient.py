"""BoTorch's knowledge gradient on a causal network.

The value of an action is the largest posterior mean of the reward after it has been tried, on average over F
fantasies of its outcome,

    alpha(a) = 1/F sum_f max over a' of E[r | a', D + (a, x_f)],

x_f all nodes' values, noise included, drawn through the graph; every node is conditioned on its own. Here a'
is the action itself or one of a few fixed ones: the visited and space-filling actions with the largest
posterior mean. With each fantasy's best a' held, the value and its gradient are those of
`qKnowledgeGradient`, to which they are passed as its fantasy points: the derivative of a maximum is that at
the maximiser.

The value depends on a alone. BoTorch's one-shot form optimises the F actions a' jointly with a: F + 1 times
as many coordinates.

Source: Frazier et al. (2009), Eq. 2.3 (over finitely many alternatives); Balandat et al. (2020), Sec. 4.2 and
App. C (the class); Milgrom and Segal (2002), Th. 1 (the derivative).
"""

from typing import Any, ClassVar, final

import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.objectives.trials.improvement import incumbent
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.surrogate import Surrogate

# Space-filling actions of which those with the largest posterior mean are alternatives.
SPREAD = 256
# Number of candidates that are evaluated together.
PART = 32
# Outcomes in the screening of candidates.
SCREENING_FANTASIES = 4


class FiniteKnowledgeGradient(qKnowledgeGradient):
    """qKG with the F fantasies' points chosen among given ones, `alternatives` (c, k), and the candidate,
    (..., 1, k) -> (...).
    """

    def __init__(
        self,
        model: NetworkModel,
        alternatives: Tensor,
        sampler: SobolQMCNormalSampler,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model, sampler.sample_shape[0], sampler=sampler, X_pending=X_pending)
        self.alternatives = alternatives

    def forward(self, X: Tensor) -> Tensor:
        """The value of candidates (..., 1, k), without fantasy points, (...); a part of them at a time."""
        flat = X.reshape(-1, 1, X.shape[-1])
        return torch.cat([self._part(part) for part in flat.split(PART)]).reshape(X.shape[:-2])

    def _part(self, X: Tensor) -> Tensor:
        """(b, 1, k) -> (b,)."""
        points = torch.cat([self.alternatives.expand(len(X), -1, -1), X], -2)
        with torch.no_grad():
            tried = X if self.X_pending is None else torch.cat([X, self.X_pending.expand(len(X), -1, -1)], -2)
            assert isinstance(self.model, NetworkModel)
            assert self.sampler is not None
            means = self.model.fantasize(tried, self.sampler).posterior(points).mean[..., 0]
        if not (torch.is_grad_enabled() and X.requires_grad):
            values: Tensor = means.amax(-1).mean(0)
            return values
        best = ranked(means).argmax(-1).mT
        chosen = points.gather(-2, best.unsqueeze(-1).expand(-1, -1, X.shape[-1]))
        value: Tensor = super().forward(torch.cat([X, chosen], -2))
        return value


@final
class KnowledgeGradient(CausalObjective):
    """The largest posterior mean after an experiment, on average over its outcomes, in the reward's unit.

    Args:
        surrogate: A fitted causal model whose mechanisms can be conditioned: `decoder=closed_form`.
        fantasies: F, number of outcomes.
        alternatives: Number of actions, besides the candidate, among which the best is looked for; half of
            them visited ones.
        members: Number of plausible networks of the model after an experiment; even.
        member_draws: Number of noise draws over which each is averaged.
        draws: Number of noise draws with which recommendations are found.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines members, outcomes and draws.
        pending: Actions that are under way or have failed, (p, k); None if there are none.

    Raises:
        ValueError: if no action has been visited, a number is out of range, or no visited action has a finite
            reward.
    """

    takes_pending: ClassVar[bool] = True

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        fantasies: int = 8,
        alternatives: int = 8,
        members: int = 8,
        member_draws: int = 16,
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
        pending: Tensor | None = None,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed, pending)
        if min(fantasies, alternatives) < 1 or not len(self.visited):
            raise ValueError(
                "expected positive numbers and at least one visited action; got "
                f"fantasies={fantasies}, alternatives={alternatives} and {len(self.visited)} actions"
            )
        with torch.no_grad():
            means = self.expected(self.visited, self._screened_points)
        centre, scale = incumbent(means, case.identity)
        self._frame = RewardFrame(float(centre), float(scale))
        sizes: dict[str, Any] = {"members": members, "draws": member_draws, "fantasy_members": members}
        model = NetworkModel(surrogate, **sizes, seed=self.seed + 2, as_fitted=True)
        best, seed = self._alternatives(alternatives), round_seed(self.seed, "fantasies")
        samplers = [
            SobolQMCNormalSampler(torch.Size([count]), seed=seed)
            for count in (fantasies, min(fantasies, SCREENING_FANTASIES))
        ]
        self._fine, self._screening = (
            FiniteKnowledgeGradient(model, best, sampler, self.pending) for sampler in samplers
        )

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:  # noqa: ARG003
        """Rejects surrogates whose mechanisms cannot be conditioned on an outcome.

        Raises:
            ValueError: if the decoder is a second process.
        """
        decoder = getattr(surrogate, "decoder", "closed_form")
        if decoder != "closed_form":
            raise ValueError(
                "the knowledge gradient conditions on outcomes: expected surrogate.decoder=closed_form; got "
                f"{decoder}"
            )

    @torch.no_grad()
    def _alternatives(self, count: int) -> Tensor:
        """The visited and the space-filling actions with the largest posterior mean, (<= count, k)."""
        region = self.region()
        spread = region.units(region.spread(SPREAD, self.seed + 3))
        order = ranked(self.expected(spread, self._screened_points)).argsort(descending=True, stable=True)
        visited = self.starts(count // 2)
        return torch.cat([visited, spread[order[: count - len(visited)]]])

    def built(self, screening: bool) -> FiniteKnowledgeGradient:
        """BoTorch's acquisition function, of (..., 1, k) in the actions' units."""
        return self._screening if screening else self._fine

    @property
    def frame(self) -> RewardFrame:
        """In standard deviations of the posterior means at the visited actions."""
        return self._frame
