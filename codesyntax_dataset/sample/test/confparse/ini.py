"""Configuration files with sections, in the INI format."""

import os
import re
import tempfile

_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_UNITS = {"": 1, "k": 1024, "m": 1024 ** 2, "g": 1024 ** 3}


class ConfigError(Exception):
    """A configuration that cannot be used."""


def parse_ini(text, filename="<string>"):
    """Parse the text of an INI file.

    Values may go on in following lines that are indented. Lines that begin with ``#`` or
    ``;`` are comments.

    :param text: content of the file
    :param filename: used in messages only
    :return: dict of sections, each a dict of strings; keys before the first section are
        in the section ``""``
    """
    sections = {"": {}}
    current = sections[""]
    key = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if line[0].isspace() and key is not None:
            current[key] += "\n" + stripped
        elif stripped.startswith("["):
            if not stripped.endswith("]"):
                raise ConfigError("%s:%d: section without closing bracket: %s" % (filename, number, stripped))
            current = sections.setdefault(stripped[1:-1].strip(), {})
            key = None
        else:
            key, equals, value = stripped.partition("=")
            if not equals:
                raise ConfigError("%s:%d: expected key = value, got: %s" % (filename, number, stripped))
            key = key.strip().lower()
            current[key] = value.strip()
    return sections


def interpolate(value, variables, depth=10):
    """Replace each ``${name}`` by the variable's value, which may hold references itself.

    :raises ConfigError: for an unknown name, or one that refers to itself
    """
    for _ in range(depth):
        match = _REFERENCE.search(value)
        if match is None:
            return value
        name = match.group(1)
        if name not in variables:
            raise ConfigError("unknown variable %r; known are: %s" % (name, ", ".join(sorted(variables))))
        value = value[:match.start()] + variables[name] + value[match.end():]
    raise ConfigError("references nested more than %d deep (does one refer to itself?)" % depth)


def parse_bool(value):
    """Understand the usual spellings of yes and no."""
    lowered = value.strip().lower()
    if lowered in ("1", "yes", "true", "on"):
        return True
    if lowered in ("0", "no", "false", "off"):
        return False
    raise ConfigError("expected yes or no, got %r" % value)


def parse_size(value):
    """Convert sizes such as ``512``, ``64k`` or ``1.5 GB`` to bytes."""
    match = re.match(r"^\s*(\d+(?:\.\d+)?)\s*([kmg]?)i?b?\s*$", value, re.IGNORECASE)
    if not match:
        raise ConfigError("expected a size like 64k or 1.5 GB, got %r" % value)
    number, unit = match.groups()
    return int(float(number) * _UNITS[unit.lower()])


def write_ini(path, sections):
    """Write sections to a file, replacing it only once everything is on disk.

    :param path: name of the file
    :param sections: what `parse_ini` returns
    """
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", text=True)
    try:
        with os.fdopen(handle, "w") as out:
            for name in sorted(sections):
                if name:
                    out.write("[%s]\n" % name)
                for key, value in sections[name].items():
                    out.write("%s = %s\n" % (key, value.replace("\n", "\n    ")))
                out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)
