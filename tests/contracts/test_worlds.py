"""What every rehearsal world promises: the same at every call, probabilities that agree with simulation, an
oracle that nothing beats."""

import json
from importlib import import_module

import pytest
import torch
import yaml
from hydra.utils import instantiate
from omegaconf import OmegaConf

from rehearsal_torch.data.decision import Decision, EpisodeCase, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
from rehearsal_torch.spaces.box import Alteration
from tests.places import CONF

DATASETS = CONF / "dataset"
CHANGED = {
    "bermuda, qwz23, five": (
        "bermuda",
        {"preset": "qwz23", "candidates": [["DIC", "TA", "Omega", "Chla", "Nut"], ["TA"]]},
    ),
    "bermuda, neurips24": ("bermuda", {"preset": "neurips24"}),
    "ride_hailing, released": (
        "ride_hailing",
        {"released": True, "candidates": [["recommend", "discount"], ["discount"]]},
    ),
    "market, drift": ("market", {"drift": True, "order": "icml"}),
    "lin_syn1, std, validation": (
        "lin_syn1",
        {"reading": "std", "validation": 0.2, "candidates": [["A1"], ["A1", "A2"]]},
    ),
    "non_syn2, single": ("non_syn2", {"reading": "variance", "candidates": [["A1"], ["A2"]]}),
    "bank, confounded": ("bank", {"confounding": 3.0}),
    "lin_syn1, confounded": ("lin_syn1", {"confounding": 2.0, "candidates": [["A1"], ["A1", "A2"]]}),
    "drawn, determined": ("drawn", {"trait": "determined"}),
    "drawn, units": ("drawn", {"trait": "units"}),
    "drawn, kinds": ("drawn", {"trait": "kinds", "alone": True}),
    "non_syn2, confounded": ("non_syn2", {"confounding": 2.0, "candidates": [["A1"], ["A1", "A2"]]}),
}


def targeted(path):
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    module, _, name = config.pop("_target_").rpartition(".")
    return getattr(import_module(module), name), config


def made(name, seed=0):
    option, changes = CHANGED.get(name, (name, {}))
    config = OmegaConf.load(DATASETS / f"{option}.yaml")
    return instantiate(OmegaConf.merge(config, {"size": {"contexts": 5}}, changes, {"seed": seed}))


WORLDS = [
    path.stem
    for path in sorted(DATASETS.glob("*.yaml"))
    if isinstance(targeted(path)[0], type) and issubclass(targeted(path)[0], RehearsalWorld)
]
every = pytest.mark.parametrize("name", [*WORLDS, *CHANGED])


@pytest.fixture(scope="module")
def worlds():
    built = {}
    return lambda name: built.setdefault(name, made(name))


def contexts(world):
    return world.given([world.case(index) for index in range(world.count())])


def scattered(world, names, count, seed=0):
    return world.task.box.only(names).sobol(count, seed)


def nothing(given):
    return given.new_empty(len(given), 0)


@pytest.mark.parametrize("name", WORLDS)
def test_a_seed_says_everything(worlds, name):
    world, again, other = worlds(name), made(name), made(name, seed=1)
    assert (
        world.observations().fingerprint()
        == again.observations().fingerprint()
        != other.observations().fingerprint()
    )
    assert (
        world.held_out().fingerprint() == again.held_out().fingerprint() != world.observations().fingerprint()
    )
    assert torch.equal(contexts(world), contexts(again))
    assert torch.equal(contexts(world), contexts(world))
    assert not torch.equal(contexts(world), contexts(other))
    # The last situation is the same whether or not the others were asked for.
    assert torch.equal(contexts(world)[-1:], again.given([again.case(world.count() - 1)]))


@pytest.mark.parametrize("name", WORLDS)
def test_the_table_has_every_variable_and_can_be_learnt_from(worlds, name):
    world = worlds(name)
    table = world.observations()
    world.task.check(table)
    assert set(table.names) == set(world.task.graph.names)
    assert len(table) == world.size.rows - int(world.validation * world.size.rows)
    assert not table.altered.any()
    for index in (-1, world.count()):
        with pytest.raises(IndexError):
            world.case(index)
    assert world.case(0).feasible == world.task.box.bounds()


@every
def test_probabilities_have_the_shape_of_what_was_asked(worlds, name):
    world = worlds(name)
    given = contexts(world)
    for names in world.task.candidates:
        values = scattered(world, names, 2 * len(given)).reshape(2, len(given), -1)
        found = world.probability(given, names, values)
        assert found.shape == (2, len(given))
        assert ((found >= 0) & (found <= 1)).all()
        torch.testing.assert_close(
            world.probability(given[1:2], names, values[0, 1:2]), found[0, 1:2], rtol=0, atol=1e-9
        )
        torch.testing.assert_close(
            world.probability(given, names[::-1], values.flip(-1)), found, rtol=0, atol=1e-9
        )
    assert world.probability(given, (), nothing(given)).shape == (len(given),)


@pytest.mark.slow
@every
def test_probabilities_agree_with_what_follows(worlds, name):
    world, count = worlds(name), 20_000
    given = contexts(world)
    for names in ((), *world.task.candidates):
        values = (
            torch.cat([world.optimal(given[:2], names)[0], scattered(world, names, 1)])
            if names
            else given.new_empty(1, 0)
        )
        for place, value in enumerate(values):
            context = given[place : place + 1]
            rows = world.rehearse(context[0], names, value, count)
            expected = float(world.probability(context, names, value[None]))
            found = float(world.desired(rows.columns(world.task.outcomes)).double().mean())
            # Five standard errors; a world that simulates has an error of its own.
            assert abs(found - expected) < 5 * (max(expected * (1 - expected), 1e-3) / count) ** 0.5 * 1.5


@pytest.mark.parametrize("name", WORLDS)
def test_a_rehearsal_keeps_context_and_alteration(worlds, name):
    world = worlds(name)
    context, names = contexts(world)[0], world.task.candidates[-1]
    value = scattered(world, names, 1)[0]
    rows, fewer = (world.rehearse(context, names, value, count) for count in (50, 20))
    assert torch.equal(rows.values[:20], fewer.values)
    assert torch.equal(rows.columns(world.task.context), context.expand(50, -1))
    torch.testing.assert_close(rows.columns(names), value.expand(50, -1), rtol=0, atol=1e-12)
    altered = dict(zip(rows.names, rows.altered.all(0).tolist(), strict=True))
    assert {name for name, each in altered.items() if each} == set(names)
    assert rows.altered.any(0).sum() == len(names)
    assert set(rows.names) == set(world.task.graph.names)
    assert (rows.columns(world.task.outcomes).std(0) > 0).all()
    assert not world.rehearse(context, (), value[:0], 5).altered.any()


@pytest.mark.slow
@every
def test_nothing_beats_the_oracle(worlds, name):
    world = worlds(name)
    given = contexts(world)[:3]
    for names in world.task.candidates:
        values, best = world.optimal(given, names)
        assert world.task.box.only(names).contains(values).all()
        torch.testing.assert_close(world.probability(given, names, values), best, rtol=0, atol=1e-9)
        tried = world.probability(
            given, names, scattered(world, names, 64).unsqueeze(1).expand(-1, len(given), -1)
        )
        near = values + 0.02 * world.task.box.only(names).width * torch.linspace(
            -1, 1, 9, dtype=torch.float64
        ).reshape(-1, 1, 1)
        nearby = world.probability(given, names, world.task.box.only(names).project(near))
        assert (torch.cat([tried, nearby]).amax(0) <= best + 0.003).all()


@pytest.mark.slow
@every
def test_scores(worlds, name):
    world = worlds(name)
    for index in (0, 3):
        one_case = world.case(index)
        given = world.given([one_case])
        best = max(world.task.candidates, key=lambda names: float(world.optimal(given, names)[1]))
        values, reached = world.optimal(given, best)
        score = world.score(one_case, Decision(Alteration(best, values[0]), 0.5))
        assert set(score) == {"probability", "no_action", "oracle", "share"}
        assert score["oracle"] == world.optimum(one_case) >= score["no_action"]
        assert score["probability"] == pytest.approx(float(reached), abs=1e-9)
        assert score["no_action"] == pytest.approx(
            float(world.probability(given, (), nothing(given))), abs=1e-9
        )
        if score["oracle"] > score["no_action"] + 1e-3:
            assert score["share"] == pytest.approx(1.0, abs=1e-6)
        refused = world.score(one_case, Decision(None, 0.0, reason=Finding("no_support", "no support")))
        assert refused["probability"] == score["no_action"]
        row = world.respond(one_case, Decision(Alteration(best, values[0]), 0.5))
        assert len(row) == 1
        assert row.altered.sum() == len(best)
    with pytest.raises(TypeError, match="RehearsalCase"):
        world.optimum(EpisodeCase(None))


@pytest.mark.parametrize("name", WORLDS)
def test_the_card_is_plain(worlds, name):
    world = worlds(name)
    card = world.card()
    assert json.loads(json.dumps(card)) == card
    assert card["source"]
    assert 0 < card["desired"] < 1
    assert card["caution"], "what it must not be used for"
    assert RehearsalCase(**vars(world.case(0))) is not None
