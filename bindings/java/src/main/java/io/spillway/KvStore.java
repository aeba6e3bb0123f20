package io.spillway;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Objects;

/**
 * A key-value store on a flash device or file (docs/kv-api.md).
 *
 * <p>For all threads: a call blocks its thread, and has a session of its own meanwhile. Keys are 1 to 65,536 bytes, values 0 to 4 GiB, of which arrays and buffers take 2. Direct
 * buffers are read and written where they lie, from position to limit; their positions do not change. Arrays are copied. What others change in
 * an array or buffer during a call is stored or returned in any mixture.
 */
public final class KvStore implements AutoCloseable {
  /** What a change that has returned promises after a power cut; that the process was killed loses nothing. */
  public enum Durability {
    /** It is there. */
    SYNC,
    /** All but the last 10 ms. */
    BATCH,
    /** What the device's own cache keeps. */
    NONE
  }

  private static final int ALWAYS = 0;
  private static final int IF_ABSENT = 1;
  private static final int IF_VERSION = 3;

  // Under this object's monitor.
  private final ArrayDeque<Long> idle = new ArrayDeque<>(); // sessions that no call has
  private int busyCount; // calls under way
  private long store; // 0: closed

  private KvStore(long store) {
    this.store = store;
  }

  /** The version of the C library. */
  public static String version() {
    return KvNative.version();
  }

  /** Makes an empty store; a file needs a capacity (0: all of a device). Content is not lost: that is an error. */
  public static void make(String device, long capacityBytes) throws KvException {
    KvNative.make(nativeName(device), capacityBytes, false);
  }

  /** Makes an empty store, whatever there was. */
  public static void makeAnew(String device, long capacityBytes) throws KvException {
    KvNative.make(nativeName(device), capacityBytes, true);
  }

  public static KvStore open(String device) throws KvException {
    return open(device, Durability.SYNC);
  }

  public static KvStore open(String device, Durability durability) throws KvException {
    return new KvStore(KvNative.open(nativeName(device), durability.ordinal(), false));
  }

  /** Nothing is written, also where nothing can be; changes throw a KvException. */
  public static KvStore openReadOnly(String device) throws KvException {
    return new KvStore(KvNative.open(nativeName(device), Durability.SYNC.ordinal(), true));
  }

  /** A store in memory, gone when it is closed. */
  public static KvStore inMemory(long capacityBytes) throws KvException {
    return new KvStore(KvNative.openMemory(capacityBytes));
  }

  /**
   * What was put is on the device, or there is an exception. Closed already: does nothing.
   *
   * @throws IllegalStateException calls of other threads are under way
   */
  @Override
  public synchronized void close() throws KvException {
    if (store == 0) return;
    if (busyCount > 0) throw new IllegalStateException("calls of other threads are under way");
    while (!idle.isEmpty()) KvNative.closeSession(idle.pop());
    long closing = store;
    store = 0;
    KvNative.close(closing);
  }

  /** What the store holds and where, how long its calls took and what it has read and written: a JSON object of objects. */
  public String stats() throws KvException {
    long session = begin();
    try {
      return KvNative.stats(store);
    } finally {
      end(session);
    }
  }

  /** The value, or null. */
  public byte[] get(byte[] key) throws KvException {
    Objects.requireNonNull(key);
    long session = begin();
    try {
      return KvNative.get(session, key, null, 0, 0);
    } finally {
      end(session);
    }
  }

  /** The value, or null. */
  public byte[] get(ByteBuffer key) throws KvException {
    checkDirect(key);
    long session = begin();
    try {
      return KvNative.get(session, null, key, key.position(), key.remaining());
    } finally {
      end(session);
    }
  }

  /**
   * Reads the value to `to`, from its position on, and returns its size: -1 without one. Larger than what remains in `to`: nothing was copied.
   */
  public int get(ByteBuffer key, ByteBuffer to) throws KvException {
    checkDirect(key);
    checkDirect(to);
    if (to.isReadOnly()) throw new IllegalArgumentException("the buffer is read-only");
    long session = begin();
    try {
      return KvNative.getInto(session, null, key, key.position(), key.remaining(), to, to.position(), to.remaining());
    } finally {
      end(session);
    }
  }

  /** The values in the order of the keys, null where there is none; their reads are in flight together. */
  public byte[][] getMany(List<byte[]> keys) throws KvException {
    byte[][] wanted = keys.toArray(new byte[0][]);
    for (byte[] key : wanted) Objects.requireNonNull(key);
    long session = begin();
    try {
      return KvNative.getMany(session, wanted);
    } finally {
      end(session);
    }
  }

  /** Puts a value, and returns its version. */
  public long put(byte[] key, byte[] value) throws KvException {
    return put(key, value, ALWAYS, 0, 0);
  }

  /** The same, with the time from which on there is no such key, in ms since 1970. */
  public long putUntil(byte[] key, byte[] value, long expiresMs) throws KvException {
    return put(key, value, ALWAYS, 0, expiresMs);
  }

  /** Puts a value if there is none: its version, or 0. */
  public long putIfAbsent(byte[] key, byte[] value) throws KvException {
    return put(key, value, IF_ABSENT, 0, 0);
  }

  /** Puts a value if what is there has this version: the new version, or 0. */
  public long replace(byte[] key, byte[] value, long version) throws KvException {
    return put(key, value, IF_VERSION, version, 0);
  }

  /** Puts a value, and returns its version. */
  public long put(ByteBuffer key, ByteBuffer value) throws KvException {
    checkDirect(key);
    checkDirect(value);
    long session = begin();
    try {
      return KvNative.put(session, null, key, key.position(), key.remaining(), null, value, value.position(),
          value.remaining(), ALWAYS, 0, 0);
    } finally {
      end(session);
    }
  }

  /** The version of what is under a key; 0: nothing. */
  public long versionOf(byte[] key) throws KvException {
    Objects.requireNonNull(key);
    long session = begin();
    try {
      return KvNative.versionOf(session, key);
    } finally {
      end(session);
    }
  }

  /** Removes a key. Was there one? */
  public boolean delete(byte[] key) throws KvException {
    return delete(key, ALWAYS, 0);
  }

  /** Removes a key if what is there has this version. Was it so? */
  public boolean delete(byte[] key, long version) throws KvException {
    return delete(key, IF_VERSION, version);
  }

  /** Removes a key. Was there one? */
  public boolean delete(ByteBuffer key) throws KvException {
    checkDirect(key);
    long session = begin();
    try {
      return KvNative.delete(session, null, key, key.position(), key.remaining(), ALWAYS, 0);
    } finally {
      end(session);
    }
  }

  private boolean delete(byte[] key, int when, long version) throws KvException {
    Objects.requireNonNull(key);
    long session = begin();
    try {
      return KvNative.delete(session, key, null, 0, 0, when, version);
    } finally {
      end(session);
    }
  }

  private long put(byte[] key, byte[] value, int when, long version, long expiresMs) throws KvException {
    Objects.requireNonNull(key);
    Objects.requireNonNull(value);
    long session = begin();
    try {
      return KvNative.put(session, key, null, 0, 0, value, null, 0, 0, when, version, expiresMs);
    } finally {
      end(session);
    }
  }

  private static byte[] nativeName(String device) {
    if (device.indexOf('\0') >= 0) throw new IllegalArgumentException("the device's name has a character 0; give a path or a device string");
    return (device + '\0').getBytes(StandardCharsets.UTF_8);
  }

  private static void checkDirect(ByteBuffer buffer) {
    if (!buffer.isDirect()) throw new IllegalArgumentException("not a direct buffer; pass its array");
  }

  private long begin() throws KvException {
    synchronized (this) {
      if (store == 0) throw new IllegalStateException("the store is closed");
      ++busyCount;
      if (!idle.isEmpty()) return idle.pop();
    }
    try {
      return KvNative.openSession(store);
    } catch (KvException | RuntimeException error) {
      synchronized (this) {
        --busyCount;
      }
      throw error;
    }
  }

  private synchronized void end(long session) {
    --busyCount;
    idle.push(session);
  }
}
