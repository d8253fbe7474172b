package spanset;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A set of whole numbers, stored as ranges that neither overlap nor touch.
 */
public class SpanSet {
    /** From the start of each range to its end. */
    private final TreeMap<Long, Long> ranges = new TreeMap<Long, Long>();

    /**
     * Parses a list of ranges such as <code>1-3,7,10-12</code>.
     */
    public static SpanSet parse(String text) {
        SpanSet set = new SpanSet();
        for (String part : text.split(",")) {
            if (part.trim().length() > 0) {
                set.add(Span.parse(part));
            }
        }
        return set;
    }

    /**
     * Adds all numbers of a range.
     *
     * @return whether the set has changed
     */
    public boolean add(Span span) {
        if (span.length() == 0 || containsAll(span)) {
            return false;
        }
        long start = span.start;
        long end = span.end;
        Map.Entry<Long, Long> touching = ranges.floorEntry(end);
        // From right to left, so that each range is met before it is removed.
        while (touching != null && touching.getValue() >= span.start) {
            start = Math.min(start, touching.getKey());
            end = Math.max(end, touching.getValue());
            ranges.remove(touching.getKey());
            touching = ranges.floorEntry(end);
        }
        ranges.put(start, end);
        return true;
    }

    /**
     * Removes all numbers of a range.
     */
    public void remove(Span span) {
        if (span.length() == 0) {
            return;
        }
        Map.Entry<Long, Long> range = ranges.lowerEntry(span.end);
        while (range != null && range.getValue() > span.start) {
            ranges.remove(range.getKey());
            if (range.getKey() < span.start) {
                ranges.put(range.getKey(), span.start);
            }
            if (range.getValue() > span.end) {
                ranges.put(span.end, range.getValue());
            }
            range = ranges.lowerEntry(span.end);
        }
    }

    /**
     * Whether a number is in the set.
     */
    public boolean contains(long number) {
        Map.Entry<Long, Long> range = ranges.floorEntry(number);
        return range != null && number < range.getValue();
    }

    /**
     * Whether all numbers of a range are in the set.
     */
    public boolean containsAll(Span span) {
        Map.Entry<Long, Long> range = ranges.floorEntry(span.start);
        return range != null && span.end <= range.getValue();
    }

    /**
     * The parts of a range that are not in the set.
     */
    public List<Span> gaps(Span within) {
        List<Span> gaps = new ArrayList<Span>();
        long position = within.start;
        if (contains(position)) {
            position = ranges.floorEntry(position).getValue();
        }
        for (Map.Entry<Long, Long> range : ranges.tailMap(position).entrySet()) {
            if (range.getKey() >= within.end) {
                break;
            }
            gaps.add(new Span(position, range.getKey()));
            position = range.getValue();
        }
        if (position < within.end) {
            gaps.add(new Span(position, within.end));
        }
        return gaps;
    }

    /**
     * Merges ranges that are no further apart than a distance.
     *
     * @param spans in any order; the list is sorted in place
     */
    public static List<Span> coalesce(List<Span> spans, long distance) {
        Collections.sort(spans);
        List<Span> merged = new ArrayList<Span>();
        int i = 0;
        while (i < spans.size()) {
            long start = spans.get(i).start;
            long end = spans.get(i).end;
            do {
                end = Math.max(end, spans.get(i).end);
                i++;
            } while (i < spans.size() && spans.get(i).start - end <= distance);
            merged.add(new Span(start, end));
        }
        return merged;
    }

    /**
     * How many numbers are in the set.
     */
    public long count() {
        long count = 0;
        for (Map.Entry<Long, Long> range : ranges.entrySet())
            count += range.getValue() - range.getKey();
        return count;
    }
}
