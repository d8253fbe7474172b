package netretry;

import java.io.IOException;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Decides whether and when a failed call is made again. */
public class RetryPolicy {
    private static final Logger LOG = Logger.getLogger(RetryPolicy.class.getName());

    private int maxAttempts = 3;
    private long firstDelayMillis = 200;
    private long maxDelayMillis = TimeUnit.SECONDS.toMillis(30);
    private final Random random;

    public RetryPolicy(Random random) {
        this.random = random;
    }

    /** Sets how often a call is made at most, the first time included. */
    public RetryPolicy maxAttempts(int maxAttempts) {
        if (maxAttempts < 1) {
            throw new IllegalArgumentException("maxAttempts: " + maxAttempts);
        }
        this.maxAttempts = maxAttempts;
        return this;
    }

    /** Sets the delay before the second attempt and the upper bound of all delays. */
    public RetryPolicy delays(long first, long max, TimeUnit unit) {
        firstDelayMillis = unit.toMillis(first);
        maxDelayMillis = unit.toMillis(max);
        return this;
    }

    /**
     * Computes how long to wait: twice as long after each attempt, minus up to half of it by chance.
     *
     * @param attempt number of attempts made so far
     * @return milliseconds
     */
    long delayAfter(int attempt) {
        // A shift by 63 or more would wrap around.
        long exponential = attempt > 30 ? maxDelayMillis : firstDelayMillis << (attempt - 1);
        long delay = Math.min(exponential, maxDelayMillis);
        return delay - (long) (random.nextDouble() * delay / 2);
    }

    /** Tells whether another attempt may go better. */
    static boolean isTransient(Exception e) {
        if (e instanceof HttpStatusException) {
            int status = ((HttpStatusException) e).getStatus();
            return status == 429 || status >= 500 && status != 501;
        }
        return e instanceof IOException;
    }

    /**
     * Makes a call until it succeeds, fails for good or the attempts are used up.
     *
     * @param description what is called, for the log
     * @return what the call returned
     * @throws Exception what the last attempt threw
     */
    public <T> T call(String description, Callable<T> call) throws Exception {
        int attempt = 0;
        while (true) {
            attempt++;
            try {
                return call.call();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw e;
            } catch (Exception e) {
                if (attempt >= maxAttempts || !isTransient(e)) {
                    throw e;
                }
                long delay = delayAfter(attempt);
                LOG.log(Level.INFO, description + " failed, next attempt in " + delay + " ms", e);
                sleep(delay);
            }
        }
    }

    /** Waits; replaced in tests. */
    protected void sleep(long millis) throws InterruptedException {
        if (millis > 0) {
            Thread.sleep(millis);
        }
    }
}
