"""Statistics of grey images.

An image is a list of rows, a row a list of values from 0 (black) to 255 (white).
"""


def histogram(image, bins=256):
    """Count how many pixels fall into each of the brightness bins."""
    counts = [0] * bins
    for row in image:
        for value in row:
            counts[value * bins // 256] += 1
    return counts


def cumulative(counts):
    """Running sums of a list of counts."""
    total = 0
    sums = []
    for count in counts:
        total += count
        sums.append(total)
    return sums


def percentile(image, share):
    """The brightness below or at which a share (0..1) of the pixels lies."""
    sums = cumulative(histogram(image))
    wanted = share * sums[-1]
    for value, reached in enumerate(sums):
        if reached >= wanted and reached > 0:
            return value
    return 255


def equalize(image):
    """Spread the brightness values so that all of them occur about equally often.

    The darkest value of the image becomes 0 and the brightest 255. An image of a single
    value is returned as it is.
    """
    sums = cumulative(histogram(image))
    total = sums[-1]
    lowest = next(s for s in sums if s > 0)
    if total == lowest:
        return [list(row) for row in image]
    table = [round((s - lowest) * 255 / (total - lowest)) if s else 0 for s in sums]
    return [[table[value] for value in row] for row in image]


def otsu_threshold(image):
    """Find the brightness that parts foreground and background best (Otsu's method).

    :return: pixels up to and including this value are background
    """
    counts = histogram(image)
    total = sum(counts)
    weighted_total = sum(value * count for value, count in enumerate(counts))
    below = 0
    weighted_below = 0
    best, best_variance = 0, -1.0
    for value in range(256):
        below += counts[value]
        above = total - below
        if below == 0:
            continue
        if above == 0:
            break
        weighted_below += value * counts[value]
        mean_below = weighted_below / below
        mean_above = (weighted_total - weighted_below) / above
        # Maximal variance between the classes is minimal variance within them.
        variance = below * above * (mean_below - mean_above) ** 2
        if variance > best_variance:
            best, best_variance = value, variance
    return best


def sparkline(counts, levels=" .:-=+*#%@"):
    """Draw counts as one line of characters, the tallest as the last level."""
    top = max(counts)
    if top == 0:
        return levels[0] * len(counts)
    last = len(levels) - 1
    return "".join(levels[-(-count * last // top)] for count in counts)
