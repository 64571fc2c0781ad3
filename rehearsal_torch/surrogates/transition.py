"""Transition models: one learnt time step, unrolled over an episode, and a check of its abducted noise.

From the varying state, the static and contextual features and the doses of one time step, a mechanism
predicts the varying state of the next. Static and contextual features are exogenous: their counterfactual
values are the observed ones.

A location-scale mechanism guarantees

    |g(s, a, u) - g(s', a, u)| <= K_u |s - s'|,        K_u = L_h + L_phi max_i |u_i|.

The spectral norm of the Jacobian of g in the smooth parents never exceeds K_u; the further it stays below
K_u, the looser are all search bounds that are derived from K_u (`TransitionModel.lipschitz`).

Abducted noise is kept in every counterfactual. If it can be predicted from state and action, it is error of
the model, which would differ under other actions. So the noise of the members, in standard deviations, is
averaged for each state, predicted by boosted trees that are fitted to training rows, and compared on the rows
of held-out units:

    R2_i = (sum (u_i - mean u_i)^2 - sum (u_i - predicted u_i)^2) / sum (u_i - mean u_i)^2,

0 or below for noise, above 0 for error. A model with effects within a step may leave next to no residual, of
which some can always be predicted: the denominator is then that without these effects.
`claims.sequence_rules` gives no recommendation from predictable noise, and names its cause if found: noise of
another state of the same step, if the other next states explain it, or a level of each unit.

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

PREDICTABLE = 0.1  # the largest R2 of a state's noise with which a change is recommended
EFFECTS = ("dense", "sparse")
REPORTED = 1000  # the most transitions at which Jacobians are computed
BLOCK = 65_536  # rows that are scaled at a time, since intermediate results would exceed the table


class NoiseCheck(Part):
    """R2 of each state's noise, stored with the model; empty if unknown, as in earlier files."""

    needed = False
    shares: Tensor  # (D,) float64, or (0,)
    causes: Tensor  # `noise_causes`, (2, D), or (0,) if no noise is predictable

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states
        self.register_fitted(shares=(states,), causes=(2, states), source=True)


def predictable_noise(
    surrogate: EpisodeSurrogate, rows: Table | None, held_out: Table | None, least: Tensor | None = None
) -> Tensor:
    """R2 of each state's noise on held-out rows, (D,), to three places, with variances of at least `least`
    (D,); (0,) for fewer than 100 finite rows of a state, or noise that is not finite or not abducted.
    """
    unknown = torch.empty(0, dtype=torch.float64)
    if rows is None or held_out is None:
        return unknown
    training_parts, held_out_parts = (_finite(surrogate, sample(table)) for table in (rows, held_out))
    if not training_parts or not held_out_parts:
        return unknown
    explained = []
    for state, samples in enumerate(zip(training_parts, held_out_parts, strict=True)):
        spread = samples[0][1].std(0).clamp_min(torch.finfo(torch.float64).tiny)
        if not bool(spread.isfinite().all()):
            return unknown
        (x, u), (x_test, u_test) = ((inputs, (noise / spread).mean(1)) for inputs, noise in samples)
        floor = u.new_zeros(()) if least is None else (least[state].to(u).sqrt() / spread[0]).square()
        total = (u_test - u_test.mean()).square().sum()
        reduction = total - _prediction_error(x, u, x_test, u_test)
        denominator = torch.maximum(total, floor * len(u_test))
        explained.append(reduction / denominator if denominator else torch.zeros_like(denominator))
    shares = torch.stack(explained).to(torch.float64).round(decimals=3)
    return shares if bool(shares.isfinite().all()) else unknown


def noise_causes(
    surrogate: "CheckedTransition", rows: Table, held_out: Table, which: Sequence[int]
) -> Tensor:
    """Shares of some states' noise, (2, D), that other next states, or a level of each unit, explain: R2 on
    held-out rows, and 1 - within / total variance.
    """
    causes = torch.zeros(2, len(surrogate.names), dtype=torch.float64)
    for state in which:
        samples = []
        for table in map(sample, (rows, held_out)):
            abducted, ahead = surrogate.noise(table), surrogate.first.examples(table)[1]
            assert abducted is not None
            others = [column for column in range(ahead.shape[1]) if column != state]
            x = torch.cat([abducted[0], ahead[:, others].to(abducted[0])], 1)
            u = abducted[1][..., state].mean(1)
            finite = x.isfinite().all(1) & u.isfinite()
            samples.append((x[finite], u[finite], (begins_of(table).cumsum(0) - 1)[finite]))
        (x, u, _), (x_test, u_test, unit) = samples
        if min(len(u), len(u_test)) < FEWEST:
            continue
        total = (u_test - u_test.mean()).square().sum()
        causes[0, state] = 1 - _prediction_error(x, u, x_test, u_test) / total
        counts = torch.bincount(unit).clamp_min(1)
        within = u_test - (torch.zeros(len(counts)).to(u_test).index_add_(0, unit, u_test) / counts)[unit]
        if degrees := len(u_test) - len(unit.unique()):
            causes[1, state] = 1 - within.square().sum() / degrees / (total / len(u_test))
    return causes.nan_to_num(0.0).clamp(0.0, 1.0).round(decimals=3)


def _prediction_error(x: Tensor, u: Tensor, x_test: Tensor, u_test: Tensor) -> Tensor:
    """The sum of squared errors of boosted trees on held-out rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(random_state=0).fit(x.numpy(), u.numpy())
    return (u_test - torch.from_numpy(trees.predict(x_test.numpy()))).square().sum()


def _finite(surrogate: EpisodeSurrogate, table: Table) -> list[tuple[Tensor, Tensor]]:
    """Each state's inputs (n, p) and noise (n, M) in its finite rows; empty if too few or not abducted."""
    abducted = surrogate.noise(table)
    if abducted is None:
        return []
    inputs, noise = abducted
    finite = inputs.isfinite().all(-1).unsqueeze(1) & noise.isfinite().all(1)
    if bool((finite.sum(0) < FEWEST).any()):
        return []
    return [(inputs[rows], noise[rows, :, state]) for state, rows in enumerate(finite.T)]


def begins_of(table: Table) -> Tensor:
    """Whether a row is the first of its unit, (n,) bool; rows of unknown units stand alone."""
    first = torch.ones(len(table), dtype=torch.bool, device=table.values.device)
    if table.units is not None:
        first[1:] = table.units.diff() != 0
    return first


class CheckedTransition(EpisodeSurrogate, ABC):
    """One or several transition models with shared ranges and levels, and a check of their noise."""

    noise_check: NoiseCheck

    @property
    @abstractmethod
    def each(self) -> tuple["SingleTransition", ...]:
        """The models, whose states stand side by side in a trajectory."""

    @property
    @abstractmethod
    def known(self) -> ComparableSteps:
        """The training steps, for support."""

    @property
    def first(self) -> "SingleTransition":
        """The first model."""
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
        """Mean residuals of the next states over the models, scaled coordinates, (n, D) float64."""
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
        """As `EpisodeSurrogate.support`: that of the action's rarest changed pair of doses."""
        if not self.known.fitted:
            return None
        rescale, levels = self.first.rescale, self.first.levels
        columns = episode.columns(rescale.names).to(rescale.lower)
        observed = levels.digitise(episode.columns(levels.names).to(columns))
        if states is not None:
            columns = torch.cat([states.to(columns), columns[:, states.shape[1] :]], 1)
        counts = self.known.counts(rescale.scale(columns))
        codes = self.known.codes(torch.arange(levels.actions, device=counts.device))
        supports = counts[:, torch.arange(codes.shape[1]), codes]
        unchanged = codes == self.known.codes(observed).unsqueeze(1)
        return supports.masked_fill(unchanged, torch.iinfo(counts.dtype).max).amin(-1)

    @property
    def selectable(self) -> Tensor:
        """Which actions have training rows at each of their levels, (A,) bool."""
        return self.first.levels.selectable

    def state_scale(self) -> Tensor:
        """(D,), each varying feature's training range; infinite for features on a logarithmic scale."""
        rescale, width = self.first.rescale, len(self.names)
        return torch.where(rescale.logged[:width], torch.inf, rescale.width[:width])

    def outside(self, episode: Episode, slack: float = 0.0) -> tuple[Finding, ...]:
        """As `EpisodeSurrogate.outside`, for the ranges of the training table."""
        rescale, findings = self.first.rescale, list[Finding]()
        columns = episode.columns(rescale.names).to(rescale.lower)
        z, slack = rescale.scale(columns), slack + 1e-9
        corners = torch.tensor([[-0.5], [0.5]]).to(z).expand(-1, z.shape[1])
        ends = rescale.unscale(corners).T
        for name, values, scaled, (low, high) in zip(rescale.names, columns.T, z.T, ends, strict=True):
            if bool((scaled.abs() > 0.5 + slack).any()):
                lowest, highest, low, high = (
                    setting_text(float(end), 6) for end in (values.min(), values.max(), low, high)
                )
                observed = f"the observations lie between {low} and {high}"
                findings.append(Finding("range", f"{name} lies between {lowest} and {highest}; {observed}"))
        return tuple(findings)

    def errs(self, states: Sequence[str]) -> bool:
        """Whether the noise of a state in `states` (all if empty) is predictable; False if unknown."""
        r_squared = self.noise_shares()
        return any(r_squared.get(name, 0.0) > PREDICTABLE for name in states or self.names)

    @property
    def predictable_noise(self) -> Tensor:
        """(D,), or (0,) if unknown."""
        return self.noise_check.shares

    def noise_causes(self) -> dict[str, tuple[float, float]]:
        """The stored `noise_causes` by state."""
        if not len(self.noise_check.causes):
            return {}
        within, level = self.noise_check.causes.tolist()
        return dict(zip(self.names, zip(within, level, strict=True), strict=True))

    def check_noise(self, rows: Table | None, held_out: Table | None) -> None:
        """Measures and stores R2 of the noise, with its causes where predictable."""
        check, shares = self.noise_check, predictable_noise(self, rows, held_out, self.least_noise)
        check.shares, check.causes = shares.to(self.device), torch.empty(0, dtype=torch.float64)
        states = (shares > PREDICTABLE).nonzero()[:, 0].tolist()
        if states and rows is not None and held_out is not None:
            check.causes = noise_causes(self, rows, held_out, states).to(self.device)

    def question(self) -> Question:
        """The input columns."""
        return Columns((*self.first.rescale.names, *self.dose_names))

    def used(self) -> tuple[str, ...]:
        """All columns."""
        return ("columns",)


class SingleTransition(CheckedTransition):
    """A single transition model. ValueError if a column is named in two roles.

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
        """Its own training steps."""
        return self.past

    def known_part(self, table: Table) -> tuple[ComparableSteps, Examples]:
        """The comparable steps with their examples, of some thousand rows."""
        rows = sample(table, KEPT)
        features = self.rescale.scale(rows.columns(self.rescale.names).to(self.device, torch.float64))
        actions = self.levels.digitise(rows.columns(self.levels.names).to(features))
        return self.known, (features, actions, begins_of(rows).to(features.device))

    @property
    def each(self) -> tuple[Self]:
        """Itself."""
        return (self,)

    @abstractmethod
    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled features and dose levels (n, p) and next states (n, D) of transitions."""

    def extremes(self, table: Table) -> Tensor:
        """Minima and maxima of blocks of transitions, (2 k, d), with the ranges of the whole table."""
        names = self.rescale.names
        extremes = []
        for block in _blocks(table):
            for rows in (block.columns(names), block.columns([next_name(name) for name in names])):
                extremes += [rows.amin(0), rows.amax(0)]
        return torch.stack(extremes)

    def units(self, states: Tensor) -> Tensor:
        """(..., D) -> (..., D), scaled to clinical units."""
        width = len(self.varying)
        padding = states.new_zeros(*states.shape[:-1], len(self.rescale.names) - width)
        return self.rescale.unscale(torch.cat([states, padding], -1))[..., :width]


class TransitionModel(SingleTransition):
    """Next state from state, static and contextual features, and doses.

    The mechanism's parents are, in this order: varying and static features (smooth), contextual features and
    dose levels (free), scaled to [-1/2, 1/2] by the ranges of the training table. ValueError for other
    effects, or a threshold that is not positive.

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
        networks = mechanism(smooth=smooth, free=free + dense * len(doses), outputs=len(self.varying))
        self.mechanism: LocationScale | SparseEffects = (
            networks if dense else SparseEffects(networks, len(doses), effect_threshold)
        )

    @classmethod
    def from_tensors(
        cls,
        varying: Sequence[str],
        static: Sequence[str],
        contextual: Sequence[str],
        mechanism: LocationScale,  # with user-supplied weights, see `LocationScale.from_tensors`
        ranges: Mapping[str, Sequence[float]],  # feature to its (lower, upper), scaled to -1/2 and 1/2
        # Dose column to doses, increasing from 0, in its unit; the longest list has the number of levels
        levels: Mapping[str, Sequence[float]],
        logarithms: Sequence[str] = (),  # features of which log(v + 1) is scaled
    ) -> Self:
        """A model with fixed, user-supplied weights, ranges and levels; ValueError if they do not agree."""
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
        """Ranges, levels, comparable steps, mechanism; the table is of `data.episode.transitions`."""
        yield self.rescale, (self.extremes(table),)
        yield self.levels, (table.columns(self.levels.names),)
        yield self.known_part(table)
        parts = self.mechanism_parts(table)
        del table  # training does not need it, and it may be the largest thing in memory
        yield from parts

    def mechanism_parts(self, table: Table) -> Fits:
        """The parts of the mechanism; the ranges and levels have been fitted."""
        scaled = self._scaled_transitions(table)
        del table
        yield from self.mechanism.parts(*scaled)

    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents (n, p) and values (n, D), as the mechanism takes them; NaN if filled in."""
        self.require_fitted()
        return self._scaled_transitions(table)

    @torch.no_grad()
    def residuals(self, table: Table) -> Tensor:
        """Values less their location, (n, D)."""
        parents, values = self.examples(table)
        return (values - self.mechanism.moments(parents)[0]).to(table.values.device, torch.float64)

    def _scaled_transitions(self, table: Table) -> tuple[Tensor, Tensor]:
        parameter, count = self.mechanism.factor, len(table)
        widths = (len(self.rescale.names) + len(self.levels.names), len(self.varying))
        parents, values = (parameter.new_empty(count, width) for width in widths)
        for index, block in enumerate(_blocks(table)):
            span = slice(index * BLOCK, index * BLOCK + len(block))
            parents[span], values[span] = self._scaled_block(block.to(parameter.device))
        return parents, values

    def _scaled_block(self, table: Table) -> tuple[Tensor, Tensor]:
        width = len(self.varying)
        features = self.rescale.scale(table.columns(self.rescale.names))
        following_features = following(table, self.varying, self.rescale.names[width:])
        actions = self.levels.digitise(table.columns(self.levels.names))
        dtype = self.mechanism.factor.dtype
        parents = torch.cat([features, self.levels.encoded(actions).to(features)], -1)
        return parents.to(dtype), self.rescale.scale(following_features)[:, :width].to(dtype)

    def log_likelihood(self, table: Table) -> Tensor:
        """Log-likelihood of each transition's next state, scaled coordinates, (n,), where the table is."""
        parents, values = self.examples(table)
        return self.mechanism.log_likelihood(parents, values).to(table.values.device)

    @torch.no_grad()
    def noise(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents and abducted noise, (n, p) and (n, 1, D), float64, where the table is."""
        parents, values = self.examples(table)
        noise = self.mechanism.abduct(parents, values).unsqueeze(1)
        device = table.values.device
        return parents.to(device, torch.float64), noise.to(device, torch.float64)

    @torch.no_grad()
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual steps; ValueError if not fitted, or the weights need rescaling."""
        self.require_fitted()
        self.mechanism.networks.check_norms(("location (h)", "scale (phi)"))
        features = self.rescale.scale(episode.columns(self.rescale.names).to(self.levels.medians))
        width, horizon, count = len(self.varying), episode.horizon, self.levels.actions
        encoded = self.levels.encoded(torch.arange(count, device=features.device)).to(features)
        constant = features[:-1, None, width:].expand(-1, count, -1)
        inputs = torch.cat([constant, encoded.expand(horizon - 1, -1, -1)], -1)
        observed = self.levels.digitise(episode.columns(self.levels.names).to(features))
        return self.mechanism.unroll(features[:, :width], inputs, observed)

    def lipschitz(self, table: Table) -> dict[str, float]:
        """Certified constants of h and phi; over the first `REPORTED` transitions mean and largest K_u, and
        spectral norm of the Jacobian, and their largest ratio, at most 1. ValueError for a table without
        rows.
        """
        if not len(table):
            raise ValueError("expected transitions at which to evaluate the Jacobian; got none")
        mechanism = deepcopy(self.mechanism).to(torch.float64)
        parents, values = (x[:REPORTED].to(torch.float64) for x in self.examples(table))
        with torch.no_grad():
            noise = mechanism.abduct(parents, values).nan_to_num(0.0)

        def step(state: Tensor, inputs: Tensor, u: Tensor) -> Tensor:
            location, scale = mechanism.moments(torch.cat([state, inputs]).unsqueeze(0))
            return (location + scale * u)[0]

        jacobian = torch.func.vmap(torch.func.jacrev(step))
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


def _blocks(table: Table) -> Iterator[Table]:
    blocks = zip(table.values.split(BLOCK), table.altered.split(BLOCK), strict=True)
    return (Table(table.names, *block) for block in blocks)
