package spanset;

/**
 * A range of whole numbers, the upper end excluded.
 */
public final class Span implements Comparable<Span> {
    final long start;
    final long end;

    public Span(long start, long end) {
        if (start > end) {
            throw new IllegalArgumentException("start " + start + " is after end " + end);
        }
        this.start = start;
        this.end = end;
    }

    /**
     * Parses a range in the form <code>3-7</code>, or a single number.
     *
     * @param text both ends included, none negative
     * @return the range
     */
    public static Span parse(String text) {
        int dash = text.indexOf('-');
        try {
            if (dash < 0) {
                long number = Long.parseLong(text.trim());
                return new Span(number, number + 1);
            }
            long first = Long.parseLong(text.substring(0, dash).trim());
            long last = Long.parseLong(text.substring(dash + 1).trim());
            return new Span(first, last + 1);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("not a range: " + text, e);
        }
    }

    /**
     * Number of whole numbers in the range.
     */
    public long length() {
        return end - start;
    }

    /**
     * Whether two ranges have a number in common.
     */
    public boolean overlaps(Span other) {
        return start < other.end && other.start < end;
    }

    /**
     * The numbers that are in both ranges.
     *
     * @return null if there are none
     */
    public Span intersect(Span other) {
        long from = Math.max(start, other.start);
        long to = Math.min(end, other.end);
        return from < to ? new Span(from, to) : null;
    }

    /**
     * Moves the range without changing its length.
     *
     * @throws ArithmeticException if it would leave the range of long
     */
    public Span shift(long distance) {
        return new Span(Math.addExact(start, distance), Math.addExact(end, distance));
    }

    /**
     * Orders ranges by their start, then by their end.
     */
    @Override
    public int compareTo(Span other) {
        int byStart = Long.compare(start, other.start);
        return byStart != 0 ? byStart : Long.compare(end, other.end);
    }

    /**
     * Two ranges are equal if they hold the same numbers.
     */
    @Override
    public boolean equals(Object object) {
        if (!(object instanceof Span)) {
            return false;
        }
        Span other = (Span) object;
        return start == other.start && end == other.end;
    }

    /** Hash code that goes with equals. */
    @Override
    public int hashCode() {
        return (int) (start * 31 + end);
    }
}
