"""A folder that somebody else wrote: resuming it runs nothing of theirs, writes nowhere else, and says why in
a paragraph."""

import json
import os
import pickle
import sys

import pytest
import yaml
from omegaconf import OmegaConf

from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.cli.resume import SWEEP, recorded
from rehearsal_torch.methods.class_allowlist import ROOMS, check_allowed
from rehearsal_torch.methods.hydra_config import named_in
from rehearsal_torch.methods.instantiate import screen
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError
from tests.places import CONF

MARKER = "attacked"


class Payload:
    def __reduce__(self):
        return os.mkdir, (MARKER,)


def poisoned(run, overrides, **config):
    """Overrides that a hostile run.json adds, with the configuration that they lead to."""
    folder = RunFolder(run)
    record, content = folder.read_json("run.json"), folder.read_yaml("config.yaml")
    folder.write_json("run.json", record | {"overrides": [*record["overrides"], *overrides]})
    for group, values in config.items():
        content[group] = (
            {**content[group], **values}
            if isinstance(values, dict) and isinstance(content.get(group), dict)
            else values
        )
    folder.write_yaml("config.yaml", content)


def refused(capsys, run, *words, arguments=()):
    """Resuming ends with code 2 and a paragraph; nothing has appeared or changed."""
    before = {
        path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "status.json"
    }
    around = set(run.parent.iterdir())
    assert main(decide, [f"resume={run.name}", *arguments]) == 2
    as_user_error = capsys.readouterr().err.strip()
    assert len(as_user_error.splitlines()) == 1, as_user_error
    for word in words:
        assert word in as_user_error
    assert set(run.parent.iterdir()) == around, "nothing appeared beside the folder"
    assert {path: path.read_bytes() for path in before} == before, "nothing was changed"
    assert not (run / "error.txt").exists()


def screened(folder, words):
    """The same for what is noticed before anything is composed."""
    with pytest.raises(UserError) as as_user_error:
        recorded(str(folder), [], "decide")
    assert words in str(as_user_error.value)
    assert len(str(as_user_error.value).splitlines()) == 1


@pytest.fixture
def written(tmp_path):
    """A folder with a record of these overrides."""

    def write(name, *overrides):
        RunFolder(tmp_path / "run").write_json(
            name, {"script": "decide", "overrides": list(overrides), "decisive": list(overrides)}
        )
        return tmp_path / "run"

    return write


def called(target, **arguments):
    return {"_target_": target, **arguments}


TYPED = {
    "a pickle": [
        "++certificate._target_=pandas.read_pickle",
        "++certificate.filepath_or_buffer=run/bomb.pkl",
    ],
    "a copy": [
        "++certificate._target_=shutil.copyfile",
        "++certificate.src=run/run.json",
        f"++certificate.dst={MARKER}",
    ],
    "a path by way of ours": [
        "++certificate._target_=rehearsal_torch.run_folder.Path.touch",
        f"++certificate.self={MARKER}",
    ],
    "something nested": [f"++search.budget_s={{deep: [{{_target_: os.mkdir, path: {MARKER}}}]}}"],
}
LED_TO = {
    "a pickle": {"certificate": called("pandas.read_pickle", filepath_or_buffer="run/bomb.pkl")},
    "a copy": {"certificate": called("shutil.copyfile", src="run/run.json", dst=MARKER)},
    "a path by way of ours": {"certificate": called("rehearsal_torch.run_folder.Path.touch", self=MARKER)},
    "something nested": {"search": {"budget_s": {"deep": [called("os.mkdir", path=MARKER)]}}},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPED)
def test_nothing_of_others_is_built(run, capsys, name):
    (run / "bomb.pkl").write_bytes(pickle.dumps(Payload()))
    poisoned(run, TYPED[name], **LED_TO[name])
    refused(capsys, run, "nothing was built", next(iter(LED_TO[name])))


HYDRA = [
    "+hydra.callbacks.x._target_=os.mkdir",
    "+hydra.callbacks.x={_target_: os.mkdir, path: attacked}",
    "++hydra={callbacks: {x: {_target_: os.mkdir, path: attacked}}}",
    "hydra.run.dir=../elsewhere",
    "hydra.sweep.dir=../elsewhere",
    "hydra.searchpath=[file:///tmp]",
    "hydra/launcher=joblib",
    "hydra.launcher._target_=os.mkdir",
    "+certificate@hydra.callbacks.x=pac_bound",
    "+certificate@_global_.hydra.callbacks.x=pac_bound",
]


@pytest.mark.parametrize("override", HYDRA)
@pytest.mark.parametrize("name", ["run.json", SWEEP])
def test_hydras_own_settings_are_never_taken_from_a_folder(written, name, override):
    screened(
        written(name, "+experiment=auf", override),
        f"{name}: the run was started with {override}; Hydra's own settings are never taken",
    )


def test_a_run_stays_in_its_folder(run, capsys):
    poisoned(run, ["+hydra.callbacks.x={_target_: os.mkdir, path: attacked}", "hydra.run.dir=../elsewhere"])
    refused(capsys, run, "Hydra's own settings are never taken from a folder", "run/run.json")


@pytest.mark.parametrize(
    "override",
    ["out=elsewhere", "resume=elsewhere", "trusted=[os]", "+trusted=[os]", "trainer.folder=/tmp/elsewhere"],
)
@pytest.mark.parametrize("name", ["run.json", SWEEP])
def test_a_folder_does_not_say_where_to_write_or_whom_to_trust(written, name, override):
    screened(written(name, override), "never taken from a folder")


def test_a_folder_does_not_say_where_to_write_within_a_mapping(run, capsys):
    poisoned(run, ["++trainer={folder: there}"])
    refused(capsys, run)


@pytest.mark.parametrize(
    "override",
    [
        "name=${oc.env:HOME}",
        "name='${oc.env:HOME}'",
        r"name=$\{oc.env:HOME\}",
        "++name=[a,{b: '${oc.env:HOME}'}]",
        "+dataset.x=${oc.decode:'1'}",
        "seed=1,${seed}",
    ],
)
def test_references_of_a_folder_are_not_resolved(written, override):
    screened(written(SWEEP, override), "references (${...}) are not resolved")


@pytest.mark.slow
def test_references_in_the_recorded_configuration_stay_text(run, capsys, monkeypatch):
    monkeypatch.setenv("SECRET", "told-to-nobody")
    poisoned(run, [], name="${oc.env:SECRET}")
    refused(capsys, run, "name (${oc.env:SECRET} there")


@pytest.mark.slow
def test_record_and_configuration_must_agree(run, capsys):
    poisoned(run, [], seed=7)
    refused(capsys, run, "another configuration: seed (7 there, 0 now)")
    poisoned(run, ["seed=3"])
    refused(capsys, run, "another configuration", "seed (7 there, 3 now)")


@pytest.mark.parametrize(
    "override",
    ["x=" + "[" * 3000, "x=" + "a" * 30_000, "seed=[1", "", "seed=range(1000000000)", "seed=interval(0,1)"],
)
def test_overrides_that_cannot_be_read_are_a_sentence(written, override):
    screened(written(SWEEP, override), "")


@pytest.mark.slow
def test_endless_sweeps_are_refused_at_once(written, capsys, monkeypatch):
    many = ",".join(map(str, range(300)))
    run = written(SWEEP, "+experiment=auf", f"seed={many}", f"limit={many}")
    monkeypatch.chdir(run.parent)
    refused(capsys, run, "at most 20000 jobs")


LAB = """
from pathlib import Path
from rehearsal_torch.certificate import PacBound
import os

class Mine(PacBound):
    def check(self, surrogate):
        pass  # Any surrogate will do: nothing is certified here.
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A module of the user's own."""
    (tmp_path / "my_lab.py").write_text(LAB)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_lab", None)


@pytest.mark.slow
def test_a_class_of_ones_own_is_built_again_where_it_is_trusted(run, lab, capsys):
    poisoned(run, ["++certificate._target_=my_lab.Mine"], certificate=called("my_lab.Mine"))
    refused(capsys, run, "trusted=[my_lab]")
    assert "my_lab" not in sys.modules, "not even imported"
    assert main(decide, ["resume=run", "trusted=[my_lab]"]) == 0
    assert main(decide, ["resume=run", "trusted=my_lab.Mine"]) == 0
    refused(capsys, run, "expected the names of modules", arguments=["trusted=[my-lab]"])
    assert yaml.safe_load((run / "config.yaml").read_text())["trusted"] is None
    assert not any("trusted" in text for text in json.loads((run / "run.json").read_text())["overrides"])


@pytest.mark.slow
def test_the_configuration_folder_that_is_typed_names_its_classes(run, lab, capsys):
    poisoned(run, ["++certificate._target_=my_lab.Mine"], certificate=called("my_lab.Mine"))
    (lab / "conf/certificate").mkdir(parents=True)
    (lab / "conf/certificate/mine.yaml").write_text(
        "_target_: my_lab.Mine\ninner: {_target_: rehearsal_torch.run_folder.RunFolder}\n"
    )
    assert named_in(lab / "conf") == ["my_lab.Mine"]
    assert main(decide, ["--config-dir", "conf", "resume=run"]) == 0
    assert capsys.readouterr().err == ""


def test_trust_is_in_what_a_module_defines(lab):
    check_allowed(called("my_lab.Mine"), "certificate", ["my_lab"])
    for target in (
        "my_lab.Path",
        "my_lab.os.mkdir",
        "my_lab.PacBound",
        "my_lab_too.Mine",
        "my_lab._private",
        3,
        None,
    ):
        with pytest.raises(UserError, match="nothing was built"):
            check_allowed(called(target), "certificate", ["my_lab"])


def test_every_group_is_looked_at_before_anything_is_built():
    groups = {key: {} for key in ROOMS} | {"trainer": called("shutil.copyfile")}
    with pytest.raises(
        UserError, match=r"trainer: the folder asks to build 'shutil\.copyfile'.*nothing was built"
    ):
        screen(OmegaConf.create(groups | {"trusted": []}))
    screen(OmegaConf.create(groups | {"trusted": None}))  # typed on this command line


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("csv", {"_partial_": False}),
        ("csv", {"save_dir": "elsewhere"}),
        ("wandb", {"offline": False}),
        ("wandb", {"base_url": "https://elsewhere.org"}),
        ("wandb", {"settings": {"base_url": "https://elsewhere.org"}}),
        ("mlflow", {"tracking_uri": "https://elsewhere.org"}),
        ("mlflow", {"experiment_name": ["a"]}),
    ],
)
def test_a_resumed_folder_sends_losses_nowhere_unless_it_is_allowed_here(name, more):
    shipped = yaml.safe_load((CONF / f"logger/{name}.yaml").read_text())[name]
    named = {key: "x" for key in ("project", "experiment_name") if key in shipped}
    check_allowed({"one": shipped | named}, "trainer", [])
    with pytest.raises(UserError, match=r"more than to keep losses .*nothing was built") as caught:
        check_allowed({"one": shipped | more}, "trainer", [])
    assert f"trusted=[{shipped['_target_']}]" in str(caught.value)
    check_allowed({"one": shipped | more}, "trainer", [shipped["_target_"]])
    for left_out in ("offline", "settings", "_partial_"):
        if left_out in shipped:
            with pytest.raises(UserError, match="nothing was built"):
                check_allowed({"one": {k: v for k, v in shipped.items() if k != left_out}}, "trainer", [])


def test_every_option_that_is_shipped_may_be_resumed():
    conf = CONF
    for path in sorted((conf / "logger").glob("*.yaml")):
        check_allowed(yaml.safe_load(path.read_text()) or {}, "trainer", [])
    for group in ("dataset", "surrogate", "objective", "search", "certificate", "trainer"):
        for path in sorted((conf / group).glob("*.yaml")):
            check_allowed(yaml.safe_load(path.read_text()) or {}, group, [])
