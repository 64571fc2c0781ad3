"""A method in the place of another."""

from omegaconf import OmegaConf

from rehearsal_torch.cli.choice.preset import CHOOSE, GROUPS, with_method
from tests.cli.test_run import configured


def resolved(config, group):
    return OmegaConf.to_container(config[group], resolve=True)


def test_the_parts_of_a_preset_take_the_place_of_others_and_the_rest_stays():
    auto = configured("dataset=bank", "dataset.size.rows=30", "decision=auto", "seed=7", "choose.cases=3")
    made, typed = with_method(auto, "care"), configured("dataset=bank", "decision=care", "seed=7")
    assert all(resolved(made, group) == resolved(typed, group) for group in GROUPS)
    assert made.surrogate.seed == 7
    assert made.dataset == auto.dataset
    assert CHOOSE not in made
    assert (auto[CHOOSE].cases, auto[CHOOSE].rows) == (3, 1000)
