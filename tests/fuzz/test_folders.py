"""Run folders of which every file may be damaged: taken up again, and reported."""

import json
import shutil

import pytest
import yaml

from rehearsal_torch.reporting.run_report import report
from tests.fuzz.commanded import LIMITS, PROCESSES, typed_in
from tests.fuzz.mutations import changed, damaged, source
from tests.toys.resuming import Finished

SEARCH = [
    "search.screened=16",
    "search.starts=6",
    "search.steps=5",
    "objective.draws=8",
    "objective.evaluation_draws=16",
]
WARD = [
    "dataset.patients=60",
    "dataset.min_length=4",
    "dataset.horizon=5",
    "trainer.max_epochs=1",
    "trainer.progress=false",
    "surrogate.member.mechanism.hidden=8",
    "surrogate.member.levels=2",
]
RUNS = {
    "rehearsal": [
        "+experiment=auf",
        "decision=care",
        "dataset.size.rows=30",
        "limit=2",
        "workers=1",
        "truth=false",
    ],
    "trials": ["+experiment=cbo", "limit=2", *SEARCH],
    "episodes": ["+experiment=sepsis", "decision=greedy", "workers=1", "limit=2", *WARD],
}


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run of each kind."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = Finished.of(tmp_path_factory.mktemp(kind), RUNS[kind])
        return made[kind]

    return of


def files(folder):
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix in (".yaml", ".json", ".jsonl", ".csv", ".safetensors")
        and path.stat().st_size
    )


def edited(rng, path):
    """A file whose content somebody edited, and which is still of its format."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        lines = text.splitlines()
        place = rng.randrange(len(lines))
        lines[place] = json.dumps(changed(rng, json.loads(lines[place])))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if path.suffix == ".json":
        return json.dumps(changed(rng, json.loads(text)), allow_nan=True).encode("utf-8", "replace")
    return yaml.safe_dump(changed(rng, yaml.safe_load(text)), sort_keys=False).encode("utf-8", "replace")


def spoilt(rng, folder):
    """Damages one file or two; what was done."""
    told = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        path = rng.choice(files(folder))
        if rng.random() < 0.05:
            path.unlink()
        elif rng.random() < 0.05:
            path.unlink()
            path.mkdir()
        elif (
            path.suffix in (".json", ".jsonl", ".yaml")
            and path.name not in "".join(told)
            and rng.random() < 0.5
        ):
            path.write_bytes(edited(rng, path))
        else:
            path.write_bytes(damaged(rng, path.read_bytes()))
        told.append(f"{path.relative_to(folder)}: {path.read_bytes()[:400] if path.is_file() else 'gone'}")
        if not files(folder):
            break
    return told


def test_folders(number, judged, finished, tmp_path, monkeypatch):
    rng = source("folders", number)
    kind = rng.choice(["rehearsal", "rehearsal", "trials", "episodes", "report"])
    monkeypatch.setattr("rehearsal_torch.reporting.run_report._figures", lambda run, words: {})
    made = finished(rng.choice(list(RUNS)) if kind == "report" else kind)
    run = shutil.copytree(made.run, tmp_path / "run")
    told = spoilt(rng, run)
    if kind == "report":
        judged(lambda: report(run) and None, told)
        return
    made.handing_over(monkeypatch, run)
    judged(lambda: typed_in("decide", ["resume=run"], False), told)


def test_folders_command(number, judged, finished, tmp_path, monkeypatch):
    rng = source("folders as commands", number)
    # Pictures, which take half of the time, are drawn by the processes alone.
    monkeypatch.setattr("rehearsal_torch.reporting.run_report._figures", lambda run, words: {})
    kind = list(RUNS)[number % len(RUNS)]
    run = shutil.copytree(finished(kind).run, tmp_path / "run")
    told = spoilt(rng, run)
    judged(lambda: typed_in("decide", ["resume=run"], number < PROCESSES), told, **LIMITS)
