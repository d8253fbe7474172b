"""Reading delimited text."""
import codecs
import contextlib
import gzip
import io
from datetime import datetime


class FormatError(ValueError):
    """The input is not a table."""


def sniff_delimiter(lines, candidates=",;\t|"):
    """
    Guess the delimiter from a few lines of text.

    The best candidate occurs in every line, and equally often in each of them.

    :param lines: sample lines, without quoted fields at best
    :type lines: list of str
    :returns: one of the candidates
    :raises FormatError: if no candidate occurs in all lines
    """
    best, best_score = None, 0
    for candidate in candidates:
        counts = [line.count(candidate) for line in lines if line.strip()]
        if not counts or min(counts) == 0:
            continue
        # Equal counts beat high counts.
        score = min(counts) * (10 if len(set(counts)) == 1 else 1)
        if score > best_score:
            best, best_score = candidate, score
    if best is None:
        raise FormatError('none of %r separates the fields of all lines' % candidates)
    return best


def split_row(line, delimiter=',', quote='"'):
    """
    Split one line into its fields.

    A field may stand in quotes, then it may hold the delimiter, and a doubled quote
    stands for one quote.

    :returns: list of strings
    """
    fields, field, quoted = [], [], False
    i = 0
    while i < len(line):
        char = line[i]
        if quoted:
            if char != quote:
                field.append(char)
            elif line[i + 1:i + 2] == quote:
                field.append(quote)
                i += 1
            else:
                quoted = False
        elif char == quote and not field:
            quoted = True
        elif char == delimiter:
            fields.append(''.join(field))
            field = []
        else:
            field.append(char)
        i += 1
    if quoted:
        raise FormatError('quote left open in %r' % line)
    fields.append(''.join(field))
    return fields


def convert(text):
    """
    Turn a field into the most specific type that fits: int, float, bool, date or str.

    An empty field becomes None.
    """
    text = text.strip()
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    if text.lower() in ('true', 'false'):
        return text.lower() == 'true'
    try:
        return datetime.strptime(text, '%Y-%m-%d').date()
    except ValueError:
        return text


@contextlib.contextmanager
def open_text(path, encoding='utf-8'):
    """
    Open a plain or gzipped text file, without its byte order mark.

    :param path: file name; gzip is recognised by the first two bytes
    """
    raw = open(path, 'rb')
    try:
        magic = raw.read(3)
        raw.seek(0)
        stream = raw
        if magic[:2] == b'\x1f\x8b':
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == codecs.BOM_UTF8:
            encoding = 'utf-8-sig'
        yield io.TextIOWrapper(stream, encoding=encoding, newline='')
    finally:
        raw.close()


def read_rows(path, delimiter=None, header=True):
    """
    Read a delimited file row by row.

    :param path: name of the file
    :param delimiter: guessed from the first lines if None
    :param header: whether the first line names the columns; without it they are
        called ``c0``, ``c1`` and so on
    :returns: iterator of dictionaries
    :raises FormatError: if a row has another number of fields than the first one
    """
    with open_text(path) as stream:
        lines = [line.rstrip('\r\n') for line in stream]
    if not lines:
        return
    if delimiter is None:
        delimiter = sniff_delimiter(lines[:10])
    first = split_row(lines[0], delimiter)
    if header:
        names = [name.strip() for name in first]
        start = 1
    else:
        names = ['c%d' % i for i in range(len(first))]
        start = 0
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip():
            continue
        fields = split_row(line, delimiter)
        if len(fields) != len(names):
            raise FormatError('%s, line %d: %d fields, expected %d' % (path, number, len(fields), len(names)))
        yield {name: convert(field) for name, field in zip(names, fields)}
