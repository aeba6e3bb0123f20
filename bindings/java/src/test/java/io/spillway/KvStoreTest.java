package io.spillway;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/** All calls of KvStore. Needs no framework: ends with an exception where something is not as it should be. */
public final class KvStoreTest {
  private interface Call {
    void run() throws Exception;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static ByteBuffer direct(String text) {
    byte[] content = bytes(text);
    ByteBuffer buffer = ByteBuffer.allocateDirect(content.length + 10);
    buffer.position(3);
    buffer.put(content);
    buffer.limit(buffer.position());
    buffer.position(3);
    return buffer;
  }

  private static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  private static void checkIs(byte[] value, String expected) {
    check(value == null ? expected == null : expected != null && Arrays.equals(value, bytes(expected)),
        "not '" + expected + "': " + (value == null ? "nothing" : new String(value, StandardCharsets.UTF_8)));
  }

  private static void checkThrows(Class<? extends Exception> kind, String words, Call call) {
    try {
      call.run();
    } catch (Exception error) {
      check(kind.isInstance(error), "not a " + kind + ": " + error);
      check(words == null || error.getMessage().contains(words), "no '" + words + "' in: " + error.getMessage());
      return;
    }
    throw new AssertionError("no " + kind);
  }

  private static void arrays(KvStore store) throws Exception {
    byte[] key = bytes("key");
    checkIs(store.get(key), null);
    check(store.versionOf(key) == 0, "a version of nothing");
    long first = store.putIfAbsent(key, bytes("1"));
    check(first > 0 && store.versionOf(key) == first, "version");
    check(store.putIfAbsent(key, bytes("2")) == 0, "put although it was there");
    long second = store.replace(key, bytes("2"), first);
    check(second > first && store.replace(key, bytes("3"), first) == 0, "replaced by version");
    checkIs(store.get(key), "2");
    store.put(key, bytes(""));
    checkIs(store.get(key), "");
    check(!store.delete(key, first) && !store.delete(key, 0), "deleted another version");
    check(store.delete(key) && !store.delete(key), "deleted once");
    store.putUntil(key, bytes("x"), 1);
    checkIs(store.get(key), null);
    store.putUntil(key, bytes("x"), System.currentTimeMillis() + 1_000_000);
    checkIs(store.get(key), "x");
    byte[] longKey = new byte[65536];
    byte[] large = new byte[100_000];
    Arrays.fill(large, (byte) 'v');
    store.put(longKey, large);
    check(Arrays.equals(store.get(longKey), large), "a large value");
    checkThrows(KvException.class, "a key of 0 bytes", () -> store.get(new byte[0]));
    byte[] larger = new byte[3_000_000];
    for (int i = 0; i < larger.length; ++i) larger[i] = (byte) (i * 7 + i / 1000);
    store.put(key, larger);
    check(Arrays.equals(store.get(key), larger), "a value in pieces");
    check(Arrays.equals(store.getMany(List.of(key, longKey))[0], larger), "a value in pieces among others");
    checkThrows(NullPointerException.class, null, () -> store.get((byte[]) null));
    checkThrows(NullPointerException.class, null, () -> store.put(key, null));
    try {
      store.delete(new byte[70_000]);
      throw new AssertionError("deleted a key that is too long");
    } catch (KvException error) {
      check(error.status() == -1, "status " + error.status());
    }
  }

  private static void directBuffers(KvStore store) throws Exception {
    ByteBuffer key = direct("direct");
    ByteBuffer value = direct("a value");
    check(store.put(key, value) > 0, "version");
    check(key.position() == 3 && value.remaining() == 7, "positions stay");
    checkIs(store.get(bytes("direct")), "a value");
    checkIs(store.get(key), "a value");
    ByteBuffer to = ByteBuffer.allocateDirect(20);
    to.position(5);
    check(store.get(key, to) == 7, "size");
    byte[] read = new byte[7];
    to.get(read);
    checkIs(read, "a value");
    to.position(14);
    check(store.get(key, to) == 7 && to.get(14) == 0, "too small for it, and untouched");
    check(store.get(direct("none"), to) == -1, "nothing");
    store.put(direct("empty"), ByteBuffer.allocateDirect(0));
    checkIs(store.get(direct("empty")), "");
    check(store.delete(key) && !store.delete(key), "deleted once");
    checkThrows(IllegalArgumentException.class, "direct", () -> store.get(ByteBuffer.allocate(3)));
    checkThrows(IllegalArgumentException.class, "read-only", () -> store.get(key, to.asReadOnlyBuffer()));
    checkThrows(KvException.class, "a key of 0 bytes", () -> store.get(ByteBuffer.allocateDirect(0), to));
  }

  /** Another thread changes the bounds of a buffer all the time: what is put is some of its bytes, and nothing that lies behind them. */
  private static void buffersThatOthersUse(KvStore store) throws Exception {
    ByteBuffer key = direct("shared");
    ByteBuffer value = ByteBuffer.allocateDirect(64);
    while (value.hasRemaining()) value.put((byte) 'v');
    AtomicBoolean isOver = new AtomicBoolean();
    Thread other = new Thread(() -> {
      while (!isOver.get()) {
        value.position(0);
        VarHandle.fullFence();
        value.position(64);
        VarHandle.fullFence();
      }
    });
    other.setDaemon(true);
    other.start();
    for (int i = 0; i < 20_000; ++i) {
      store.put(key, value);
      for (byte one : store.get(bytes("shared"))) check(one == 'v', "a byte that is none of the buffer's");
    }
    isOver.set(true);
    other.join();
  }

  /**
   * Another thread changes a key while a call waits: what is put is found under one of the two keys. The device takes 100 ms for each request, so
   * the second call waits for the first one: it has looked at its key, and has written nothing.
   */
  private static void aKeyThatOthersChange(String path) throws Exception {
    KvStore.make(path, 34 << 20);
    try (KvStore store = KvStore.open("latency:us=100000:[" + path + "]")) {
      AtomicReference<Throwable> wrong = new AtomicReference<>();
      ByteBuffer key = direct("key");
      List<Thread> threads = new ArrayList<>();
      for (ByteBuffer each : List.of(direct("key"), key)) {
        Thread thread = new Thread(() -> {
          try {
            store.put(each, direct("value"));
          } catch (Throwable error) {
            wrong.set(error);
          }
        });
        threads.add(thread);
        thread.start();
        Thread.sleep(50);
      }
      key.put(key.position(), (byte) 'K');
      for (Thread thread : threads) thread.join();
      if (wrong.get() != null) throw new AssertionError(wrong.get());
      int found = 0;
      for (String name : List.of("key", "Key")) if (store.get(bytes(name)) != null) ++found;
      check(store.stats().contains("\"index\": {\"entries\": " + found + ","), found + " keys are found: " + store.stats());
    }
  }

  private static void many(KvStore store) throws Exception {
    List<byte[]> keys = new ArrayList<>();
    for (int i = 0; i < 300; ++i) {
      keys.add(bytes("many" + i));
      if (i % 3 != 0) store.put(keys.get(i), bytes("value" + i));
    }
    byte[][] values = store.getMany(keys);
    check(values.length == 300, "as many as asked for");
    for (int i = 0; i < 300; ++i) checkIs(values[i], i % 3 != 0 ? "value" + i : null);
    check(store.getMany(List.of()).length == 0, "none");
    checkThrows(KvException.class, "a key of 0 bytes", () -> store.getMany(List.of(bytes("a"), new byte[0])));
    checkThrows(NullPointerException.class, null, () -> store.getMany(Arrays.asList(bytes("a"), null)));
  }

  private static void threads(KvStore store) throws Exception {
    AtomicReference<Throwable> wrong = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    byte[] key = bytes("counter");
    for (int t = 0; t < 4; ++t) {
      threads.add(new Thread(() -> {
        try {
          for (int i = 0; i < 200; ++i) {
            for (boolean done = false; !done;) {
              long version = store.versionOf(key);
              byte[] before = store.get(key);
              // The value read after the version is of that version or a newer one; if it is newer, replace()
              // does nothing.
              done = version == 0
                  ? store.putIfAbsent(key, bytes("1")) != 0
                  : store.replace(key, bytes(Integer.toString(Integer.parseInt(new String(before)) + 1)), version) != 0;
            }
          }
        } catch (Throwable error) {
          wrong.set(error);
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    if (wrong.get() != null) throw new AssertionError(wrong.get());
    checkIs(store.get(key), "800");
  }

  /** A call that found no memory for ending would keep its session, and the store could not be closed. */
  private static void aFullHeap(KvStore store) throws Exception {
    byte[] absent = bytes("absent");
    checkIs(store.get(absent), null);
    Object[] all = new Object[1 << 20];
    int count = 0;
    for (int size : new int[] {1 << 24, 1 << 20, 1 << 16, 1 << 12, 1 << 8, 0}) {
      try {
        while (count < all.length) {
          all[count] = new byte[size];
          ++count;
        }
      } catch (OutOfMemoryError full) {
        continue; // there may be room for smaller ones
      }
    }
    byte[] found = null;
    try {
      found = store.get(absent);
    } catch (OutOfMemoryError full) {
      // The Java machine itself may want memory for the call.
    }
    check(count > 0 && all[0] != null, "the heap was not filled");
    all = null;
    checkIs(found, null);
  }

  private static void files(String path) throws Exception {
    checkThrows(KvException.class, path, () -> KvStore.open(path));
    checkThrows(KvException.class, "capacity_bytes", () -> KvStore.make(path, 0));
    KvStore.make(path, 32 << 20);
    checkThrows(KvException.class, "has content", () -> KvStore.make(path, 32 << 20));
    try (KvStore store = KvStore.open(path)) {
      store.put(bytes("key"), bytes("value"));
      checkThrows(KvException.class, "in use, here or", () -> KvStore.open(path));
    }
    for (KvStore.Durability durability : KvStore.Durability.values()) {
      try (KvStore store = KvStore.open(path, durability)) {
        checkIs(store.get(bytes("key")), "value");
      }
    }
    try (KvStore store = KvStore.openReadOnly(path)) {
      checkIs(store.get(bytes("key")), "value");
      checkThrows(KvException.class, "reading only", () -> store.put(bytes("key"), bytes("other")));
    }
    KvStore.makeAnew(path, 32 << 20);
    try (KvStore store = KvStore.open(path)) {
      checkIs(store.get(bytes("key")), null);
    }
  }

  /** A character that JNI's own strings have in six bytes, and file names in four. */
  private static void nameBeyondTheFirstPlane(Path folder) throws Exception {
    String path = folder + "/\uD83D\uDCE6";
    KvStore.make(path, 32 << 20);
    checkThrows(KvException.class, "\uD83D\uDCE6", () -> KvStore.make(path, 32 << 20));
    KvStore.open(path).close();
    try (Stream<Path> files = Files.list(folder)) {
      Path made = files.findAny().orElseThrow();
      check(made.toUri().toString().toLowerCase().endsWith("/%f0%9f%93%a6"), "a file of another name: " + made.toUri());
      Files.delete(made);
    }
    checkThrows(IllegalArgumentException.class, "a character 0", () -> KvStore.open(path + '\0'));
  }

  public static void main(String[] arguments) throws Exception {
    check(KvStore.version().matches("\\d+\\.\\d+\\.\\d+"), KvStore.version());
    KvStore store = KvStore.inMemory(64 << 20);
    arrays(store);
    directBuffers(store);
    buffersThatOthersUse(store);
    many(store);
    threads(store);
    aFullHeap(store);
    check(store.stats().matches("\\{\"store\": .*\"entries\": \\d+.*\"put_latency\": \\{\"count\": [1-9].*\\}\\}"), store.stats());
    store.close();
    store.close();
    checkThrows(IllegalStateException.class, "closed", () -> store.get(bytes("key")));
    Path folder = Files.createTempDirectory("spillway-java");
    files(folder.resolve("store").toString());
    Files.delete(folder.resolve("store"));
    aKeyThatOthersChange(folder.resolve("changed").toString());
    Files.delete(folder.resolve("changed"));
    nameBeyondTheFirstPlane(folder);
    Files.delete(folder);
    System.out.println("all calls of KvStore do what they should");
  }
}
