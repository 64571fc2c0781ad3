"""Masking of passwords in the addresses (URLs) that messages repeat.

Somebody may write the address of a data base, scheme://user:password@host, where a file or a name belongs.
Messages repeat what was written, and messages are kept in logs and sent to others. What stands between the
user's name and the host is therefore replaced, in every error of this package (`InputError`; `UserError` of
the commands). Long values are masked before they are cut (`beginning`).

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
    return "\n".join(_mask(line) for line in text.split("\n")) if ":/" in text else text


def beginning(value: str, most: int) -> str:
    """The first characters of a value, without passwords; an address at its beginning may have blanks."""
    masked = value if len(value) <= most else "\n".join(_mask(line, full=True) for line in value.split("\n"))
    return masked[:most]


def check_no_user(address: object, where: str) -> None:
    """Refuses, by an InputError, an MLflow server's address with a user's name or password."""
    text = "" if address is None else str(address)
    if without_password(text) != text or re.match(r"[\w+.-]+://[^/?#]*@", text):
        raise InputError(
            f"{where}: expected an address without a user's name and password, which the run's folder would "
            "keep; got one with them: leave them out, and set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD in the environment"
        )


def _mask(line: str, full: bool = False) -> str:
    """One line, or a whole value, in time that grows with its length: no part is looked at twice."""
    masked, position, last_at = "", 0, line.rfind("@")
    while user := _USER.search(line, position):
        start = user.end()
        word, quotation = _WORD.match(line, start), _QUOTED.search(line, position, user.start())
        assert word is not None
        end = _closing_quote(line, quotation[1], start) if quotation else last_at + 1 if full else -1
        at_sign = line.rfind("@", start, max(end, word.end())) if start <= last_at else -1
        truncated = _CUT.match(line, start)
        masked += line[position:start]
        if at_sign >= 0:
            masked, position = f"{masked}***", at_sign
        elif truncated:
            masked, position = f"{masked}***", truncated.end()
        else:
            masked, position = masked + word[0], word.end()
    return masked + line[position:]


def _closing_quote(line: str, mark: str, start: int) -> int:
    """The place of the closing quotation mark, which has no backslash before it; -1 if there is none."""
    end = line.find(mark, start)
    while end > 0 and line[end - 1] == "\\":
        end = line.find(mark, end + 1)
    return end


class InputError(ValueError):
    """An unusable input. Its message repeats no password of an address."""

    def __str__(self) -> str:
        return without_password(super().__str__())

    def of_check(self) -> str:
        """The message as of a check, after which nothing was to be fitted."""
        return str(self)
