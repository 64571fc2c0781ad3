"""Two rewards: what is proposed, the estimated front, and what is shown of it."""

import pytest
from matplotlib import pyplot

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.console_command import main
from rehearsal_torch.data.trials.trial import Recommended
from rehearsal_torch.reporting.trial_view import front_in_words

TASK = {"graph": "a -> X; b -> Y", "actions": {"a": [0, 1], "b": [0, 1]}, "reward": ["X + Y", "-X"]}


def system(a, b, noise=0.0):
    """Any a is on the front, which is X + Y = 1 + X, and b = 0.5 alone."""
    return {"X": a + 0.01 * noise, "Y": 1 - 4 * (b - 0.5) ** 2 - 0.01 * noise}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.utils.cpp_extension.load", lambda **_: pytest.fail("it compiles a kernel"))
    optimiser = CausalOptimiser(TASK, file=tmp_path / "trials.json")
    for number, action in enumerate(optimiser.ask(8)):
        optimiser.tell(action, system(**action, noise=(-1) ** number))
    return optimiser


def test_the_front_is_found_with_the_intervals_of_both(campaign):
    for _ in range(4):
        (action,) = campaign.ask()
        campaign.tell(action, system(**action))
    front = campaign.recommend()
    assert all(isinstance(best, Recommended) for best in front)
    assert max(abs(best.action["b"] - 0.5) for best in front) < 0.1
    ends = [best.action["a"] for best in front]
    assert min(ends) < 0.05
    assert max(ends) > 0.95
    for best in front:
        for label, true in (("X + Y", 1 + best.action["a"]), ("-X", -best.action["a"])):
            mean, low, high = best.rewards[label]
            assert low < mean < high
            assert mean == pytest.approx(true, abs=0.1)
    firsts = [best.rewards["X + Y"][0] for best in front]
    seconds = [best.rewards["-X"][0] for best in front]
    assert firsts == sorted(firsts)
    assert seconds == sorted(seconds, reverse=True)


def test_a_front_says_what_the_experiments_contradict():
    front = [Recommended({"a": 0.5}, 2.0, 0.25, contradicted=("X",))]
    assert front_in_words(front).endswith("; the experiments contradict what the model assumes of X")


def test_what_needs_a_single_reward_says_so(campaign):
    with pytest.raises(ValueError, match=r"two rewards, X \+ Y and -X, have no single best setting"):
        campaign.stopping()
    for method in ("ucb", "mcbo"):
        with pytest.raises(ValueError, match="take excbo for two"):
            CausalOptimiser.load(campaign._store.file, method=method).ask()


@pytest.mark.slow
def test_commands_and_figure_show_the_front(campaign, capsys, monkeypatch):
    front = campaign.recommend()
    with monkeypatch.context() as patch:
        patch.setattr("rehearsal_torch.api.optimiser.front", lambda *_: pytest.fail("found again"))
        axes = campaign.plot()
    assert campaign.recommend() == front
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("X + Y", "-X")
    assert len(axes.containers) == 1
    pyplot.close("all")
    assert main(["recommend", str(campaign._store.file)]) == 0
    assert "X + Y" in capsys.readouterr().out
    assert main(["status", str(campaign._store.file)]) == 0
    assert "None of these settings is better than another in both rewards" in capsys.readouterr().out
