"""What every surrogate with a task promises: fitted, saved and loaded it decides the same; seeds decide; bad
tables are refused."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest
import torch
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

from rehearsal_torch.checkpoint import CheckpointError, load, save
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import NotFittedError, Solved, Trained
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue
from rehearsal_torch.surrogates.outcome.average_effects import AverageEffects
from rehearsal_torch.surrogates.state_file import derived_names, source_names
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import concrete
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import JUDGES, SURROGATES, built, decided, learnt, plain

WORLD = chain()
TABLE, CASES = WORLD.table(60), WORLD.cases(3)
every = pytest.mark.parametrize("name", SURROGATES)
# What a class needs besides the task.
NEEDED = {"nested": {"estimator": None}, "stacked": {"indicator": None, "outcome": None}}


def said(made, name):
    """Everything that its decisions say."""
    return [json.dumps(each.to_dict(), allow_nan=False) for each in decided(made, JUDGES[name], CASES)]


@pytest.fixture(scope="module")
def models():
    made = {}
    return lambda name: made.setdefault(name, learnt(name, WORLD.task, TABLE))


def test_every_estimator_of_the_package_stands_under_this_contract():
    classes = concrete("rehearsal_torch.surrogates", AlterationValue)
    nested = [built(name, WORLD.task) for name in SURROGATES if name.startswith("nested")]
    used = {type(each).__name__ for made in nested for each in made.values()}
    # A member of SpectralEnsemble, and what the solvers of a product kernel share.
    assert {each.__name__ for each in classes} == used | {"ProductRidge"}


@every
def test_parts_are_solved_or_trained_in_order_and_each_is_part_of_the_state(name):
    made = built(name, WORLD.task)
    inside, seen = set(map(id, made.modules())), 0
    for part, examples in made.parts(TABLE):
        assert isinstance(part, Solved | Trained)
        assert id(part) in inside
        # Those of effects on average are draws for some actions, not rows.
        assert isinstance(part, AverageEffects) or len({len(example) for example in examples}) == 1
        if isinstance(part, Solved):
            part.solve(*examples)
        else:
            assert torch.isfinite(part.loss(*examples))
            part.finish()
        seen += 1
    assert seen > 1


@pytest.mark.slow
@every
def test_what_was_saved_decides_the_same(name, models, tmp_path):
    config = plain(name, WORLD.task)
    assert json.loads(json.dumps(config)) == config
    again = load(save(models(name), config, tmp_path))
    assert said(again, name) == said(models(name), name)
    before, after = models(name).state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    for key in before:
        torch.testing.assert_close(after[key], before[key], rtol=0, atol=0, equal_nan=True)
    assert again.task.to_plain() == WORLD.task.to_plain()


@pytest.mark.slow
@every
def test_what_a_file_leaves_out_is_computed_to_the_last_bit_and_may_be_there(name, models, tmp_path):
    whole, config = models(name), plain(name, WORLD.task)
    folder = save(whole, config, tmp_path)
    derived, sources = set(derived_names(whole)), set(source_names(whole))
    weights = folder / "weights.safetensors"
    written = tensors_of(weights.read_bytes())
    assert not derived & set(written)
    old = {key: value.contiguous().clone() for key, value in whole.state_dict().items() if key not in sources}
    weights.write_bytes(bytes_of(old))
    (folder / "card.yaml").write_text(
        json.dumps({"weights_sha256": sha256(weights.read_bytes()).hexdigest()})
    )
    again = load(folder)
    assert said(again, name) == said(whole, name)
    # What cannot be computed without sources is written again.
    twice = load(save(again, config, tmp_path / "again"))
    for key, value in old.items():
        torch.testing.assert_close(twice.state_dict()[key], value, rtol=0, atol=0, equal_nan=True)


@pytest.mark.bench
@every
def test_the_same_seed_decides_the_same_whatever_was_drawn_before(name, models):
    torch.manual_seed(17)
    torch.rand(5)
    assert said(learnt(name, WORLD.task, TABLE), name) == said(models(name), name)
    torch.manual_seed(18)
    assert said(models(name), name) == said(models(name), name)


# Exact solutions have a seed for what they look at while choosing, which does not show.
RANDOM = [
    "nested_ridge",
    "nested_ridge_fourier",
    "outcome_regression",
    "flow_structural",
    "linear_structural",
    "linear_scenarios",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_where_something_is_drawn_the_seed_decides_it(name, models):
    other = learnt(name, WORLD.task, TABLE, seed=1)
    assert said(other, name) != said(models(name), name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in SURROGATES if name not in ("flow_structural", "drifting_linear")]
)
def test_what_is_solved_again_forgets_what_was_learnt(name, models):
    # A flow goes on from its weights, and experts from their rounds: both say so.
    assert said(fit(learnt(name, WORLD.task, WORLD.table(40, seed=3)), TABLE), name) == said(
        models(name), name
    )


def spoiled(**columns):
    values = TABLE.values.clone()
    for name, value in columns.items():
        values[:, TABLE.names.index(name)] = value
    return Table.observed(TABLE.names, values)


def with_a_hole():
    values = TABLE.values.clone()
    values[7, 1] = torch.nan
    return Table.observed(TABLE.names, values)


HOLE = (with_a_hole(), "1 of 60 values are missing or infinite")
# The check is one for all classes.
REFUSED = [
    *((name, *HOLE) for name in SURROGATES),
    ("linear_structural", spoiled(m=2.0), "m: all 60 values are 2: a constant carries no information"),
    ("linear_structural", Table.observed(TABLE.names, TABLE.values[:9]), "at least 10 rows; got 9"),
    ("linear_structural", Table.observed(TABLE.names[:3], TABLE.values[:, :3]), r"no column for \['y'\]"),
]


@pytest.mark.parametrize(("name", "table", "message"), REFUSED)
def test_a_table_that_nothing_can_be_learnt_from_is_refused(name, table, message):
    with pytest.raises(ValueError, match=message):
        learnt(name, WORLD.task, table)


@every
def test_a_task_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=r"(?s)graph: expected .*context: missing"):
        type(built(name, WORLD.task))({"graph": {}}, **NEEDED.get(name.partition("_")[0], {}))


@pytest.mark.slow
@every
def test_a_task_without_a_context_is_a_task(name, tmp_path):
    task = RehearsalTask(WORLD.task.graph, (), WORLD.task.box, WORLD.task.region, WORLD.task.candidates)
    some_cases = [RehearsalCase(str(index), {}, task.box.bounds()) for index in range(2)]
    made = learnt(name, task, TABLE)
    one, other = decided(made, JUDGES[name], some_cases)
    assert 0 <= one.estimate.point <= 1
    assert one.to_dict() == other.to_dict(), "there is nothing by which situations could differ"
    again = load(save(made, plain(name, task), tmp_path), task=task)
    assert again.faults() == []
    for key, value in made.state_dict().items():
        torch.testing.assert_close(again.state_dict()[key], value.cpu(), rtol=0, atol=0, equal_nan=True)


TASK = WORLD.task
NARROW = Box.of(
    {
        name: (lower + 0.2 * (upper - lower), upper - 0.3 * (upper - lower))
        for name, (lower, upper) in TASK.box.bounds().items()
    }
)
ELSEWHERE = Polytope(TASK.region.names, TASK.region.normals, TASK.region.offsets + 0.3)


def kept_by_region(name):
    """Whether a surrogate's fit depends on the region."""
    return name.startswith(("nested", "outcome", "stacked"))


@pytest.fixture(scope="module")
def folders(models, tmp_path_factory):
    made = {}

    def folder(name):
        if name not in made:
            made[name] = save(models(name), plain(name, TASK), tmp_path_factory.mktemp(name))
        return made[name]

    return folder


@pytest.mark.slow
@every
def test_a_checkpoint_answers_another_task_as_a_fresh_fit_would_or_refuses_it(name, folders):
    if kept_by_region(name):
        with pytest.raises(
            CheckpointError,
            match=r"fitted for another question\. region: .*fitted with \[.*\], and is used with \[.*\]",
        ):
            load(folders(name), task=replace(TASK, region=ELSEWHERE))
        with pytest.raises(CheckpointError, match="candidates: it was fitted with"):
            load(folders(name), task=replace(TASK, candidates=TASK.candidates[:1]))
        task = replace(TASK, box=NARROW)
    else:
        task = replace(TASK, box=NARROW, region=ELSEWHERE, candidates=TASK.candidates[:1])
    some_cases = [RehearsalCase(each.identity, each.given, NARROW.bounds()) for each in CASES]
    loaded = load(folders(name), task=task.to_plain())
    assert loaded.task.to_plain() == task.to_plain()
    expected = [each.to_dict() for each in decided(learnt(name, task, TABLE), JUDGES[name], some_cases)]
    assert [each.to_dict() for each in decided(loaded, JUDGES[name], some_cases)] == expected


@every
def test_a_checkpoint_refuses_another_graph_context_or_outcome(name, folders):
    graph, names = TASK.graph, TASK.graph.names
    first = graph.edges[0]
    cut = RehearsalGraph(graph.cliques, tuple(edge for edge in graph.edges if edge != first))
    with pytest.raises(
        CheckpointError,
        match=rf"graph: it was fitted with \[{first[0]} -> {first[1]}\], and is used with nothing in their "
        r"place",
    ):
        load(folders(name), task=replace(TASK, graph=cut))
    with pytest.raises(CheckpointError, match=rf"context: it was fitted with \[{TASK.context[0]}\]"):
        load(folders(name), task=replace(TASK, context=()))
    with pytest.raises(CheckpointError, match=r"expected a rehearsal task; got a (list|tuple|Columns)"):
        load(folders(name), task=list(names))


@every
def test_the_order_in_which_a_task_is_written_makes_no_difference(name, folders, models):
    content = TASK.to_plain()
    content["candidates"] = [names[::-1] for names in content["candidates"][::-1]]
    content["graph"]["edges"] = content["graph"]["edges"][::-1]
    content["box"] = dict(reversed(content["box"].items()))
    loaded = load(folders(name), task=content)
    if kept_by_region(name):
        assert said(loaded, name) == said(models(name), name)
    assert set(loaded.task.candidates) == {
        tuple(each) for each in (TASK.candidates if kept_by_region(name) else content["candidates"])
    }


@pytest.mark.bench
@every
def test_every_damaged_number_and_size_is_noticed(name, models):
    whole = models(name)
    assert whole.faults() == []
    kept = {key: value.clone() for key, value in whole.state_dict().items()}
    made, wrong = built(name, TASK), []
    made.load_state_dict(kept)
    for key, value in kept.items():
        if not value.numel():
            continue
        spoilt = [torch.full_like(value, torch.nan), value[..., :-1] if value.ndim else value.reshape(1)]
        for other in spoilt:
            try:
                made.load_state_dict({key: other}, strict=False)
            except RuntimeError:
                continue
            if not made.faults():
                wrong.append((key, tuple(other.shape)))
            made.load_state_dict({key: value}, strict=False)
    assert wrong == []


@every
def test_what_has_learnt_nothing_says_so(name):
    with pytest.raises(
        NotFittedError, match=r"has not been fitted yet \(.*\): fit it first .*, or load a checkpoint"
    ):
        decided(built(name, TASK), JUDGES[name], CASES)


def test_covariates_between_two_alterations_are_part_of_the_widths(tmp_path):
    graph = RehearsalGraph.of({"a": ["x"], "v": ["a"], "m": ["v"], "y": ["m", "v", "x"]})
    task = RehearsalTask(
        graph, ("x",), Box.of({"a": (-1, 1), "m": (-1, 1)}), Polytope.of({"y": (0, 1)}), (("a", "m"),)
    )
    stream = torch.Generator().manual_seed(0)
    table = Table.observed(graph.names, torch.randn(60, 5, dtype=torch.float64, generator=stream).cumsum(-1))
    made = learnt("nested_ridge", task, table)
    assert made.adjustments[0].between == ("v",)
    assert load(save(made, plain("nested_ridge", task), tmp_path), task=task).values()[0].widths_of_rows == (
        1,
        1,
        2,
    )


def test_ridge_regressions_of_a_posterior_notice_damage_as_well(tmp_path):
    config = plain("structural_posterior", TASK) | {"regression": "ridge"}
    made = fit(StructuralPosterior(TASK, regression="ridge"), TABLE)
    assert load(save(made, config, tmp_path)).faults() == []
    made.regressions[0].processed_rows = made.regressions[0].processed_rows[:, :-1]
    assert made.faults() == ["regressions.0.processed_rows: expected the size (n, 4); got (60, 3)"]
