"""Downloading the CDC's NHANES modules.

A file is written as NAME.XPT.part and renamed when it is complete, so that an interrupted download resumes
where it stopped. A file is complete if it has the length announced by the server and can be read. A file of
more than 64 MiB (the largest module has some 20) is refused: before the download if the server announces its
length, else as soon as it exceeds the limit, and nothing of it is kept. Each file's SHA-256 is recorded
beside it in SHA256SUMS and checked when the folder is used again.

Source: the CDC's public-use files, https://wwwn.cdc.gov/nchs/nhanes/.
"""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn

from rehearsal_torch.files.writing import write_text
from rehearsal_torch.problems.nhanes.modules import CYCLES, columns_of, module_names, read_module

SITE = "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public"
SUMS = "SHA256SUMS"
LARGEST = 2**26
_SECONDS, _PIECE, _TRIES = 60.0, 2**18, 3

Opener = Callable[[urllib.request.Request, float], Any]


def _open(request: urllib.request.Request, seconds: float) -> Any:
    return urllib.request.urlopen(request, timeout=seconds)


def address(name: str, site: str = SITE) -> str:
    """The address of a module such as DEMO_G."""
    return f"{site.rstrip('/')}/{CYCLES[name[-1]][:4]}/DataFiles/{name}.xpt"


def _say_nothing(text: str) -> None:
    """Progress callback that prints nothing."""


class TooLargeError(ValueError):
    """A server sends more bytes than a module can have."""


def fetch(
    folder: Path,
    site: str = SITE,
    progress: Callable[[str], None] = _say_nothing,
    opener: Opener = _open,
    pause: float = 2.0,
    largest: int = LARGEST,
) -> list[str]:
    """Downloads the modules that are missing from a folder.

    Args:
        folder: Destination; created if missing.
        site: Base address; may be a file:// address.
        progress: Called with a line of text before each download.
        opener: Opens a request, with a timeout in seconds.
        pause: Seconds between two attempts, multiplied by the number of the attempt.
        largest: Largest size of a module in bytes.

    Returns:
        The modules that were downloaded; existing ones are only checked.

    Raises:
        ValueError: if the network or a file cannot be reached, or a file is larger than `largest`, was
            changed since its download, or is not the module.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sums, fetched = _sums(folder), []
    names = module_names()
    there = {path.name.upper(): path for path in folder.iterdir() if path.is_file()}
    for number, name in enumerate(names, 1):
        file = there.get(f"{name}.XPT")
        if file is not None:
            if sums.get(file.name, own := _sha256(file)) != own:
                raise ValueError(
                    f"{file} is not the file that was fetched (its SHA-256 differs from {SUMS}): delete it "
                    "and run the same command again"
                )
            continue
        file = folder / f"{name}.XPT"
        progress(f"{number} of {len(names)}: {name} from {address(name, site)}")
        part = _fetched(address(name, site), folder / f"{name}.XPT.part", opener, pause, largest)
        try:
            read_module(part, columns_of(name[-1])[name.rpartition("_")[0]])
        except ValueError as error:
            part.unlink()
            raise ValueError(
                f"{address(name, site)} did not give the module ({error}); the file was deleted: run the "
                "same command again"
            ) from error
        sums[file.name] = _sha256(part)
        part.replace(file)
        write_text(folder / SUMS, "".join(f"{digest}  {file}\n" for file, digest in sorted(sums.items())))
        fetched.append(name)
    return fetched


def _fetched(url: str, part: Path, opener: Opener, pause: float, largest: int) -> Path:
    """Downloads the file at `url`, resuming an earlier download."""
    for tried in range(1, _TRIES + 1):
        try:
            _resume(url, part, opener, largest)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # the server has nothing beyond the part we have: start over
                part.unlink(missing_ok=True)
            elif error.code < 500:
                raise ValueError(
                    f"{url}: the server answers {error.code} {error.reason}: the CDC may have moved it; "
                    f"fetch it by hand into {part.parent}"
                ) from error
            failure: Exception = error
        except (OSError, HTTPException) as error:
            failure = error
        else:
            return part
        if tried < _TRIES:
            time.sleep(pause * tried)
    raise ValueError(
        f"{url} cannot be reached ({failure}): check the network and run the same command again, which keeps "
        f"what was fetched; or put the modules into {part.parent} by hand and leave download=true out; the "
        "shipped generator needs no download"
    ) from failure


def _resume(url: str, part: Path, opener: Opener, largest: int) -> None:
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(
        url, headers={"User-Agent": "rehearsal_torch", **({"Range": f"bytes={have}-"} if have else {})}
    )
    with opener(request, _SECONDS) as answer:
        resumed = have > 0 and answer.status == 206
        length = answer.headers.get("Content-Length")
        whole = None if length is None else int(length) + (have if resumed else 0)
        size = have if resumed else 0
        if whole is not None and whole > largest:
            _too_large(url, part, f"the server announces {whole}", largest)
        with part.open("ab" if resumed else "wb") as out:
            while piece := answer.read(_PIECE):
                size += len(piece)
                if size > largest:
                    _too_large(url, part, "more came", largest)
                out.write(piece)
    size = part.stat().st_size
    if whole is not None and size != whole:
        raise ConnectionError(f"{size} of {whole} bytes came")


def _too_large(url: str, part: Path, what: str, largest: int) -> NoReturn:
    part.unlink(missing_ok=True)
    raise TooLargeError(
        f"{url}: expected a module of at most {largest} bytes; {what}; nothing of it was kept: check whether "
        "the CDC has moved it"
    )


def _sums(folder: Path) -> dict[str, str]:
    if not (folder / SUMS).is_file():
        return {}
    lines = (
        line.split(maxsplit=1)
        for line in (folder / SUMS).read_text(encoding="utf-8").splitlines()
        if line.strip()
    )
    return {parts[1].strip(): parts[0] for parts in lines if len(parts) == 2}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
