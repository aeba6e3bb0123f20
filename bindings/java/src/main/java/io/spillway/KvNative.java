package io.spillway;

import java.nio.ByteBuffer;

/**
 * The C API (spillway/kv.h), by libspillway_kv_jni: -Djava.library.path, or a file's path in -Dspillway.jni. Handles are addresses; of
 * keys and values there is an array, or, where that is null, a direct buffer with a range.
 */
final class KvNative {
  static {
    String path = System.getProperty("spillway.jni");
    if (path != null) System.load(path);
    else System.loadLibrary("spillway_kv_jni");
  }

  private KvNative() {}

  static native String version();

  static native void make(String device, long capacityBytes, boolean overwrite) throws KvException;

  static native long open(String device, int durability, boolean readOnly) throws KvException;

  static native long openMemory(long capacityBytes) throws KvException;

  static native void close(long store) throws KvException;

  static native String stats(long store) throws KvException;

  static native long openSession(long store) throws KvException;

  static native void closeSession(long session) throws KvException;

  static native byte[] get(long session, byte[] key, ByteBuffer directKey, int offset, int bytes) throws KvException;

  /** The value's size, or -1 without one; copied if there is room for it. */
  static native int getInto(long session, byte[] key, ByteBuffer directKey, int offset, int bytes, ByteBuffer to,
      int toOffset, int toBytes) throws KvException;

  static native byte[][] getMany(long session, byte[][] keys) throws KvException;

  /** The version, or 0 when the condition does not hold. `when` is that of spillway/kv.h. */
  static native long put(long session, byte[] key, ByteBuffer directKey, int offset, int bytes, byte[] value,
      ByteBuffer directValue, int valueOffset, int valueBytes, int when, long version, long expiresMs) throws KvException;

  /** Was there such a key, for which the condition holds? */
  static native boolean delete(long session, byte[] key, ByteBuffer directKey, int offset, int bytes, int when,
      long version) throws KvException;

  /** 0 without a value. */
  static native long versionOf(long session, byte[] key) throws KvException;
}
