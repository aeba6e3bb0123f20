package io.spillway;

import java.io.IOException;

/** An error of the store, with the C library's one line: what, where, what to do. */
public class KvException extends IOException {
  private static final long serialVersionUID = 1;
  private final int status;

  KvException(int status, String line) {
    super(line);
    this.status = status;
  }

  /** The status of spillway/kv.h, below 0: -3 for SPILLWAY_KV_FULL and so on. */
  public int status() {
    return status;
  }
}
