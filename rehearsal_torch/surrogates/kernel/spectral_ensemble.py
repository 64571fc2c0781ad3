"""An ensemble of joint-metric estimators.

Metrics of nearly equal evidence can recommend very different actions, because the evidence measures errors
where the rows lie, while decisions are taken at the edge of the data. Members that are fitted to different
rows disagree there, and only there: their mean is more reliable than any single member, and their
disagreement is part of the posterior of J,

    J = mean_e J_e,    var J = mean_e var_e + (1 + 1/E) var_e(J_e),

with the unbiased variance over members: the truth is treated as one more draw of the same kind, and the mean
is itself uncertain.

Source: bagging after Breiman (1996); the law of total variance.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.surrogates.chebyshev import ChebyshevNodes, TabulatedValue, nodes_for
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, Prepared
from rehearsal_torch.surrogates.kernel.spectral_ridge import SpectralRidge

MOST_NODES = 96


class SpectralEnsemble(AlterationValue):
    """The average of E joint-metric estimators.

    Args:
        first: Indices of the actions that precede the covariates between alterations.
        members: E.
        features: Number of frequencies per member.
        direction_rows: Maximum number of rows from which each member's directions are found.
        width_rows: Maximum number of rows from which its widths are fitted.
        iterations: Maximum number of iterations of each evidence maximisation.
        seed: Seed; member e uses 1000 seed + e.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        members: int = 4,
        features: int = 400,
        direction_rows: int = 300,
        width_rows: int = 500,
        iterations: int = 25,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if members < 1:
            raise ValueError(f"expected at least 1 member; got {members}")
        bounded("members", members, 1000)
        self.members = nn.ModuleList(
            SpectralRidge(first, features, direction_rows, width_rows, iterations, 1000 * seed + index)
            for index in range(members)
        )

    def _each(self) -> list[SpectralRidge]:
        return [member for member in self.members if isinstance(member, SpectralRidge)]

    def _parts(self, prepared: Prepared) -> list[tuple[SpectralRidge, Prepared]]:
        members = self._each()
        size = len(prepared.pieces) // len(members)
        return [
            (member, Prepared(prepared.contexts, prepared.pieces[index * size : (index + 1) * size]))
            for index, member in enumerate(members)
        ]

    def solve(self, *examples: Tensor) -> None:
        """Fits every member."""
        for member in self._each():
            member.solve(*examples)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The rows of every member but the first: they are fitted to the same."""
        first, *others = self._each()
        if first.inputs.ndim != 2 or not len(first.inputs):
            return {}
        return {f"members.{index}.inputs": tuple(first.inputs.shape) for index in range(1, len(others) + 1)}

    def derive(self, name: str) -> Tensor:  # noqa: ARG002
        """See `Part.derive`."""
        return self._each()[0].inputs.clone()

    def left_out(self, examples: Sequence[Tensor], folds: Tensor) -> Tensor:
        """The mean of `SpectralRidge.left_out` over members, (n,)."""
        return torch.stack([member.left_out(examples, folds) for member in self._each()]).mean(0)

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the members' rows, or minus one if they differ."""
        widths = {member.widths_of_rows for member in self._each()}
        return widths.pop() if len(widths) == 1 else (-1, -1, -1)

    @property
    def actions(self) -> Tensor:
        """A subset of the historical actions, (n, k)."""
        return self._each()[0].actions

    def prepare(self, contexts: Tensor) -> Prepared:
        """See `AlterationValue.prepare`."""
        pieces = (piece for member in self._each() for piece in member.prepare(contexts).pieces)
        return Prepared(contexts, tuple(pieces))

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """See `AlterationValue.value`."""
        return torch.stack(
            [member.value(part, actions, target) for member, part in self._parts(prepared)]
        ).mean(0)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_gradient`."""
        pairs = [member.value_and_gradient(part, actions) for member, part in self._parts(prepared)]
        count = len(pairs)
        value, gradient = pairs[0]
        for more, more_gradient in pairs[1:]:
            value, gradient = value + more, gradient + more_gradient
        return value / count, gradient / count

    def value_and_std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_std`."""
        pairs = [member.value_and_std(part, actions, target) for member, part in self._parts(prepared)]
        values, stds = (torch.stack(column) for column in zip(*pairs, strict=True))
        return values.mean(0), self._mixed(values, stds.square())

    def difference_and_std(
        self, prepared: Prepared, first: Tensor, second: Tensor, target: int = 0
    ) -> tuple[Tensor, Tensor]:
        """The members' differences, and the variance of a mixture of these."""
        pairs = [
            member.difference_and_variance(part, first, second, target)
            for member, part in self._parts(prepared)
        ]
        values, variances = (torch.stack(column) for column in zip(*pairs, strict=True))
        return values.mean(0), self._mixed(values, variances)

    def _mixed(self, values: Tensor, variances: Tensor) -> Tensor:
        """The standard deviation of what the members' mean estimates, (E, ...) -> (...)."""
        count = len(values)
        between = (1 + 1 / count) * values.var(0) if count > 1 else torch.zeros_like(values[0])
        return (variances.mean(0) + between).sqrt()

    def tabulated(self, prepared: Prepared, lower: Tensor, upper: Tensor) -> TabulatedValue | None:
        """None where covariates between alterations depend on the action, or it needs too many nodes."""
        if self.first or lower.shape[-1] != 1:
            return None
        half, tables = float((upper - lower).max()) / 2, []
        for member, part in self._parts(prepared):
            count = nodes_for(float(member.on_actions.abs().max()) * half, MOST_NODES)
            if count is None:
                return None
            nodes = ChebyshevNodes(lower.squeeze(-1), upper.squeeze(-1), count)
            tables.append((nodes, *member.value_and_covariance(part, nodes.places.unsqueeze(-1))))
        return TabulatedValue(tables)

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """See `AlterationValue.support`; the mean over members."""
        return torch.stack([member.support(part, actions) for member, part in self._parts(prepared)]).mean(0)

    def weights(self, prepared: Prepared) -> Tensor:
        """J at historical actions, (B, n)."""
        values = [member.values_everywhere(part, self.actions) for member, part in self._parts(prepared)]
        return sum(values[1:], values[0]) / len(values)
