package io.spillway;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The C API (spillway/kv.h), by libspillway_kv_jni: a file's path in -Dspillway.jni, or what the jar brings along, or by
 * -Djava.library.path. Handles are addresses; of keys and values there is an array, or, where that is null, a direct buffer with a range. A
 * device's name is in UTF-8, which JNI's own strings are not beyond U+FFFF, and ends with a byte 0.
 */
final class KvNative {
  private static final String JNI = "libspillway_kv_jni.so";

  static {
    String path = System.getProperty("spillway.jni");
    if (path != null) System.load(path);
    else if (KvNative.class.getResource("native/" + JNI) != null) loadOfJar();
    else System.loadLibrary("spillway_kv_jni");
  }

  /** From files that are gone when this returns: what is loaded stays. */
  private static void loadOfJar() {
    try {
      Path folder = Files.createTempDirectory("spillway");
      Path[] files = {folder.resolve("libspillway_kv.so.0"), folder.resolve(JNI)}; // the second one looks for the first beside itself
      try {
        for (Path file : files) {
          try (InputStream library = KvNative.class.getResourceAsStream("native/" + file.getFileName())) {
            Files.copy(library, file);
          }
        }
        System.load(files[1].toString());
      } finally {
        for (Path file : files) Files.deleteIfExists(file);
        Files.delete(folder);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private KvNative() {}

  static native String version();

  static native void make(byte[] device, long capacityBytes, boolean overwrite) throws KvException;

  static native long open(byte[] device, int durability, boolean readOnly) throws KvException;

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
