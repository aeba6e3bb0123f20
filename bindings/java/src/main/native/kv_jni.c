// The native methods of io.spillway.KvNative, over the C API (spillway/kv.h).
//
// A call that blocks pins nothing in the Java heap: arrays are copied, and direct buffers lie outside the heap. Keys are copied in any case. On an
// error a function leaves a KvException, or what the JVM has thrown, and returns 0 or null.
#include <jni.h>
#include <spillway/kv.h>
#include <stdlib.h>
#include <string.h>

enum { kSmall = 512, kPart = 1 << 20, kMaxKey = 1 << 16 };

static void throw_line(JNIEnv *env, int status, const char *line) {
  const jclass class = (*env)->FindClass(env, "io/spillway/KvException");
  if (class == NULL) return;
  const jmethodID make = (*env)->GetMethodID(env, class, "<init>", "(I[B)V");
  const jsize bytes = (jsize)strlen(line);
  const jbyteArray text = make != NULL ? (*env)->NewByteArray(env, bytes) : NULL;
  if (text == NULL) return;
  (*env)->SetByteArrayRegion(env, text, 0, bytes, (const jbyte *)line);
  const jobject error = (*env)->NewObject(env, class, make, (jint)status, text);
  if (error != NULL) (*env)->Throw(env, error);
}

static void throw_status(JNIEnv *env, int status, const spillway_kv_session *session) {
  throw_line(env, status, spillway_kv_error_text(session));
}

static spillway_kv *store_of(jlong handle) { return (spillway_kv *)(intptr_t)handle; }
static spillway_kv_session *session_of(jlong handle) { return (spillway_kv_session *)(intptr_t)handle; }

// The bytes of an array, copied, or those that a direct buffer refers to.
struct bytes {
  const void *data;
  size_t count;
  void *copy;  // to be freed
  char small[kSmall];
};

// Memory for a copy of bytes->count bytes, to which `bytes` refers from then on. On an error null, with an exception.
static void *room_for_copy(JNIEnv *env, struct bytes *bytes) {
  if (bytes->count > kSmall) bytes->copy = malloc(bytes->count);
  if (bytes->count > kSmall && bytes->copy == NULL) {
    throw_line(env, SPILLWAY_KV_NO_MEMORY, "store: no memory for a copy");
    return NULL;
  }
  void *const to = bytes->copy != NULL ? bytes->copy : bytes->small;
  bytes->data = to;
  return to;
}

static int take(JNIEnv *env, jbyteArray array, jobject buffer, struct bytes *bytes) {
  bytes->copy = NULL;
  if (array == NULL) {
    const void *const at = (*env)->GetDirectBufferAddress(env, buffer);
    bytes->data = at != NULL ? at : bytes->small;  // one of no bytes may have no address
    bytes->count = at != NULL ? (size_t)(*env)->GetDirectBufferCapacity(env, buffer) : 0;
    return 0;
  }
  bytes->count = (size_t)(*env)->GetArrayLength(env, array);
  void *const to = room_for_copy(env, bytes);
  if (to == NULL) return -1;
  (*env)->GetByteArrayRegion(env, array, 0, (jsize)bytes->count, to);
  return 0;
}

// The same for a key, which the store reads several times: if another thread changes a direct buffer meanwhile, it must not see two keys. One that is
// too long is refused unread.
static int take_key(JNIEnv *env, jbyteArray array, jobject buffer, struct bytes *key) {
  if (take(env, array, buffer, key) != 0) return -1;
  if (array != NULL || key->count == 0 || key->count > kMaxKey) return 0;
  const void *const from = key->data;
  void *const to = room_for_copy(env, key);
  if (to == NULL) return -1;
  memcpy(to, from, key->count);
  return 0;
}

// The value that a call of the session has found, as an array. On an error null, with an exception.
static jbyteArray array_of(JNIEnv *env, spillway_kv_session *session, spillway_kv_value *value) {
  if (value->data_bytes > INT32_MAX - 8) {
    throw_line(env, SPILLWAY_KV_TOO_LARGE, "store: the value is too large for an array");
    return NULL;
  }
  const jbyteArray array = (*env)->NewByteArray(env, (jsize)value->data_bytes);
  if (array == NULL) return NULL;
  if (value->data != NULL || value->data_bytes == 0) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)value->data_bytes, value->data);
    return array;
  }
  // A large value, which is read part by part.
  int status = SPILLWAY_KV_OK;
  signed char *const part = malloc(kPart);
  if (part == NULL) throw_line(env, SPILLWAY_KV_NO_MEMORY, "store: no memory for a copy");
  for (size_t done = 0, read; part != NULL && done < value->data_bytes; done += read) {
    status = spillway_kv_value_read(value, done, part, kPart, &read);
    if (status != SPILLWAY_KV_OK) break;
    (*env)->SetByteArrayRegion(env, array, (jsize)done, (jsize)read, part);
  }
  free(part);
  if (status != SPILLWAY_KV_OK) throw_status(env, status, session);
  return part != NULL && status == SPILLWAY_KV_OK ? array : NULL;
}

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_io_spillway_KvNative_##name

NATIVE(jstring, version)(JNIEnv *env, jclass class) {
  (void)class;
  return (*env)->NewStringUTF(env, spillway_kv_version());
}

NATIVE(void, make)(JNIEnv *env, jclass class, jbyteArray device, jlong capacity, jboolean overwrite) {
  (void)class;
  struct bytes name;
  if (take(env, device, NULL, &name) != 0) return;
  const spillway_kv_make_options options = {
      .struct_bytes = sizeof options, .capacity_bytes = (uint64_t)capacity, .overwrite = overwrite};
  const int status = spillway_kv_make(name.data, &options);
  free(name.copy);
  if (status != SPILLWAY_KV_OK) throw_status(env, status, NULL);
}

NATIVE(jlong, open)(JNIEnv *env, jclass class, jbyteArray device, jint durability, jboolean read_only) {
  (void)class;
  struct bytes name;
  if (take(env, device, NULL, &name) != 0) return 0;
  const spillway_kv_open_options options = {
      .struct_bytes = sizeof options, .durability = (uint32_t)durability, .read_only = read_only};
  spillway_kv *store;
  const int status = spillway_kv_open(name.data, &options, &store);
  free(name.copy);
  if (status != SPILLWAY_KV_OK) throw_status(env, status, NULL);
  return (jlong)(intptr_t)store;
}

NATIVE(jlong, openMemory)(JNIEnv *env, jclass class, jlong capacity) {
  (void)class;
  spillway_kv *store;
  const int status = spillway_kv_open_memory((uint64_t)capacity, NULL, &store);
  if (status != SPILLWAY_KV_OK) throw_status(env, status, NULL);
  return (jlong)(intptr_t)store;
}

NATIVE(void, close)(JNIEnv *env, jclass class, jlong store) {
  (void)class;
  const int status = spillway_kv_close(store_of(store));
  if (status != SPILLWAY_KV_OK) throw_status(env, status, NULL);
}

NATIVE(jstring, stats)(JNIEnv *env, jclass class, jlong store) {
  (void)class;
  char text[8192];  // enough for all of it (spillway/kv.h)
  const int status = spillway_kv_stats(store_of(store), text, sizeof text, NULL);
  if (status == SPILLWAY_KV_OK) return (*env)->NewStringUTF(env, text);
  throw_line(env, status, spillway_kv_status_text(status));
  return NULL;
}

NATIVE(jlong, openSession)(JNIEnv *env, jclass class, jlong store) {
  (void)class;
  spillway_kv_session *session;
  const int status = spillway_kv_session_open(store_of(store), &session);
  if (status != SPILLWAY_KV_OK) throw_status(env, status, NULL);
  return (jlong)(intptr_t)session;
}

NATIVE(void, closeSession)(JNIEnv *env, jclass class, jlong session) {
  (void)class;
  const int status = spillway_kv_session_close(session_of(session));
  if (status != SPILLWAY_KV_OK) throw_status(env, status, session_of(session));
}

NATIVE(jbyteArray, get)(JNIEnv *env, jclass class, jlong handle, jbyteArray key_array, jobject key_buffer) {
  (void)class;
  struct bytes key;
  if (take_key(env, key_array, key_buffer, &key) != 0) return NULL;
  spillway_kv_session *const session = session_of(handle);
  spillway_kv_value value = {.struct_bytes = sizeof value};
  const int status = spillway_kv_get_value(session, key.data, key.count, &value);
  free(key.copy);
  if (status < 0) throw_status(env, status, session);
  const jbyteArray result = status == SPILLWAY_KV_OK ? array_of(env, session, &value) : NULL;
  spillway_kv_value_release(&value, 1);
  return result;
}

NATIVE(jint, getInto)(JNIEnv *env, jclass class, jlong handle, jbyteArray key_array, jobject key_buffer,
                      jobject to) {
  (void)class;
  struct bytes key, target;
  if (take_key(env, key_array, key_buffer, &key) != 0) return 0;
  take(env, NULL, to, &target);
  spillway_kv_session *const session = session_of(handle);
  spillway_kv_value value = {.struct_bytes = sizeof value};
  const int status = spillway_kv_get(session, key.data, key.count, (void *)target.data, target.count, &value);
  free(key.copy);
  if (status < 0) throw_status(env, status, session);
  if (value.data_bytes > INT32_MAX) {
    throw_line(env, SPILLWAY_KV_TOO_LARGE, "store: the value is too large for a buffer");
    return 0;
  }
  return status == SPILLWAY_KV_ABSENT ? -1 : (jint)value.data_bytes;
}

NATIVE(jobjectArray, getMany)(JNIEnv *env, jclass class, jlong handle, jobjectArray keys) {
  (void)class;
  const jsize count = (*env)->GetArrayLength(env, keys);
  struct bytes *const taken = calloc((size_t)count + 1, sizeof *taken);
  struct iovec *const wanted = calloc((size_t)count + 1, sizeof *wanted);
  spillway_kv_value *const values = calloc((size_t)count + 1, sizeof *values);
  spillway_kv_session *const session = session_of(handle);
  jobjectArray result = NULL;
  int status = SPILLWAY_KV_OK;
  if (taken == NULL || wanted == NULL || values == NULL) {
    status = SPILLWAY_KV_NO_MEMORY;
    throw_line(env, status, "store: no memory for the keys");
  }
  for (jsize i = 0; i < count && status == SPILLWAY_KV_OK; ++i) {
    const jbyteArray key = (*env)->GetObjectArrayElement(env, keys, i);
    if (take(env, key, NULL, &taken[i]) != 0) status = SPILLWAY_KV_NO_MEMORY;
    (*env)->DeleteLocalRef(env, key);
    wanted[i] = (struct iovec){(void *)taken[i].data, taken[i].count};
    values[i].struct_bytes = sizeof values[i];
  }
  if (status == SPILLWAY_KV_OK) {
    status = spillway_kv_get_many(session, wanted, (size_t)count, values);
    if (status < 0) throw_status(env, status, session);
  }
  if (status == SPILLWAY_KV_OK) {
    const jclass bytes_class = (*env)->FindClass(env, "[B");
    result = bytes_class != NULL ? (*env)->NewObjectArray(env, count, bytes_class, NULL) : NULL;
    for (jsize i = 0; i < count && result != NULL; ++i) {
      if (values[i].status != SPILLWAY_KV_OK) continue;
      const jbyteArray array = array_of(env, session, &values[i]);
      if (array == NULL) break;  // with an exception
      (*env)->SetObjectArrayElement(env, result, i, array);
      (*env)->DeleteLocalRef(env, array);
    }
  }
  if (values != NULL) spillway_kv_value_release(values, (size_t)count);
  for (jsize i = 0; i < count && taken != NULL; ++i) free(taken[i].copy);
  free(values);
  free(wanted);
  free(taken);
  return result;
}

NATIVE(jlong, put)(JNIEnv *env, jclass class, jlong handle, jbyteArray key_array, jobject key_buffer,
                   jbyteArray value_array, jobject value_buffer, jint when, jlong version, jlong expires_ms) {
  (void)class;
  struct bytes key, value;
  if (take_key(env, key_array, key_buffer, &key) != 0) return 0;
  if (take(env, value_array, value_buffer, &value) != 0) {
    free(key.copy);
    return 0;
  }
  const spillway_kv_change_options options = {.struct_bytes = sizeof options,
                                              .when = (uint32_t)when,
                                              .version = (uint64_t)version,
                                              .expires_ms = (uint64_t)expires_ms};
  const struct iovec piece = {(void *)value.data, value.count};
  uint64_t new_version = 0;
  spillway_kv_session *const session = session_of(handle);
  const int status = spillway_kv_put(session, key.data, key.count, &piece, 1, &options, &new_version);
  free(key.copy);
  free(value.copy);
  if (status < 0) throw_status(env, status, session);
  return status == SPILLWAY_KV_OK ? (jlong)new_version : 0;
}

NATIVE(jboolean, delete)(JNIEnv *env, jclass class, jlong handle, jbyteArray key_array, jobject key_buffer,
                         jint when, jlong version) {
  (void)class;
  struct bytes key;
  if (take_key(env, key_array, key_buffer, &key) != 0) return JNI_FALSE;
  const spillway_kv_change_options options = {
      .struct_bytes = sizeof options, .when = (uint32_t)when, .version = (uint64_t)version};
  spillway_kv_session *const session = session_of(handle);
  const int status = spillway_kv_remove(session, key.data, key.count, &options, NULL);
  free(key.copy);
  if (status < 0) throw_status(env, status, session);
  return status == SPILLWAY_KV_OK ? JNI_TRUE : JNI_FALSE;
}

NATIVE(jlong, versionOf)(JNIEnv *env, jclass class, jlong handle, jbyteArray key_array) {
  (void)class;
  struct bytes key;
  if (take(env, key_array, NULL, &key) != 0) return 0;
  spillway_kv_session *const session = session_of(handle);
  spillway_kv_value value = {.struct_bytes = sizeof value};
  const int status = spillway_kv_get(session, key.data, key.count, NULL, 0, &value);
  free(key.copy);
  if (status < 0) throw_status(env, status, session);
  return (jlong)value.version;
}
