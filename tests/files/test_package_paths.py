"""Where the configuration lies: beside the package in a checkout, inside of it where a wheel was
installed."""

import pytest

from rehearsal_torch.files.package_paths import checkout, conf_folder
from rehearsal_torch.methods.hydra_config import CONF
from tests.places import PACKAGE, ROOT


def laid_out(folder, *names):
    for name in (f"{PACKAGE}/__init__.py", *names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder / PACKAGE


def test_this_checkout_is_one():
    assert checkout() == ROOT
    assert conf_folder() == CONF == ROOT / "conf"


def test_a_checkout_has_the_configuration_at_the_top(tmp_path):
    package = laid_out(tmp_path, "conf/config.yaml", "pyproject.toml")
    assert (checkout(package), conf_folder(package)) == (tmp_path, tmp_path / "conf")


@pytest.mark.parametrize(
    "names",
    [
        (f"{PACKAGE}/conf/config.yaml",),
        # Somebody's own project, into which the package was installed.
        (f"{PACKAGE}/conf/config.yaml", "conf/config.yaml", "pyproject.toml"),
        # Another package that is called conf.
        (f"{PACKAGE}/conf/config.yaml", "conf/config.yaml"),
    ],
)
def test_an_installed_package_has_it_inside(tmp_path, names):
    package = laid_out(tmp_path, *names)
    assert (checkout(package), conf_folder(package)) == (None, package / "conf")
