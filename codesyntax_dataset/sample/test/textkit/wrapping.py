"""Breaking text into lines and laying lines out in columns."""

import re

_WORD = re.compile(r"\S+")


def wrap(text, width=72, indent="", hanging=None):
    """Break a paragraph into lines of at most `width` characters.

    Words longer than a line are kept whole on a line of their own.

    Args:
        text: The paragraph; any run of white space separates two words.
        width: Longest line, counting the indentation.
        indent: Prefix of the first line.
        hanging: Prefix of the other lines; by default the same as `indent`.

    Returns:
        The list of lines, without line ends.
    """
    if width <= len(indent):
        raise ValueError("width %d leaves no room after an indent of %d" % (width, len(indent)))
    if hanging is None:
        hanging = indent
    lines = []
    current = indent
    empty = True
    for word in text.split():
        if empty:
            current += word
            empty = False
        elif len(current) + 1 + len(word) <= width:
            current += " " + word
        else:
            lines.append(current)
            current = hanging + word
    if not empty:
        lines.append(current)
    return lines


def raggedness(lines, width):
    """Sum of the squared free columns of all lines but the last one."""
    return sum((width - len(line)) ** 2 for line in lines[:-1])


def wrap_balanced(text, width=72):
    """Break a paragraph so that its lines are as even in length as possible.

    Minimises `raggedness` by dynamic programming over the words, so the result may
    have shorter first lines than `wrap` but never a very short one in the middle.
    """
    words = text.split()
    count = len(words)
    best = [0] + [float("inf")] * count  # best[i]: cost of the first i words
    breaks = [0] * (count + 1)
    for end in range(1, count + 1):
        length = -1
        start = end - 1
        while start >= 0:
            length += len(words[start]) + 1
            if length > width and start < end - 1:
                break
            free = max(width - length, 0)
            cost = best[start] + (0 if end == count else free ** 2)
            if cost < best[end]:
                best[end] = cost
                breaks[end] = start
            start -= 1
    lines = []
    end = count
    while end > 0:
        lines.insert(0, " ".join(words[breaks[end]:end]))
        end = breaks[end]
    return lines


def dedent(text):
    """Remove the leading white space that all non-empty lines have in common."""
    lines = text.expandtabs().splitlines()
    margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    if not margins:
        return text
    margin = min(margins)
    return "\n".join(line[margin:].rstrip() for line in lines)


def columns(items, width=80, gap=2):
    """Lay out short strings in columns, the way a directory listing does.

    Args:
        items: Strings, filled in column by column.
        width: Number of characters available.
        gap: Blanks between two columns.

    Returns:
        One string with a line per row.
    """
    items = list(items)
    if not items:
        return ""
    widest = max(len(item) for item in items)
    across = max(1, (width + gap) // (widest + gap))
    down = -(-len(items) // across)
    rows = []
    for row in range(down):
        cells = [item.ljust(widest) for item in items[row::down]]
        rows.append((" " * gap).join(cells).rstrip())
    return "\n".join(rows)


def truncate(text, limit, ellipsis="..."):
    """Shorten text to `limit` characters, at a word boundary where there is one.

    Args:
        text: Any string.
        limit: Greatest length of the result, the ellipsis included.
        ellipsis: Marks that something was left out.
    """
    if len(text) <= limit:
        return text
    room = limit - len(ellipsis)
    if room <= 0:
        return ellipsis[:limit]
    cut = text.rfind(" ", 0, room + 1)
    # A single long word: cut through it rather than return the ellipsis alone.
    if cut <= 0:
        cut = room
    return text[:cut].rstrip() + ellipsis


def word_at(text, position):
    """Return the word around a character position and its bounds.

    Returns:
        A tuple `(word, start, end)`; the word is empty if the position is on white space.
    """
    for match in _WORD.finditer(text):
        if match.start() > position:
            break
        if position < match.end():
            return text[match.start():match.end()], match.start(), match.end()
    return "", position, position
