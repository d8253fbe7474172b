"""Putting settings from several places on top of each other."""

import os

from confparse.ini import ConfigError, parse_bool

MISSING = object()


def merge(base, override):
    """Combine two nested dictionaries; where both have a value, the second one wins.

    Neither of the arguments is changed. A value of None in `override` removes the key.
    """
    merged = dict(base)
    for key, value in override.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def flatten(settings, prefix=""):
    """Turn nested dictionaries into one with dotted keys."""
    flat = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat.update(flatten(value, prefix + key + "."))
        else:
            flat[prefix + key] = value
    return flat


def lookup(settings, path, default=MISSING):
    """Get a value by its dotted path.

    :raises ConfigError: if it is not there and no default is given; the message says how
        far the path could be followed
    """
    node = settings
    seen = []
    for part in path.split("."):
        try:
            node = node[part]
        except (KeyError, TypeError):
            if default is not MISSING:
                return default
            where = ".".join(seen) if seen else "the top level"
            raise ConfigError("no setting %s: %s has no %r" % (path, where, part))
        else:
            seen.append(part)
    return node


def from_environment(prefix, environ=None):
    """Collect settings from environment variables.

    ``APP_CACHE__SIZE=5`` becomes ``{"cache": {"size": "5"}}`` with the prefix ``APP_``: a double
    underscore opens a level.

    :param prefix: start of the variables' names
    :param environ: the variables; by default those of this process
    """
    environ = os.environ if environ is None else environ
    settings = {}
    for name in sorted(environ):
        if not name.startswith(prefix):
            continue
        *levels, last = name[len(prefix):].lower().split("__")
        node = settings
        for level in levels:
            node = node.setdefault(level, {})
            if not isinstance(node, dict):
                raise ConfigError("%s: %s is a value already, not a section" % (name, level))
        node[last] = environ[name]
    return settings


def coerce(settings, schema):
    """Convert the strings of a flat configuration to the types of a schema.

    :param settings: dotted key to string
    :param schema: dotted key to a type: ``int``, ``float``, ``bool``, ``list`` or ``str``
    :return: a new dictionary
    :raises ConfigError: naming every setting that is wrong, not only the first one
    """
    converted = {}
    problems = []
    for key, value in settings.items():
        kind = schema.get(key)
        try:
            if kind is None:
                problems.append("%s: unknown setting" % key)
            elif kind is bool:
                converted[key] = parse_bool(value)
            elif kind is list:
                converted[key] = [item.strip() for item in value.split(",") if item.strip()]
            else:
                converted[key] = kind(value)
        except (ValueError, ConfigError):
            problems.append("%s: expected %s, got %r" % (key, kind.__name__, value))
    if problems:
        raise ConfigError("; ".join(problems))
    return converted


def difference(old, new):
    """Describe how two configurations differ, one line per setting.

    Lines begin with ``+`` for new settings, ``-`` for those that are gone and ``~`` for changed
    ones.
    """
    before, after = flatten(old), flatten(new)
    lines = []
    for key in sorted(set(before) | set(after)):
        if key not in before:
            lines.append("+ %s = %r" % (key, after[key]))
        elif key not in after:
            lines.append("- %s = %r" % (key, before[key]))
        elif before[key] != after[key]:
            lines.append("~ %s = %r (was %r)" % (key, after[key], before[key]))
    return lines
