"""Who can change an outcome, and whether the observations contradict the graph."""

import pytest
import torch

from rehearsal_torch.graphs.influence_paths import dependence, reaches
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

CHAIN = RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["m", "x"]})
BOTH = RehearsalGraph.of({"y": ["x"]}, [("price", "rival")])


@pytest.mark.parametrize(
    ("altered", "found"), [(("a",), True), (("m",), True), (("x",), True), (("y",), True), (("a", "m"), True)]
)
def test_directed_paths_are_followed(altered, found):
    assert reaches((CHAIN,), altered, ("y",)) == found


def test_no_path_is_seen_and_any_graph_suffices():
    cut = RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["x"]})
    assert not reaches((cut,), ("a", "m"), ("y",))
    assert reaches((cut, CHAIN), ("a",), ("y",))


def test_an_altered_member_of_a_clique_leads_to_the_others():
    graph = RehearsalGraph.of({"y": ["rival"], "price": [], "rival": []}, [("price", "rival")])
    assert reaches((graph,), ("price",), ("y",))
    assert not reaches((BOTH,), ("price",), ("y",))


def rows(effect, square=0.0, confounder=1.0, count=300, seed=0, offset=0.0):
    z, a, noise = torch.randn(3, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a = a + confounder * z
    y = effect * a + square * (a.square() - 1) + confounder * z + noise
    return a + offset, (y + offset).unsqueeze(-1), z.unsqueeze(-1) + offset


@pytest.mark.parametrize(("effect", "square"), [(0.5, 0.0), (0.0, 0.5), (-0.5, 0.0)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_dependence_is_found_linear_or_curved_at_any_offset(effect, square, offset):
    assert dependence(*rows(effect, square, offset=offset)) < 1e-4


def test_false_alarms_are_no_more_frequent_than_their_level():
    found = torch.tensor([dependence(*rows(0.0, seed=seed, count=80)) for seed in range(100)])
    assert float((found < 0.05).double().mean()) <= 0.08
    assert float(found.min()) > 1e-3


def test_the_covariates_matter():
    a, y, _ = rows(0.0)
    assert dependence(a, y, torch.zeros(len(a), 0)) < 1e-4


CURVED = {
    "waves": lambda z, w: (torch.sin(3 * z), torch.sin(3 * z)),
    "a step": lambda z, w: (torch.sin(2 * z), (z > 0.5).double()),
    "a product": lambda z, w: (z * w, z * w),
}


@pytest.mark.parametrize("kind", CURVED)
@pytest.mark.parametrize("seed", range(2))
def test_covariates_that_act_in_curves_are_no_evidence_against_the_graph(kind, seed):
    z, w, one, other = torch.randn(4, 400, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a, y = CURVED[kind](z, w)
    assert dependence(a + 0.3 * one, (y + 0.3 * other).unsqueeze(-1), torch.stack([z, w], -1)) > 1e-3


def test_too_few_rows_and_constants_are_no_evidence():
    a, y, z = rows(1.0, count=15)
    assert dependence(a, y, z) == 1.0
    assert (
        dependence(
            torch.ones(50, dtype=torch.float64), torch.randn(50, 1, dtype=torch.float64), torch.zeros(50, 0)
        )
        == 1.0
    )
