"""Which rehearsal methods have intervals of given alterations, and of differences: every preset."""

import pytest

import rehearsal_torch as rt
from rehearsal_torch.methods.presets import methods
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.user_error import RequestError
from tests.api.test_rehearse import CASES, SMALL, TASK

pytestmark = pytest.mark.slow
DIFFERENCES = {"cme", "outcome_regression", "care", "none", "micns", "qwz23_offline"}
CLAIMS = DIFFERENCES | {"cme_fourier", "cme_nystrom", "cme_published", "grad_rh"}
SETTINGS = {"outcome_regression": SMALL, "grad_rh": {"trainer.max_epochs": 2}}


@pytest.fixture(scope="module")
def frame():
    return Loan(size=SampleSize(rows=80)).observations().to_frame()


@pytest.mark.bench
@pytest.mark.parametrize("method", [name for name in methods("rehearse") if name != "auto"])
def test_a_method_has_intervals_or_is_refused_by_name(frame, method):
    model = rt.learn(frame, TASK, method=method, **SETTINGS.get(method, {}))
    first, second = {"A2": 0.3}, {"A2": 0.4}
    if method not in CLAIMS:
        with pytest.raises(RequestError, match=f"the method '{method}' has no interval of the probability"):
            model.what_if(CASES[0], first)
        return
    claims = [model.what_if(CASES[0], each).estimate for each in (first, second)]
    assert all(0 <= each.lower <= each.point <= each.upper <= 1 for each in claims)
    if method not in DIFFERENCES:
        with pytest.raises(RequestError, match=f"the method '{method}' has no interval for the difference"):
            model.compare(CASES[0], first, second)
        return
    apart = model.compare(CASES[0], first, second).difference
    assert apart.point == pytest.approx(claims[0].point - claims[1].point, abs=3e-6)
    assert apart.upper - apart.lower < sum(each.upper - each.lower for each in claims)
