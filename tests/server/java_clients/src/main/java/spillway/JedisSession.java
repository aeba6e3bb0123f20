package spillway;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Sessions of jedis, by RESP2 and RESP3. JedisSession HOST PORT [USER PASSWORD] */
public final class JedisSession {
    private static final int MANY = 5_000;

    private JedisSession() {}

    public static void main(String[] words) throws Exception {
        Checks.begin();
        HostAndPort address = new HostAndPort(words[0], Integer.parseInt(words[1]));
        for (RedisProtocol protocol : RedisProtocol.values()) {
            var config = DefaultJedisClientConfig.builder().protocol(protocol).clientName("session");
            if (words.length == 4) {
                config.user(words[2]).password(words[3]);
            }
            try (Jedis jedis = new Jedis(address, config.build())) {
                session(jedis);
                ends(jedis);
                refusals(jedis);
                transactions(jedis);
                many(jedis);
                scan(jedis);
            }
            try (JedisPool pool = new JedisPool(new redis.clients.jedis.JedisFactory(address, config.build()) {})) {
                together(pool);
            }
        }
        Checks.done();
    }

    private static void session(Jedis jedis) {
        Checks.equal("ping", "PONG", jedis.ping());
        Checks.equal("flush", "OK", jedis.flushDB());
        Checks.equal("get of nothing", null, jedis.get("key"));
        Checks.equal("set", "OK", jedis.set("key", "value"));
        Checks.equal("get", "value", jedis.get("key"));
        Checks.equal("set nx of what is there", null, jedis.set("key", "x", SetParams.setParams().nx()));
        Checks.equal("set nx", "OK", jedis.set("new", "value", SetParams.setParams().nx()));
        Checks.equal("set xx", "OK", jedis.set("new", "x", SetParams.setParams().xx()));
        Checks.equal("set nx get", "x", jedis.setGet("new", "y", SetParams.setParams().nx()));
        Checks.equal("getdel", "x", jedis.getDel("new"));
        Checks.equal("set xx of nothing", null, jedis.set("none", "x", SetParams.setParams().xx()));
        Checks.equal("set with an end", "OK", jedis.set("key", "ends", SetParams.setParams().ex(100)));
        Checks.holds("ttl", jedis.ttl("key") > 90);
        Checks.equal("set that keeps it", "OK", jedis.set("key", "kept", SetParams.setParams().keepTtl()));
        Checks.holds("pttl", jedis.pttl("key") > 90_000);
        Checks.equal("set get", "kept", jedis.setGet("key", "value"));
        Checks.equal("ttl of none", -1L, jedis.ttl("key"));
        Checks.equal("ttl of nothing", -2L, jedis.ttl("none"));
        Checks.equal("expire", 1L, jedis.expire("key", 50));
        Checks.equal("persist", 1L, jedis.persist("key"));
        Checks.equal("pexpire", 1L, jedis.pexpire("key", 50_000));
        Checks.equal("getex", "value", jedis.getEx("key", GetExParams.getExParams().persist()));
        Checks.equal("what getex has left", -1L, jedis.ttl("key"));
        Checks.equal("setex", "OK", jedis.setex("short", 100, "x"));
        Checks.equal("psetex", "OK", jedis.psetex("short", 100_000, "x"));
        Checks.equal("setnx", 1L, jedis.setnx("first", "a"));
        Checks.equal("setnx again", 0L, jedis.setnx("first", "b"));
        Checks.equal("getdel", "a", jedis.getDel("first"));
        Checks.equal("getset", "value", jedis.getSet("key", "other"));
        Checks.equal("mset", "OK", jedis.mset("a", "1", "b", "2"));
        List<String> expected = new ArrayList<>(List.of("1", "2"));
        expected.add(null);
        Checks.equal("mget", expected, jedis.mget("a", "b", "none"));
        Checks.equal("incr", 2L, jedis.incr("a"));
        Checks.equal("incrby", 12L, jedis.incrBy("a", 10));
        Checks.equal("decr", 11L, jedis.decr("a"));
        Checks.equal("decrby", 1L, jedis.decrBy("a", 10));
        Checks.equal("incrbyfloat", 1.5, jedis.incrByFloat("a", 0.5));
        Checks.equal("append", 7L, jedis.append("b", "345678"));
        Checks.equal("strlen", 7L, jedis.strlen("b"));
        Checks.equal("getrange", "345", jedis.getrange("b", 1, 3));
        Checks.equal("setrange", 7L, jedis.setrange("b", 1, "xyz"));
        Checks.equal("what setrange has made", "2xyz678", jedis.get("b"));
        Checks.equal("getrange from the end", "678", jedis.getrange("b", -3, -1));
        Checks.equal("setrange beyond the end", 9L, jedis.setrange("b", 8, "9"));
        Checks.equal("what it has put before", "2xyz678\0009", jedis.get("b"));
        Checks.equal("strlen of nothing", 0L, jedis.strlen("none"));
        Checks.equal("exists", 2L, jedis.exists("a", "b", "none"));
        Checks.equal("type", "string", jedis.type("a"));
        Checks.equal("type of nothing", "none", jedis.type("none"));
        Checks.equal("unlink", 1L, jedis.unlink("a", "none"));
        Checks.equal("del", 1L, jedis.del("b"));
        Checks.equal("dbsize", 2L, jedis.dbSize());
        Checks.holds("info", jedis.info().contains("redis_version:7"));
        Checks.equal("client name", "session", jedis.clientGetname());
        Checks.equal("config get", Set.of("maxclients"), jedis.configGet("maxclients").keySet());
        byte[] large = Checks.large();
        jedis.set("large".getBytes(), large);
        Checks.equal("large value", large, jedis.get("large".getBytes()));
    }

    private static void ends(Jedis jedis) throws Exception {
        long at = System.currentTimeMillis() / 1000 + 100;
        Checks.equal("set exat", "OK", jedis.set("key", "value", SetParams.setParams().exAt(at)));
        Checks.equal("expiretime", at, jedis.expireTime("key"));
        Checks.equal("set pxat", "OK", jedis.set("key", "value", SetParams.setParams().pxAt(at * 1000 + 7)));
        Checks.equal("pexpiretime", at * 1000 + 7, jedis.pexpireTime("key"));
        Checks.equal("set px", "OK", jedis.set("key", "value", SetParams.setParams().px(200_000)));
        Checks.holds("pttl", jedis.pttl("key") > 100_000 && jedis.pttl("key") <= 200_000);
        Checks.equal("getex exat", "value", jedis.getEx("key", GetExParams.getExParams().exAt(at + 1)));
        Checks.equal("what it has made", at + 1, jedis.expireTime("key"));
        Checks.equal("getex pxat", "value", jedis.getEx("key", GetExParams.getExParams().pxAt(at * 1000 + 9)));
        Checks.equal("what it has made", at * 1000 + 9, jedis.pexpireTime("key"));
        Checks.equal("getex ex", "value", jedis.getEx("key", GetExParams.getExParams().ex(1000)));
        Checks.holds("what it has made", jedis.ttl("key") > 500);
        Checks.equal("getex px", "value", jedis.getEx("key", GetExParams.getExParams().px(300_000)));
        Checks.holds("what it has made", jedis.pttl("key") <= 300_000);
        Checks.equal("expireat", 1L, jedis.expireAt("key", at));
        Checks.equal("pexpireat", 1L, jedis.pexpireAt("key", at * 1000 + 3));
        Checks.equal("what it has made", at * 1000 + 3, jedis.pexpireTime("key"));
        Checks.equal("expire nx of what ends", 0L, jedis.expire("key", 500, ExpiryOption.NX));
        Checks.equal("expire lt of more", 0L, jedis.expire("key", 5000, ExpiryOption.LT));
        Checks.equal("expire gt", 1L, jedis.expire("key", 5000, ExpiryOption.GT));
        Checks.equal("expire xx", 1L, jedis.expire("key", 600, ExpiryOption.XX));
        Checks.equal("expire of nothing", 0L, jedis.expire("none", 100));
        Checks.equal("persist", 1L, jedis.persist("key"));
        Checks.equal("persist of what has no end", 0L, jedis.persist("key"));
        Checks.equal("psetex that ends soon", "OK", jedis.psetex("short", 1, "x"));
        Checks.equal("pexpire that ends soon", 1L, jedis.pexpire("key", 1));
        Thread.sleep(50);
        Checks.equal("what has ended", null, jedis.get("short"));
        Checks.equal("what has ended by pexpire", 0L, jedis.exists("key", "short"));
        Checks.equal("set", "OK", jedis.set("key", "value"));
        Checks.equal("expire of before", 1L, jedis.expire("key", -1));
        Checks.equal("what it has left", -2L, jedis.ttl("key"));
    }

    private static void refusals(Jedis jedis) {
        jedis.set("text", "a");
        refused("a command that there is not", "ERR unknown command 'LPUSH', with args beginning with: 'list' 'x' ", () -> jedis.lpush("list", "x"));
        refused("incr of a text", "ERR value is not an integer or out of range", () -> jedis.incr("text"));
        refused("incrbyfloat of a text", "ERR value is not a valid float", () -> jedis.incrByFloat("text", 1));
        refused("set without time", "ERR invalid expire time in 'set' command", () -> jedis.set("text", "b", SetParams.setParams().ex(0)));
        refused("setrange before the start", "ERR offset is out of range", () -> jedis.setrange("text", -1, "b"));
        refused("get without a key", "ERR wrong number of arguments for 'get' command", () -> jedis.sendCommand(Protocol.Command.GET));
        Checks.equal("what they have left", "a", jedis.get("text"));
    }

    private static void refused(String what, String expected, Runnable request) {
        try {
            request.run();
        } catch (JedisDataException refusal) {
            Checks.equal(what, expected, refusal.getMessage());
            return;
        }
        Checks.equal(what, expected, "no error");
    }

    private static void transactions(Jedis jedis) {
        jedis.set("sum", "1");
        Transaction transaction = jedis.multi();
        Response<Long> sum = transaction.incr("sum");
        Response<String> got = transaction.get("sum");
        Response<String> nothing = transaction.get("none");
        Checks.equal("answers of exec", 3, transaction.exec().size());
        Checks.equal("incr in a transaction", 2L, sum.get());
        Checks.equal("get in a transaction", "2", got.get());
        Checks.equal("get of nothing in a transaction", null, nothing.get());
        Checks.equal("watch", "OK", jedis.watch("sum"));
        jedis.set("sum", "5");
        Transaction late = jedis.multi();
        late.set("sum", "6");
        Checks.equal("exec of what has changed", null, late.exec());
        Checks.equal("what it has left", "5", jedis.get("sum"));
        Checks.equal("msetnx", 1L, jedis.msetnx("first", "1", "second", "2"));
        Checks.equal("msetnx of what is there", 0L, jedis.msetnx("third", "3", "second", "4"));
        Checks.equal("exists", 2L, jedis.exists("first", "second", "third"));
    }

    private static void many(Jedis jedis) {
        Checks.equal("flush", "OK", jedis.flushDB());
        Checks.equal("dbsize of nothing", 0L, jedis.dbSize());
        Response<Long> refusal;
        Map<String, Response<String>> found = new HashMap<>();
        try (Pipeline pipeline = jedis.pipelined()) {
            for (int i = 0; i < MANY; i++) {
                pipeline.set("many" + i, "value of " + i);
                found.put("value of " + i, pipeline.get("many" + i));
            }
            refusal = pipeline.incr("many0");
            pipeline.set("other", "x");
            pipeline.sync();
        }
        for (Map.Entry<String, Response<String>> each : found.entrySet()) {
            Checks.equal("one of many", each.getKey(), each.getValue().get());
        }
        refused("one of many that is wrong", "ERR value is not an integer or out of range", refusal::get);
        Checks.equal("dbsize", MANY + 1L, jedis.dbSize());
    }

    private static void scan(Jedis jedis) {
        Set<String> keys = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> part = jedis.scan(cursor, new ScanParams().match("many*").count(500));
            keys.addAll(part.getResult());
            cursor = part.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        Checks.equal("all keys", MANY, keys.size());
    }

    private static void together(JedisPool pool) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        List<Future<Void>> all = new ArrayList<>();
        for (int thread = 0; thread < 8; thread++) {
            all.add(threads.submit((Callable<Void>) () -> {
                for (int i = 0; i < 500; i++) {
                    try (Jedis jedis = pool.getResource()) {
                        jedis.incr("together");
                    }
                }
                return null;
            }));
        }
        for (Future<Void> each : all) {
            each.get();
        }
        threads.shutdown();
        try (Jedis jedis = pool.getResource()) {
            Checks.equal("what all have counted", "4000", jedis.getDel("together"));
        }
    }
}
