"""Keys that are added with a plus: only where something takes them."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.overrides import composed


def of(*typed):
    return composed(conf_folder(), typed, multirun=any("," in text for text in typed))[0]


@pytest.mark.slow
def test_what_something_takes_is_added():
    config = of("+dataset.limit=3", "++trainer.callbacks.mine=1", "++name=other", "+hydra.launcher.x=1")
    assert (config.dataset.limit, config.trainer.callbacks.mine, config.name) == (3, 1, "other")
    read = of(
        "+n=3", "+size.of=4", "+dataset.limit=${n}", "name=run_${size.of}", "+dask.a=1", "dask.address=${.a}"
    )
    assert (read.dataset.limit, read.name, read.dask.address) == (3, "run_4", 1)
    assert of("+surrogate._convert_=all").surrogate._convert_ == "all"
    weighed = of("+experiment=auf", "decision=micns", "+objective.weights={a: 2}", "+objective.weights.b=1")
    assert weighed.objective.weights == {"a": 2, "b": 1}
    own = of("dataset=bank", "decision=care", "++surrogate.draws=3", "++surrogate.seed=4")
    assert (own.surrogate.draws, own.surrogate.seed) == (3, 4)


@pytest.mark.slow
def test_where_modules_are_trusted_no_other_is_imported():
    typed = ["++certificate._target_=tests.cli.no_such_module.Mine", "+certificate.foo=1"]
    assert of(*typed, "trusted=[]").certificate.foo == 1
    with pytest.raises(UserError, match="CredibleBound takes no 'foo'"):
        of(
            "++certificate._target_=rehearsal_torch.credible_bound.CredibleBound",
            "+certificate.foo=1",
            "trusted=[]",
        )
