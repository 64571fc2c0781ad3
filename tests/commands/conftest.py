"""A finished run, made once, of which each test damages a copy."""

import shutil
from copy import deepcopy

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from rehearsal_torch.commands import command_line, decide, job
from rehearsal_torch.commands.command_line import main

SMALL = ["+experiment=auf", "decision=none", "dataset.rows=30", "limit=2", "workers=1", "truth=false"]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A finished run, and the configuration that Hydra handed to its job."""
    folder, handed = tmp_path_factory.mktemp("finished"), []

    def carry_out(script, work, config):
        handed.append((deepcopy(config), deepcopy(HydraConfig.get())))
        job.carry_out(script, work, config)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(decide, "carry_out", carry_out)
        assert main(decide.decide, [*SMALL, "out=run"]) == 0
    return folder / "run", *handed[0]


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """A copy of the finished run, in the folder where one is."""
    monkeypatch.chdir(tmp_path)
    # Pictures take half of the time, and say nothing here.
    monkeypatch.setattr("rehearsal_torch.reporting.report._figures", lambda run, words: {})
    return shutil.copytree(made[0], tmp_path / "run")


@pytest.fixture
def resume(made, run, monkeypatch, capsys):
    """Resumes the copy, or does what is typed with out=run: the exit code, and what was said.

    Composing the same configuration again, which takes a second, is left out.
    """
    _, config, hydra = made

    def hand_over(task, arguments, conf):
        (out,) = [text.partition("=")[2].strip("'") for text in arguments if text.startswith("out=")]
        handed = deepcopy(hydra)
        OmegaConf.set_readonly(handed, False)
        handed.runtime.output_dir = str(run.parent / out)
        monkeypatch.setattr(HydraConfig, "get", staticmethod(lambda: handed))
        task(deepcopy(config))

    def composed(conf, typed, multirun, extra):
        asked = deepcopy(config)
        asked.out = next((text.removeprefix("out=") for text in typed if text.startswith("out=")), None)
        return asked, [list(typed)]

    monkeypatch.setattr(command_line, "composed", composed)
    monkeypatch.setattr(command_line, "_hand_over", hand_over)

    def go_on(*typed):
        code = main(decide.decide, list(typed) or ["resume=run"])
        return code, capsys.readouterr().err.strip()

    return go_on
