"""Keys that are added with a plus: only where something takes them."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.overrides import composed

KERNEL = "rehearsal_torch.objectives.kernel_value.KernelValue"


def of(*typed):
    return composed(conf_folder(), typed, multirun=any("," in text for text in typed))[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["+foo=1"], "there is no key 'foo', and nothing would read it. See --help for all keys"),
        (["++foo=1"], "there is no key 'foo', and nothing would read it"),
        (["+sed=1"], "there is no key 'sed', and nothing would read it. Did you mean seed"),
        (["+a.b.c=1"], "there is no key 'a', and nothing"),
        (["+hydrafoo=1"], "there is no key 'hydrafoo', and nothing would read it"),
        (["+hydra_x.y=1"], "there is no key 'hydra_x', and nothing would read it"),
        (["+_foo=1"], "there is no key '_foo', and nothing would read it"),
        (["+_target_=x.y"], "there is no key '_target_', and nothing would read it"),
        (["+dask._foo_=1"], "there is no key 'dask._foo_', and nothing would read it"),
        (["+surrogate._foo_=1"], "there is no key 'surrogate._foo_': "),
        (["+n=3", "+dataset.limit=${m}"], "there is no key 'n', and nothing would read it"),
        (
            ["+dataset.lim=3", "name=${dataset.lim}"],
            "there is no key 'dataset.lim': SepsisSimulated takes no",
        ),
        (["+dask.port=1"], "there is no key 'dask.port', and nothing would read it. Choose from address"),
        (["+certificate.level=1"], "there is no key 'certificate.level', and nothing would read it"),
        (["+seed.x=1"], "there is no key 'seed.x', and nothing"),
        (
            ["+dataset.limitt=1"],
            "there is no key 'dataset.limitt': SepsisSimulated takes no 'limitt'. Did you mean",
        ),
        (
            ["+objective.nonsense=1"],
            "CounterfactualReturn takes no 'nonsense'. Choose from agreement, changes,",
        ),
        # The loop gives it.
        (["+objective.surrogate=1"], "there is no key 'objective.surrogate': CounterfactualReturn takes no"),
        (["+surrogate.member.mechanism.hiden=1"], "LocationScale takes no 'hiden'. Did you mean hidden?"),
        (["++search.budget_s={_target_: " + KERNEL + ", cauton: 1}"], "KernelValue takes no 'cauton'"),
        (
            ["++certificate._target_=rehearsal_torch.certificate.PacBound", "+certificate.foo=1"],
            "takes no 'foo'",
        ),
        (["dataset=bank", "decision=none,micns", "+objective.levels=1"], "GaussianSuccess takes no 'levels'"),
    ],
)
def test_what_nothing_takes_is_refused(typed, words):
    with pytest.raises(UserError) as caught:
        of(*typed)
    assert words in str(caught.value)


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
