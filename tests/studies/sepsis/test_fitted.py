"""Models of the sepsis study: fitted once, and refused under another configuration."""

import pytest

from rehearsal_torch.cli.build import problem_of
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.main import CONF
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.sepsis import fitted
from rehearsal_torch.studies.sepsis.fitted import fingerprints, models

TINY = (
    "+experiment=sepsis",
    "surrogate=transition_published",
    "reward=linear",
    "trainer.max_epochs=1",
    "trainer.progress=false",
    "surrogate.mechanism.hidden=6",
    "surrogate.levels=3",
    "dataset.patients=60",
)


@pytest.mark.slow
def test_a_model_is_fitted_once(tmp_path, monkeypatch):
    problem = problem_of(configured(CONF, TINY))
    first = models(CONF, tmp_path, problem, [0.8, 1.0], TINY)
    digests = fingerprints(tmp_path, [0.8, 1.0])
    assert set(first) == {0.8, 1.0}
    assert set(digests) == {"0.8", "1"}
    assert digests["0.8"] != digests["1"]
    again = models(CONF, tmp_path, problem, [1.0], TINY)
    assert fingerprints(tmp_path, [1.0]) == {"1": digests["1"]}
    ours, theirs = first[1.0].state_dict(), again[1.0].state_dict()
    assert all(ours[name].equal(theirs[name]) for name in ours)
    monkeypatch.setattr(fitted, "fit", None)
    with pytest.raises(UserError, match="fitted under another configuration"):
        models(CONF, tmp_path, problem, [1.0], [*TINY, "trainer.max_epochs=2"])
