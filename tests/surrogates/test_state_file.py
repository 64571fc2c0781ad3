import hashlib

import pytest
import torch
import yaml
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor, nn

from rehearsal_torch.checkpoint import CheckpointError, load, save
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.surrogates.kernel.metric import MetricRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralRidge
from rehearsal_torch.surrogates.state_file import (
    DerivationError,
    compute_derived,
    derived_bytes,
    derived_names,
    source_names,
    with_absent,
)
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import learnt, plain

WORLD = chain()


class Gram(Solved):
    """Rows, and the Cholesky factor of their products."""

    def __init__(self) -> None:
        super().__init__()
        self.register_fitted("scale")
        self.register_fitted("rows", source=True)
        self.register_fitted("factor", derived=True)
        self.scale: Tensor
        self.rows: Tensor
        self.factor: Tensor

    def solve(self, *examples: Tensor) -> None:
        (self.rows,) = examples
        self.scale = self.rows.new_ones(1)
        self.factor = self.derive("factor")

    def derivable(self):
        return {"factor": (len(self.rows), len(self.rows))} if self.rows.ndim == 2 else {}

    def derive(self, name: str) -> Tensor:
        return torch.linalg.cholesky(self.rows @ self.rows.mT)


class Doubled(Gram):
    """Twice the factor of the part inside it, which alone knows how long it is."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Gram()

    def derivable(self):
        return {**super().derivable(), "inner.factor": (2, 2)}

    def derive(self, name: str) -> Tensor:
        return 2 * self.factor if name == "inner.factor" else super().derive(name)


ROWS = torch.tensor([[2.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
FACTOR = torch.tensor([[2.0, 0.0], [3.0, 4.0]], dtype=torch.float64)


def loaded(made, module, left_out):
    state = {name: value for name, value in made.state_dict().items() if name not in left_out}
    module.load_state_dict(with_absent(module, state))
    return module


def test_what_is_left_out_is_computed_from_the_rest():
    made = nn.Sequential(Gram())
    made[0].solve(ROWS)
    assert derived_names(made) == ["0.factor"]
    assert source_names(made) == ["0.rows"]
    again = loaded(made, nn.Sequential(Gram()), ["0.factor"])
    assert again[0].factor.shape == (0,)
    assert derived_bytes(again) == 32
    compute_derived(again, 32)
    torch.testing.assert_close(again[0].factor, FACTOR)
    assert derived_bytes(again) == 0


def test_what_a_state_has_is_taken_as_it_is_and_without_sources_nothing_is_computed():
    made = nn.Sequential(Gram())
    made[0].solve(ROWS)
    made[0].factor = torch.eye(2, dtype=torch.float64)
    again = loaded(made, nn.Sequential(Gram()), ["0.rows"])
    assert derived_names(again) == []
    compute_derived(again, 0)
    assert torch.equal(again[0].factor, torch.eye(2, dtype=torch.float64))


def test_an_outer_part_comes_before_those_inside_it():
    made = Doubled()
    made.solve(ROWS)
    made.inner.solve(ROWS)
    assert derived_names(made) == ["factor", "inner.factor", "inner.factor"]
    again = loaded(made, Doubled(), ["factor", "inner.factor"])
    compute_derived(again, 2**20)
    torch.testing.assert_close(again.factor, FACTOR)
    torch.testing.assert_close(again.inner.factor, 2 * FACTOR)


def test_what_a_module_knows_is_taken_over_from_it(monkeypatch):
    made = Doubled()
    made.solve(ROWS)
    made.inner.solve(ROWS)
    again = loaded(made, Doubled(), ["factor", "inner.factor"])
    for each in (again, again.inner):
        monkeypatch.setattr(each, "derive", pytest.fail)
    written = {name: made.state_dict()[name] for name in ("rows", "inner.rows")}
    compute_derived(again, 2**20, written, made)
    assert torch.equal(again.factor, made.factor)
    assert torch.equal(again.inner.factor, made.inner.factor)


def test_of_a_module_with_another_state_or_of_another_class_nothing_is_taken_over():
    made, other = Gram(), Gram()
    made.solve(ROWS)
    other.solve(2 * ROWS)
    for known in (other, nn.Linear(2, 2)):
        again = loaded(made, Gram(), ["factor"])
        compute_derived(again, 2**20, {"rows": made.rows}, known)
        torch.testing.assert_close(again.factor, made.factor)


def test_too_much_is_refused_before_anything_is_computed(monkeypatch):
    made = Gram()
    made.solve(ROWS)
    again = loaded(made, Gram(), ["factor"])
    monkeypatch.setattr(again, "derive", pytest.fail)
    with pytest.raises(DerivationError, match=r"left out of at most 0\.0 GiB in total; got 0\.0"):
        compute_derived(again, 31)


def test_sources_that_are_damaged_are_named():
    made = Gram()
    made.solve(ROWS)
    made.rows = torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(DerivationError, match=r"factor cannot be computed from .*: .*positive-definite"):
        compute_derived(loaded(made, Gram(), ["factor"]), 32)
    outer = Doubled()
    outer.solve(torch.eye(3, dtype=torch.float64))
    outer.inner.solve(ROWS)
    with pytest.raises(DerivationError, match=r"inner\.factor: expected the size \(2, 2\); got \(3, 3\)"):
        compute_derived(loaded(outer, Doubled(), ["inner.factor"]), 1000)


@pytest.fixture(scope="module")
def fitted():
    """The nested estimator, and its checkpoint's configuration."""
    return learnt("nested_ridge", WORLD.task, WORLD.table(60)), plain("nested_ridge", WORLD.task)


def rewritten(folder, **changes):
    """Changes tensors of a checkpoint, and its card with them; None removes one."""
    path = folder / "weights.safetensors"
    state = tensors_of(path.read_bytes()) | changes
    path.write_bytes(bytes_of({name: value for name, value in state.items() if value is not None}))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "card.yaml").write_text(yaml.safe_dump({"weights_sha256": found}))
    return folder


def test_a_checkpoint_holds_no_factor_and_loading_has_them_all(fitted, tmp_path):
    made, config = fitted
    folder = save(made, config, tmp_path)
    state, names = made.state_dict(), derived_names(made)
    assert {name.rpartition(".")[2] for name in names} == {
        "factor", "rows", "weights", "centred", "inputs",
    }  # fmt: skip
    assert not set(tensors_of((folder / "weights.safetensors").read_bytes())) & set(names)
    again = load(folder).state_dict()
    assert all(torch.equal(again[name], value) for name, value in state.items())
    assert all(each.is_contiguous() for each in again.values())
    assert (folder / "weights.safetensors").stat().st_size < 0.35 * sum(
        each.nbytes for each in state.values()
    )


def test_what_was_just_saved_is_read_without_deriving_anything_again(fitted, tmp_path, monkeypatch):
    made, config = fitted
    folder = save(made, config, tmp_path)
    monkeypatch.setattr(SpectralRidge, "derive", pytest.fail)
    monkeypatch.setattr(MetricRidge, "derive", pytest.fail)
    again = load(folder, fitted=made).state_dict()
    assert again.keys() == made.state_dict().keys()
    assert all(torch.equal(again[name], value) for name, value in made.state_dict().items())
    assert all(each.is_contiguous() for each in again.values())


def test_what_would_not_come_out_the_same_is_written(fitted, tmp_path):
    made, config = fitted
    folder = save(made, config, tmp_path)
    other = load(folder)
    name = "estimators.0.members.0.factor"
    other.get_submodule("estimators.0.members.0").factor *= 1 + 1e-15
    again = save(other, config, tmp_path / "other")
    assert set(derived_names(other)) & set(tensors_of((again / "weights.safetensors").read_bytes())) == {name}
    assert torch.equal(load(again).state_dict()[name], other.state_dict()[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"no_action.ratio": -2.0},
            r"no_action\.factor cannot be computed from the other tensors: .*positive",
        ),
        ({"estimators.0.members.0.inputs": None}, r"estimators\.0\.members\.0\.factor: expected the size"),
        ({"estimators.0.members.0.inputs": float("nan")}, r"inputs: \d+ of \d+ numbers are not finite"),
        (
            {"estimators.1.members.1.places": 0.5},
            r"embedding\.centred cannot be .*whole numbers from 0 to 59",
        ),
        (
            {"estimators.1.members.1.places": 60.0},
            r"embedding\.centred cannot be .*whole numbers from 0 to 59",
        ),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_words(fitted, tmp_path, changes, message):
    folder = save(*fitted, tmp_path)
    state = tensors_of((folder / "weights.safetensors").read_bytes())
    damage = {
        name: None if value is None else torch.full_like(state[name], value)
        for name, value in changes.items()
    }
    with pytest.raises(CheckpointError, match=f"(?s)cannot be used: .*{message}.*It was damaged, or belongs"):
        load(rewritten(folder, **damage))
