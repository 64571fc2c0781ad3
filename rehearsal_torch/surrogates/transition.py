"""Transition surrogates: one learnt time step, unrolled over an episode.

From the varying state, the static and contextual features and the doses of one time step, a mechanism
predicts the varying state of the next. Static and contextual features are exogenous: their counterfactual
values are the observed ones.

The module also compares the Jacobian of a fitted transition with its guaranteed Lipschitz constant. A
location-scale mechanism guarantees

    |g(s, a, u) - g(s', a, u)| <= K_u |s - s'|,        K_u = L_h + L_phi max_i |u_i|.

The spectral norm of the Jacobian of g in the smooth parents never exceeds K_u; the further it stays below
K_u, the looser are all search bounds that are derived from K_u (`TransitionModel.lipschitz`).

What the model abducts as noise is kept in every counterfactual. If it can itself be predicted from state and
action, it is no noise but error of the model: under other actions it would have been another. So the noise of
the members, in standard deviations, is averaged for each state, predicted by boosted trees that are fitted to
training rows, and compared on the rows of units that were held out:

    R2_i = (sum (u_i - mean u_i)^2 - sum (u_i - predicted u_i)^2) / sum (u_i - mean u_i)^2,

0 or below for noise, above 0 for error. Where a model knows what acts within a step, next to nothing may be
left of a state, of which some can always be predicted: the denominator is then that without such knowledge.
`claims.sequence_rules` refuses to recommend from it, and names the cause where one is seen: noise of another
state of the same step, if the other next states explain it, or a level of each unit.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 1, Sec. 5 and App. G.1; Cox and Snell (1968) (residuals that
covariates predict); Hastie, Tibshirani and Friedman (2009), Ch. 10 (boosted trees).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, following, next_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.scaling import Rescale
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Columns, Question
from rehearsal_torch.data.trainable_part import Examples, Part
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.mechanism import Trajectory
from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.dose_support import KEPT, ComparableSteps
from rehearsal_torch.surrogates.surrogate import FEWEST, EpisodeSurrogate, Fits, sample


class NoiseCheck(Part):
    """R2 of each state's noise, kept with the model; empty if it is not known, as in earlier files."""

    needed = False
    shares: Tensor  # (D,) float64, or (0,)
    causes: Tensor  # What explains it (`noise_causes`), (2, D), or (0,) where it need not be explained

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states
        self.register_fitted(shares=(states,), causes=(2, states), source=True)


def predictable_noise(
    surrogate: EpisodeSurrogate, rows: Table | None, held_out: Table | None, least: Tensor | None = None
) -> Tensor:
    """R2 of each state's noise on held-out rows, (D,) float64, to three places; `least` are variances of
    noise below which none of it matters, (D,). (0,) if a state has fewer than 100 finite rows of either kind,
    noise is beyond arithmetic, or none is abducted.
    """
    unknown = torch.empty(0, dtype=torch.float64)
    if rows is None or held_out is None:
        return unknown
    fitted, judged = (_finite(surrogate, sample(each)) for each in (rows, held_out))
    if not fitted or not judged:
        return unknown
    from sklearn.ensemble import HistGradientBoostingRegressor

    explained = []
    for place, parts in enumerate(zip(fitted, judged, strict=True)):
        spread = parts[0][1].std(0).clamp_min(torch.finfo(torch.float64).tiny)
        if not bool(spread.isfinite().all()):
            return unknown
        (inputs, own), (others, other) = ((x, (u / spread).mean(1)) for x, u in parts)
        floor = own.new_zeros(()) if least is None else (least[place].to(own).sqrt() / spread[0]).square()
        trees = HistGradientBoostingRegressor(random_state=0).fit(inputs.numpy(), own.numpy())
        left = (other - torch.from_numpy(trees.predict(others.numpy()))).square().sum()
        noisy = (other - other.mean()).square().sum()
        whole = torch.maximum(noisy, floor * len(other))
        explained.append((noisy - left) / whole if whole else torch.zeros_like(whole))
    shares = torch.stack(explained).to(torch.float64).round(decimals=3)
    return shares if bool(shares.isfinite().all()) else unknown


def noise_causes(
    surrogate: "CheckedTransition", rows: Table, held_out: Table, which: Sequence[int]
) -> Tensor:
    """What explains the noise of some states, (2, D): R2 on held-out rows where the other next states are
    known beside state and action, and the share of a level of each unit, 1 - within / total variance; 0 of
    the other states.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    found = torch.zeros(2, len(surrogate.names), dtype=torch.float64)
    for place in which:
        parts = []
        for table in map(sample, (rows, held_out)):
            abducted, ahead = surrogate.noise(table), surrogate.first.examples(table)[1]
            assert abducted is not None
            others = [each for each in range(ahead.shape[1]) if each != place]
            known = torch.cat([abducted[0], ahead[:, others].to(abducted[0])], 1)
            own = abducted[1][..., place].mean(1)
            kept = known.isfinite().all(1) & own.isfinite()
            parts.append((known[kept], own[kept], (begins_of(table).cumsum(0) - 1)[kept]))
        (inputs, own, _), (known, other, unit) = parts
        if min(len(own), len(other)) < FEWEST:
            continue
        trees = HistGradientBoostingRegressor(random_state=0).fit(inputs.numpy(), own.numpy())
        noisy = (other - other.mean()).square().sum()
        found[0, place] = 1 - (other - torch.from_numpy(trees.predict(known.numpy()))).square().sum() / noisy
        rows_of = torch.bincount(unit).clamp_min(1)
        within = other - (torch.zeros(len(rows_of)).to(other).index_add_(0, unit, other) / rows_of)[unit]
        left = len(other) - len(unit.unique())
        found[1, place] = 1 - within.square().sum() / max(left, 1) / (noisy / len(other)) if left else 0.0
    return found.nan_to_num(0.0).clamp(0.0, 1.0).round(decimals=3)


def _finite(surrogate: EpisodeSurrogate, table: Table) -> list[tuple[Tensor, Tensor]]:
    """Inputs and noise, (n, p) and (n, M), of each state, of the rows in which all of it is finite; none if
    those of a state are too few, or no noise is abducted.
    """
    abducted = surrogate.noise(table)
    if abducted is None:
        return []
    inputs, noise = abducted
    kept = inputs.isfinite().all(-1).unsqueeze(1) & noise.isfinite().all(1)
    if bool((kept.sum(0) < FEWEST).any()):
        return []
    return [(inputs[own], noise[own, :, place]) for place, own in enumerate(kept.T)]


PREDICTABLE = 0.1
"""The largest R2 of a state's noise with which a change is recommended."""
EFFECTS = ("dense", "sparse")
REPORTED = 1000
"""The most transitions at which Jacobians are computed."""
BLOCK = 65_536
"""Rows that are scaled at a time: intermediate results of all rows would be larger than the table."""


def begins_of(table: Table) -> Tensor:
    """Whether a row is the first of its unit, (n,) bool; rows of unknown units stand alone."""
    first = torch.ones(len(table), dtype=torch.bool, device=table.values.device)
    if table.units is not None:
        first[1:] = table.units.diff() != 0
    return first


class CheckedTransition(EpisodeSurrogate, ABC):
    """One or several transition models with ranges and levels in common, and a check of their noise."""

    noise_check: NoiseCheck

    @property
    @abstractmethod
    def each(self) -> tuple["SingleTransition", ...]:
        """The models, whose states stand side by side in a trajectory."""

    @property
    @abstractmethod
    def known(self) -> ComparableSteps:
        """The steps that others are compared with."""

    @property
    def first(self) -> "SingleTransition":
        """The first of them."""
        return self.each[0]

    @property
    def members(self) -> int:
        """M."""
        return len(self.each)

    @property
    def names(self) -> tuple[str, ...]:
        """The D varying features."""
        return self.first.varying

    @torch.no_grad()
    def residuals(self, table: Table) -> Tensor:
        """What the models leave of the next states on average, scaled coordinates, (n, D) float64."""
        return torch.stack([model.residuals(table) for model in self.each]).mean(0)

    @property
    def dose_names(self) -> tuple[str, ...]:
        """The dose columns."""
        return self.first.levels.names

    def doses(self, actions: Tensor) -> Tensor:
        """(...) -> (..., p), the median doses of the levels."""
        return self.first.levels.doses(actions)

    @torch.no_grad()
    def support(self, episode: Episode, states: Tensor | None = None) -> Tensor | None:
        """As `EpisodeSurrogate.support`; an action has that of the rarest pair of doses that is changed."""
        if not self.known.fitted:
            return None
        rescale, levels = self.first.rescale, self.first.levels
        columns = episode.columns(rescale.names).to(rescale.lower)
        observed = levels.digitise(episode.columns(levels.names).to(columns))
        if states is not None:
            columns = torch.cat([states.to(columns), columns[:, states.shape[1] :]], 1)
        counts = self.known.counts(rescale.scale(columns))
        every = self.known.codes(torch.arange(levels.actions, device=counts.device))
        own = counts[:, torch.arange(every.shape[1]), every]
        same = every == self.known.codes(observed).unsqueeze(1)
        return own.masked_fill(same, torch.iinfo(counts.dtype).max).amin(-1)

    @property
    def selectable(self) -> Tensor:
        """Which actions have training rows at each of their levels, (A,) bool."""
        return self.first.levels.selectable

    def state_scale(self) -> Tensor:
        """(D,), each varying feature's training range; infinite for features on a logarithmic scale."""
        rescale, width = self.first.rescale, len(self.names)
        return torch.where(rescale.logged[:width], torch.inf, rescale.width[:width])

    def outside(self, episode: Episode, slack: float = 0.0) -> tuple[Finding, ...]:
        """As `EpisodeSurrogate.outside`, of the ranges in the training table."""
        rescale, findings = self.first.rescale, list[Finding]()
        columns = episode.columns(rescale.names).to(rescale.lower)
        boxed, slack = rescale.scale(columns), slack + 1e-9
        corners = torch.tensor([[-0.5], [0.5]]).to(boxed).expand(-1, boxed.shape[1])
        ends = rescale.unscale(corners).T
        for name, values, scaled, (low, high) in zip(rescale.names, columns.T, boxed.T, ends, strict=True):
            if bool((scaled.abs() > 0.5 + slack).any()):
                least, most, low, high = (
                    setting_text(float(end), 6) for end in (values.min(), values.max(), low, high)
                )
                known = f"the observations lie between {low} and {high}"
                findings.append(Finding("range", f"{name} lies between {least} and {most}; {known}"))
        return tuple(findings)

    def errs(self, states: Sequence[str]) -> bool:
        """Whether the noise of one of some states can be predicted; False if that is not known."""
        known = self.noise_shares()
        return any(known.get(name, 0.0) > PREDICTABLE for name in states or self.names)

    @property
    def predictable_noise(self) -> Tensor:
        """(D,), or (0,) if it is not known."""
        return self.noise_check.shares

    def noise_causes(self) -> dict[str, tuple[float, float]]:
        """As `noise_causes` found them."""
        if not len(self.noise_check.causes):
            return {}
        within, level = self.noise_check.causes.tolist()
        return dict(zip(self.names, zip(within, level, strict=True), strict=True))

    def check_noise(self, rows: Table | None, held_out: Table | None) -> None:
        """Measures it, with its causes where it can be predicted, and keeps it."""
        check, shares = self.noise_check, predictable_noise(self, rows, held_out, self.least_noise)
        check.shares, check.causes = shares.to(self.device), torch.empty(0, dtype=torch.float64)
        which = (shares > PREDICTABLE).nonzero()[:, 0].tolist()
        if which and rows is not None and held_out is not None:
            check.causes = noise_causes(self, rows, held_out, which).to(self.device)

    def question(self) -> Question:
        """The columns that it reads."""
        return Columns((*self.first.rescale.names, *self.dose_names))

    def used(self) -> tuple[str, ...]:
        """All columns."""
        return ("columns",)


class SingleTransition(CheckedTransition):
    """One model. ValueError if a column is named in two roles.

    Args:
        varying: The D features that it predicts, in the order of the trajectory's states.
        static: Features that are constant over an episode.
        contextual: Features that keep their observed trajectory.
        doses: The dose columns that make up an action.
        levels: Levels per dose.
        logarithms: Features that are replaced by their logarithm.
    """

    def __init__(
        self,
        varying: Sequence[str],
        static: Sequence[str],
        contextual: Sequence[str],
        doses: Sequence[str],
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
        self.noise_check = NoiseCheck(len(self.varying))
        self.past = ComparableSteps(len(features), self.levels)

    @property
    def known(self) -> ComparableSteps:
        """Its own."""
        return self.past

    def known_part(self, table: Table) -> tuple[ComparableSteps, Examples]:
        """The steps of some thousand rows, with their examples."""
        some = sample(table, KEPT)
        features = self.rescale.scale(some.columns(self.rescale.names).to(self.device, torch.float64))
        actions = self.levels.digitise(some.columns(self.levels.names).to(features))
        return self.known, (features, actions, begins_of(some).to(features.device))

    @property
    def each(self) -> tuple[Self]:
        """Itself."""
        return (self,)

    @abstractmethod
    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled features and dose levels (n, p) and next states (n, D) of transitions."""

    def extremes(self, table: Table) -> Tensor:
        """The least and largest values of blocks of transitions, (2 k, d), which have the ranges of all."""
        names = self.rescale.names
        ends = []
        for block in _blocks_of(table):
            for rows in (block.columns(names), block.columns([next_name(name) for name in names])):
                ends += [rows.amin(0), rows.amax(0)]
        return torch.stack(ends)

    def units(self, states: Tensor) -> Tensor:
        """(..., D) -> (..., D), scaled to clinical units."""
        width = len(self.varying)
        rest = states.new_zeros(*states.shape[:-1], len(self.rescale.names) - width)
        return self.rescale.unscale(torch.cat([states, rest], -1))[..., :width]


class TransitionModel(SingleTransition):
    """Next state from state, static and contextual features, and doses.

    The mechanism's parents are, in this order: varying and static features (smooth), contextual features and
    dose levels (free). Everything is scaled to [-1/2, 1/2] by the ranges of the training table. ValueError if
    there are no such effects, or the threshold is not positive, or as for `SingleTransition`, which says what
    the columns are.

    Args:
        mechanism: Factory of the mechanism, called with smooth, free and outputs (widths).
        effects: How doses act: "dense", as inputs of the networks (the paper); or "sparse", as few selected
            terms beside networks that do not see them (`mechanisms.sparse_effects`).
        effect_threshold: Sparse effects only: the smallest |t| of a term that is selected. A lower one finds
            smaller effects where there are many stays, and chance effects where there are few.
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
        effects: str = "dense",
        effect_threshold: float = 4.0,
    ) -> None:
        super().__init__(varying, static, contextual, doses, levels, logarithms)
        if effects not in EFFECTS:
            raise ValueError(f"effects: expected {' or '.join(EFFECTS)}; got {effects!r}")
        if not effect_threshold > 0:
            raise ValueError(f"effect_threshold: expected a number above 0; got {effect_threshold}")
        smooth, free = len(self.varying) + len(self.static), len(self.contextual)
        dense = effects == "dense"
        built = mechanism(smooth=smooth, free=free + dense * len(doses), outputs=len(self.varying))
        self.mechanism: LocationScale | SparseEffects = (
            built if dense else SparseEffects(built, len(doses), effect_threshold)
        )

    @classmethod
    def from_tensors(
        cls,
        varying: Sequence[str],  # The D features that the mechanism predicts
        static: Sequence[str],  # Features that are constant over an episode
        contextual: Sequence[str],  # Features that keep their observed values
        mechanism: LocationScale,  # A mechanism with user-supplied weights, see `LocationScale.from_tensors`
        ranges: Mapping[str, Sequence[float]],  # feature to its (lower, upper), scaled to -1/2 and 1/2
        # Dose column to its doses, increasing from 0, in its unit; the length of the longest list is the
        # number of levels of every drug
        levels: Mapping[str, Sequence[float]],
        logarithms: Sequence[str] = (),  # features of which log(v + 1) is scaled
    ) -> Self:
        """A model with user-supplied weights, ranges and levels, used unchanged. ValueError if widths, names,
        ranges or levels do not agree.
        """
        smooth, free = len(varying) + len(static), len(contextual) + len(levels)
        widths = (mechanism.networks.inner.shape[-1], mechanism.networks.action.shape[-1], mechanism.outputs)
        if widths != (smooth, free, len(varying)):
            raise ValueError(
                f"expected a mechanism with {smooth} smooth parents (varying, then static features), {free} "
                "free ones (contextual features, then "
                f"doses) and {len(varying)} outputs; got {widths[0]}, {widths[1]} and {widths[2]}"
            )
        count = max((len(doses) for doses in levels.values()), default=0)
        model = cls(varying, static, contextual, tuple(levels), lambda **_: mechanism, count, logarithms)
        model.rescale.fix(ranges)
        model.levels.fix(list(levels.values()))
        return model.eval()

    def parts(self, table: Table) -> Fits:
        """The ranges, the dose levels, then the parts of the mechanism on scaled transitions; the table has
        the next step's columns primed (`data.episode.transitions`), in clinical units.
        """
        yield self.rescale, (self.extremes(table),)
        yield self.levels, (table.columns(self.levels.names),)
        yield self.known_part(table)
        steps = self.mechanism_parts(table)
        del table  # training does not need it, and it may be the largest thing in memory
        yield from steps

    def mechanism_parts(self, table: Table) -> Fits:
        """The parts of the mechanism alone, once the ranges and levels have been fitted."""
        scaled = self._scaled(table)
        del table
        yield from self.mechanism.parts(*scaled)

    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents (n, p) and values (n, D), as the mechanism takes them; NaN if filled in."""
        self.require_fitted()
        return self._scaled(table)

    @torch.no_grad()
    def residuals(self, table: Table) -> Tensor:
        """Values less their location, (n, D)."""
        parents, values = self.examples(table)
        return (values - self.mechanism.moments(parents)[0]).to(table.values.device, torch.float64)

    def _scaled(self, table: Table) -> tuple[Tensor, Tensor]:
        like, rows = self.mechanism.factor, len(table)
        widths = (len(self.rescale.names) + len(self.levels.names), len(self.varying))
        parents, values = (like.new_empty(rows, width) for width in widths)
        for index, block in enumerate(_blocks_of(table)):
            rows_ = slice(index * BLOCK, index * BLOCK + len(block))
            parents[rows_], values[rows_] = self._scaled_block(block.to(like.device))
        return parents, values

    def _scaled_block(self, table: Table) -> tuple[Tensor, Tensor]:
        width = len(self.varying)
        boxed = self.rescale.scale(table.columns(self.rescale.names))
        after = following(table, self.varying, self.rescale.names[width:])
        actions = self.levels.digitise(table.columns(self.levels.names))
        dtype = self.mechanism.factor.dtype
        parents = torch.cat([boxed, self.levels.encoded(actions).to(boxed)], -1)
        return parents.to(dtype), self.rescale.scale(after)[:, :width].to(dtype)

    def log_likelihood(self, table: Table) -> Tensor:
        """Log-likelihood of each transition's next state, scaled coordinates, (n,), where the table is."""
        parents, values = self.examples(table)
        return self.mechanism.log_likelihood(parents, values).to(table.values.device)

    @torch.no_grad()
    def noise(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents and abducted noise, (n, p) and (n, 1, D), float64, where the table is."""
        parents, values = self.examples(table)
        noise = self.mechanism.abduct(parents, values).unsqueeze(1)
        home = table.values.device
        return parents.to(home, torch.float64), noise.to(home, torch.float64)

    @torch.no_grad()
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual steps, of scaled varying features under dose levels. ValueError if it
        is not fitted, or a Lipschitz constant would require the weights to be rescaled.
        """
        self.require_fitted()
        self.mechanism.networks.check_norms(("location (h)", "scale (phi)"))
        boxed = self.rescale.scale(episode.columns(self.rescale.names).to(self.levels.medians))
        width, horizon, count = len(self.varying), episode.horizon, self.levels.actions
        encoded = self.levels.encoded(torch.arange(count, device=boxed.device)).to(boxed)
        kept = boxed[:-1, None, width:].expand(-1, count, -1)
        fixed = torch.cat([kept, encoded.expand(horizon - 1, -1, -1)], -1)
        observed = self.levels.digitise(episode.columns(self.levels.names).to(boxed))
        return self.mechanism.unroll(boxed[:, :width], fixed, observed)

    def lipschitz(self, table: Table) -> dict[str, float]:
        """Lipschitz constants and Jacobian norms over the first `REPORTED` transitions with their abducted
        noise, in the model's coordinates: the certified constants of h and of phi, mean and largest K_u, mean
        and largest spectral norm of the Jacobian, and the largest ratio of a norm to its own K_u, at most 1.
        ValueError if the table has no row.
        """
        if not len(table):
            raise ValueError("expected transitions at which to evaluate the Jacobian; got none")
        mechanism = deepcopy(self.mechanism).to(torch.float64)
        parents, values = (part[:REPORTED].to(torch.float64) for part in self.examples(table))
        with torch.no_grad():
            noise = mechanism.abduct(parents, values).nan_to_num(0.0)

        def moved(state: Tensor, rest: Tensor, u: Tensor) -> Tensor:
            location, scale = mechanism.moments(torch.cat([state, rest]).unsqueeze(0))
            return (location + scale * u)[0]

        jacobian = torch.func.vmap(torch.func.jacrev(moved))
        jacobians = jacobian(parents[:, : mechanism.smooth], parents[:, mechanism.smooth :], noise).detach()
        norms, bounds = torch.linalg.matrix_norm(jacobians, 2), mechanism.lipschitz(noise)
        location, scale = mechanism.networks.lipschitz().tolist()
        return {
            "location_constant": location,
            "scale_constant": scale,
            "bound_mean": float(bounds.mean()),
            "bound_largest": float(bounds.max()),
            "jacobian_mean": float(norms.mean()),
            "jacobian_largest": float(norms.max()),
            "share_largest": float((norms / bounds).max()),
        }


def _blocks_of(table: Table) -> Iterator[Table]:
    """The rows of a table in blocks, without a copy."""
    parts = zip(table.values.split(BLOCK), table.altered.split(BLOCK), strict=True)
    return (Table(table.names, *part) for part in parts)
