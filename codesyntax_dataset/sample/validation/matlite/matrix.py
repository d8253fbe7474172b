"""Matrices as lists of rows."""

import random
from typing import Callable, List, Optional

Matrix = List[List[float]]


class SingularMatrix(ArithmeticError):
    """The matrix has no inverse."""


def identity(size: int) -> Matrix:
    """Create a square matrix with ones on its diagonal."""
    return [[1.0 if row == column else 0.0 for column in range(size)] for row in range(size)]


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Multiply two matrices.

    Raises:
        ValueError: If `a` has not as many columns as `b` has rows.
    """
    if len(a[0]) != len(b):
        raise ValueError(f"cannot multiply {len(a)} x {len(a[0])} with {len(b)} x {len(b[0])}")
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def power(matrix: Matrix, exponent: int) -> Matrix:
    """Raise a square matrix to a power by repeated squaring."""
    if exponent < 0:
        raise ValueError("exponent must not be negative")
    result = identity(len(matrix))
    while exponent:
        if exponent & 1:
            result = multiply(result, matrix)
        matrix = multiply(matrix, matrix)
        exponent >>= 1
    return result


def solve(matrix: Matrix, right: List[float], tolerance: float = 1e-12) -> List[float]:
    """Solve a system of linear equations by Gaussian elimination with pivoting.

    Args:
        matrix: The coefficients, a square matrix; not changed.
        right: The right hand sides.
        tolerance: Pivots smaller than this count as zero.

    Returns:
        The unknowns.

    Raises:
        SingularMatrix: If there is no solution, or more than one.
    """
    size = len(matrix)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for step in range(size):
        pivot = max(range(step, size), key=lambda i: abs(rows[i][step]))
        if abs(rows[pivot][step]) < tolerance:
            raise SingularMatrix(f"no pivot in column {step}")
        rows[step], rows[pivot] = rows[pivot], rows[step]
        for below in range(step + 1, size):
            factor = rows[below][step] / rows[step][step]
            for column in range(step, size + 1):
                rows[below][column] -= factor * rows[step][column]
    unknowns = [0.0] * size
    for step in reversed(range(size)):
        known = sum(rows[step][i] * unknowns[i] for i in range(step + 1, size))
        unknowns[step] = (rows[step][size] - known) / rows[step][step]
    return unknowns


def determinant(matrix: Matrix) -> float:
    """Compute the determinant without changing the matrix."""
    rows = [row[:] for row in matrix]
    size = len(rows)
    result = 1.0
    for step in range(size):
        pivot = next((i for i in range(step, size) if rows[i][step]), None)
        if pivot is None:
            return 0.0
        if pivot != step:
            rows[step], rows[pivot] = rows[pivot], rows[step]
            result = -result
        result *= rows[step][step]
        for below in range(step + 1, size):
            factor = rows[below][step] / rows[step][step]
            rows[below] = [x - factor * y for x, y in zip(rows[below], rows[step])]
    return result


def largest_eigenvalue(matrix: Matrix, tolerance: float = 1e-10, rng: Optional[random.Random] = None) -> float:
    """Approximate the eigenvalue of greatest magnitude by power iteration.

    Args:
        matrix: A square matrix whose greatest eigenvalue is real and single.
        tolerance: Stop when the estimate changes by no more than this.
        rng: Source of the start vector, for repeatable results.
    """
    rng = rng or random.Random(0)
    vector = [[rng.uniform(0.5, 1.0)] for _ in matrix]
    estimate, previous = 0.0, float("inf")
    while abs(estimate - previous) > tolerance:
        image = multiply(matrix, vector)
        previous = estimate
        estimate = max((entry[0] for entry in image), key=abs)
        if estimate == 0:
            return 0.0
        vector = [[entry[0] / estimate] for entry in image]
    return estimate


def minor(matrix: Matrix, row: int, column: int) -> Matrix:
    """Leave out one row and one column."""
    return [line[:column] + line[column + 1:] for line in matrix[:row] + matrix[row + 1:]]


def submatrix(matrix: Matrix, top: int, left: int, bottom: int, right: int) -> Matrix:
    """Cut out a block; the last row and column are not part of it."""
    if not (0 <= top < bottom <= len(matrix) and 0 <= left < right <= len(matrix[0])):
        raise IndexError(f"block ({top}, {left})-({bottom}, {right}) is empty or outside of the matrix")
    return [line[left:right] for line in matrix[top:bottom]]


def apply(matrix: Matrix, function: Callable[[float], float], where: Callable[[int, int], bool] = None) -> Matrix:
    """Apply a function to the entries of a matrix, or only to those at some places."""
    result = []
    for i, line in enumerate(matrix):
        if where is None:
            result.append([function(entry) for entry in line])
        else:
            result.append([function(entry) if where(i, j) else entry for j, entry in enumerate(line)])
    return result
