"""Training as one verb: what is kept, what is shown, and what to type next."""

import json
import shlex
import shutil

import pytest

from tests.scripts.typing_in import TOY, called, lines

pytestmark = pytest.mark.slow
QUICK = ("trainer.max_epochs=2", "preview=2", "out=run")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a short training, and what was said."""
    folder = tmp_path_factory.mktemp("trained")
    answer = called(folder, "train", *TOY, *QUICK, "objective.changes=1")
    assert answer.code == 0, answer.err
    return folder, answer


@pytest.mark.bench
def test_as_many_situations_are_shown_as_the_preview_says(trained, tmp_path):
    folder, _ = trained
    assert [line["index"] for line in lines(folder / "run")] == [0, 1]
    assert json.loads((folder / "run/status.json").read_text())["message"] == (
        "trained, and decided for 2 cases"
    )
    answer = called(tmp_path, "train", *TOY, *QUICK, "limit=3")
    assert answer.code == 0, answer.err
    assert len(lines(tmp_path / "run")) == 3, "a limit goes before the preview"


def test_what_to_type_next_decides_with_the_checkpoint_and_leaves_the_training_out(trained):
    folder, answer = trained
    line = answer.out.strip().splitlines()[-1].removeprefix("Next: ")
    words = shlex.split(line)
    assert words[:2] == ["python", "scripts/decide.py"]
    assert words[-1] == "checkpoint=run/checkpoint"
    assert "objective.changes=1" in words
    assert not [word for word in words if word.startswith(("trainer", "surrogate", "preview", "limit"))]
    follow = called(folder, "decide", *TOY[:2], *words[2:], "limit=1", "out=next")
    assert follow.code == 0, follow.err
    assert lines(folder / "next")[0]["alteration"] == lines(folder / "run")[0]["alteration"]


def test_flags_and_callbacks_of_lightning_are_taken_and_hydra_has_its_record(tmp_path):
    timer = "lightning.pytorch.callbacks.Timer"
    typed = (
        *("+trainer.gradient_clip_val=1.0", f"+trainer.callbacks=[{{_target_: {timer}, verbose: false}}]"),
        "trainer.precision=64-true",
    )
    assert called(tmp_path, "train", *TOY, *QUICK, *typed).code == 0
    run = tmp_path / "run"
    assert {each.name for each in (run / ".hydra").iterdir()} == {
        "config.yaml",
        "hydra.yaml",
        "overrides.yaml",
    }
    assert "+trainer.gradient_clip_val=1.0" in (run / ".hydra/overrides.yaml").read_text()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    refused = called(tmp_path, "train", *TOY[:2], "resume=run")
    assert refused.code == 2
    assert timer in refused.err
    assert f"trusted=[{timer.partition('.')[0]}]" in refused.err
    # Nothing is read from Hydra's record, which stays as it was.
    (run / ".hydra/config.yaml").write_text("edited")
    shutil.rmtree(run / "checkpoint")
    again = called(tmp_path, "train", *TOY[:2], "resume=run", "trusted=[lightning]")
    assert again.code == 0, again.err
    assert (run / ".hydra/config.yaml").read_text() == "edited"
    for name in ("decisions.jsonl", "checkpoint/weights.safetensors", "config.yaml"):
        assert (run / name).read_bytes() == before[run / name]
    # Another run begins where this one ended.
    longer = (*QUICK[1:-1], "trainer.max_epochs=3", *typed, "+trainer.ckpt_path=run", "out=longer")
    answer = called(tmp_path, "train", *TOY, *longer)
    assert answer.code == 0, answer.err
    assert (
        (tmp_path / "longer/metrics.csv")
        .read_text()
        .startswith("".join((run / "metrics.csv").read_text().splitlines(keepends=True)[:3]))
    )


def test_a_run_says_what_was_built(tmp_path):
    typed = ("+experiment=auf", "decision=cme", "dataset.size.rows=60", "preview=1", "truth=false")
    answer = called(tmp_path, "train", *typed, "out=run")
    assert answer.code == 0, answer.err
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["by_adjustment"] is True
    assert record["built"]["search"].endswith(".ProjectedAscent")
    assert record["built"]["surrogate"].endswith(".NestedRidge")
