package mailroom;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** A message of headers and text. */
public class Message {
    private final Map<String, List<String>> headers = new LinkedHashMap<>();
    private final StringBuilder body = new StringBuilder();

    /**
     * Parses the source of a message.
     *
     * <p>Header lines that begin with a blank go on with the header before them.
     *
     * @throws IllegalArgumentException if a header has no colon
     */
    public static Message parse(String source) {
        Message message = new Message();
        String[] lines = source.split("\r?\n", -1);
        String name = null;
        StringBuilder value = new StringBuilder();
        int i = 0;
        while (i < lines.length && !lines[i].isEmpty()) {
            String line = lines[i++];
            if (name != null && Character.isWhitespace(line.charAt(0))) {
                value.append(' ').append(line.trim());
                continue;
            }
            if (name != null) {
                message.addHeader(name, value.toString());
            }
            int colon = line.indexOf(':');
            if (colon <= 0) {
                throw new IllegalArgumentException("line " + i + " is no header: " + line);
            }
            name = line.substring(0, colon).trim();
            value.setLength(0);
            value.append(line.substring(colon + 1).trim());
        }
        if (name != null) {
            message.addHeader(name, value.toString());
        }
        for (i++; i < lines.length; i++) {
            message.appendLine(lines[i]);
        }
        return message;
    }

    /** Adds a header; there may be several of the same name. */
    public Message addHeader(String name, String value) {
        headers.computeIfAbsent(name.toLowerCase(Locale.ROOT), key -> new ArrayList<>()).add(value);
        return this;
    }

    /** Replaces all headers of a name by a single one. */
    public Message setHeader(String name, String value) {
        headers.put(name.toLowerCase(Locale.ROOT), new ArrayList<>(Collections.singletonList(value)));
        return this;
    }

    /** Returns the first header of a name, or null. */
    public String getHeader(String name) {
        List<String> values = headers.get(name.toLowerCase(Locale.ROOT));
        return values == null ? null : values.get(0);
    }

    /** Appends a line to the text. */
    public Message appendLine(String line) {
        if (body.length() > 0) {
            body.append('\n');
        }
        body.append(line);
        return this;
    }

    /** Returns the text. */
    public String getBody() {
        return body.toString();
    }

    /** Returns the sender, or null if the header is missing or malformed. */
    public Address getSender() {
        String from = getHeader("From");
        if (from == null) {
            return null;
        }
        try {
            return Address.parse(from);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    /** Returns everybody the message is addressed to, nobody twice. */
    public List<Address> getRecipients() {
        List<Address> recipients = new ArrayList<>();
        for (String name : new String[] {"to", "cc", "bcc"}) {
            if (!headers.containsKey(name)) {
                continue;
            }
            for (String header : headers.get(name)) {
                for (Address address : Address.parseList(header)) {
                    if (!recipients.contains(address)) {
                        recipients.add(address);
                    }
                }
            }
        }
        return recipients;
    }

    /**
     * Begins an answer to the message: subject, recipient and quoted text.
     *
     * @param author who answers
     */
    public Message reply(Address author) {
        String subject = getHeader("Subject");
        if (subject == null) {
            subject = "";
        } else if (subject.regionMatches(true, 0, "re:", 0, 3)) {
            subject = subject.substring(3).trim();
        }
        String to = getHeader("Reply-To");
        Message answer = new Message();
        answer.setHeader("From", author.toString());
        answer.setHeader("To", to != null ? to : getHeader("From"));
        answer.setHeader("Subject", "Re: " + subject);
        if (getHeader("Message-ID") != null) {
            answer.setHeader("In-Reply-To", getHeader("Message-ID"));
        }
        for (String line : getBody().split("\n")) {
            answer.appendLine(line.startsWith(">") ? ">" + line : "> " + line);
        }
        return answer;
    }

    /** Tells whether a program has sent the message, so that nobody should answer it by a program. */
    public boolean isAutomatic() {
        String submitted = getHeader("Auto-Submitted");
        if (submitted != null && !submitted.equalsIgnoreCase("no")) {
            return true;
        }
        String precedence = getHeader("Precedence");
        if ("bulk".equalsIgnoreCase(precedence) || "list".equalsIgnoreCase(precedence)) {
            return true;
        }
        Address sender = getSender();
        return sender == null || sender.getMailbox().toLowerCase(Locale.ROOT).startsWith("mailer-daemon@");
    }

    /** Formats the message the way {@link #parse} reads it. */
    @Override
    public String toString() {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, List<String>> header : headers.entrySet()) {
            for (String value : header.getValue()) {
                out.append(header.getKey()).append(": ").append(value).append('\n');
            }
        }
        return out.append('\n').append(body).toString();
    }
}
