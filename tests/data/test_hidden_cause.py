import json

import pytest

from rehearsal_torch.data.hidden_cause import HiddenCause, share

FOUND = HiddenCause(0.02, "MeanBP", 0.004, "GCS", 0.4)


def test_plain_data_and_back():
    for each in (FOUND, HiddenCause(1.0), HiddenCause(0.5)):
        assert HiddenCause.of(json.loads(json.dumps(each.to_dict()))) == each
    assert HiddenCause(0.5).to_dict() == {"tipping": 0.5}


def test_the_yardstick_has_the_bias_of_the_covariate():
    rho = FOUND.yardstick
    assert rho is not None
    assert rho**2 / (1 - rho) == pytest.approx(0.4 * 0.004 / 0.996)
    assert HiddenCause(0.1, "x", 0.3, "y", 0.3).yardstick == pytest.approx(0.3)
    assert HiddenCause(0.1, "x", 1.0, "y", 0.3).yardstick == 1
    assert HiddenCause(0.1).yardstick is None


def test_sentences():
    assert FOUND.sentence() == (
        "a hidden common cause that explains 2.0% of what the observed covariates leave open, of the doses "
        "and of every next state, can overturn this; the strongest observed covariate, MeanBP, which "
        "explains 0.4% of the doses and 40.0% of GCS, is as strong as one with 3.9% of both"
    )
    assert HiddenCause(1.0).sentence().startswith("no hidden common cause")
    assert share(0.0004) == "less than 0.1%"
