"""Summaries of logs."""

from collections import Counter, OrderedDict, deque
from datetime import timedelta

from logsift.parse import LEVELS, template


def count_levels(entries):
    """Count entries by the name of their level, the most severe level first."""
    names = {}
    for name, value in LEVELS.items():
        names.setdefault(value, name)
    counts = Counter(names.get(entry["level"], "OTHER") for entry in entries)
    ordered = OrderedDict()
    for value in sorted(names, reverse=True):
        if counts[names[value]]:
            ordered[names[value]] = counts[names[value]]
    if counts["OTHER"]:
        ordered["OTHER"] = counts["OTHER"]
    return ordered


def top_templates(entries, limit=10):
    """Find the most frequent kinds of message.

    Args:
        entries (iterable): what `logsift.parse.entries` yields
        limit (int): greatest number of kinds

    Returns:
        list: tuples of a count, the message's template and the first message of that kind
    """
    counts = Counter()
    examples = {}
    for entry in entries:
        kind = template(entry["message"])
        counts[kind] += 1
        examples.setdefault(kind, entry["message"])
    return [(count, kind, examples[kind]) for kind, count in counts.most_common(limit)]


def bursts(entries, window=60, threshold=100):
    """Find the times at which entries came unusually fast.

    Args:
        entries (iterable): in order of time
        window (int): length in seconds
        threshold (int): number of entries within the window that makes a burst

    Returns:
        list: pairs of the first and last time of each burst; bursts do not overlap
    """
    span = timedelta(seconds=window)
    recent = deque()
    found = []
    start = previous = None
    for entry in entries:
        now = entry["time"]
        while recent and now - recent[0] > span:
            recent.popleft()
        if len(recent) < threshold and start is not None:
            found.append((start, previous))
            start = None
        recent.append(now)
        if len(recent) >= threshold and start is None:
            start = recent[0]
        previous = now
    if start is not None:
        found.append((start, previous))
    return found


def render(entries, width=100, colour=False):
    """Format entries for a terminal, one line each, cut to its width."""
    colours = {30: "\033[33m", 40: "\033[31m", 50: "\033[1;31m"}
    lines = []
    for entry in entries:
        stamp = entry["time"].strftime("%H:%M:%S")
        text = "{} {:<12.12} {}".format(stamp, entry["logger"], entry["message"])
        if entry.get("extra"):
            text += " (+{} lines)".format(len(entry["extra"]))
        if len(text) > width:
            text = text[:width - 3] + "..."
        if colour and entry["level"] in colours:
            text = colours[entry["level"]] + text + "\033[0m"
        lines.append(text)
    return "\n".join(lines)


def error_rate(entries, window):
    """Share of entries at level ERROR or above among the last `window` ones."""
    recent = deque((entry["level"] for entry in entries), maxlen=window)
    if not recent:
        return 0.0
    return sum(1 for level in recent if level >= LEVELS["ERROR"]) / float(len(recent))


def correlate(entries, key, fields):
    """Put entries that belong to the same request next to each other.

    Args:
        entries (iterable): in any order
        key (str): name of the field that identifies a request
        fields (callable): returns the fields of a message as a dict

    Returns:
        dict: identifier to the entries, in order of time
    """
    requests = {}
    for entry in entries:
        identifier = fields(entry["message"]).get(key)
        if identifier is None:
            continue
        requests.setdefault(identifier, []).append(entry)
    for related in requests.values():
        related.sort(key=lambda entry: entry["time"])
    return requests
