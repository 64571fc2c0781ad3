"""Finished runs, and taking copies of them up again, as `resume=` does, without composing their configuration
anew, which takes a second."""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from rehearsal_torch.cli import job
from rehearsal_torch.cli import main as command_line
from rehearsal_torch.cli.main import decide, main


@dataclass(frozen=True)
class Finished:
    """A finished run, and the configurations that Hydra handed to its job."""

    run: Path
    config: Any
    hydra: Any

    @classmethod
    def of(cls, folder, typed):
        """Does what is typed, with out=run in a folder."""
        handed, carried_out = [], job.carry_out

        def carry_out(script, work, config):
            handed.append((deepcopy(config), deepcopy(HydraConfig.get())))
            carried_out(script, work, config)

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(job, "carry_out", carry_out)
            assert main(decide, [*typed, "out=run"]) == 0
        return cls(folder / "run", *handed[0])

    def handing_over(self, monkeypatch, run):
        """From now on, what is typed about a copy of the run gets these configurations."""

        def hand_over(task, arguments):
            (out,) = [text.partition("=")[2].strip("'") for text in arguments if text.startswith("out=")]
            handed = deepcopy(self.hydra)
            OmegaConf.set_readonly(handed, False)
            handed.runtime.output_dir = str(run.parent / out)
            monkeypatch.setattr(HydraConfig, "get", staticmethod(lambda: handed))
            task(deepcopy(self.config))

        def composed(typed, multirun, extra):
            asked = deepcopy(self.config)
            asked.out = next((text.removeprefix("out=") for text in typed if text.startswith("out=")), None)
            return asked, [list(typed)]

        monkeypatch.setattr(command_line, "composed", composed)
        monkeypatch.setattr(command_line, "_hand_over", hand_over)
