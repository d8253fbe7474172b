"""Files of others: what is read of them, how much, and how their texts are shown.

Only regular files are opened, because reading a pipe or a device may never end, and the size of
everything that is read has a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader

LONGEST_FUNCTION = 1_000_000
"""Characters of code of a function: a longer one is left out."""

LARGEST_FILE = 1 << 22
"""Bytes of a file of source code: a larger one is left out."""

LARGEST_SOURCE = 1 << 40
"""Characters of code of all functions of a source: memory does not grow with them, but a source
must end."""

_PACKED_ALIKE, _LEAST = 200, 1 << 28


def opened(path: str | os.PathLike) -> BufferedReader:
    """Open a regular file, or a link to one, for reading; raises OSError for anything else."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:  # asked of what is open, which nobody can exchange any more
        mode = os.fstat(number).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(
                errno.EINVAL, "a pipe or device, expected a regular file", os.fspath(path)
            )
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read(path: str | os.PathLike, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes; raises OSError for anything else."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", os.fspath(path))
    return data


def explodes(unpacked: int, packed: int) -> bool:
    """True if data of these sizes in bytes was packed to exhaust who unpacks it: code shrinks to a
    tenth, not less than a 200th."""
    return unpacked > max(_LEAST, _PACKED_ALIKE * packed)


LONGEST_NAME = 200
"""Characters of the name of a relation, node type or phenomenon."""


def is_name(text: object) -> bool:
    """True for a text of 1 to LONGEST_NAME printable characters."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and text.isprintable()


def escaped(text: str) -> str:
    """Foreign text with unprintable characters escaped: some of them move the cursor of a terminal,
    change its title, or show text in another order."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def plain(text: str) -> str:
    """Foreign text without characters that a terminal would obey: its lines, as `printable` has
    them."""
    return "\n".join(printable(line, most=10_000) for line in text.split("\n"))


def printable(text: str, most: int = 300) -> str:
    """Foreign text in one line of at most `most` characters, as `escaped` has it."""
    shown = escaped(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
