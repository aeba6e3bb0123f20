package io.spillway;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** An error of the store, with the C library's one line: what, where, what to do. */
public class KvException extends IOException {
  private static final long serialVersionUID = 1;
  private final int status;

  /** `line` is in UTF-8. */
  KvException(int status, byte[] line) {
    super(new String(line, StandardCharsets.UTF_8));
    this.status = status;
  }

  /** Returns the error's status of spillway/kv.h, which is below 0: -3 for SPILLWAY_KV_FULL and so on. */
  public int status() {
    return status;
  }
}
