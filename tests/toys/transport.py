"""Small SAS transport files, to test readers of them."""

import math
import struct

HEADER = "HEADER RECORD*******{:8}HEADER RECORD!!!!!!!{:<32}"
DAY = "01JAN18:00:00:00"


def number(value):
    """A float as IBM's eight bytes; missing is a full stop."""
    if value is None:
        return b"." + bytes(7)
    if value == 0:
        return bytes(8)
    exponent = math.floor(math.log2(abs(value)) / 4) + 1
    fraction = round(abs(value) / 16.0**exponent * 2**56)
    return bytes([(128 if value < 0 else 0) | exponent + 64]) + fraction.to_bytes(7, "big")


def padded(content, filler=b" "):
    return content + filler * (-len(content) % 80)


def write(path, columns):
    """A file of numeric columns: name to values, None where missing."""
    zeros = "0" * 30
    lines = [
        HEADER.format("LIBRARY ", zeros),
        "SAS     SAS     SASLIB  9.4     X64     " + " " * 24 + DAY,
        DAY + " " * 64,
        HEADER.format("MEMBER  ", "000000000000000001600000000140"),
        HEADER.format("DSCRPTR ", zeros),
        "SAS     DATA    SASDATA 9.4     X64     " + " " * 24 + DAY,
        DAY + " " * 64,
        HEADER.format("NAMESTR ", f"000000{len(columns):04d}" + "0" * 20),
    ]
    names = b"".join(
        struct.pack(
            ">hhhh8s40s8shhh2s8shhl52s",
            1,
            0,
            8,
            place + 1,
            name.ljust(8).encode(),
            b" " * 40,
            b" " * 8,
            0,
            0,
            0,
            b"",
            b" " * 8,
            0,
            0,
            8 * place,
            b"",
        )
        for place, name in enumerate(columns)
    )
    rows = b"".join(number(value) for row in zip(*columns.values(), strict=True) for value in row)
    assert all(len(line) == 80 for line in lines)
    head = "".join(lines).encode() + padded(names) + HEADER.format("OBS     ", zeros).encode()
    path.write_bytes(head + padded(rows))
