package io.spillway;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/**
 * A key-value store on a flash device or file (docs/kv-api.md).
 *
 * <p>All threads may use a store. A call blocks its thread, and has a session of its own meanwhile. Keys have 1 to 65,536 bytes; values have 0 to
 * 4 GiB, but arrays and buffers take less than 2. Arrays and keys are copied. Values in direct buffers are read and written in place, from
 * position to limit; the positions do not change. If another thread changes an array or a buffer during a call, any mixture of old and new
 * bytes is stored or returned.
 *
 * <p>Errors of the store are KvExceptions. Calls of a closed store throw IllegalStateException, and buffers that are not direct
 * IllegalArgumentException.
 */
public final class KvStore implements AutoCloseable {
  /** Which changes a power cut may lose after their calls have returned. Killing the process loses none of them. */
  public enum Durability {
    // In the order of SPILLWAY_KV_SYNC, _BATCH and _NONE in spillway/kv.h: ordinal() is passed on.
    /** Nothing is lost. */
    SYNC,
    /** Changes that returned within the last 10 ms may be lost. */
    BATCH,
    /** Changes that the device had only in its own cache may be lost. */
    NONE
  }

  // SPILLWAY_KV_ALWAYS and so on in spillway/kv.h.
  private static final int ALWAYS = 0;
  private static final int IF_ABSENT = 1;
  private static final int IF_VERSION = 3;

  /** A session of the C library. Those that no call uses are a list, so that giving one back takes no memory, which there may be none of. */
  private static final class Session {
    long handle;
    Session next;
  }

  // Guarded by this object's monitor.
  private Session idle; // the first session that no call uses
  private int busyCount; // calls under way
  private long store; // 0: closed

  private KvStore(long store) {
    this.store = store;
  }

  /** The version of the C library. */
  public static String version() {
    return KvNative.version();
  }

  /**
   * Makes an empty store. A file needs a capacity in bytes; 0 stands for all of a device. A device or file that has content is refused.
   */
  public static void make(String device, long capacityBytes) throws KvException {
    KvNative.make(nativeName(device), capacityBytes, false);
  }

  /** Makes an empty store as make() does, even on a device or file that has content, which is lost. */
  public static void makeAnew(String device, long capacityBytes) throws KvException {
    KvNative.make(nativeName(device), capacityBytes, true);
  }

  /** Opens a store with Durability.SYNC. */
  public static KvStore open(String device) throws KvException {
    return open(device, Durability.SYNC);
  }

  /** Opens a store. Refused while the store is open already, here or in another process. */
  public static KvStore open(String device, Durability durability) throws KvException {
    return new KvStore(KvNative.open(nativeName(device), durability.ordinal(), false));
  }

  /** Opens a store without writing anything, so that the device may be one that cannot be written. Changes throw a KvException. */
  public static KvStore openReadOnly(String device) throws KvException {
    return new KvStore(KvNative.open(nativeName(device), Durability.SYNC.ordinal(), true));
  }

  /** Makes and opens a store in memory, which is gone when it is closed. */
  public static KvStore inMemory(long capacityBytes) throws KvException {
    return new KvStore(KvNative.openMemory(capacityBytes));
  }

  /**
   * Closes the store. When this returns, all that was put is on the device for good; otherwise it throws. Does nothing if the store is closed
   * already.
   *
   * @throws IllegalStateException if calls of other threads are under way
   */
  @Override
  public synchronized void close() throws KvException {
    if (store == 0) return;
    if (busyCount > 0) throw new IllegalStateException("calls of other threads are under way");
    for (; idle != null; idle = idle.next) KvNative.closeSession(idle.handle);
    long closing = store;
    store = 0;
    KvNative.close(closing);
  }

  /** Returns, as a JSON object of objects, what the store holds, how long its calls took, and what it has read and written. */
  public String stats() throws KvException {
    Session session = begin();
    try {
      return KvNative.stats(store);
    } finally {
      end(session);
    }
  }

  /** Returns the value, or null if there is no such key. */
  public byte[] get(byte[] key) throws KvException {
    Objects.requireNonNull(key);
    Session session = begin();
    try {
      return KvNative.get(session.handle, key, null);
    } finally {
      end(session);
    }
  }

  /** Returns the value, or null if there is no such key. */
  public byte[] get(ByteBuffer key) throws KvException {
    ByteBuffer own = remaining(key);
    Session session = begin();
    try {
      return KvNative.get(session.handle, null, own);
    } finally {
      end(session);
    }
  }

  /**
   * Copies the value to `to`, from its position on. Returns the value's size, or -1 if there is no such key. If the size is more than what
   * remains in `to`, nothing was copied.
   */
  public int get(ByteBuffer key, ByteBuffer to) throws KvException {
    ByteBuffer own = remaining(key);
    ByteBuffer target = remaining(to);
    if (to.isReadOnly()) throw new IllegalArgumentException("the buffer is read-only");
    Session session = begin();
    try {
      return KvNative.getInto(session.handle, null, own, target);
    } finally {
      end(session);
    }
  }

  /** Returns the values in the order of the keys, with null for a key that is not there. Their reads are in flight together. */
  public byte[][] getMany(List<byte[]> keys) throws KvException {
    byte[][] wanted = keys.toArray(new byte[0][]);
    for (byte[] key : wanted) Objects.requireNonNull(key);
    Session session = begin();
    try {
      return KvNative.getMany(session.handle, wanted);
    } finally {
      end(session);
    }
  }

  /** Puts a value, and returns its version. */
  public long put(byte[] key, byte[] value) throws KvException {
    return put(key, value, ALWAYS, 0, 0);
  }

  /** Puts a value that expires at a time, in ms since 1970; 0: never. Returns its version. */
  public long putUntil(byte[] key, byte[] value, long expiresMs) throws KvException {
    return put(key, value, ALWAYS, 0, expiresMs);
  }

  /** Puts a value if there is no such key. Returns its version, or 0 if there is one. */
  public long putIfAbsent(byte[] key, byte[] value) throws KvException {
    return put(key, value, IF_ABSENT, 0, 0);
  }

  /** Puts a value if the key's value has this version. Returns the new version, or 0 if it has not. */
  public long replace(byte[] key, byte[] value, long version) throws KvException {
    return put(key, value, IF_VERSION, version, 0);
  }

  /** Puts a value, and returns its version. */
  public long put(ByteBuffer key, ByteBuffer value) throws KvException {
    ByteBuffer own = remaining(key);
    ByteBuffer ownValue = remaining(value);
    Session session = begin();
    try {
      return KvNative.put(session.handle, null, own, null, ownValue, ALWAYS, 0, 0);
    } finally {
      end(session);
    }
  }

  /** Returns the version of a key's value, or 0 if there is no such key. */
  public long versionOf(byte[] key) throws KvException {
    Objects.requireNonNull(key);
    Session session = begin();
    try {
      return KvNative.versionOf(session.handle, key);
    } finally {
      end(session);
    }
  }

  /** Removes a key. Returns whether there was one. */
  public boolean delete(byte[] key) throws KvException {
    return delete(key, ALWAYS, 0);
  }

  /** Removes a key if its value has this version. Returns whether it had. */
  public boolean delete(byte[] key, long version) throws KvException {
    return delete(key, IF_VERSION, version);
  }

  /** Removes a key. Returns whether there was one. */
  public boolean delete(ByteBuffer key) throws KvException {
    ByteBuffer own = remaining(key);
    Session session = begin();
    try {
      return KvNative.delete(session.handle, null, own, ALWAYS, 0);
    } finally {
      end(session);
    }
  }

  private boolean delete(byte[] key, int when, long version) throws KvException {
    Objects.requireNonNull(key);
    Session session = begin();
    try {
      return KvNative.delete(session.handle, key, null, when, version);
    } finally {
      end(session);
    }
  }

  private long put(byte[] key, byte[] value, int when, long version, long expiresMs) throws KvException {
    Objects.requireNonNull(key);
    Objects.requireNonNull(value);
    Session session = begin();
    try {
      return KvNative.put(session.handle, key, null, value, null, when, version, expiresMs);
    } finally {
      end(session);
    }
  }

  private static byte[] nativeName(String device) {
    if (device.indexOf('\0') >= 0) throw new IllegalArgumentException("the device's name has a character 0; give a path or a device string");
    return (device + '\0').getBytes(StandardCharsets.UTF_8);
  }

  // What lies between position and limit, as a buffer of its own, whose bounds no other thread changes.
  private static ByteBuffer remaining(ByteBuffer buffer) {
    if (!buffer.isDirect()) throw new IllegalArgumentException("not a direct buffer; pass its array");
    return buffer.slice();
  }

  private Session begin() throws KvException {
    synchronized (this) {
      if (store == 0) throw new IllegalStateException("the store is closed");
      ++busyCount;
      if (idle != null) {
        Session session = idle;
        idle = session.next;
        return session;
      }
    }
    try {
      Session session = new Session();
      session.handle = KvNative.openSession(store);
      return session;
    } catch (KvException | RuntimeException | Error error) {
      synchronized (this) {
        --busyCount;
      }
      throw error;
    }
  }

  private synchronized void end(Session session) {
    --busyCount;
    session.next = idle;
    idle = session;
  }
}
