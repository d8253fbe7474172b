"""Understanding the lines of log files."""

import os
import re
from datetime import datetime, timezone

LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "FATAL": 50}

_LINE = re.compile(r"(?P<time>\S+ \S+) \[(?P<thread>[^\]]*)\] (?P<level>[A-Z]+) (?P<logger>\S+): (?P<message>.*)")


def parse_line(line):
    """Take one line of a log apart.

    Args:
        line (str): for example `2024-05-01 12:00:00,123 [main] INFO app.db: connected`

    Returns:
        dict: time, thread, level, logger and message; None for a line of another form, such
        as those of a traceback
    """
    match = _LINE.match(line)
    if match is None:
        return None
    entry = match.groupdict()
    try:
        entry["time"] = datetime.strptime(entry["time"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    entry["level"] = LEVELS.get(entry["level"], 0)
    return entry


def parse_fields(message):
    """Find the `key=value` pairs in a message.

    Values with blanks stand in double quotes.

    Args:
        message (str): free text with pairs anywhere in it

    Returns:
        dict: names to strings
    """
    pairs = re.findall(r'(\w+)=("[^"]*"|\S+)', message)
    return {key: value.strip('"') for key, value in pairs}


def entries(lines, level="DEBUG"):
    """Group the lines of a log into entries.

    A line that does not look like the beginning of an entry belongs to the entry before
    it; such lines at the start of the file are dropped.

    Args:
        lines (iterable): the lines of a log
        level (str): the least level of interest

    Yields:
        dict: as from `parse_line`, with the further lines in `extra`
    """
    least = LEVELS[level]
    current = None
    for line in lines:
        line = line.rstrip("\n")
        entry = parse_line(line)
        if entry is None:
            if current is not None:
                current["extra"].append(line)
            continue
        if current is not None and current["level"] >= least:
            yield current
        current = entry
        current["extra"] = []
    if current is not None and current["level"] >= least:
        yield current


def template(message):
    """Replace what varies in a message by placeholders, so that like messages become equal."""
    message = re.sub(r"0x[0-9a-fA-F]+", "<hex>", message)
    message = re.sub(r"\b\d+(\.\d+)*\b", "<n>", message)
    return re.sub(r"'[^']*'|\"[^\"]*\"", "<text>", message)


def tail(path, count=10, block=4096):
    """Return the last lines of a file without reading all of it.

    Args:
        path (str): name of the file
        count (int): number of lines
        block (int): bytes to read at a time, from the end

    Returns:
        list of str: lines without their ends, fewer than `count` if the file is short
    """
    with open(path, "rb") as f:
        f.seek(0, os.SEEK_END)
        position = f.tell()
        data = b""
        while position > 0 and data.count(b"\n") <= count:
            step = min(block, position)
            position -= step
            f.seek(position)
            data = f.read(step) + data
    return [line.decode("utf-8", errors="replace") for line in data.splitlines()[-count:]]


def follow(path, sleep, stop=None):
    """Yield lines as they are written to a file; starts over when the file is replaced.

    Args:
        path (str): name of the file
        sleep (callable): called without arguments when there is nothing to read
        stop (callable): ends the loop, when there is nothing to read, by returning true
    """
    stream = open(path)
    try:
        inode = os.fstat(stream.fileno()).st_ino
        while True:
            line = stream.readline()
            if line:
                yield line
                continue
            if stop is not None and stop():
                return
            sleep()
            try:
                replaced = os.stat(path).st_ino != inode
            except FileNotFoundError:
                continue  # between removal and creation
            if replaced:
                stream.close()
                stream = open(path)
                inode = os.fstat(stream.fileno()).st_ino
    finally:
        stream.close()
