"""How many sampled worlds become desired.

A scenario is a draw of the linear Gaussian parameters from what the observations leave open, with a draw of the noise. In
each of them the outcomes are affine in the alteration,

    Y_i = A_i x + c_i + e_i + B_i z,       e_i ~ N(0, C_i Sigma_i C_i'),

so that scenario i is desired where the rows of G_i z <= h_i hold, G_i = M B_i, h_i = d - M (A_i x + c_i + e_i). The value of
z is the share of scenarios that are desired: an estimate of P(Y in S | D, x, z), the parameters integrated out. It is a step
function of z; what finds its largest value exactly is a sweep (one variable) or a mixed-integer program.

Scenarios of their own choose among sets. What is expected of the choice is the mean over parameters drawn again, given
which the probability is exact; their 2.5 and 97.5 % points are the interval.

Source: Qin et al. (2023), Sec. 4.1-4.2 (samples of the rehearsal model; the graph is known here), Eq. 9.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.situation import Foresight
from rehearsal_torch.objectives.alternatives import Appraisal, chance, no_help
from rehearsal_torch.objectives.gaussian_success import chances
from rehearsal_torch.objectives.scenarios import CountAlternatives, CountObjective, Scenarios, rowwise
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.linear_law import AffineResponse
from rehearsal_torch.surrogates.linear_surrogate import LinearSurrogate


def scenarios_of(response: AffineResponse, contexts: Tensor, region: Polytope, stream: torch.Generator) -> Scenarios:
    """A scenario for every set of parameters: its own noise, the same in all situations.

    Args:
        response: How outcomes follow, with n sets of parameters in the leading dimension.
        contexts: (B, |X|).
        region: S; its rows are scaled to length one.
        stream: Random numbers, on the CPU.
    """
    covariance = response.covariance
    # The floor keeps the factor defined where outcomes are functions of each other.
    root = torch.linalg.cholesky(covariance + 1e-9 * torch.diag_embed(covariance.diagonal(dim1=-2, dim2=-1)))
    noise = root @ torch.randn(*root.shape[:-1], 1, dtype=torch.float64, generator=stream).to(root)
    return rowwise(response.base(contexts) + noise.squeeze(-1).unsqueeze(-2), response.action, region)


class ScenarioCount(CountObjective):
    """The share of desired scenarios, for one set of altered variables in B situations.

    Args:
        situations: The B situations.
        names: The k altered variables.
        seek: Scenarios that the search sees.
        choose: Those that choose among sets.
        judge: Sets of parameters by which a choice is judged.
        contexts: (B, |X|).
        region: S.
        before: The probability of success with nothing altered, (B,).
    """

    def __init__(
        self,
        situations: Sequence[Foresight],
        names: Sequence[str],
        seek: Scenarios,
        choose: Scenarios,
        judge: AffineResponse,
        contexts: Tensor,
        region: Polytope,
        before: Tensor,
    ) -> None:
        super().__init__(situations, names, seek, choose)
        self.judge, self.contexts, self.region, self.before = judge, contexts, region, before

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability, its interval, and the probability with nothing altered."""
        drawn = success(self.judge, self.region, self.contexts, actions)
        low, high = torch.quantile(drawn, drawn.new_tensor([0.025, 0.975]), dim=0)
        rows = zip(drawn.mean(0).tolist(), self.before.tolist(), low.tolist(), high.tolist(), strict=True)
        return [
            Appraisal(chance(done, lower, upper), chance(undone), declined=no_help(done, undone) if done < undone else "")
            for done, undone, lower, upper in rows
        ]


class ScenarioCounts(CountAlternatives):
    """The share of desired scenarios for every candidate set.

    Args:
        surrogate: A fitted linear model that draws at least seek + choose + judge sets of parameters.
        situations: The B situations.
        seek: Scenarios that a search sees.
        choose: Others that choose among sets.
        judge: Sets of parameters, others again, that say what is expected of the choice.
        seed: Decides the noise.

    Raises:
        ValueError: if a number is not positive, or the surrogate draws too few sets of parameters.
    """

    def __init__(
        self, surrogate: LinearSurrogate, situations: Sequence[Foresight], seek: int = 4000, choose: int = 1800, judge: int = 200, seed: int = 0
    ) -> None:
        if min(seek, choose, judge) < 1:
            raise ValueError(f"expected seek, choose and judge >= 1; got {seek}, {choose} and {judge}")
        task = surrogate.task
        contexts = surrogate.task.given(situations).to(surrogate.contexts.values.device)
        before, found = contexts.new_zeros(len(contexts)), []
        for names in ((), *task.candidates):
            laws = surrogate.laws(names)
            drawn = 0 if laws is None else len(laws.intercept)
            if laws is None or drawn < seek + choose + judge:
                raise ValueError(f"expected {seek + choose + judge} draws of the parameters; the surrogate makes {drawn}: raise its `draws` or ask for fewer")
            whole = laws.response(task.context, task.outcomes)
            parts = [_some(whole, begin, end) for begin, end in ((0, seek), (seek, seek + choose), (seek + choose, seek + choose + judge))]
            if not names:
                before = success(parts[2], task.region, contexts, contexts.new_empty(len(contexts), 0)).mean(0)
                continue
            stream = torch.Generator().manual_seed(1_000_003 * seed + 17)
            seen, other = (scenarios_of(part, contexts, task.region, stream) for part in parts[:2])
            found.append(ScenarioCount(situations, names, seen, other, parts[2], contexts, task.region, before))
        super().__init__(situations, found, surrogate)

    def counts(self) -> list[ScenarioCount]:
        """The objectives, typed."""
        return [one for one in self.sets if isinstance(one, ScenarioCount)]


def success(response: AffineResponse, region: Polytope, contexts: Tensor, actions: Tensor) -> Tensor:
    """P(Y in S | x, z) under every set of parameters: contexts (B, |X|), actions (B, k) -> (sets, B)."""
    centre, _ = region.chebyshev()
    origin = contexts.new_zeros(len(region.names)) if centre is None else centre.to(contexts)
    middle = response.covariance.mean(0)
    root = torch.linalg.cholesky(middle + 1e-9 * torch.diag(middle.diagonal()))
    return chances(response, region, origin, root, contexts, actions)


def _some(whole: AffineResponse, begin: int, end: int) -> AffineResponse:
    return AffineResponse(*(each[begin:end] for each in (whole.context, whole.action, whole.constant, whole.noise, whole.covariance)))
