import java.math.BigDecimal;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.LongFunction;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.query.SqlFieldsQuery;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.client.SslMode;
import org.apache.ignite.configuration.ClientConfiguration;

/**
 * Fills caches of a test with objects as Java programs write them:
 * `IgniteFill HOST:PORT KEYS|- COMMAND CACHE FIRST COUNT [SIZE] [, COMMAND …]`, or `sql TEXT`.
 */
public final class IgniteFill {
    /** Only numbers: every row is as long as the others. */
    public static final class Numbers {
        public byte small;
        public short number;
        public int whole;
        public long large;
        public float single;
        public double exact;
        public boolean on;
        public char letter;
    }

    /** An object in an object. */
    public static final class Inner {
        public long id;
        public String label;
        public int[] sizes;
    }

    /** Something of everything. */
    public static final class Picture {
        public String name;
        public Inner metadata;
        public Inner again;
        public byte[] pixels;
        public float[] weights;
        public Date taken;
        public Timestamp kept;
        public UUID mark;
        public String[] tags;
        public Kind kind;
        public Integer votes;
    }

    /** What becomes no tensor. */
    public static final class Odd {
        public int whole;
        public Map<String, Integer> pairs;
        public BigDecimal price;
    }

    /** An enumeration. */
    public enum Kind { CAT, DOG, BIRD }

    /** A key of two parts. */
    public static final class Pair {
        public int group;
        public String member;
    }

    private IgniteFill() {
    }

    public static void main(String[] words) {
        ClientConfiguration configuration = new ClientConfiguration().setAddresses(words[0]);
        if (!words[1].equals("-")) {
            configuration.setUserName("ignite").setUserPassword("ignite").setSslMode(SslMode.REQUIRED)
                .setSslTrustAll(true)
                .setSslClientCertificateKeyStorePath(words[1] + "/server.p12")
                .setSslClientCertificateKeyStoreType("PKCS12")
                .setSslClientCertificateKeyStorePassword("only-for-tests")
                .setSslTrustCertificateKeyStorePath(words[1] + "/trusted.p12")
                .setSslTrustCertificateKeyStoreType("PKCS12")
                .setSslTrustCertificateKeyStorePassword("only-for-tests");
        }
        try (IgniteClient client = Ignition.startClient(configuration)) {
            String[] rest = Arrays.copyOfRange(words, 2, words.length);
            for (int at = 0; at < rest.length;) {
                int end = at;
                while (end < rest.length && !rest[end].equals(",")) {
                    end++;
                }
                run(client, Arrays.copyOfRange(rest, at, end));
                at = end + 1;
            }
        }
    }

    private static void run(IgniteClient client, String[] words) {
        if (words[0].equals("sql")) {
            client.query(new SqlFieldsQuery(words[1])).getAll();
            return;
        }
        long first = Long.parseLong(words[2]);
        long count = Long.parseLong(words[3]);
        int size = words.length > 4 ? Integer.parseInt(words[4]) : 0;
        ClientCache<Object, Object> cache = client.getOrCreateCache(words[1]);
        switch (words[0]) {
            case "numbers" -> put(cache, first, count, 1000, key -> key, IgniteFill::numbers);
            case "pictures" -> put(cache, first, count, 200, key -> key, IgniteFill::picture);
            case "blobs" -> put(cache, first, count, 4, key -> key, key -> blob(key, size));
            case "longs" -> put(cache, first, count, 1000, key -> key, key -> key * 3);
            case "words" -> put(cache, first, count, 1000, key -> "key-" + key, key -> "größe " + key);
            case "pairs" -> put(cache, first, count, 500, IgniteFill::pair, key -> (double) key);
            case "odd" -> put(cache, first, count, 100, key -> key, IgniteFill::odd);
            case "remove" -> {
                for (long key = first; key < first + count; key++) {
                    cache.remove(key);
                }
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void put(ClientCache<Object, Object> cache, long first, long count, int atOnce,
        LongFunction<Object> keyOf, LongFunction<Object> valueOf) {
        Map<Object, Object> some = new HashMap<>();
        for (long key = first; key < first + count; key++) {
            some.put(keyOf.apply(key), valueOf.apply(key));
            if (some.size() == atOnce || key == first + count - 1) {
                cache.putAll(some);
                some.clear();
            }
        }
    }

    private static Object numbers(long key) {
        Numbers made = new Numbers();
        made.small = (byte) key;
        made.number = (short) key;
        made.whole = (int) (key * 7);
        made.large = key << 20;
        made.single = key / 4f;
        made.exact = key / 8d;
        made.on = key % 2 == 1;
        made.letter = (char) ('a' + key % 26);
        return made;
    }

    private static Object picture(long key) {
        Picture made = new Picture();
        made.name = "kitten-" + key + ".png";
        made.metadata = new Inner();
        made.metadata.id = key * 10;
        made.metadata.label = "ball of fur".substring(0, (int) (key % 12));
        made.metadata.sizes = new int[] {800, (int) key};
        made.again = made.metadata;
        made.pixels = blob(key, 6);
        made.weights = new float[(int) (key % 4)];
        Arrays.fill(made.weights, key / 2f);
        made.taken = new Date(1_000_000 + key);
        made.kept = new Timestamp(2_000_000 + key);
        made.kept.setNanos(made.kept.getNanos() + 5);
        made.mark = new UUID(key, key + 1);
        made.tags = key % 2 == 0 ? new String[] {"even", "n" + key} : new String[0];
        made.kind = Kind.values()[(int) (key % 3)];
        made.votes = key % 5 == 4 ? null : Integer.valueOf((int) key);
        return made;
    }

    private static byte[] blob(long key, int size) {
        byte[] made = new byte[size];
        for (int at = 0; at < Math.min(size, 64); at++) {
            made[at] = (byte) (key + at);
        }
        return made;
    }

    private static Object odd(long key) {
        Odd made = new Odd();
        made.whole = (int) key;
        made.pairs = new HashMap<>();
        made.price = new BigDecimal("1.5");
        return made;
    }

    private static Object pair(long key) {
        Pair made = new Pair();
        made.group = (int) (key % 10);
        made.member = "m" + key;
        return made;
    }
}
