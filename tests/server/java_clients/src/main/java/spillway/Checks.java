package spillway;

import java.util.Arrays;
import java.util.Objects;
import java.util.Random;

/** What a session expects: the first wrong answer, or exception, ends the program with one line. */
final class Checks {
    private static int passed = 0;
    private static String last = "the start";

    private Checks() {}

    /** Before there is a client: the threads of one go on when a session throws, and spymemcached logs what it does. */
    static void begin() {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SLF4JLogger");
        Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> {
            Throwable first = failure;
            while (first.getCause() != null) {
                first = first.getCause();
            }
            System.err.printf("after %s: %s%n", last, first);
            System.exit(1);
        });
    }

    static void equal(String what, Object expected, Object got) {
        boolean same = expected instanceof byte[] bytes && got instanceof byte[] others ? Arrays.equals(bytes, others) : Objects.equals(expected, got);
        if (!same) {
            System.err.printf("%s: %.200s was expected, %.200s came%n", what, expected, got);
            System.exit(1);
        }
        passed++;
        last = what;
    }

    static void holds(String what, boolean holds) {
        equal(what, true, holds);
    }

    /** Bytes that no client makes fewer by compression. */
    static byte[] large() {
        byte[] value = new byte[900_000];
        new Random(1).nextBytes(value);
        return value;
    }

    static void done() {
        System.out.printf("%d checks passed%n", passed);
    }
}
