"""Densities with the parameters integrated out.

Given a graph, the equations' parameters are independent of each other a posteriori, and each clique follows from its parents, so that

    log p(v | G, D, x, z)  =  sum over cliques  log p(v_c | v_pa(c), D),

each term in closed form (a multivariate t, or a normal law where the noise is taken for known): no parameters are sampled.

Of rows that differ in what is set alone, only the cliques that the alteration reaches have other densities.

Source: Qin et al. (2023), Sec. 4.1 (the posterior factorises over cliques); the closed forms are those of the regressions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.bayesian_regression import BayesianRegression
from rehearsal_torch.surrogates.linear_surrogate import Equation
from rehearsal_torch.surrogates.structural_posterior import StructuralPosterior


class PredictiveDensity:
    """log p(v | G, D, x, z) of what is neither context nor altered, for rows that differ in z alone.

    Args:
        model: A fitted posterior.
        altered: The k variables that are set.
        rows: (..., d), every variable in the order of the task's graph, for some z.

    Raises:
        ValueError: if a variable may not be altered.
    """

    def __init__(self, model: StructuralPosterior, altered: Sequence[str], rows: Tensor) -> None:
        strange = [name for name in altered if name not in model.task.box.names]
        if strange:
            raise ValueError(f"{strange} may not be altered; actionable are {list(model.task.box.names)}")
        self.model, self.altered = model, tuple(altered)
        self._place = {name: index for index, name in enumerate(model.task.graph.names)}
        self._equations = [hypothesis.under(altered) for hypothesis in model.hypotheses]
        self._moving = {each for under in self._equations for each in _reached(under, altered)}
        self._still = {each: self._term(each, rows) for each in self._all() if each not in self._moving}

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows (*lead, ..., d) -> (*lead, ..., H): they equal those given at first in everything that the alteration does not reach."""
        terms = self._still | {each: self._term(each, rows) for each in self._all() if each in self._moving}
        found = [torch.stack([terms[each].expand(rows.shape[:-1]) for each in under]).sum(0) for under in self._equations]
        return torch.stack(found, -1)

    def _all(self) -> list[Equation]:
        return list(dict.fromkeys(each for under in self._equations for each in under))

    def _term(self, equation: Equation, rows: Tensor) -> Tensor:
        regression = self.model.regressions[self.model.equations.index(equation)]
        if not isinstance(regression, BayesianRegression):
            raise TypeError(f"expected a BayesianRegression; got {type(regression).__name__}")
        above, own = ([self._place[name] for name in names] for names in (equation.parents, equation.members))
        return regression.log_predictive(rows[..., above], rows[..., own])


def _reached(equations: Sequence[Equation], altered: Sequence[str]) -> list[Equation]:
    """The equations that what is set reaches, parents before children."""
    reached, found = set(altered), []
    for each in equations:
        if reached & set(each.parents):
            reached |= set(each.members)
            found.append(each)
    return found
