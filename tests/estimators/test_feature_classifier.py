"""Classification on random features: the mode, its evidence, and the probability where it is known."""

import torch

from rehearsal_torch.estimators.feature_classifier import FeatureClassifier, modes_of
from rehearsal_torch.seeding import generator

SMALL = {"frequencies": 30, "evidence_rows": 100, "iterations": 8}


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def latent(inputs):
    return 1.5 * torch.sin(1.5 * inputs[:, 0]) + inputs[:, 1] - 0.5


def answered(count, seed=0):
    inputs = drawn(count, 2, seed=seed)
    return inputs, (latent(inputs) + drawn(count, seed=seed + 1) >= 0).double().unsqueeze(-1)


def probabilities(model, inputs):
    values = model.drawn(model.draws(40, generator(0)), inputs.expand(40, -1, -1))[..., 0]
    return torch.special.ndtr(values)


def test_the_probability_is_found_and_more_rows_find_it_better():
    inputs = drawn(500, 2, seed=9)
    truth, errors, spreads = torch.special.ndtr(latent(inputs)), [], []
    for count in (150, 600, 2400):
        model = FeatureClassifier(**SMALL)
        model.solve(*answered(count))
        found = probabilities(model, inputs)
        errors.append(float((found.mean(0) - truth).square().mean().sqrt()))
        spreads.append(float(found.std(0).mean()))
        assert model.faults() == []
        assert model.noise.tolist() == [1.0]
    assert errors[2] < errors[1] < errors[0] < 0.15
    assert errors[2] < 0.05
    assert spreads[2] < spreads[1] < spreads[0]


def test_the_mode_is_a_maximum_with_the_curvature_of_the_posterior():
    features, answers = drawn(60, 4), (drawn(60, seed=3) > 0).double()
    variances = torch.tensor([0.1, 1.0, 10.0]).double()
    location = torch.tensor(0.2).double()
    modes = modes_of([(features[:23], answers[:23]), (features[23:], answers[23:])], location, variances)
    signs = 2 * answers - 1

    def value(points):
        fit = torch.special.log_ndtr(signs * (location + points @ features.mT)).sum(-1)
        return fit - 0.5 * points.square().sum(-1) / variances

    at = modes.points.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(value(at).sum(), at)
    assert float(slope.abs().max()) < 1e-5
    for place in range(3):
        root = modes.roots[place]
        own = torch.autograd.functional.hessian(
            lambda b, place=place: value(modes.points.index_put((torch.tensor(place),), b))[place], at[place]
        )
        torch.testing.assert_close(root @ root.mT, -own, rtol=1e-6, atol=1e-6)
    nothing = modes_of([(torch.zeros(60, 4).double(), answers)], location, variances)
    assert torch.allclose(nothing.evidence, torch.special.log_ndtr(signs * location).sum())


def test_separable_answers_have_a_finite_mode():
    inputs = drawn(200, 1)
    model = FeatureClassifier(**SMALL)
    model.solve(inputs, (inputs > 0).double())
    far = probabilities(model, torch.tensor([[-2.0], [2.0]]).double()).mean(0)
    assert model.coefficients.isfinite().all()
    assert float(far[0]) < 0.1 < 0.9 < float(far[1])
