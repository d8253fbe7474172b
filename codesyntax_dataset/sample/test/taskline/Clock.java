package taskline;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** A clock for tests: time passes only when told, and alarms go off in order. */
public class Clock {
    private static final class Alarm {
        final long due;
        final Runnable action;

        Alarm(long due, Runnable action) {
            this.due = due;
            this.action = action;
        }
    }

    private final List<Alarm> alarms = new ArrayList<>();
    private long now;

    /** Returns the number of milliseconds since the start. */
    public long now() {
        return now;
    }

    /** Sets an alarm; one that is due at the same time as others goes off after them. */
    public void after(long delay, Runnable action) {
        Alarm alarm = new Alarm(now + delay, action);
        int place = alarms.size();
        while (place > 0 && alarms.get(place - 1).due > alarm.due) {
            place--;
        }
        alarms.add(place, alarm);
    }

    /** Repeats an action until it returns false. */
    public void every(final long period, final java.util.function.BooleanSupplier action) {
        after(period, new Runnable() {
            @Override
            public void run() {
                if (action.getAsBoolean()) {
                    after(period, this);
                }
            }
        });
    }

    /**
     * Lets time pass.
     *
     * @param millis how much
     * @return the number of alarms that went off
     */
    public int advance(long millis) {
        long end = now + millis;
        int count = 0;
        while (!alarms.isEmpty() && alarms.get(0).due <= end) {
            Alarm alarm = alarms.remove(0);
            now = alarm.due;
            alarm.action.run();
            count++;
        }
        now = end;
        return count;
    }

    /** Removes all alarms of an action. */
    public boolean cancel(Runnable action) {
        boolean found = false;
        for (Iterator<Alarm> it = alarms.iterator(); it.hasNext();) {
            if (it.next().action == action) {
                it.remove();
                found = true;
            }
        }
        return found;
    }

    /**
     * Parses a duration such as {@code 1h30m}, {@code 45s} or {@code 200ms}.
     *
     * @return milliseconds
     */
    public static long parseDuration(String text) {
        long total = 0;
        int i = 0;
        while (i < text.length()) {
            int start = i;
            while (i < text.length() && Character.isDigit(text.charAt(i))) {
                i++;
            }
            int unitStart = i;
            while (i < text.length() && Character.isLetter(text.charAt(i))) {
                i++;
            }
            if (start == unitStart || unitStart == i) {
                throw new IllegalArgumentException("expected a number and a unit at " + start + " in " + text);
            }
            long number = Long.parseLong(text.substring(start, unitStart));
            switch (text.substring(unitStart, i)) {
                case "h":
                    total += number * 3_600_000;
                    break;
                case "m":
                    total += number * 60_000;
                    break;
                case "s":
                    total += number * 1_000;
                    break;
                case "ms":
                    total += number;
                    break;
                default:
                    throw new IllegalArgumentException("unknown unit in " + text);
            }
        }
        return total;
    }
}
