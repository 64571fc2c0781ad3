"""Transition surrogates: one learnt step, unrolled over an episode.

Given the varying state, static and contextual features and the doses of one time step, a mechanism gives the
varying state of the next. Static and contextual features pass through: their counterfactual values are the
observed ones.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 and App. G.1.

How steep a learnt transition is, beside what is promised of it.

A location-scale mechanism promises |g(s, a, u) - g(s', a, u)| <= K_u |s - s'| with K_u = L_h + L_phi max_i
|u_i|. The Jacobian of g in the smooth parents says how much of that promise is used: its spectral norm never
exceeds K_u, and the further below it stays, the looser are all searches that live on K_u.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 1 and Sec. 5.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, next_name
from rehearsal_torch.data.part import Solved, Trained
from rehearsal_torch.data.question import Columns, Question
from rehearsal_torch.data.scaling import Rescale
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.trajectory import Trajectory
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate


class TransitionModel(EpisodeSurrogate):
    """Next state from state, static and contextual features, and doses.

    The mechanism's parents are, in this order: varying and static features (smooth), contextual features and
    dose levels (free). Everything is scaled to [-1/2, 1/2] by ranges learnt from the training table.

    Args:
        varying: The D features that the mechanism moves, in the order of the course's states.
        static: Features that stay as they are.
        contextual: Features whose observed course is kept.
        doses: The dose columns that make up an action.
        mechanism: Makes the mechanism, called with smooth, free and outputs (widths).
        levels: Levels per dose.
        logarithms: Features that are replaced by their logarithm.

    Raises:
        ValueError: if a column is named in two roles.
    """

    def __init__(
        self,
        varying: Sequence[str],
        static: Sequence[str],
        contextual: Sequence[str],
        doses: Sequence[str],
        mechanism: Callable[..., LocationScale],
        levels: int = 5,
        logarithms: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.varying, self.static, self.contextual = tuple(varying), tuple(static), tuple(contextual)
        features = (*self.varying, *self.static, *self.contextual)
        if len({*features, *doses}) != len(features) + len(doses):
            raise ValueError(f"each column has one role; got {features} and doses {tuple(doses)}")
        self.rescale = Rescale(features, logarithms)
        self.levels = DoseLevels(doses, levels)
        self.mechanism = mechanism(
            smooth=len(self.varying) + len(self.static),
            free=len(self.contextual) + len(doses),
            outputs=len(self.varying),
        )

    @classmethod
    def from_tensors(
        cls,
        varying: Sequence[str],
        static: Sequence[str],
        contextual: Sequence[str],
        mechanism: LocationScale,
        ranges: Mapping[str, Sequence[float]],
        levels: Mapping[str, Sequence[float]],
        logarithms: Sequence[str] = (),
    ) -> Self:
        """A model of one's own weights, ranges and levels, used as they are.

        Args:
            varying: The D features that the mechanism moves.
            static: Features that stay as they are.
            contextual: Features whose observed values are kept.
            mechanism: With weights of one's own, see `LocationScale.from_tensors`.
            ranges: Feature to its (lower, upper), in its unit: what is scaled to -1/2 and 1/2.
            levels: Dose column to its doses, rising from 0, in its unit; the largest number of them is every
                drug's number of levels.
            logarithms: Features that are replaced by their logarithm, log(v + 1), before they are scaled.

        Raises:
            ValueError: if widths, names, ranges or levels do not fit together.
        """
        smooth, free = len(varying) + len(static), len(contextual) + len(levels)
        found = (mechanism.networks.inner.shape[-1], mechanism.networks.action.shape[-1], mechanism.outputs)
        if found != (smooth, free, len(varying)):
            raise ValueError(
                f"expected a mechanism with {smooth} smooth parents (varying, then static features), {free} "
                "free ones (contextual features, then "
                f"doses) and {len(varying)} outputs; got {found[0]}, {found[1]} and {found[2]}"
            )
        count = max((len(doses) for doses in levels.values()), default=0)
        made = cls(varying, static, contextual, tuple(levels), lambda **_: mechanism, count, logarithms)
        made.rescale.fix(ranges)
        made.levels.fix(list(levels.values()))
        return made.eval()

    @property
    def names(self) -> tuple[str, ...]:
        """The varying features."""
        return self.varying

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """The ranges, the dose levels, then the mechanism on scaled transitions.

        Args:
            table: Transitions with the next step's columns primed (`data.episode.transitions`), in clinical
                units.
        """
        features = self.rescale.names
        yield (
            self.rescale,
            (torch.cat([table.columns(features), table.columns([next_name(name) for name in features])]),),
        )
        yield self.levels, (table.columns(self.levels.names),)
        yield self.mechanism, self.examples(table)

    def question(self) -> Question:
        """The columns that it reads."""
        return Columns((*self.rescale.names, *self.levels.names))

    def used(self) -> tuple[str, ...]:
        """All columns."""
        return ("columns",)

    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents (n, p) and values (n, D) of transitions, in the mechanism's precision."""
        self.require_fitted()
        ahead = [next_name(name) for name in self.varying]
        boxed = self.rescale.scale(table.columns(self.rescale.names))
        after = torch.cat([table.columns(ahead), table.columns(self.rescale.names)[:, len(ahead) :]], -1)
        actions = self.levels.digitise(table.columns(self.levels.names))
        dtype = self.mechanism.factor.dtype
        parents = torch.cat([boxed, self.levels.shown(actions).to(boxed)], -1)
        return parents.to(dtype), self.rescale.scale(after)[:, : len(ahead)].to(dtype)

    def log_likelihood(self, table: Table) -> Tensor:
        """Log-likelihood of each transition's next state, scaled coordinates, (n,)."""
        parents, values = self.examples(table)
        return self.mechanism.log_likelihood(parents, values)

    @torch.no_grad()
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual steps; states are the scaled varying features, actions the dose
        levels.

        Raises:
            NotFittedError: if the model has been neither fitted nor loaded.
            ValueError: if a constant would have its weights divided.
        """
        self.require_fitted()
        self.mechanism.networks.check_norms(("location (h)", "scale (phi)"))
        boxed = self.rescale.scale(episode.columns(self.rescale.names).to(self.levels.medians))
        width, horizon, count = len(self.varying), episode.horizon, self.levels.actions
        shown = self.levels.shown(torch.arange(count, device=boxed.device)).to(boxed)
        kept = boxed[:-1, None, width:].expand(-1, count, -1)
        fixed = torch.cat([kept, shown.expand(horizon - 1, -1, -1)], -1)
        observed = self.levels.digitise(episode.columns(self.levels.names).to(boxed))
        return self.mechanism.unroll(boxed[:, :width], fixed, observed)

    def outside(self, episode: Episode) -> tuple[str, ...]:
        """A sentence for each feature that leaves its range in the training table."""
        columns, found = episode.columns(self.rescale.names).to(self.rescale.lower), []
        boxed, slack = self.rescale.scale(columns), 1e-9
        for name, values, scaled in zip(self.rescale.names, columns.T, boxed.T, strict=True):
            if bool((scaled.abs() > 0.5 + slack).any()):
                ends = self.rescale.unscale(
                    torch.stack([torch.full_like(boxed[0], -0.5), torch.full_like(boxed[0], 0.5)])
                )
                low, high = ends[:, self.rescale.names.index(name)].tolist()
                smallest, largest, low, high = (
                    setting_text(float(end), 6) for end in (values.min(), values.max(), low, high)
                )
                found.append(
                    f"range: {name} lies between {smallest} and {largest}; the observations, {low} and {high}"
                )
        return tuple(found)

    def units(self, states: Tensor) -> Tensor:
        """(..., D) -> (..., D), scaled to clinical units."""
        width = len(self.varying)
        rest = states.new_zeros(*states.shape[:-1], len(self.rescale.names) - width)
        return self.rescale.unscale(torch.cat([states, rest], -1))[..., :width]

    def state_scale(self) -> Tensor:
        """(D,), each varying feature's training range; infinite behind a logarithm."""
        width = len(self.varying)
        return torch.where(self.rescale.logged[:width], torch.inf, self.rescale.width[:width])

    def doses(self, actions: Tensor) -> Tensor:
        """(...) -> (..., p), the levels' median doses."""
        return self.levels.doses(actions)

    def lipschitz(self, table: Table) -> dict[str, float]:
        """See `LipschitzReport`.

        Raises:
            ValueError: if the table has no row.
        """
        return lipschitz_report(self, table).to_dict()

    @property
    def selectable(self) -> Tensor:
        """The actions whose levels all have a row, (A,) bool."""
        return self.levels.selectable


@dataclass(frozen=True)
class LipschitzReport:
    """Norms over observed transitions with their abducted noise, in the surrogate's coordinates.

    Attributes:
        location_constant: The certified constant of h.
        scale_constant: The certified constant of phi.
        bound_mean: K_u, averaged.
        bound_largest: The largest K_u.
        jacobian_mean: Spectral norm of the Jacobian, averaged.
        jacobian_largest: The largest such norm.
        share_largest: The largest share of its own K_u that a Jacobian uses, at most 1.
    """

    location_constant: float
    scale_constant: float
    bound_mean: float
    bound_largest: float
    jacobian_mean: float
    jacobian_largest: float
    share_largest: float

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def lipschitz_report(surrogate: TransitionModel, table: Table, rows: int = 1000) -> LipschitzReport:
    """Measures a fitted transition on the first rows of a table of transitions.

    Args:
        surrogate: What was fitted.
        table: Transitions in their units.
        rows: At most how many are looked at.

    Raises:
        ValueError: if there is no row.
    """
    if not len(table):
        raise ValueError("expected transitions to measure the steepness at; got none")
    mechanism = deepcopy(surrogate.mechanism).to(torch.float64)
    parents, values = (part[:rows].to(torch.float64) for part in surrogate.examples(table))
    with torch.no_grad():
        noise = mechanism.abduct(parents, values)
    smooth = mechanism.smooth

    def moved(state: Tensor, rest: Tensor, u: Tensor) -> Tensor:
        location, scale = mechanism.moments(torch.cat([state, rest]).unsqueeze(0))
        return (location + scale * u)[0]

    jacobians = torch.func.vmap(torch.func.jacrev(moved))(
        parents[:, :smooth], parents[:, smooth:], noise
    ).detach()
    norms, bounds = torch.linalg.matrix_norm(jacobians, 2), mechanism.lipschitz(noise)
    location, scale = mechanism.networks.lipschitz().tolist()
    return LipschitzReport(
        location,
        scale,
        float(bounds.mean()),
        float(bounds.max()),
        float(norms.mean()),
        float(norms.max()),
        float((norms / bounds).max()),
    )
