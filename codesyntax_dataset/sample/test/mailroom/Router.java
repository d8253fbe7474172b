package mailroom;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Hands messages to those who want them. */
public class Router {
    private static final Logger LOG = Logger.getLogger(Router.class.getName());

    private static final class Rule {
        final String name;
        final Predicate<Message> condition;
        final Consumer<Message> handler;
        final boolean last;

        Rule(String name, Predicate<Message> condition, Consumer<Message> handler, boolean last) {
            this.name = name;
            this.condition = condition;
            this.handler = handler;
            this.last = last;
        }
    }

    private final List<Rule> rules = new ArrayList<>();
    private final Map<String, Integer> failures = new LinkedHashMap<>();
    private Consumer<Message> fallback;

    /** Sets what becomes of messages that no rule wants. */
    public Router otherwise(Consumer<Message> handler) {
        fallback = handler;
        return this;
    }

    /**
     * Adds a rule behind the others.
     *
     * @param name used in the log, and to remove the rule
     * @param condition which messages it is for, see {@link #condition}
     * @param last whether later rules do not see these messages
     */
    public Router rule(String name, String condition, Consumer<Message> handler, boolean last) {
        rules.add(new Rule(name, condition(condition), handler, last));
        return this;
    }

    /** Removes all rules of a name and returns whether there were any. */
    public boolean remove(String name) {
        boolean removed = rules.removeIf(rule -> rule.name.equals(name));
        if (removed) {
            failures.remove(name);
        }
        return removed;
    }

    /**
     * Hands a message to all rules it fits. A rule that throws does not keep others from working.
     *
     * @return the number of handlers that took the message
     */
    public int route(Message message) {
        int taken = 0;
        for (Rule rule : rules) {
            if (!rule.condition.test(message)) {
                continue;
            }
            try {
                rule.handler.accept(message);
                taken++;
            } catch (RuntimeException e) {
                failures.merge(rule.name, 1, Integer::sum);
                LOG.log(Level.WARNING, "rule " + rule.name + " failed", e);
            } finally {
                LOG.fine("rule " + rule.name + " has seen the message");
            }
            if (rule.last) {
                return taken;
            }
        }
        if (taken == 0 && fallback != null) {
            fallback.accept(message);
        }
        return taken;
    }

    /** Returns how often a rule has failed. */
    public int failuresOf(String name) {
        return failures.getOrDefault(name, 0);
    }

    /**
     * Understands a condition: terms such as {@code from=example.org}, {@code subject~invoice} and
     * {@code !automatic}, all of which must hold.
     *
     * @throws IllegalArgumentException for anything else
     */
    static Predicate<Message> condition(String text) {
        Predicate<Message> all = message -> true;
        for (String word : text.trim().split("\\s+")) {
            boolean negated = word.startsWith("!");
            Predicate<Message> term = term(negated ? word.substring(1) : word);
            all = all.and(negated ? term.negate() : term);
        }
        return all;
    }

    /** Understands a single term of a condition. */
    private static Predicate<Message> term(String text) {
        if (text.equals("automatic")) {
            return Message::isAutomatic;
        }
        final int tilde = text.indexOf('~');
        if (tilde > 0) {
            final String wanted = text.substring(tilde + 1).toLowerCase(Locale.ROOT);
            return new Predicate<Message>() {
                @Override
                public boolean test(Message message) {
                    String header = message.getHeader(text.substring(0, tilde));
                    return header != null && header.toLowerCase(Locale.ROOT).contains(wanted);
                }
            };
        }
        if (text.startsWith("from=")) {
            return message -> message.getSender() != null && message.getSender().isIn(text.substring(5));
        }
        throw new IllegalArgumentException("cannot understand the term " + text);
    }

    /** Lists the names that more than one rule has; {@link #remove} takes them all. */
    List<String> sharedNames() {
        List<String> names = new ArrayList<>();
        rules:
        for (int i = 1; i < rules.size(); i++) {
            String name = rules.get(i).name;
            for (Rule earlier : rules.subList(0, i)) {
                if (earlier.name.equals(name)) {
                    if (!names.contains(name)) {
                        names.add(name);
                    }
                    continue rules;
                }
            }
        }
        return names;
    }
}
