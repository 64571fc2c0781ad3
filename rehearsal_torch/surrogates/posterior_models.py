"""Models drawn from a posterior over graphs and linear Gaussian equations.

K models are cut into blocks, one for each graph, in proportion to its weight (systematic sampling: a block's length is off by
less than one). Within a block the equations' parameters are drawn for all its models at once, and a scenario follows from
parents to children,

    offset_v = b + W' offset_pa + eps,        slope_v = W' slope_pa,

in which what is set starts with offset 0 and slope 1, and the context with its values and slope 0: no matrix is inverted.

Source: Qin et al. (2023), Sec. 4.1-4.2, Prop. 5 (proof), App. C (Algorithm 4, lines 1-5).
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.surrogates.hypotheses import Hypothesis
from rehearsal_torch.surrogates.linear_surrogate import Equation
from rehearsal_torch.surrogates.scenario_model import AffineScenarios, SampledModels

Parameters = tuple[Tensor, Tensor, Tensor]
Draw = Callable[[Equation, int], Parameters]


class PosteriorModels(SampledModels):
    """K models, drawn when they are first asked for.

    Args:
        task: Who plays which part.
        hypotheses: The H graphs with their equations.
        weights: (H,), summing to one.
        count: K.
        draw: Parameters for (equation, how many): weights (n, p, c), intercepts (n, c), covariances (n, c, c); the same at every call.
        stream: Random numbers for graphs and noise, on the CPU.
    """

    def __init__(self, task: RehearsalTask, hypotheses: Sequence[Hypothesis], weights: Tensor, count: int, draw: Draw, stream: torch.Generator) -> None:
        if count < 1:
            raise ValueError(f"expected at least 1 model; got {count}")
        self.task, self.hypotheses, self.count, self._draw = task, tuple(hypotheses), count, draw
        place = (torch.arange(count, dtype=torch.float64) + torch.rand(1, dtype=torch.float64, generator=stream)) / count
        ends = weights.cpu().cumsum(0)
        chosen = torch.searchsorted(ends / ends[-1], place).clamp_max(len(weights) - 1)
        self._graphs = chosen.to(weights.device)
        lengths = torch.bincount(chosen, minlength=len(weights)).tolist()
        starts = [sum(lengths[:index]) for index in range(len(lengths))]
        self.blocks = [(index, start, start + length) for index, (start, length) in enumerate(zip(starts, lengths, strict=True)) if length]
        self._noise = torch.randn(len(task.graph.names), count, dtype=torch.float64, generator=stream).to(weights.device)
        self._place = {name: index for index, name in enumerate(task.graph.names)}
        # An equation is drawn once, for the models of all graphs that have it, one block behind the other.
        self._homes: dict[Equation, dict[int, tuple[int, int]]] = {}
        for index, start, end in self.blocks:
            for equation in self.hypotheses[index].equations:
                home = self._homes.setdefault(equation, {})
                begin = max((last for _, last in home.values()), default=0)
                home[index] = begin, begin + end - start
        self._drawn: dict[Equation, Parameters] = {}

    @property
    def graphs(self) -> Tensor:
        """(K,), ascending."""
        return self._graphs

    def scenarios(self, contexts: Tensor, altered: Sequence[str]) -> AffineScenarios:
        """See `SampledModels.scenarios`."""
        self._check(altered)
        names, seen = self.task.graph.names, contexts.to(self._noise)
        # Variables first: columns of scenarios are read and written whole.
        offset = self._noise.new_zeros(len(names), len(seen), self.count)
        slope = self._noise.new_zeros(len(names), len(altered), self.count)
        for column, name in enumerate(self.task.context):
            offset[self._place[name]] = seen[:, column, None]
        for column, name in enumerate(altered):
            slope[self._place[name], column] = 1.0
        moved = set(altered)
        for index, start, end in self.blocks:
            reached = set(moved)
            for equation in self.hypotheses[index].under(altered):
                weights, intercept, root = self._factored(index, equation)
                above, own = [self._place[name] for name in equation.parents], [self._place[name] for name in equation.members]
                noise = self._noise[own, start:end]
                for row, place in enumerate(own):
                    value = offset[place, :, start:end]
                    value += intercept[:, row]
                    for column, up in enumerate(above):
                        value.addcmul_(weights[:, column, row], offset[up, :, start:end])
                    for column in range(row + 1):
                        value.addcmul_(root[:, row, column], noise[column])
                    lifted = [column for column in range(len(above)) if equation.parents[column] in reached]
                    for column in lifted:
                        slope[place, :, start:end] += weights[:, column, row] * slope[above[column], :, start:end]
                if reached & set(equation.parents):
                    reached |= set(equation.members)
        return AffineScenarios(names, tuple(altered), offset.permute(1, 2, 0), slope.permute(2, 0, 1))

    def log_density(self, rows: Tensor, altered: Sequence[str]) -> Tensor:
        """See `SampledModels.log_density`."""
        self._check(altered)
        rows = rows.to(self._noise)
        found = rows.new_zeros(*rows.shape[:-1], self.count)
        for index, start, end in self.blocks:
            for equation in self.hypotheses[index].under(altered):
                weights, intercept, root = self._factored(index, equation)
                above, own = [self._place[name] for name in equation.parents], [self._place[name] for name in equation.members]
                inverse = torch.linalg.solve_triangular(root, torch.eye(len(own), dtype=root.dtype, device=root.device).expand_as(root), upper=False)
                # Whitened residuals are L^-1 (v - b - W' pa): one product for all rows and models.
                slopes = torch.cat([inverse, -inverse @ weights.mT, -(inverse @ intercept.unsqueeze(-1))], -1)
                shown = torch.cat([rows[..., own], rows[..., above], torch.ones_like(rows[..., :1])], -1)
                constant = inverse.diagonal(dim1=-2, dim2=-1).log().sum(-1) - len(own) / 2 * math.log(2 * math.pi)
                part = found[..., start:end]
                part += constant
                for row in range(len(own)):
                    part -= 0.5 * (shown @ slopes[:, row].mT).square()
        return found

    def entropy(self, altered: Sequence[str]) -> Tensor:
        """See `SampledModels.entropy`."""
        self._check(altered)
        found = self._noise.new_zeros(self.count)
        for index, start, end in self.blocks:
            for equation in self.hypotheses[index].under(altered):
                _, _, root = self._factored(index, equation)
                found[start:end] += root.diagonal(dim1=-2, dim2=-1).log().sum(-1) + len(equation.members) / 2 * math.log(2 * math.pi * math.e)
        return found

    def _check(self, altered: Sequence[str]) -> None:
        strange = [name for name in altered if name not in self.task.box.names]
        if strange:
            raise ValueError(f"{strange} may not be altered; actionable are {list(self.task.box.names)}")

    def _factored(self, index: int, equation: Equation) -> Parameters:
        """Weights, intercepts and Cholesky factors of an equation in a graph's models."""
        home = self._homes[equation]
        if equation not in self._drawn:
            weights, intercept, covariance = self._draw(equation, max(last for _, last in home.values()))
            root = covariance.sqrt() if covariance.shape[-1] == 1 else torch.linalg.cholesky(covariance)
            self._drawn[equation] = weights, intercept, root
        begin, end = home[index]
        weights, intercept, root = self._drawn[equation]
        return weights[begin:end], intercept[begin:end], root[begin:end]
