package spillway;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;

/** Sessions of spymemcached, by the text and the binary protocol. Spymemcached HOST PORT [USER PASSWORD] */
public final class Spymemcached {
    private static final int MANY = 5_000;

    private Spymemcached() {}

    public static void main(String[] words) throws Exception {
        Checks.begin();
        String address = words[0] + ":" + words[1];
        // spymemcached says who it is by SASL alone, which only the binary protocol has.
        boolean hasUser = words.length == 4;
        for (var protocol : ConnectionFactoryBuilder.Protocol.values()) {
            boolean isBinary = protocol == ConnectionFactoryBuilder.Protocol.BINARY;
            if (hasUser && !isBinary) {
                continue;
            }
            var builder = new ConnectionFactoryBuilder().setProtocol(protocol).setOpTimeout(20_000);
            if (hasUser) {
                builder.setAuthDescriptor(new AuthDescriptor(new String[] {"PLAIN"}, new PlainCallbackHandler(words[2], words[3])));
            }
            MemcachedClient client = new MemcachedClient(builder.build(), AddrUtil.getAddresses(address));
            session(client, isBinary);
            client.shutdown();
        }
        Checks.done();
    }

    private static void session(MemcachedClient client, boolean isBinary) throws Exception {
        Checks.holds("flush", client.flush().get());
        Checks.equal("get of nothing", null, client.get("key"));
        Checks.holds("set", client.set("key", 100, "value").get());
        Checks.equal("get", "value", client.get("key"));
        Checks.holds("add of what is there", !client.add("key", 100, "other").get());
        Checks.holds("add", client.add("new", 100, 12345L).get());
        Checks.equal("a number", 12345L, client.get("new"));
        Checks.holds("replace", client.replace("new", 100, "text").get());
        Checks.holds("replace of nothing", !client.replace("none", 100, "text").get());
        CASValue<Object> found = client.gets("new");
        Checks.equal("gets", "text", found.getValue());
        Checks.holds("append", client.append(found.getCas(), "new", " behind").get());
        Checks.holds("prepend", client.prepend(client.gets("new").getCas(), "new", "before ").get());
        Checks.equal("both", "before text behind", client.get("new"));
        Checks.equal("cas of before", CASResponse.EXISTS, client.cas("new", found.getCas(), "x"));
        Checks.equal("cas", CASResponse.OK, client.cas("new", client.gets("new").getCas(), "y"));
        Checks.equal("cas of nothing", CASResponse.NOT_FOUND, client.cas("none", 1, "x"));
        Checks.equal("incr that creates", 7L, client.incr("number", 3, 7));
        Checks.equal("incr", 10L, client.incr("number", 3));
        Checks.equal("decr", 0L, client.decr("number", 20));
        Checks.equal("incr of nothing", -1L, client.incr("none", 1));
        Checks.holds("touch", client.touch("key", 200).get());
        Checks.holds("touch of nothing", !client.touch("none", 200).get());
        ends(client, isBinary);
        byte[] large = Checks.large();
        Checks.holds("set of a large value", client.set("large", 100, large).get());
        Checks.equal("large value", large, client.get("large"));
        many(client);
        if (isBinary) {
            Checks.holds("append to what was before", !client.append(found.getCas(), "new", "x").get());
            Checks.holds("delete of what was before", !client.delete("new", found.getCas()).get());
            Checks.equal("what has stayed", "y", client.get("new"));
        }
        Checks.holds("delete", client.delete("key").get());
        Checks.equal("what was deleted", null, client.get("key"));
        Checks.holds("delete of nothing", !client.delete("key").get());
        for (Map<String, String> told : client.getStats().values()) {
            Checks.holds("stats", Long.parseLong(told.get("cmd_get")) > 0);
        }
        for (Map<String, String> told : client.getStats("settings").values()) {
            Checks.equal("stats settings", "1048576", told.get("item_size_max"));
        }
        for (String version : client.getVersions().values()) {
            Checks.holds("version", version.startsWith("1.6."));
        }
        Checks.holds("flush", client.flush().get());
        Checks.equal("what was flushed", null, client.get("large"));
    }

    private static void ends(MemcachedClient client, boolean isBinary) throws Exception {
        Checks.holds("set that ends soon", client.set("short", 1, "x").get());
        Checks.holds("set", client.set("touched", 100, "x").get());
        Checks.holds("touch that ends it soon", client.touch("touched", 1).get());
        // Of the text protocol spymemcached has no get and touch.
        if (isBinary) {
            Checks.holds("set", client.set("fetched", 100, "x").get());
            Checks.equal("get and touch", "x", client.getAndTouch("fetched", 1).getValue());
            Checks.equal("get and touch of nothing", null, client.getAndTouch("none", 1));
        }
        Thread.sleep(2_100);
        Checks.equal("what has ended", null, client.get("short"));
        Checks.equal("what has ended by touch", null, client.get("touched"));
        Checks.equal("what has ended by get and touch", null, client.get("fetched"));
        Checks.equal("what has not ended", "value", client.get("key"));
    }

    private static void many(MemcachedClient client) throws Exception {
        List<Future<Boolean>> stored = new ArrayList<>();
        List<String> keys = new ArrayList<>();
        Map<String, Object> expected = new HashMap<>();
        for (int i = 0; i < MANY; i++) {
            keys.add("many" + i);
            expected.put("many" + i, "value of " + i);
            stored.add(client.set("many" + i, 100, "value of " + i));
        }
        for (Future<Boolean> each : stored) {
            Checks.holds("one of many sets", each.get());
        }
        List<Future<Object>> found = new ArrayList<>();
        for (String key : keys) {
            found.add(client.asyncGet(key));
        }
        for (int i = 0; i < MANY; i++) {
            Checks.equal("one of many gets", "value of " + i, found.get(i).get());
        }
        keys.add("none");
        Checks.equal("get of many", expected, client.getBulk(keys));
    }
}
