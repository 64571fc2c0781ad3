"""Two stores: the same observations before and after the change, other consequences; and a posterior that
forgets follows."""

import pytest
import torch

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.problems.cases.changing_world import FollowedStore, TwoStores
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration


def test_what_is_observed_is_the_same_whatever_is_followed():
    reference = FollowedStore(1.0, size=SampleSize(rows=50_000)).observations().values.T.cov()
    for follows in (0.6, 0.0):
        assert torch.allclose(
            FollowedStore(follows, size=SampleSize(rows=50_000), seed=1).observations().values.T.cov(),
            reference,
            rtol=0.05,
            atol=0.003,
        )


@pytest.mark.parametrize(("follows", "effect"), [(1.0, 0.6), (0.5, 0.0), (0.0, -0.6)])
def test_what_follows_from_the_price_is_not(follows, effect):
    world = FollowedStore(follows)
    assert float(world.response(("price",)).action) == pytest.approx(effect, abs=1e-12)
    assert float(world.response(("advert",)).action) == pytest.approx(0.3, abs=1e-12)
    with pytest.raises(ValueError, match=r"follows in \[0, 1\]"):
        FollowedStore(follows + 2)


def test_the_change_comes_at_its_round():
    at_once, never = (
        TwoStores(size=SampleSize(rows=10, contexts=9), change=3),
        TwoStores(size=SampleSize(rows=10, contexts=9), change=None),
    )
    assert [at_once.follows(index) for index in range(9)] == [1.0] * 3 + [0.0] * 6
    assert [never.follows(index) for index in range(9)] == [1.0] * 9
    raised = Decision(Alteration(("price",), torch.tensor([2.0], dtype=torch.float64)), 0.0)
    for index in (0, 8):
        one_case = at_once.case(index)
        assert at_once.score(one_case, raised) == FollowedStore(
            at_once.follows(index), SampleSize(10, 9)
        ).score(one_case, raised)
        assert at_once.optimum(one_case) == at_once.score(one_case, raised)["oracle"]
        row = at_once.respond(one_case, raised)
        assert row.altered.sum() == 1
    before, after = (at_once.respond(at_once.case(index), raised).columns(("rival",)) for index in (0, 8))
    assert float(before - after) > 1.0, "the rival follows no more"


def test_a_changing_world_is_a_problem_like_any_other():
    world = TwoStores(size=SampleSize(rows=10, contexts=4))
    assert len(world.observations()) == 10
    assert world.count() == 4
    assert world.card()["rounds"] == 4
    assert (
        world.observations().fingerprint()
        == TwoStores(size=SampleSize(rows=10, contexts=7)).observations().fingerprint()
    )
    assert world.held_out().fingerprint() != world.observations().fingerprint()
    assert world.case(2).given == TwoStores(size=SampleSize(rows=10, contexts=4)).case(2).given
    with pytest.raises(IndexError, match=r"a round in 0 \.\.\. 3"):
        world.case(4)
    with pytest.raises(TypeError, match="RehearsalCase"):
        world.optimum(EpisodeCase(None))
    for wrong in ({"size": 100}, {"change": -1}):
        with pytest.raises(ValueError, match="expected"):
            TwoStores(**wrong)
