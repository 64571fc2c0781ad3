"""ONNX files give the numbers of the models that they were written from."""

from importlib import import_module

import numpy as np
import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.adapters import onnx as exports
from rehearsal_torch.adapters.onnx import OnnxError, described, export_surface, export_transition
from rehearsal_torch.data.question import fingerprint
from tests.adapters.test_onnx_modules import REGRESSED, judged, regression
from tests.toys.episodes import transition_episode, transition_model
from tests.toys.linear_truth import chain, managing
from tests.toys.rehearsal_toys import confounded, confounded_table, fitted

pytest.importorskip("onnx", reason="ONNX is an option: pip install 'rehearsal-torch[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'rehearsal-torch[onnx]'")

WORLD = chain()
POINTS = np.array([[0.3, 0.5], [0.3, -0.2], [-1.0, 0.9], [2.0, -0.7], [0.0, 0.0]])


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def care():
    return rt.learn(WORLD.table(120).to_frame(), WORLD.task, method="care")


@pytest.mark.slow
@pytest.mark.parametrize("effects", ["dense", "sparse"])
def test_a_transition_moves_as_the_model_does(tmp_path, effects):
    model = transition_model(3, width=3, drugs=2, effects=effects)
    episode = transition_episode(3, horizon=9, width=3, drugs=2, effects=effects).case.episode
    path = export_transition(model, tmp_path / "transition.onnx")
    features = episode.columns(model.rescale.names)
    action = model.levels.digitise(episode.columns(model.levels.names))
    noise = torch.randn(9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (found,) = session(path).run(
        None, {"features": features.numpy(), "action": action.numpy(), "noise": noise.numpy()}
    )
    parents = torch.cat([model.rescale.scale(features), model.levels.encoded(action)], -1)
    with torch.no_grad():
        expected = model.units(model.mechanism.double()(parents, noise))
    assert found == pytest.approx(expected.numpy(), rel=1e-9, abs=1e-9)
    facts = described(path)
    assert facts["columns"]["features"] == list(model.rescale.names)
    assert facts["levels"] == model.levels.medians.tolist()
    assert facts["question"] == fingerprint(model.question())


@pytest.mark.slow
def test_a_linear_surface_is_the_claim_of_the_method(tmp_path, care):
    path = export_surface(care.surrogate, tmp_path / "surface.onnx", ("a",))
    (found,) = session(path).run(None, {"context": POINTS[:, :1], "action": POINTS[:, 1:]})
    claims = [care.what_if({"x": x}, {"a": a}).estimate.point for x, a in POINTS.tolist()]
    assert found == pytest.approx(claims, abs=1e-6)
    facts = described(path)
    assert facts["columns"] == {"context": ["x"], "action": ["a"], "probability": ["y"]}
    assert facts["bounds"] == {"a": [-1.0, 1.0]}
    assert facts["model"] == type(care.surrogate).__name__


# Some seconds each, most of which the exporter takes; the others are exported by night, and each is compared
# with the method in memory by the tests of its modules.
EXPORTED = "two outcomes, a triangle"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each == EXPORTED else pytest.mark.bench) for each in REGRESSED],
)
def test_a_regressed_surface_is_the_share_of_desired_points(tmp_path, name):
    task, table, altered = REGRESSED[name]()
    model = regression(task, table)
    path = export_surface(model, tmp_path / "surface.onnx", altered, draws=8, points=32)
    names = altered or task.candidates[0]
    stream = torch.Generator().manual_seed(2)
    rows = torch.randint(len(table.values), (300,), generator=stream)
    context, action = table.columns(task.context)[rows], table.columns(names)[rows.flip(0)]
    (found,) = session(path).run(None, {"context": context.numpy(), "action": action.numpy()})
    assert found == pytest.approx(judged(model, names, context, action, 8, 32).numpy(), abs=1e-9)
    assert np.ptp(found) > 0.2, "a surface that is flat would show nothing"
    facts = described(path)
    assert facts["columns"] == {
        "context": list(task.context), "action": list(names), "probability": list(task.outcomes)
    }  # fmt: skip
    assert facts["question"] == fingerprint(task)


@pytest.mark.bench
def test_a_regressed_surface_is_the_claim_of_the_method_by_default(tmp_path):
    two = managing()
    model = rt.learn(two.table(100).to_frame(), two.task, method="outcome_regression")
    path = export_surface(model.surrogate, tmp_path / "surface.onnx")
    names, rows = two.task.candidates[0], two.table(300, seed=4)
    context, action = rows.columns(two.task.context), rows.columns(names).clip(-6, 6)
    # From the most to the least probable.
    order = judged(model.surrogate, names, context, action, 64, 128).argsort()
    context, action = (each[order.flip(0)[::25]].numpy() for each in (context, action))
    (found,) = session(path).run(None, {"context": context, "action": action})
    claims = [
        model.what_if(
            dict(zip(two.task.context, x, strict=True)), dict(zip(names, a, strict=True))
        ).estimate.point
        for x, a in zip(context.tolist(), action.tolist(), strict=True)
    ]
    # Claims are rounded to six digits.
    assert found == pytest.approx(claims, abs=5.1e-7)
    assert np.ptp(found) > 0.2
    other = export_surface(rt.load(model.save(tmp_path / "model")).surrogate, tmp_path / "other.onnx")
    (again,) = session(other).run(None, {"context": context, "action": action})
    assert again.tolist() == found.tolist(), "a saved model gives the same file"


@pytest.mark.slow
def test_models_without_such_a_form_are_refused(tmp_path, care):
    with pytest.raises(OnnxError, match=r"altered: expected one of the candidate sets {a}, {m}, {a, m}"):
        export_surface(care.surrogate, tmp_path / "surface.onnx")
    kinds = r"linear Gaussian model with one outcome .* or an outcome regression"
    with pytest.raises(OnnxError, match=rf"{kinds} .*; got a TransitionModel"):
        export_surface(transition_model(1), tmp_path / "surface.onnx")
    task = confounded()
    with pytest.raises(OnnxError, match=rf"{kinds} .*; got a NestedRidge"):
        export_surface(fitted(task, confounded_table(80)), tmp_path / "surface.onnx")
    with pytest.raises(OnnxError, match=r"one member of an ensemble \(ensemble.each\[0\]\); got a Linear"):
        export_transition(care.surrogate, tmp_path / "transition.onnx")
    two = managing()
    model = rt.learn(two.table(60).to_frame(), two.task, method="care")
    with pytest.raises(
        OnnxError, match=r"expected one outcome; the task has .*: name one outcome .*outcome_regression"
    ):
        export_surface(model.surrogate, tmp_path / "surface.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_the_exporter_cannot_write_is_one_paragraph(tmp_path, care, monkeypatch):
    def failing(*given, **more):
        raise torch.onnx.OnnxExporterError("Failed to convert.\nNext steps: ...")

    monkeypatch.setattr(torch.onnx, "export", failing)
    with pytest.raises(OnnxError, match=r"cannot write this Linear\w+ as .* \(Failed to convert\.\)"):
        export_surface(care.surrogate, tmp_path / "surface.onnx", ("a",))
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(tmp_path, care, monkeypatch):
    def missing(name):
        if name == "onnxscript":
            raise ImportError(name, name=name)
        return import_module(name)

    monkeypatch.setattr(exports, "import_module", missing)
    with pytest.raises(OnnxError, match=r"pip install 'rehearsal-torch\[onnx\]' \(onnxscript is missing\)"):
        export_surface(care.surrogate, tmp_path / "surface.onnx", ("a",))


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "other.onnx"
    file.write_bytes(b"no model")
    with pytest.raises(OnnxError, match="expected an ONNX file of this package"):
        described(file)
