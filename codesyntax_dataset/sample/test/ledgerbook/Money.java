package ledgerbook;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Currency;
import java.util.List;
import java.util.Locale;

/** An amount in a currency, counted in its smallest unit. Immutable. */
public final class Money implements Comparable<Money> {

    private final long units;
    private final Currency currency;

    public Money(long units, Currency currency) {
        this.units = units;
        this.currency = currency;
    }

    /**
     * Reads an amount such as {@code 1234.50 EUR}.
     *
     * @param text number and currency code, separated by a blank
     * @return the amount
     * @throws IllegalArgumentException if there are more decimals than the currency has
     */
    public static Money parse(String text) {
        String[] parts = text.trim().split("\\s+");
        if (parts.length != 2) {
            throw new IllegalArgumentException("expected an amount and a currency: " + text);
        }
        Currency currency = Currency.getInstance(parts[1].toUpperCase(Locale.ROOT));
        BigDecimal number = new BigDecimal(parts[0]).movePointRight(currency.getDefaultFractionDigits());
        try {
            return new Money(number.longValueExact(), currency);
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException("too many decimals for " + currency + ": " + text, e);
        }
    }

    /** Returns the number of cents, or whatever the smallest unit of the currency is called. */
    public long getUnits() {
        return units;
    }

    /**
     * Adds another amount of the same currency.
     *
     * @throws ArithmeticException if the sum is too large
     */
    public Money plus(Money other) {
        requireSameCurrency(other);
        return new Money(Math.addExact(units, other.units), currency);
    }

    /** Changes the sign of the amount. */
    public Money negate() {
        return new Money(Math.negateExact(units), currency);
    }

    /**
     * Takes a percentage of the amount, rounding half a unit to the even neighbour.
     *
     * @param percent the rate, 19 for 19 %
     */
    public Money percent(BigDecimal percent) {
        BigDecimal exact = BigDecimal.valueOf(units).multiply(percent).movePointLeft(2);
        return new Money(exact.setScale(0, RoundingMode.HALF_EVEN).longValueExact(), currency);
    }

    /**
     * Divides the amount by given weights without losing a unit.
     *
     * <p>What is left after rounding down goes to the first shares, one unit each.
     *
     * @param weights none negative, not all zero
     * @return as many amounts as there are weights; their sum is this amount
     */
    public List<Money> split(int... weights) {
        long total = 0;
        for (int weight : weights) {
            if (weight < 0) {
                throw new IllegalArgumentException("negative weight " + weight);
            }
            total += weight;
        }
        if (total == 0) {
            throw new IllegalArgumentException("all weights are zero");
        }
        long rest = units;
        long[] shares = new long[weights.length];
        for (int i = 0; i < weights.length; i++) {
            shares[i] = units * weights[i] / total;
            rest -= shares[i];
        }
        int sign = rest < 0 ? -1 : 1;
        for (int i = 0; rest != 0; i = (i + 1) % shares.length) {
            if (weights[i] > 0) {
                shares[i] += sign;
                rest -= sign;
            }
        }
        List<Money> result = new ArrayList<>(shares.length);
        for (long share : shares) {
            result.add(new Money(share, currency));
        }
        return result;
    }

    /** Refuses amounts in another currency. */
    private void requireSameCurrency(Money other) {
        if (!currency.equals(other.currency)) {
            throw new IllegalArgumentException("cannot combine " + currency + " and " + other.currency);
        }
    }

    /** Compares by amount; currencies have no order. */
    @Override
    public int compareTo(Money other) {
        requireSameCurrency(other);
        return Long.compare(units, other.units);
    }

    /** Two amounts are equal if number and currency are. */
    @Override
    public boolean equals(Object object) {
        if (this == object) {
            return true;
        }
        if (!(object instanceof Money)) {
            return false;
        }
        Money other = (Money) object;
        return units == other.units && currency.equals(other.currency);
    }

    /** Hash code that goes with equals. */
    @Override
    public int hashCode() {
        return 31 * Long.hashCode(units) + currency.hashCode();
    }

    /** Formats the amount the way {@link #parse} reads it. */
    @Override
    public String toString() {
        return BigDecimal.valueOf(units, currency.getDefaultFractionDigits()).toPlainString() + " " + currency;
    }
}
