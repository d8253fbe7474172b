"""Operations on a table that is a list of dictionaries."""
import operator
from collections import defaultdict


def column(rows, name, default=None):
    """
    Collect the values of one column.

    :param default: stands in for missing values
    """
    return [row.get(name, default) for row in rows]


def group_by(rows, *names):
    """
    Sort rows into groups with equal values in some columns.

    :returns: dictionary from tuples of values to lists of rows
    """
    groups = defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in names)
        groups[key].append(row)
    return dict(groups)


def pivot(rows, index, columns, value, fill=0, combine=operator.add):
    """
    Spread the values of one column over several columns.

    :param index: column whose values name the rows of the result
    :param columns: column whose values name the new columns
    :param value: column that fills the cells
    :param fill: content of cells without any value
    :param combine: joins two values that fall into the same cell
    :returns: list of dictionaries, in order of first appearance
    """
    heads = []
    cells = {}
    for row in rows:
        head = row[columns]
        if head not in heads:
            heads.append(head)
        line = cells.setdefault(row[index], {})
        if head in line:
            line[head] = combine(line[head], row[value])
        else:
            line[head] = row[value]
    result = []
    for key, line in cells.items():
        record = {index: key}
        record.update((head, line.get(head, fill)) for head in heads)
        result.append(record)
    return result


def join(left, right, on, how='inner'):
    """
    Combine the rows of two tables that agree in one column.

    :param on: name of the column, present in both tables
    :param how: ``inner`` drops rows of the left table without a partner, ``left`` keeps
        them as they are
    :raises ValueError: if `how` is something else
    """
    if how not in ('inner', 'left'):
        raise ValueError("how must be 'inner' or 'left', got %r" % (how,))
    partners = group_by(right, on)
    joined = []
    for row in left:
        matches = partners.get((row[on],), [])
        for match in matches:
            combined = dict(row)
            combined.update(match)
            joined.append(combined)
        if not matches and how == 'left':
            joined.append(dict(row))
    return joined


def describe(values):
    """
    Summarise a column of numbers; missing values are counted but left out otherwise.

    :returns: dictionary with count, missing, mean, std, min, median and max
    """
    present = sorted(value for value in values if value is not None)
    count = len(present)
    if count == 0:
        return {'count': 0, 'missing': len(values)}
    mean = sum(present) / count
    variance = sum((value - mean) ** 2 for value in present) / count
    middle = count // 2
    if count % 2:
        median = present[middle]
    else:
        median = (present[middle - 1] + present[middle]) / 2
    return {
        'count': count,
        'missing': len(values) - count,
        'mean': mean,
        'std': variance ** 0.5,
        'min': present[0],
        'median': median,
        'max': present[-1],
    }


def to_markdown(rows, precision=3):
    """
    Format a table for a README file.

    Numbers are right aligned, floats get a fixed number of decimals.
    """
    if not rows:
        return ''
    names = list(rows[0])
    numeric = {name for name in names if all(isinstance(row[name], (int, float)) for row in rows)}
    body = []
    for row in rows:
        cells = []
        for name in names:
            cell = row[name]
            cells.append('%.*f' % (precision, cell) if isinstance(cell, float) else str(cell))
        body.append(cells)
    rule = ['---:' if name in numeric else '---' for name in names]
    lines = ['| ' + ' | '.join(cells) + ' |' for cells in [names, rule] + body]
    return '\n'.join(lines)


def union_of_columns(*tables):
    """
    List the column names of several tables, each name once, in order of appearance.
    """
    names = {}
    for table in tables:
        for row in table:
            names.update(dict.fromkeys(row))
    return list(names)
