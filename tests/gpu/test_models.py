"""Fitted models of the published sizes on a GPU: decisions of the CPU, and what torch.compile makes of them.

tests/contracts (with --device cuda) moves every method, made small; these are the checkpoints of the project.
"""

from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn

import rehearsal_torch as rt
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.methods.run_parts import build
from tests.places import ROOT

CHECKPOINTS = {
    "loan": ("+experiment=auf", "dataset=bank", "decision=cme"),
    "sepsis": ("+experiment=sepsis", "dataset.patients=60"),
    "two_stores": ("+experiment=two_stores",),
}
CASES = 2


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_moved_checkpoint_decides_as_on_the_cpu(name, place):
    config, _ = composed([*CHECKPOINTS[name], "workers=1"], multirun=False)
    run, model = build(config), rt.load(ROOT / "checkpoints" / name)
    decide = partial(rounds, run.problem, objective=run.objective, search=run.search, indices=range(CASES))
    here = [each.decision for each in decide(surrogate=model)]
    there = [each.decision for each in decide(surrogate=deepcopy(model).to(place))]
    assert len(here) == CASES
    assert [each.status for each in there] == [each.status for each in here]
    for one, other in zip(here, there, strict=True):
        assert other.value == pytest.approx(one.value, rel=1e-3, abs=1e-3)
        assert (one.alteration is None) == (other.alteration is None)
        if one.alteration is not None and other.alteration is not None:
            assert one.alteration.names == other.alteration.names
            assert other.alteration.values.device.type == "cpu"
            assert torch.allclose(other.alteration.values, one.alteration.values, rtol=1e-2, atol=1e-2)


# Inductor advises on precisions that are not used here, and warns of its own parts.
@pytest.mark.filterwarnings("default")
def test_a_compiled_forward_pass_gives_the_same_numbers(place):
    stream = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made: nn.Module = LocationScale(6, 2, 4, hidden=20).double().eval().to(place)
    parents, noise = (
        torch.randn(64, width, generator=stream, dtype=torch.float64).to(place) for width in (8, 4)
    )
    with torch.no_grad():
        found = torch.compile(made.forward)(parents, noise)
        assert torch.allclose(found, made(parents, noise), rtol=1e-9, atol=1e-9)
