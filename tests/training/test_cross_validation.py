import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training import cross_validation
from rehearsal_torch.training import surrogate_fit as fits
from rehearsal_torch.training.cross_validation import clinical_log_likelihood, cross_validate
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.transitions import CONTEXTUAL, DOSES, STATIC, VARYING, model, observations, patients


def trainer() -> Descent:
    return Descent(max_epochs=8, batch_size=32, learning_rate=1e-2, progress=False)


def test_every_transition_is_judged_once_by_a_model_that_has_not_seen_its_patient():
    found = cross_validate(patients(15, 5, 0), model, trainer, count=3)
    assert [score.fold for score in found.folds] == [0, 1, 2]
    assert sum(score.held_out for score in found.folds) == 15 * 4
    assert all(score.held_out % 4 == 0 for score in found.folds)
    assert found.by == "patient"
    assert found == cross_validate(patients(15, 5, 0), model, trainer, count=3)
    assert found.scaled == pytest.approx(sum(score.scaled for score in found.folds) / 3)
    # Both densities differ by one constant in every fold.
    shifts = [score.scaled - score.clinical for score in found.folds]
    assert max(shifts) - min(shifts) < 1e-9


@pytest.mark.bench
def test_folds_that_are_shared_have_the_same_scores(monkeypatch):
    alone = cross_validate(patients(15, 5, 0), model, trainer, count=3)
    asked, inner = [], cross_validation.results

    def noted(work, common, tasks, workers, **how):
        asked.append(workers)
        return inner(work, common, tasks, workers, **how)

    monkeypatch.setattr(cross_validation, "results", noted)
    assert cross_validate(patients(15, 5, 0), model, trainer, count=3, workers=2) == alone
    monkeypatch.setattr(fits, "MANY", 0)
    assert cross_validate(patients(15, 5, 0), model, trainer, count=3, workers=2) == alone
    assert asked == [1, 2], "few rows are trained here"


@pytest.mark.slow
@pytest.mark.parametrize("logarithms", [(), ("x",)])
def test_the_clinical_density_does_not_care_how_a_model_scales(logarithms: tuple[str, ...]):
    """It integrates to one over the next value of a variable in its unit."""
    raw = observations(seed=1)
    # Variables behind a logarithm are positive in practice.
    table = Table(
        raw.names,
        torch.where(torch.tensor([name[0] == "x" for name in raw.names]), raw.values.exp(), raw.values),
        raw.altered,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        from functools import partial

        from rehearsal_torch.mechanisms.location_scale import LocationScale

        made = TransitionModel(
            VARYING,
            STATIC,
            CONTEXTUAL,
            DOSES,
            partial(LocationScale, hidden=8),
            levels=3,
            logarithms=logarithms,
        ).double()
    fit(made, table, trainer())
    place = [table.names.index("x'"), table.names.index("y'")]
    low = -0.999 if logarithms else -150.0
    grids = [
        low + (150.0 - low) * torch.linspace(0, 1, 1201, dtype=torch.float64) ** 2
        if logarithms
        else torch.linspace(-60, 60, 801).double()
    ]
    grids.append(torch.linspace(-30, 30, 401, dtype=torch.float64))
    mesh = torch.cartesian_prod(*grids)
    values = table.values[:1].repeat(len(mesh), 1)
    values[:, place] = mesh
    density = (
        clinical_log_likelihood(made, Table(table.names, values, torch.zeros_like(values, dtype=torch.bool)))
        .exp()
        .reshape(len(grids[0]), -1)
    )
    assert torch.trapezoid(torch.trapezoid(density, grids[1]), grids[0]).item() == pytest.approx(
        1.0, abs=0.02
    )


def test_folds_by_transition_split_patients():
    found = cross_validate(patients(7, 5, 0), model, trainer, count=3, by="transition")
    assert sorted(score.held_out for score in found.folds) == [9, 9, 10]
    with pytest.raises(ValueError, match="by=patient or by=transition"):
        cross_validate(patients(7, 5, 0), model, trainer, by="week")
