"""From the text of a formula to its tokens."""
import re
from collections import namedtuple

Token = namedtuple('Token', 'kind text position')

PATTERNS = [
    ('number', r'\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+'),
    ('name', r'[A-Za-z_]\w*'),
    ('operator', r'\*\*|//|[-+*/%^(),=]'),
    ('blank', r'\s+'),
]
_SCANNER = re.compile('|'.join('(?P<%s>%s)' % pair for pair in PATTERNS))


class FormulaError(Exception):
    """A formula that cannot be understood."""


def tokenize(text):
    """Split a formula into tokens, without the blanks.

    @param text: the formula
    @return: list of Token; the last one is of kind 'end'
    @raise FormulaError: on a character that no token begins with
    """
    tokens = []
    position = 0
    while position < len(text):
        match = _SCANNER.match(text, position)
        if match is None:
            raise FormulaError(point_at(text, position, 'unexpected character'))
        if match.lastgroup != 'blank':
            tokens.append(Token(match.lastgroup, match.group(), position))
        position = match.end()
    tokens.append(Token('end', '', len(text)))
    return tokens


def point_at(text, position, message):
    """Format a message with a line below the formula that points at the culprit."""
    # Only the line around the position, for formulas of several lines.
    start = text.rfind('\n', 0, position) + 1
    end = text.find('\n', position)
    line = text[start:] if end < 0 else text[start:end]
    return '%s\n  %s\n  %s^' % (message, line, ' ' * (position - start))


def names_in(text, known=()):
    """List the names that a formula uses, other than the known ones, in alphabetical order."""
    names = {token.text for token in tokenize(text) if token.kind == 'name'}
    return sorted(names.difference(known))


def substitute(text, values):
    """Replace the names of a formula by numbers, keeping everything else as it is.

    @param values: dict from name to number; other names stay
    """
    pieces = []
    last = 0
    for token in tokenize(text):
        if token.kind == 'name' and token.text in values:
            pieces.append(text[last:token.position])
            value = values[token.text]
            # A negative number needs brackets: 2 - x with x = -1.
            pieces.append('(%r)' % value if value < 0 else repr(value))
            last = token.position + len(token.text)
    pieces.append(text[last:])
    return ''.join(pieces)
