"""How alike two strings are."""

from collections import Counter


def edit_distance(first, second, swap=False):
    """Count the single character edits that turn one string into the other.

    Args:
        first: A string.
        second: Another string.
        swap: Whether exchanging two neighbouring characters counts as one edit
            instead of two.

    Returns:
        The number of insertions, deletions and substitutions.
    """
    if first == second:
        return 0
    before = None
    previous = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(second, start=1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if swap and i > 1 and j > 1 and a == second[j - 2] and b == first[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, previous = previous, row
    return previous[-1]


def common_prefix(strings):
    """Longest string that all the given strings start with."""
    if not strings:
        return ""
    shortest = min(strings, key=len)
    for index, character in enumerate(shortest):
        for other in strings:
            if other[index] != character:
                return shortest[:index]
    return shortest


def shingles(text, size=3):
    """The set of all substrings of a given size, after folding case and white space."""
    folded = " ".join(text.lower().split())
    return {folded[i:i + size] for i in range(max(1, len(folded) - size + 1))}


def jaccard(first, second, size=3):
    """Share of the shingles of two texts that occur in both of them.

    Returns:
        A number from 0.0 (nothing in common) to 1.0 (the same shingles).
    """
    left, right = shingles(first, size), shingles(second, size)
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def cosine(first, second):
    """Cosine of the angle between the word counts of two texts."""
    left = Counter(first.lower().split())
    right = Counter(second.lower().split())
    dot = sum(count * right[word] for word, count in left.items())
    if dot == 0:
        return 0.0
    norms = [sum(n * n for n in counts.values()) ** 0.5 for counts in (left, right)]
    return dot / (norms[0] * norms[1])


def closest(word, candidates, limit=3, cutoff=0.6):
    """Suggest the candidates that a misspelt word may have meant.

    Args:
        word: What was typed.
        candidates: The words that would have been accepted.
        limit: Greatest number of suggestions.
        cutoff: Least similarity, between 0 and 1, of a suggestion.

    Returns:
        Candidates in falling order of similarity, ties in alphabetical order.
    """
    scored = []
    for candidate in candidates:
        longest = max(len(word), len(candidate), 1)
        # The difference in length is a cheap lower bound of the distance.
        if 1 - abs(len(word) - len(candidate)) / longest < cutoff:
            continue
        score = 1 - edit_distance(word.lower(), candidate.lower(), swap=True) / longest
        if score >= cutoff:
            scored.append((-score, candidate))
    return [candidate for _, candidate in sorted(scored)[:limit]]
