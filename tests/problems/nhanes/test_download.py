"""Fetching without a network: from a folder, and from a server that breaks off."""

import hashlib
import io
import urllib.error
from email.message import Message

import pytest

from rehearsal_torch.problems.nhanes.download import SUMS, address, fetch
from rehearsal_torch.problems.nhanes.modules import CYCLES, merged, module_names
from tests.problems.nhanes.test_modules import small_modules


@pytest.fixture
def site(tmp_path):
    """A folder laid out like the CDC's site, and its address."""
    flat = tmp_path / "flat"
    flat.mkdir()
    small_modules(flat)
    for name in module_names():
        file = tmp_path / "site" / CYCLES[name[-1]][:4] / "DataFiles" / f"{name}.xpt"
        file.parent.mkdir(parents=True, exist_ok=True)
        (flat / f"{name}.XPT").rename(file)
    return (tmp_path / "site").as_uri()


class Answer(io.BytesIO):
    """What a server sends."""

    def __init__(self, content, status=200, length=None):
        super().__init__(content)
        self.status, self.headers = status, Message()
        self.headers["Content-Length"] = str(len(content) if length is None else length)


class Server:
    """Sends the files of a folder; breaks off once after `breaks` bytes where told; may know no ranges."""

    def __init__(self, site, breaks=None, ranges=True):
        self.root, self.breaks, self.ranges, self.asked = site, breaks, ranges, []

    def __call__(self, request, seconds):
        import urllib.request

        self.asked.append((request.full_url.rpartition("/")[2], request.get_header("Range")))
        content = urllib.request.urlopen(request.full_url).read()
        start = int(request.get_header("Range")[6:-1]) if self.ranges and request.get_header("Range") else 0
        if start >= len(content):
            raise urllib.error.HTTPError(request.full_url, 416, "Range Not Satisfiable", Message(), None)
        rest = content[start:]
        if self.breaks is not None:
            cut, self.breaks = self.breaks, None
            return Answer(rest[:cut], 206 if start else 200, len(rest))
        return Answer(rest, 206 if start else 200)


def test_addresses_are_the_cdcs():
    assert address("DEMO_G") == "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public/2011/DataFiles/DEMO_G.xpt"
    assert address("BPXO_J") == "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public/2017/DataFiles/BPXO_J.xpt"


def test_everything_is_fetched_once_and_recorded(tmp_path, site):
    progress = []
    assert fetch(tmp_path / "got", site, progress.append) == module_names()
    assert len(progress) == 40
    assert "1 of 40: DEMO_G" in progress[0]
    assert fetch(tmp_path / "got", site) == []
    lines = dict(reversed(line.split("  ")) for line in (tmp_path / "got" / SUMS).read_text().splitlines())
    assert lines["DEMO_G.XPT"] == hashlib.sha256((tmp_path / "got" / "DEMO_G.XPT").read_bytes()).hexdigest()
    assert len(merged(tmp_path / "got").cases) == 16
    assert not list((tmp_path / "got").glob("*.part"))


def test_what_was_changed_is_refused(tmp_path, site):
    fetch(tmp_path, site)
    with (tmp_path / "HDL_I.XPT").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match=r"HDL_I.XPT is not the file that was fetched"):
        fetch(tmp_path, site)


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [True, False])
def test_a_fetch_goes_on_where_it_broke_off(tmp_path, site, ranges):
    server = Server(site, breaks=400, ranges=ranges)
    fetch(tmp_path, site, opener=server, pause=0)
    assert server.asked[:3] == [("DEMO_G.xpt", None), ("DEMO_G.xpt", "bytes=400-"), ("MCQ_G.xpt", None)]
    assert len(merged(tmp_path).cases) == 16


def test_a_part_of_an_earlier_day_is_taken_up(tmp_path, site):
    import urllib.request

    content = urllib.request.urlopen(address("DEMO_G", site)).read()
    for kept, asked in ((content[:500], ["bytes=500-"]), (content, [f"bytes={len(content)}-", None])):
        folder = tmp_path / str(len(kept))
        folder.mkdir()
        (folder / "DEMO_G.XPT.part").write_bytes(kept)
        server = Server(site)
        fetch(folder, site, opener=server, pause=0)
        assert [each for name, each in server.asked if name == "DEMO_G.xpt"] == asked
        assert (folder / "DEMO_G.XPT").read_bytes() == content


def test_a_page_in_place_of_a_module_is_deleted(tmp_path):
    with pytest.raises(ValueError, match="did not give the module"):
        fetch(tmp_path, opener=lambda request, seconds: Answer(b"<html>Page not found</html>"), pause=0)
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_not_tried_again(tmp_path):
    asked = []

    def refuse(request, seconds):
        asked.append(request.full_url)
        raise urllib.error.HTTPError(request.full_url, 404, "Not Found", Message(), None)

    with pytest.raises(ValueError, match="404 Not Found"):
        fetch(tmp_path, opener=refuse, pause=0)
    assert len(asked) == 1


@pytest.mark.parametrize("announced", [True, False])
def test_a_module_that_is_too_large_is_refused_while_it_comes_and_not_kept(tmp_path, announced):
    read = []

    class Endless(io.BytesIO):
        status, headers = 200, Message()

        def read(self, size):
            read.append(size)
            return b"x" * size

    if announced:
        Endless.headers["Content-Length"] = str(2**40)
    with pytest.raises(
        ValueError, match=r"DEMO_G.xpt: expected a module of at most 1000000 bytes; .*nothing of it was kept"
    ):
        fetch(tmp_path, opener=lambda request, seconds: Endless(), pause=0, largest=1_000_000)
    assert sum(read) <= (0 if announced else 1_000_000 + 2**18)
    assert list(tmp_path.iterdir()) == []
