"""Computing the value of a formula."""
import decimal
import math
import operator

from exprcalc.lexer import FormulaError, names_in, point_at, tokenize

# symbol: (priority, groups from the right, function)
OPERATORS = {
    '+': (1, False, operator.add),
    '-': (1, False, operator.sub),
    '*': (2, False, operator.mul),
    '/': (2, False, operator.truediv),
    '//': (2, False, operator.floordiv),
    '%': (2, False, operator.mod),
    '**': (4, True, operator.pow),
    '^': (4, True, operator.pow),
}
NEGATION = 3
FUNCTIONS = {name: getattr(math, name) for name in ('sqrt', 'sin', 'cos', 'log', 'exp', 'floor')}


class Evaluator(object):
    """Evaluates one formula by precedence climbing."""

    def __init__(self, text, variables=None):
        """Tokenize the formula; the variables are a dict of numbers."""
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.variables = variables or {}

    def fail(self, message):
        """Raise a FormulaError that points at the next token."""
        token = self.tokens[self.index]
        raise FormulaError(point_at(self.text, token.position, message))

    def accept(self, *texts):
        """Return the next token and step over it if its text is one of those given."""
        token = self.tokens[self.index]
        if token.text not in texts or token.kind != 'operator':
            return None
        self.index += 1
        return token

    def expression(self, least=1):
        """Evaluate operators of at least the given priority."""
        value = self.operand()
        while True:
            token = self.tokens[self.index]
            if token.text not in OPERATORS:
                return value
            priority, from_right, function = OPERATORS[token.text]
            if priority < least:
                return value
            self.index += 1
            right = self.expression(priority if from_right else priority + 1)
            try:
                value = function(value, right)
            except (ZeroDivisionError, OverflowError) as error:
                self.fail('%s %s %s: %s' % (value, token.text, right, error))

    def operand(self):
        """Evaluate a number, a name, a call or something in brackets."""
        token = self.tokens[self.index]
        if self.accept('-'):
            return -self.expression(NEGATION)
        if self.accept('('):
            value = self.expression()
            if not self.accept(')'):
                self.fail('expected a closing bracket')
            return value
        if token.kind == 'number':
            self.index += 1
            return float(token.text)
        if token.kind == 'name':
            self.index += 1
            if token.text in FUNCTIONS and self.accept('('):
                return self.call(FUNCTIONS[token.text])
            if token.text in self.variables:
                return self.variables[token.text]
            self.index -= 1
            self.fail('unknown name %s' % token.text)
        return self.fail('expected a number')

    def call(self, function):
        """Evaluate the arguments up to the closing bracket and apply a function to them."""
        arguments = []
        if not self.accept(')'):
            arguments.append(self.expression())
            while self.accept(','):
                arguments.append(self.expression())
            if not self.accept(')'):
                self.fail('expected , or ) after an argument')
        try:
            return function(*arguments)
        except (TypeError, ValueError) as error:
            self.fail(str(error))


def evaluate(text, **variables):
    """Compute the value of a formula, such as evaluate('2 * x', x=3).

    @raise FormulaError: if there is anything wrong with it
    """
    evaluator = Evaluator(text, variables)
    value = evaluator.expression()
    if evaluator.tokens[evaluator.index].kind != 'end':
        evaluator.fail('expected an operator')
    return value


def evaluate_all(definitions):
    """Compute a sheet of formulas that may use each other's names.

    @param definitions: dict from name to formula
    @return: dict from name to number
    @raise FormulaError: if formulas use each other in a circle
    """
    values = {}
    needs = {name: set(names_in(text, FUNCTIONS)) for name, text in definitions.items()}
    while len(values) < len(definitions):
        progress = False
        for name, text in definitions.items():
            if name not in values and needs[name] <= set(values):
                values[name] = evaluate(text, **values)
                progress = True
        if not progress:
            stuck = sorted(set(definitions) - set(values))
            raise FormulaError('cannot compute %s' % ', '.join(stuck))
    return values


def rounded(value, places=2, rounding=decimal.ROUND_HALF_UP):
    """Round a number the way people do on paper, and return it as a string."""
    context = decimal.getcontext()
    saved = context.rounding
    context.rounding = rounding
    try:
        quantum = decimal.Decimal(1).scaleb(-places)
        text = str(decimal.Decimal(repr(value)).quantize(quantum))
    except decimal.InvalidOperation:
        text = 'n/a'
    finally:
        context.rounding = saved
    return text


def tabulate(text, name, start, stop, steps=10):
    """Evaluate a formula at evenly spaced places.

    @param text: the formula
    @param name: the variable to vary
    @param start: first value of the variable
    @param stop: last value of the variable
    @param steps: number of intervals, one less than the number of rows
    @return: list of (value of the variable, value of the formula); the latter is None where the
        formula has no value
    """
    rows = []
    for step in range(steps + 1):
        x = start + (stop - start) * step / float(steps)
        try:
            y = evaluate(text, **{name: x})
        except FormulaError:
            y = None
        rows.append((x, y))
    return rows
