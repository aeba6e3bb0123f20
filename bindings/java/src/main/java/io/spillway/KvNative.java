package io.spillway;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The C API (spillway/kv.h) by way of libspillway_kv_jni, which is the file that -Dspillway.jni names, or else the one in the jar, or else one
 * in -Djava.library.path. Handles are addresses. A key or value is an array, or, if that is null, a direct buffer from 0 to its capacity: its
 * position and limit, which other threads may change, are ignored. A device's name ends with a byte 0 and is in UTF-8, which JNI's own
 * strings are not beyond U+FFFF.
 */
final class KvNative {
  private static final String JNI = "libspillway_kv_jni.so";

  static {
    String path = System.getProperty("spillway.jni");
    if (path != null) System.load(path);
    else if (KvNative.class.getResource("native/" + JNI) != null) loadOfJar();
    else System.loadLibrary("spillway_kv_jni");
  }

  /** Copies the libraries of the jar to files and loads them. The files are gone when this returns; what was loaded stays. */
  private static void loadOfJar() {
    try {
      Path folder = Files.createTempDirectory("spillway");
      Path[] files = {folder.resolve("libspillway_kv.so.0"), folder.resolve(JNI)}; // the second is linked with the first, which it finds beside itself
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

  static native byte[] get(long session, byte[] key, ByteBuffer directKey) throws KvException;

  /** Returns the value's size, or -1 if there is no such key. The value is copied if there is room for it. */
  static native int getInto(long session, byte[] key, ByteBuffer directKey, ByteBuffer to) throws KvException;

  static native byte[][] getMany(long session, byte[][] keys) throws KvException;

  /** Returns the new version, or 0 if the condition does not hold. `when` is a number of spillway/kv.h. */
  static native long put(long session, byte[] key, ByteBuffer directKey, byte[] value, ByteBuffer directValue, int when,
      long version, long expiresMs) throws KvException;

  /** Returns whether there was such a key for which the condition held. */
  static native boolean delete(long session, byte[] key, ByteBuffer directKey, int when, long version) throws KvException;

  /** Returns 0 if there is no such key. */
  static native long versionOf(long session, byte[] key) throws KvException;
}
