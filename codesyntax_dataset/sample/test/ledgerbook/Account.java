package ledgerbook;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** An account with its entries, in the order in which they were booked. */
public class Account {

    /** One line of an account. */
    public static final class Entry {
        final LocalDate date;
        final Money amount;
        final String text;

        Entry(LocalDate date, Money amount, String text) {
            this.date = date;
            this.amount = amount;
            this.text = text;
        }
    }

    private final String number;
    private final Money zero;
    private final List<Entry> entries = new ArrayList<>();
    private Money limit;
    private boolean closed;

    public Account(String number, Money zero) {
        this.number = number;
        this.zero = zero;
    }

    /** Returns the number that identifies the account. */
    public String getNumber() {
        return number;
    }

    /**
     * Sets how far the account may be overdrawn.
     *
     * @param limit the lowest balance allowed, or null for no limit
     * @return this account
     */
    public Account withLimit(Money limit) {
        this.limit = limit;
        return this;
    }

    /** Adds up all entries. */
    public synchronized Money balance() {
        Money sum = zero;
        for (Entry entry : entries) {
            sum = sum.plus(entry.amount);
        }
        return sum;
    }

    /**
     * Computes the balance at the end of a day.
     *
     * @param day entries with this date count, too
     */
    public synchronized Money balanceOn(LocalDate day) {
        Money sum = zero;
        for (Entry entry : entries) {
            if (!entry.date.isAfter(day)) {
                sum = sum.plus(entry.amount);
            }
        }
        return sum;
    }

    /**
     * Books an entry.
     *
     * @param date the day on which it counts
     * @param amount negative for money that leaves the account
     * @param text what it is for
     * @throws IllegalStateException if the account is closed or would be overdrawn
     */
    public void book(LocalDate date, Money amount, String text) {
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException("account " + number + " is closed");
            }
            Money after = balance().plus(amount);
            if (limit != null && amount.getUnits() < 0 && after.compareTo(limit) < 0) {
                throw new IllegalStateException(
                        String.format("account %s: %s would leave %s, limit is %s", number, amount, after, limit));
            }
            entries.add(new Entry(date, amount, text));
        }
    }

    /** Closes the account for good; its balance must be zero. */
    public synchronized void close() {
        if (balance().compareTo(zero) != 0) {
            throw new IllegalStateException("account " + number + " still has " + balance());
        }
        closed = true;
    }

    /** Lists the entries between two days, both included. */
    public synchronized List<Entry> entriesBetween(LocalDate from, LocalDate to) {
        List<Entry> found = new ArrayList<>();
        for (Entry entry : entries) {
            if (entry.date.isBefore(from) || entry.date.isAfter(to)) {
                continue;
            }
            found.add(entry);
        }
        return Collections.unmodifiableList(found);
    }

    /**
     * Checks the two check digits of an international account number.
     *
     * @param iban the number; blanks are ignored
     * @return whether letters and digits are in place and the remainder is right
     */
    public static boolean isValidIban(String iban) {
        String compact = iban.replace(" ", "").toUpperCase();
        if (compact.length() < 5 || compact.length() > 34) {
            return false;
        }
        String turned = compact.substring(4) + compact.substring(0, 4);
        int remainder = 0;
        for (int i = 0; i < turned.length(); i++) {
            int value = Character.digit(turned.charAt(i), 36);
            if (value < 0) {
                return false;
            }
            // Letters count for two digits: A is 10, Z is 35.
            remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
        }
        return remainder == 1;
    }
}
