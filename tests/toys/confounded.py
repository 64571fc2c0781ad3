"""Rows for the estimators of an alteration's value: one covariate confounds the action."""

import torch


def rows(count, seed=0, contexts=2, covariates=1, actions=1):
    """Context, before, between, actions, targets and scores of `count` rows."""
    stream = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    x, u = normal(count, contexts), normal(count, covariates)
    told = 0.5 * x[:, :1] + 0.7 * u.sum(-1, keepdim=True)
    a = told + 0.6 * normal(count, actions)
    y = a.sum(-1) + u.sum(-1) + 0.3 * normal(count)
    smooth = torch.special.ndtr(4 * (y + 1)) * torch.special.ndtr(4 * (1 - y))
    return x, u, x.new_empty(count, 0), a, torch.stack([smooth, (y.abs() < 1).double()], -1), y[:, None]


def points(contexts=2, actions=1, batch=5, starts=3, seed=7):
    """Contexts (B, |X|) and actions (S, B, k)."""
    stream = torch.Generator().manual_seed(seed)
    return torch.randn(batch, contexts, generator=stream, dtype=torch.float64), torch.randn(
        starts, batch, actions, generator=stream, dtype=torch.float64
    )


def fitted(estimator, *examples):
    """The estimator, fitted."""
    estimator.solve(*examples)
    return estimator
