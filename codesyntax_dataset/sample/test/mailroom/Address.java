package mailroom;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A mail address with an optional name. */
public final class Address {
    private final String name;
    private final String mailbox;

    public Address(String name, String mailbox) {
        this.name = name;
        this.mailbox = mailbox;
    }

    /**
     * Parses {@code Jane Doe <jane@example.org>} or {@code jane@example.org}.
     *
     * @throws IllegalArgumentException if there is no address in the text
     */
    public static Address parse(String text) {
        String name = null;
        String mailbox = text.trim();
        int open = mailbox.lastIndexOf('<');
        if (open >= 0 && mailbox.endsWith(">")) {
            name = unquote(mailbox.substring(0, open).trim());
            mailbox = mailbox.substring(open + 1, mailbox.length() - 1).trim();
        }
        int at = mailbox.indexOf('@');
        if (at <= 0 || at != mailbox.lastIndexOf('@') || at == mailbox.length() - 1) {
            throw new IllegalArgumentException("not a mail address: " + text);
        }
        return new Address(name == null || name.isEmpty() ? null : name, mailbox);
    }

    /** Parses addresses that are separated by commas, except commas in quotes. */
    public static List<Address> parseList(String text) {
        List<Address> addresses = new ArrayList<>();
        boolean quoted = false;
        int start = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"') {
                quoted = !quoted;
            } else if (c == ',' && !quoted) {
                addresses.add(parse(text.substring(start, i)));
                start = i + 1;
            }
        }
        if (!text.substring(start).trim().isEmpty()) {
            addresses.add(parse(text.substring(start)));
        }
        return addresses;
    }

    /** Removes the quotes around a name. */
    private static String unquote(String text) {
        if (text.length() >= 2 && text.startsWith("\"") && text.endsWith("\"")) {
            return text.substring(1, text.length() - 1).replace("\\\"", "\"");
        }
        return text;
    }

    /** Returns the address without the name. */
    public String getMailbox() {
        return mailbox;
    }

    /** Returns what follows the at sign, in lower case. */
    public String getDomain() {
        return mailbox.substring(mailbox.indexOf('@') + 1).toLowerCase(Locale.ROOT);
    }

    /** Tells whether the address belongs to a domain or to one below it. */
    public boolean isIn(String domain) {
        String own = getDomain();
        return own.equals(domain) || own.endsWith("." + domain);
    }

    /** Upper and lower case make no difference, nor do names. */
    @Override
    public boolean equals(Object object) {
        return object instanceof Address && ((Address) object).mailbox.equalsIgnoreCase(mailbox);
    }

    /** Computes the hash code of the address in lower case. */
    @Override
    public int hashCode() {
        return mailbox.toLowerCase(Locale.ROOT).hashCode();
    }

    /** Formats the address for a header. */
    @Override
    public String toString() {
        if (name == null) {
            return mailbox;
        }
        boolean plain = name.matches("[\\w .-]+");
        return (plain ? name : '"' + name.replace("\"", "\\\"") + '"') + " <" + mailbox + ">";
    }
}
