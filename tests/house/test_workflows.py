"""Workflows of .github: they parse, and what they name exists."""

import re
import subprocess

import pytest
import yaml

from tests.house.page_commands import Command, examined, typed
from tests.places import ROOT

# Runners of one's own, for what GitHub's have not.
RUNNERS = {"gpu": ["self-hosted", "gpu"]}
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# What a job makes before it names it.
MADE = re.compile(r"(?:dist|site|empty|lowest\.txt|newest\.txt)(?:/|$)")
PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+|[\w-]+\.(?:txt|toml|py|yml|yaml|md)")


def steps(path):
    """(job, step) of a workflow."""
    for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
        yield from ((name, step) for step in job["steps"])


def named(text):
    """Paths below the repository that a text names, without those that a job makes."""
    words = [word.strip("\"'") for word in text.split()]
    found = [word for word in words if PATH.fullmatch(word) and "$" not in word]
    return [word for word in found if not MADE.match(word)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_what_github_asks_for(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "permissions", "jobs"} <= set(content)
    assert content["permissions"] == {"contents": "read"}, "no job writes to the repository"
    assert content["name"] == path.stem
    for name, job in content["jobs"].items():
        assert job["runs-on"] == RUNNERS.get(path.stem, "ubuntu-latest")
        assert job["timeout-minutes"] <= 60, name
        assert all(("uses" in step) != ("run" in step) for step in job["steps"]), name
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", each) for each in uses), uses


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_targets_and_paths_of_workflows_exist(path):
    for job, step in steps(path):
        settings = step.get("with", {})
        texts = [
            step.get("run", ""),
            str(settings.get("path", "")),
            str(settings.get("cache-dependency-path", "")),
        ]
        for name in (name for text in texts for name in named(text)):
            assert (ROOT / name).exists(), f"{path.name}, {job}: there is no {name}"
        for line in step.get("run", "").splitlines():
            if words := typed(line):
                examined(Command(words, path.name))


def test_triggers_name_files_that_exist():
    content = yaml.safe_load((ROOT / ".github/workflows/versions.yml").read_text(encoding="utf-8"))
    for name in content[True]["pull_request"]["paths"]:
        assert (ROOT / name).is_file(), name


def test_checks_cover_the_versions_that_are_promised():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    tested = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    versions = tested["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert f'requires-python = ">={versions[0]}"' in project
    promised = re.findall(r"Programming Language :: Python :: (3\.\d+)", project)
    assert set(promised) <= set(versions)


def test_the_audit_of_a_release_covers_torch_and_fails_where_it_knows_nothing():
    """PyPI knows no release with a local label, such as torch 2.13.0+cpu, and skips it without --strict."""
    (run,) = [
        step["run"]
        for _, step in steps(ROOT / ".github/workflows/release.yml")
        if "pip_audit" in step.get("run", "")
    ]
    frozen, audit = (line for line in run.splitlines() if "audited.txt" in line and "grep" not in line)
    assert {"--strict", "--no-deps", "--disable-pip"} <= set(audit.split())
    assert "--path" not in audit
    script = frozen.partition("| ")[2].partition(" >")[0]
    shown = "torch==2.13.0+cpu\ntorchmetrics==1.9.0\n"
    done = subprocess.run(["bash", "-c", script], input=shown, capture_output=True, text=True, check=True)
    assert done.stdout == "torch==2.13.0\ntorchmetrics==1.9.0\n"
