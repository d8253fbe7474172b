"""Turning titles into identifiers and identifiers into words."""

import re
import unicodedata


def slugify(title, separator="-", max_length=None):
    """Make a string safe for use in a URL.

    Accents are dropped, everything but letters and digits becomes the separator.

    >>> slugify("Hello, World!")
    'hello-world'
    """
    decomposed = unicodedata.normalize("NFKD", title)
    plain = decomposed.encode("ascii", "ignore").decode("ascii").lower()
    slug = re.sub(r"[^a-z0-9]+", separator, plain).strip(separator)
    if max_length is not None and len(slug) > max_length:
        slug = slug[:max_length].rsplit(separator, 1)[0]
    return slug


def split_identifier(name):
    """Split an identifier at underscores, case changes and digits.

    >>> split_identifier("parseHTTPResponse_v2")
    ['parse', 'HTTP', 'Response', 'v', '2']
    """
    words = []
    for part in name.split("_"):
        words.extend(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part))
    return words


def to_snake_case(name):
    """Rewrite camelCase or PascalCase as snake_case."""
    words = split_identifier(name)
    return "_".join(word.lower() for word in words)


def to_camel_case(name, upper_first=False):
    """Rewrite snake_case as camelCase, or as PascalCase if `upper_first`."""
    words = [word.lower() for word in split_identifier(name)]
    start = 0 if upper_first else 1
    words[start:] = [word.capitalize() for word in words[start:]]
    return "".join(words)


def unique_name(base, taken):
    """Append a number to a name until nobody else has it.

    Args:
        base: The wanted name, possibly with a number already at its end.
        taken: Container of the names in use.

    Returns:
        `base` itself if it is free.
    """
    if base not in taken:
        return base
    stem = base.rstrip("0123456789")
    number = int(base[len(stem):] or 1)
    while True:
        number += 1
        name = "{}{}".format(stem, number)
        if name not in taken:
            return name


def pluralize(count, noun, plural=None):
    """Format a count with its noun: `1 file`, `3 files`, `2 entries`."""
    if count == 1:
        return "1 " + noun
    if plural is None:
        if noun.endswith(("s", "x", "ch", "sh")):
            plural = noun + "es"
        elif noun.endswith("y") and noun[-2:-1] not in "aeiou":
            plural = noun[:-1] + "ies"
        else:
            plural = noun + "s"
    return "%d %s" % (count, plural)
