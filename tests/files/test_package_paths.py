"""Where the configuration lies: beside the package in a checkout, inside of it where a wheel was
installed."""

import pytest

from rehearsal_torch.files.package_paths import checkout, conf_folder
from tests.places import PACKAGE


def laid_out(folder, *names):
    for name in (f"{PACKAGE}/__init__.py", *names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder / PACKAGE


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
