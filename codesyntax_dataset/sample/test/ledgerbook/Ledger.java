package ledgerbook;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Reader;
import java.time.LocalDate;
import java.time.format.DateTimeParseException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** All accounts of a bank. */
public class Ledger {

    private final Map<String, Account> accounts = new LinkedHashMap<>();
    private final Lock lock = new ReentrantLock();
    private final Money zero;

    public Ledger(Money zero) {
        this.zero = zero;
    }

    /**
     * Opens an account.
     *
     * @throws IllegalArgumentException if the number is in use
     */
    public Account open(String number) {
        Account account = new Account(number, zero).withLimit(zero);
        if (accounts.putIfAbsent(number, account) != null) {
            throw new IllegalArgumentException("account " + number + " exists already");
        }
        return account;
    }

    /**
     * Finds an account by its number.
     *
     * @return never null
     */
    public Account account(String number) {
        Account account = accounts.get(number);
        if (account == null) {
            throw new IllegalArgumentException("no account " + number);
        }
        return account;
    }

    /**
     * Moves money from one account to another. Either both entries are booked or none.
     *
     * @param from number of the account to charge
     * @param to number of the account to credit
     * @param amount more than zero
     */
    public void transfer(String from, String to, Money amount, LocalDate date) {
        if (amount.getUnits() <= 0) {
            throw new IllegalArgumentException("amount must be positive, is " + amount);
        }
        Account source = account(from);
        Account target = account(to);
        lock.lock();
        try {
            source.book(date, amount.negate(), "to " + to);
            try {
                target.book(date, amount, "from " + from);
            } catch (IllegalStateException e) {
                source.book(date, amount, "returned: " + e.getMessage());
                throw e;
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Books the lines of a file: date, account, amount and text, separated by semicolons.
     *
     * <p>Empty lines and lines that begin with # are skipped.
     *
     * @param reader closed in any case
     * @return the number of booked lines
     * @throws IOException if a line is malformed; the lines before it stay booked
     */
    public int load(Reader reader) throws IOException {
        BufferedReader lines = new BufferedReader(reader);
        int number = 0;
        int booked = 0;
        try {
            String line;
            while ((line = lines.readLine()) != null) {
                number++;
                if (line.trim().isEmpty() || line.startsWith("#")) {
                    continue;
                }
                String[] fields = line.split(";", 4);
                LocalDate date = LocalDate.parse(fields[0].trim());
                account(fields[1].trim()).book(date, Money.parse(fields[2]), fields.length > 3 ? fields[3] : "");
                booked++;
            }
        } catch (DateTimeParseException e) {
            throw new IOException("line " + number + ": bad date: " + e.getParsedString(), e);
        } catch (ArrayIndexOutOfBoundsException e) {
            throw new IOException("line " + number + ": fewer than three fields", e);
        } finally {
            lines.close();
        }
        return booked;
    }

    /** Adds up the balances of some accounts. */
    public Money total(Collection<String> numbers) {
        return numbers.stream().map(this::account).map(Account::balance).reduce(zero, Money::plus);
    }

    /**
     * Renders a statement of an account for a month.
     *
     * @param month from 1 to 12
     * @return lines of date, amount and text between the opening and the closing balance
     */
    public String statement(String number, int year, int month) {
        Account account = account(number);
        LocalDate first = LocalDate.of(year, month, 1);
        LocalDate last = first.plusMonths(1).minusDays(1);
        StringBuilder out = new StringBuilder();
        out.append(String.format("Account %s, %02d/%d%n", number, month, year));
        out.append(String.format("%-10s %15s%n", "before", account.balanceOn(first.minusDays(1))));
        for (Account.Entry entry : account.entriesBetween(first, last)) {
            out.append(String.format("%-10s %15s  %s%n", entry.date, entry.amount, entry.text));
        }
        out.append(String.format("%-10s %15s%n", "after", account.balanceOn(last)));
        return out.toString();
    }
}
