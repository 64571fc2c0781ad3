"""Addresses in messages, without their password.

Somebody may write the address of a data base, scheme://user:password@host, where a file or a name belongs.
Messages repeat what was written, and messages are kept in logs and sent to others. What stands between the
user's name and the host is therefore replaced, in every error of this package (`InputError`; `UserError` of
the commands). Where a message shows the beginning of a long value, it is replaced before the value is cut
(`beginning`).

The password ends at the last @ of its word, or of the quotation that begins with its word: outside of
quotation marks it holds no blank. Prose and ports are left: a colon before a blank, or before one to five
digits that end in a slash, a blank or the line; and so are addresses of files.

Source: RFC 3986, 3.2.1 (user information).
"""

import re

# Of a scheme, two letters at least (C:/ is a disk); a path keeps one of its two slashes.
_USER = re.compile(
    r"(?<![\w+.-])(?!file:)[\w+.-]{2,}:/+(?:[^\s/:]+:(?!\d{1,5}(?:[/\s]|$))|:)(?!\s)", re.IGNORECASE
)
# The rest of a word that was cut off, as other packages do in messages, and with it perhaps the @.
_CUT, _WORD = re.compile(r"\S*?(?=\s?(?:\.\.\.|…))"), re.compile(r"\S*")
_QUOTED = re.compile(r"""(['"`])[^\s'"`]*\Z""")


def without_password(text: str) -> str:
    """A message in which each address has *** in place of its password."""
    return "\n".join(_line(line) for line in text.split("\n")) if ":/" in text else text


def beginning(value: str, most: int) -> str:
    """The first signs of a value, without passwords; an address at its beginning may have blanks in it."""
    told = value if len(value) <= most else "\n".join(_line(line, whole=True) for line in value.split("\n"))
    return told[:most]


def check_no_user(address: object, where: str) -> None:
    """Checks that the address of a server of MLflow, which is kept with a run, has no user in it.

    Raises:
        InputError: if it has a user's name or password, which are not repeated.
    """
    told = "" if address is None else str(address)
    if without_password(told) != told or re.match(r"[\w+.-]+://[^/?#]*@", told):
        raise InputError(
            f"{where}: expected an address without a user's name and password, which the run's folder would "
            "keep; got one with them: leave them out, and set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD in the environment"
        )


def _line(line: str, whole: bool = False) -> str:
    """One line, or the whole of a value, in time that grows with its length: no part is looked at twice."""
    told, place, last = "", 0, line.rfind("@")
    while found := _USER.search(line, place):
        begin = found.end()
        word, quoted = _WORD.match(line, begin), _QUOTED.search(line, place, found.start())
        assert word is not None
        end = _closing(line, quoted[1], begin) if quoted else last + 1 if whole else -1
        at = line.rfind("@", begin, max(end, word.end())) if begin <= last else -1
        cut = _CUT.match(line, begin)
        told += line[place:begin]
        if at >= 0:
            told, place = f"{told}***", at
        elif cut:
            told, place = f"{told}***", cut.end()
        else:
            told, place = told + word[0], word.end()
    return told + line[place:]


def _closing(line: str, mark: str, begin: int) -> int:
    """The place of the closing quotation mark, which has no backslash before it; -1 if there is none."""
    end = line.find(mark, begin)
    while end > 0 and line[end - 1] == "\\":
        end = line.find(mark, end + 1)
    return end


class InputError(ValueError):
    """What was given cannot be used. Its message repeats no password of an address."""

    def __str__(self) -> str:
        return without_password(super().__str__())

    def of_check(self) -> str:
        """The message as of a check, after which nothing was to be fitted."""
        return str(self)
