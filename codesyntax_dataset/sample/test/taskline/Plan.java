package taskline;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** A set of tasks that depend on each other. */
public class Plan {
    private final Map<String, Task> tasks = new LinkedHashMap<>();

    /**
     * Adds a task.
     *
     * @throws IllegalArgumentException if there is one with this name
     */
    public Task add(String name, Runnable action) {
        if (tasks.containsKey(name)) {
            throw new IllegalArgumentException("two tasks are called " + name);
        }
        Task task = new Task(name, action);
        tasks.put(name, task);
        return task;
    }

    /**
     * Checks that all prerequisites exist and that no task waits for itself.
     *
     * @throws IllegalStateException naming the first problem
     */
    public void validate() {
        for (Task task : tasks.values()) {
            for (String name : task.getPrerequisites()) {
                if (!tasks.containsKey(name)) {
                    throw new IllegalStateException(task.getName() + " needs " + name + ", which does not exist");
                }
            }
        }
        if (order().size() < tasks.size()) {
            List<String> stuck = new ArrayList<>(tasks.keySet());
            for (Task task : order()) {
                stuck.remove(task.getName());
            }
            throw new IllegalStateException("tasks wait for each other: " + stuck);
        }
    }

    /**
     * Sorts the tasks so that each one comes after its prerequisites (Kahn's algorithm).
     *
     * @return without the tasks of a cycle and those that need them
     */
    List<Task> order() {
        Map<String, Integer> open = new HashMap<>();
        Map<String, List<Task>> dependents = new HashMap<>();
        Deque<Task> ready = new ArrayDeque<>();
        for (Task task : tasks.values()) {
            int count = task.getPrerequisites().size();
            open.put(task.getName(), count);
            if (count == 0) {
                ready.add(task);
            }
            for (String name : task.getPrerequisites()) {
                dependents.computeIfAbsent(name, key -> new ArrayList<>()).add(task);
            }
        }
        List<Task> sorted = new ArrayList<>();
        while (!ready.isEmpty()) {
            Task task = ready.remove();
            sorted.add(task);
            if (!dependents.containsKey(task.getName())) {
                continue;
            }
            for (Task dependent : dependents.get(task.getName())) {
                int left = open.merge(dependent.getName(), -1, Integer::sum);
                if (left == 0) {
                    ready.add(dependent);
                }
            }
        }
        return sorted;
    }

    /**
     * Runs all tasks one after the other. Tasks that need a failed one are left out.
     *
     * @return the tasks that were not done
     */
    public List<Task> run() {
        validate();
        Set<String> done = new HashSet<>();
        List<Task> left = new ArrayList<>();
        for (Task task : order()) {
            if (done.containsAll(task.getPrerequisites()) && task.run()) {
                done.add(task.getName());
            } else {
                left.add(task);
            }
        }
        return left;
    }

    /**
     * Runs tasks without prerequisites at the same time.
     *
     * @param threads how many at most
     * @return whether all of them ended in time
     */
    public boolean runIndependent(int threads, long timeout, TimeUnit unit) throws InterruptedException {
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try {
            for (final Task task : tasks.values()) {
                if (task.getPrerequisites().isEmpty()) {
                    executor.execute(new Runnable() {
                        @Override
                        public void run() {
                            task.run();
                        }
                    });
                }
            }
        } finally {
            executor.shutdown();
        }
        return executor.awaitTermination(timeout, unit);
    }

    /** Writes the plan as a graph in the DOT language. */
    public String toDot() {
        StringBuilder dot = new StringBuilder("digraph plan {\n");
        for (Task task : tasks.values()) {
            String colour = task.getState() == Task.State.FAILED ? "red" : "black";
            dot.append("  \"").append(task.getName()).append("\" [color=").append(colour).append("];\n");
            for (String name : task.getPrerequisites()) {
                dot.append("  \"" + name + "\" -> \"" + task.getName() + "\";\n");
            }
        }
        return dot.append("}\n").toString();
    }
}
