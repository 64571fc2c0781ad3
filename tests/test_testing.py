"""The check of classes of one's own: what the example keeps, and what careless classes break."""

import importlib.util
import sys

import pytest
import torch

from rehearsal_torch.testing import broken_promises
from tests.places import ROOT


@pytest.fixture(scope="module")
def lab():
    spec = importlib.util.spec_from_file_location("my_lab", ROOT / "examples/heated_room/my_lab.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_lab"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["my_lab"]


def test_the_example_keeps_every_promise(lab):
    room = lab.HeatedRoom()
    assert broken_promises(room, lab.TwoLines, lab.InsideProbability, lab.Grid()) == []


def test_what_careless_classes_break_is_said(lab):
    class Outside(lab.TwoLines):
        """Learns a number that no checkpoint has."""

        def parts(self, table):
            yield from super().parts(table)
            self.shift = float(torch.rand(()))

    class Leaking(lab.InsideProbability):
        """The best case of the batch changes the others' values."""

        def __call__(self, actions):
            values = super().__call__(actions) + getattr(self.model, "shift", 0.0)
            return values - 0.1 * values.amax(-1, keepdim=True)

    class Eager(lab.Grid):
        """Goes beyond the bounds."""

        def batch_search(self, objective):
            decisions = super().batch_search(objective)
            for decision in decisions:
                if decision.alteration is not None:
                    decision.alteration.values.add_(20)
            return decisions

    room = lab.HeatedRoom()
    careless = " ".join(broken_promises(room, Outside, Leaking, lab.Grid()))
    assert "a second fit has other values" in careless
    assert "a loaded state has other values" in careless
    assert "depends on the cases beside it" in careless
    (beyond, *_) = broken_promises(room, lab.TwoLines, lab.InsideProbability, Eager())
    assert "heating may be set within [0, 10]" in beyond
