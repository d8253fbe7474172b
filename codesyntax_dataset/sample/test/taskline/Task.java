package taskline;

import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;

/** Something to do, with what must be done before. */
public class Task {
    /** How far a task has come. */
    public enum State { WAITING, RUNNING, DONE, FAILED }

    private final String name;
    private final Runnable action;
    private final Set<String> prerequisites = new LinkedHashSet<>();
    private volatile State state = State.WAITING;
    private Throwable failure;
    private long nanos;

    public Task(String name, Runnable action) {
        this.name = name;
        this.action = action;
    }

    /** Adds the names of tasks that must be done before this one. */
    public Task after(String... names) {
        Collections.addAll(prerequisites, names);
        return this;
    }

    /** Returns the name, which is unique within a plan. */
    public String getName() {
        return name;
    }

    /** Returns the names of the tasks to be done before. */
    public Set<String> getPrerequisites() {
        return Collections.unmodifiableSet(prerequisites);
    }

    /** Returns how far the task has come. */
    public State getState() {
        return state;
    }

    /**
     * Runs the task in the current thread, at most once.
     *
     * @return whether it succeeded
     */
    boolean run() {
        synchronized (this) {
            if (state != State.WAITING) {
                throw new IllegalStateException(name + " is " + state);
            }
            state = State.RUNNING;
        }
        long start = System.nanoTime();
        try {
            action.run();
            state = State.DONE;
        } catch (RuntimeException | Error e) {
            failure = e;
            state = State.FAILED;
        } finally {
            nanos = System.nanoTime() - start;
        }
        return state == State.DONE;
    }

    /** Describes the task in one line. */
    public String describe() {
        switch (state) {
            case WAITING:
                return prerequisites.isEmpty() ? name + " is ready" : name + " waits for " + prerequisites;
            case RUNNING:
                return name + " is running";
            case FAILED:
                return name + " failed: " + failure;
            default:
                return String.format("%s took %.1f ms", name, nanos / 1e6);
        }
    }
}
