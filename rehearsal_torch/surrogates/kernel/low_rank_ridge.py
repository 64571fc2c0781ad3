"""Nested kernel ridge regression on landmarks: the Nystroem approximation.

With m of the rows as landmarks h_j, the regression function is a sum over landmarks,

    psi(h) = sum_j c_j k_h(h_j, h),   (K_mn K_nm + N lambda_h K_mm) c = K_mn w,

so that J remains a sum of m Gaussians with weights c_j k_x(x_j, x) E[k_u(u_j, U) | x]. The last factor is
estimated by ridge regression, on landmarks in x, of orthonormal features of u on landmarks in u. Fitting
costs O(N m^2), in blocks of rows and without an N x N matrix; with all rows as landmarks it is the exact
estimator. The variance of J adds to the posterior in the span of the landmarks the part of the prior variance
outside the span, so that it does not vanish far from all landmarks.

Landmarks are chosen (`landmarks`) among all rows, or 65,536 drawn by the seed if there are more. All sums
over rows are accumulated in blocks, which need not be in memory. Where the rows are fewer numbers than the
m x m factors of the landmarks, they are kept, and files leave the factors out.

Source: Williams and Seeger (2000); Rudi, Camoriano and Rosasco (2015), Eq. (9); Quinonero-Candela and
Rasmussen (2005), Sec. 6 (the variance); Du et al. (2026), Tab. 2.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Examples, Sizes
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.tables.block_statistics import drawn, rows_at
from rehearsal_torch.data.tables.blocks import Blocks, in_blocks
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.landmarks import (
    SAMPLED,
    Landmarks,
    Regression,
    kernel_errors,
    landmarks,
    landmarks_at,
    regressed,
    reported_errors,
)
from rehearsal_torch.surrogates.kernel.nested_ridge import Prepared
from rehearsal_torch.surrogates.kernel.product_kernel import (
    MEDIAN,
    Choice,
    GaussianBumps,
    gaussian,
    joined,
    kernel_rows,
    lay_out,
)
from rehearsal_torch.surrogates.kernel.product_ridge import LAMBDA, refuse_between

CANDIDATES = 65_536
"""Rows among which landmarks are chosen; of more, so many are drawn."""


def _used(examples: Examples) -> Examples:
    """Context, covariates, actions and targets."""
    context, before, _, actions, targets = (each.detach() for each in examples[:5])
    return context, before, actions, targets


class LowRankRidge(GaussianBumps):
    """The Nystroem estimator.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        rank: m, the maximum number of landmarks of each kernel.
        landmarks: "pivoted", "sampled" or "uniform", see `landmarks`.
        widths: "median", or "leave_one_out" (the best model on a subset).
        fixed: Widths of context, covariates and actions in standardised coordinates; None selects them by
            `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added.
        lambda_x: Ridge of stage 2.
        seed: Seed of landmarks and subsets.

    Raises:
        ValueError: if a setting is out of range.
    """

    by_parts: bool = True

    def __init__(
        self,
        first: Sequence[int] = (),
        rank: int = 200,
        landmarks: str = SAMPLED,
        widths: str = MEDIAN,
        fixed: Sequence[float] | None = None,
        lambda_h: float = LAMBDA,
        lambda_x: float = LAMBDA,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if rank < 1 or lambda_x <= 0:
            raise ValueError(f"expected a positive rank and lambda_x; got {rank} and {lambda_x}")
        bounded("rank", rank)
        self.rank, self.landmarks, self.lambda_x, self.seed = rank, landmarks, lambda_x, seed
        self.choice = Choice(fixed if fixed is not None else widths, lambda_h, max_models=1, seed=seed)
        self.register_fitted("contexts", "covariates", "widths", "ridge", "coefficients")
        self.register_fitted("amplitudes", "profile", "context_centres", "errors")
        # h of every row, and the places of the landmarks of h, x and u among them.
        self.register_fitted("inputs", "places", "context_places", "covariate_places", source=True)
        self.register_fitted("root", "factor", "embedding", "cover", derived=True)
        self.contexts: Tensor
        self.covariates: Tensor
        self.widths: Tensor
        self.ridge: Tensor
        self.coefficients: Tensor
        self.root: Tensor
        self.factor: Tensor
        self.amplitudes: Tensor
        self.profile: Tensor
        self.context_centres: Tensor
        self.embedding: Tensor
        self.cover: Tensor
        self.errors: Tensor
        self.inputs: Tensor
        self.places: Tensor
        self.context_places: Tensor
        self.covariate_places: Tensor

    def sizes(self) -> Sizes:
        """n landmarks; contexts (x) and covariates (u); c landmarks of stage 2, with e features; all r
        rows, where they are kept.
        """
        rows: Sizes = {"contexts": ("n", "x"), "covariates": ("n", "u")}
        chosen: Sizes = {"widths": (3,), "ridge": (1,), "errors": ("s", 2)}
        fit: Sizes = {
            "coefficients": ("n", 2),
            "root": ("n", "n"),
            "factor": ("n", "n"),
            "amplitudes": (2,),
            "profile": ("n",),
        }
        second: Sizes = {"context_centres": ("c", "x"), "embedding": ("c", "e"), "cover": ("n", "v")}
        kept: Sizes = {"inputs": ("r", sum(self.widths_of_rows)), "places": ("n",)}
        places: Sizes = {"context_places": ("c",), "covariate_places": ("v",)}
        covariates = self.covariates.ndim == 2 and self.covariates.shape[1]
        whole = self.inputs.shape != (0,)
        return {
            **super().sizes(),
            **rows,
            **chosen,
            **fit,
            **(second if covariates else {}),
            **(kept if whole else {}),
            **(places if whole and covariates else {}),
        }

    def faults(self) -> list[str]:
        """Sizes, and an embedding whose columns are not the covariates' features and means."""
        found, covariates = super().faults(), self.covariates.shape[-1]
        if not found and covariates and self.embedding.shape[1] != self.cover.shape[1] + covariates:
            found.append(
                f"embedding: expected {self.cover.shape[1] + covariates} columns; got "
                f"{self.embedding.shape[1]}"
            )
        return found

    def solve(self, *examples: Tensor) -> None:
        """Fits both stages on landmarks.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        self.solve_blocks(in_blocks(examples))

    def solve_blocks(self, blocks: Blocks[Examples]) -> None:
        """As `solve`; of the rows, the candidates for landmarks are in memory."""
        refuse_between(blocks[0][2])
        count, rows = len(blocks), blocks.map(lambda _, each: _used(each))
        models = self.choice.models_of(rows.map(lambda _, each: (*each[:3], each[3][:, 0])))
        self.widths, self.ridge = models.widths[0], count * models.ridges
        some = rows_at(rows, drawn(count, CANDIDATES, generator(self.seed)))[:3]
        scaled = joined(some, self.widths)
        marks = landmarks(scaled, self.rank, self.landmarks, self.seed)
        self.contexts, self.covariates, self.centres, self.bump_widths = (
            *(block[marks.chosen] for block in some),
            self.widths[2:].clone(),
        )
        found = self._first(rows.map(lambda _, each: (joined(each[:3], self.widths), each[3])), marks)
        squares = torch.stack([each[3].square().sum(0) for each in rows]).sum(0)
        self.root, self.factor = marks.root, found.factor
        self.coefficients = torch.linalg.solve_triangular(marks.root.T, found.theta, upper=True)
        self.profile = torch.linalg.solve_triangular(marks.root.T, found.total[:, None], upper=True)[:, 0]
        self.amplitudes = (squares - found.explained) / (count * self.ridge)
        errors = [kernel_errors(scaled, marks.features, self.seed)]
        self.embedding = self.cover = self.context_centres = scaled.new_empty(0)
        self.places, self.context_places, self.covariate_places = (
            marks.chosen.to(scaled),
            *(scaled.new_empty(0) for _ in range(2)),
        )
        if some[1].shape[1]:
            errors += self._embed(rows.map(lambda _, each: each[:2]), some[0] / self.widths[0], some[1])
        self.errors = torch.stack(errors)
        self.inputs = torch.cat(some, -1)
        derived = sum(each.numel() for each in (self.root, self.factor, self.embedding, self.cover))
        if blocks.count > 1 or count > len(self.inputs) or self.inputs.numel() >= derived:
            self.inputs, self.places = scaled.new_empty(0), scaled.new_empty(0)
            self.context_places, self.covariate_places = scaled.new_empty(0), scaled.new_empty(0)
        lay_out(self)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The factors of both stages and what rests on them; only with all rows."""
        if self.inputs.ndim != 2 or not len(self.inputs):
            return {}
        marks, covariates = len(self.centres), self.covariates.shape[-1]
        found = {"root": (marks, marks), "factor": (marks, marks)}
        if not covariates:
            return found
        waves = len(self.covariate_places)
        second = {"embedding": (len(self.context_places), waves + covariates), "cover": (marks, waves)}
        return {**found, **second}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        parts = self.inputs.split(list(self.widths_of_rows), -1)
        blocks = tuple(each.contiguous() for each in parts)
        if name in ("root", "factor"):
            scaled = joined(blocks, self.widths)
            marks = self._at(scaled, self.places)
            if name == "root":
                return marks.root
            return self._first(in_blocks((scaled, scaled.new_zeros(len(scaled), 2))), marks).factor
        inner = self._at(blocks[1] / self.widths[1], self.covariate_places)
        if name == "cover":
            return inner.features(self.covariates / self.widths[1])
        outer = self._at(blocks[0] / self.widths[0], self.context_places)
        return self._second(in_blocks(blocks[:2]), inner, outer)

    def _at(self, scaled: Tensor, places: Tensor) -> Landmarks:
        return landmarks_at(scaled, places, self.rank, self.landmarks, self.seed)

    def _first(self, rows: Blocks[Examples], marks: Landmarks) -> Regression:
        """Stage 1, of scaled rows and their targets."""
        return regressed(rows, lambda each: marks.features(each[0]), lambda each: each[1], float(self.ridge))

    def _second(self, rows: Blocks[Examples], inner: Landmarks, outer: Landmarks) -> Tensor:
        """The embedding of stage 2, of contexts and covariates."""
        found = regressed(
            rows,
            lambda each: outer.features(each[0] / self.widths[0]),
            lambda each: torch.cat([inner.features(each[1] / self.widths[1]), each[1]], -1),
            len(rows) * self.lambda_x,
        )
        return torch.linalg.solve_triangular(outer.root.T, found.theta, upper=True)

    def _embed(self, rows: Blocks[Examples], scaled: Tensor, before: Tensor) -> list[Tensor]:
        """Fits stage 2 to contexts and covariates, with landmarks among some of them; the errors of its
        kernels.
        """
        covariates = before / self.widths[1]
        inner = landmarks(covariates, self.rank, self.landmarks, self.seed)
        outer = landmarks(scaled, self.rank, self.landmarks, self.seed)
        self.context_centres, self.embedding = outer.centres, self._second(rows, inner, outer)
        self.context_places, self.covariate_places = outer.chosen.to(scaled), inner.chosen.to(scaled)
        self.cover = inner.features(self.covariates / self.widths[1])
        return [
            kernel_errors(covariates, inner.features, self.seed),
            kernel_errors(scaled, outer.features, self.seed),
        ]

    def approximation(self) -> dict[str, float]:
        """Errors of the approximate kernels (of h, u and x) against the exact ones on a subsample: relative
        Frobenius and mean absolute error.
        """
        return reported_errors(self.errors)

    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights of both targets (B, 1, m), stage-2 weights of the landmarks (B, m), prior variance
        over its amplitude (B,), expected covariates (B, |U|).
        """
        contexts = contexts.to(self.contexts)
        scaled = contexts / self.widths[0]
        reach = gaussian(scaled, self.contexts / self.widths[0])
        prior, expected = reach.new_ones(len(reach)), reach.new_empty(len(reach), 0)
        if self.embedding.numel():
            projected = gaussian(scaled, self.context_centres) @ self.embedding
            embedded, expected = projected.split([self.cover.shape[1], self.covariates.shape[1]], -1)
            reach, prior = reach * (embedded @ self.cover.T), embedded.square().sum(-1)
        weights = [(reach * column)[:, None] for column in self.coefficients.T]
        return Prepared(contexts, (*weights, reach, prior, expected))

    def std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Posterior variance in the span plus prior variance outside the span, as a standard deviation, (...,
        B, k) -> (..., B).
        """
        _, _, reach, prior, _ = prepared.pieces
        query = reach * kernel_rows(actions.to(reach), self.centres, self.widths[2])
        features = torch.linalg.solve_triangular(self.root, query.reshape(-1, query.shape[-1]).T, upper=False)
        inside = self.ridge * torch.linalg.solve_triangular(self.factor, features, upper=False).square().sum(
            0
        )
        outside = (prior - features.square().sum(0).reshape(query.shape[:-1])).clamp(min=0)
        return (self.amplitudes[target] * (inside.reshape(outside.shape) + outside)).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a) under the approximate kernel, clipped at 0, (B, k)
        -> (B,).
        """
        here = joined((prepared.contexts, prepared.pieces[4], actions.to(prepared.contexts)), self.widths)
        return (
            gaussian(here, joined((self.contexts, self.covariates, self.centres), self.widths)) @ self.profile
        ).clamp(min=0)
