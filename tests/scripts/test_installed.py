"""The wheel, installed where nothing of the checkout is on the path, does what the checkout does."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from rehearsal_torch import __version__
from rehearsal_torch.cli.main import main, train
from tests.places import PACKAGE, ROOT
from tests.scripts.typing_in import ended, lines

SEPSIS = (
    "+experiment=sepsis",
    "dataset.patients=60",
    "trainer.max_epochs=1",
    "trainer.progress=false",
    "preview=2",
    "workers=1",
)


def ran(arguments, folder):
    """What came of a process without the environment's Python paths."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HYDRA"))}
    env = {**kept, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONNOUSERSITE": "1"}
    return ended([*map(str, arguments)], folder, env)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout, built with what the environment has."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel; its dependencies are those of the running one, without what that
    one has linked in."""
    place = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(place)
    python = place / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (site,) = place.glob("lib/python*/site-packages")
    # Folders in a .pth file are searched for packages, but not for .pth files of their own, such as that of
    # an editable install.
    paths = sysconfig.get_paths()
    (site / "dependencies.pth").write_text(
        "\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]])) + "\n"
    )
    return place / "bin"


@pytest.fixture(scope="module")
def trained(installed, tmp_path_factory):
    """A folder with the shortened sepsis run of the installed command: `run`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    answer = ran([installed / "rehearsal", "train", *SEPSIS, "out=run"], folder)
    assert answer.code == 0, answer.err
    assert "Next: rehearsal decide +experiment=sepsis" in answer.out
    return folder


def test_the_wheel_carries_what_runs_need(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped <= names
    conf = {f"{PACKAGE}/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert {name for name in names if name.startswith(f"{PACKAGE}/conf/")} == conf
    parts = {name.split("/")[0] for name in names}
    assert parts == {PACKAGE, f"{PACKAGE}-{__version__}.dist-info"}


def test_the_readme_reads_well_away_from_the_repository(wheel):
    text = zipfile.ZipFile(wheel).read(f"{PACKAGE}-{__version__}.dist-info/METADATA").decode()
    head, _, page = text.partition("\n\n")
    assert f"\nVersion: {__version__}\n" in head
    assert {
        line.split(" ")[1].rstrip(",") for line in head.splitlines() if line.startswith("Project-URL")
    } >= {"Source", "Issues", "Changelog"}
    links = re.findall(r"\]\(([^)\s]+)", page)
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)", page)
    assert pictures
    assert all(link.startswith("https://raw.githubusercontent.com/") for link in pictures)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"```.*?```", page, re.DOTALL) == re.findall(r"```.*?```", readme, re.DOTALL), (
        "code is left as it is"
    )
    root = "https://github.com/rehearsal-torch/rehearsal_torch/blob/main/"
    missing = [
        link
        for link in links
        if link.startswith(root) and not (ROOT / link.removeprefix(root).partition("#")[0]).exists()
    ]
    assert missing == []


def test_nothing_of_a_checkout_is_on_the_path(installed, tmp_path):
    code = f"import sys, json, {PACKAGE}\nfrom {PACKAGE}.files.package_paths import checkout, conf_folder\n"
    code += (
        f"print(json.dumps([sys.path, {PACKAGE}.__file__, str(conf_folder()), checkout() is None, "
        f"{PACKAGE}.__version__]))"
    )
    answer = ran([installed / "python", "-c", code], tmp_path)
    assert answer.code == 0, answer.err
    path, file, conf, alone, version = json.loads(answer.out)
    assert str(ROOT) not in path
    assert file.startswith(str(installed.parent))
    assert (conf, alone, version) == (file.replace("__init__.py", "conf"), True, __version__)


def test_help_is_quick(installed, tmp_path):
    answer = ran([installed / "rehearsal", "--help"], tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert "rehearsal train +experiment=sepsis" in answer.out
    assert answer.processor < 2


def test_a_training_leaves_a_run_and_a_checkpoint_that_loads(installed, trained):
    run = json.loads((trained / "run/run.json").read_text())
    assert run["command"].startswith("rehearsal train +experiment=sepsis dataset.patients=60")
    assert (run["commit"], run["versions"]["rehearsal-torch"]) == (None, __version__)
    assert len(lines(trained / "run")) == 2
    answer = ran(
        [
            installed / "python",
            "-c",
            "import rehearsal_torch as rt; print(type(rt.load('run')).__name__, "
            "rt.card('run')['command'][:15])",
        ],
        trained,
    )
    assert (answer.code, answer.out.strip()) == (0, "TransitionEnsemble rehearsal train"), answer.err


def test_a_run_of_the_command_is_taken_up_by_the_script(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    before = (trained / "run/decisions.jsonl").read_bytes()
    assert main(train, ["resume=run"]) == 0
    assert "Run folder: run\nNext: python scripts/decide.py +experiment=sepsis" in capsys.readouterr().out
    assert (trained / "run/decisions.jsonl").read_bytes() == before


def test_options_are_explained(installed, tmp_path):
    answer = ran([installed / "rehearsal", "options", "+experiment=cbo"], tmp_path)
    assert answer.code == 0, answer.err
    assert re.search(r"^  dataset\.scale +1\.0 +number +lambda of the paper", answer.out, re.MULTILINE)


def test_a_small_world_is_read_from_the_package(installed, tmp_path):
    code = """
from rehearsal_torch.problems.nhanes.nhanes_data import Nhanes
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.world_size import SampleSize

size = SampleSize(rows=10)
print(len(Bermuda(size=size).observations()), len(Nhanes(size=size).observations()))
"""
    answer = ran([installed / "python", "-c", code], tmp_path)
    assert (answer.code, answer.out.split()) == (0, ["10", "10"]), answer.err
