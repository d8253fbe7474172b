"""Conversion between units of measurement."""

from fractions import Fraction

# unit -> (dimension, factor to the base unit, offset in base units)
UNITS = {
    "m": ("length", Fraction(1), 0),
    "km": ("length", Fraction(1000), 0),
    "cm": ("length", Fraction(1, 100), 0),
    "µm": ("length", Fraction(1, 10 ** 6), 0),
    "in": ("length", Fraction(254, 10000), 0),
    "ft": ("length", Fraction(3048, 10000), 0),
    "mi": ("length", Fraction(1609344, 1000), 0),
    "g": ("mass", Fraction(1, 1000), 0),
    "kg": ("mass", Fraction(1), 0),
    "lb": ("mass", Fraction(45359237, 10 ** 8), 0),
    "s": ("time", Fraction(1), 0),
    "min": ("time", Fraction(60), 0),
    "h": ("time", Fraction(3600), 0),
    "K": ("temperature", Fraction(1), 0),
    "°C": ("temperature", Fraction(1), Fraction(27315, 100)),
    "°F": ("temperature", Fraction(5, 9), Fraction(45967, 180)),
}

PREFIXES = [("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("µ", -6), ("n", -9)]


class UnitError(ValueError):
    """A unit that is unknown or does not fit."""


def find_unit(name):
    """Look up a unit by its symbol.

    :raises UnitError: with the symbols that differ only in case, if there are any
    """
    try:
        return UNITS[name]
    except KeyError:
        similar = [symbol for symbol in UNITS if symbol.lower() == name.lower()]
        hint = ", did you mean %s?" % " or ".join(similar) if similar else ""
        raise UnitError("unknown unit %r%s" % (name, hint)) from None


def convert(value, source, target):
    """Convert a value from one unit to another.

    :param value: a number; fractions and whole numbers are converted without rounding
    :param source: symbol of the value's unit
    :param target: symbol of the wanted unit, which must measure the same thing
    :return: a number of the same kind, or a fraction
    """
    dimension, factor, offset = find_unit(source)
    other, divisor, shift = find_unit(target)
    if dimension != other:
        raise UnitError("cannot convert %s (%s) to %s (%s)" % (source, dimension, target, other))
    if isinstance(value, float):
        return (value * float(factor) + float(offset) - float(shift)) / float(divisor)
    return (value * factor + offset - shift) / divisor


def parse_quantity(text):
    """Split text such as ``5 ft 3 in`` into its values and add them up.

    :return: tuple of the sum and the unit of the first value
    """
    words = text.split()
    if not words or len(words) % 2:
        raise UnitError("expected pairs of number and unit, got %r" % text)
    unit = words[1]
    total = Fraction(0)
    for index in range(0, len(words), 2):
        number, symbol = words[index:index + 2]
        total += convert(Fraction(number), symbol, unit)
    return total, unit


def with_prefix(value, unit, digits=3):
    """Format a value with the metric prefix that leaves one to three digits before the point.

    >>> with_prefix(0.00425, "m")
    '4.25 mm'
    """
    if value == 0:
        return "0 " + unit
    for prefix, exponent in PREFIXES:
        scaled = value / 10.0 ** exponent
        if abs(scaled) >= 1:
            break
    return "%.*g %s%s" % (digits, scaled, prefix, unit)


def compatible(unit):
    """The symbols of all units that measure the same as the given one, in alphabetical order."""
    dimension = find_unit(unit)[0]
    same = {symbol for symbol, entry in UNITS.items() if entry[0] == dimension}
    return sorted(same - {unit})


def conversion_table(values, source, targets, decimals=2):
    """Build rows of a table that shows values in several units.

    :return: list of dicts from unit to string; the first one is that of the smallest value
    """
    rows = []
    for value in sorted(values):
        row = {source: format(value, "g")}
        row.update({unit: "{:.{}f}".format(float(convert(value, source, unit)), decimals) for unit in targets})
        rows.append(row)
    return rows
