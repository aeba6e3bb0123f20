// What the parts of the extension module share.
#ifndef SPILLWAY_PYTHON_STORE_H
#define SPILLWAY_PYTHON_STORE_H
#include <Python.h>
#include <spillway/kv.h>
#include <sys/types.h>

typedef struct {
  PyObject_HEAD
  spillway_kv *store;          // null: closed
  pid_t process;               // that opened it
  spillway_kv_session **idle;  // sessions that no call has
  size_t idle_count;
  size_t idle_room;   // for all there are
  size_t busy_count;  // those of calls under way
} KvStore;

// A session for one call. 0, and kv_end gives it back; or -1 with an exception.
int kv_begin(KvStore *self, spillway_kv_session **session);
void kv_end(KvStore *self, spillway_kv_session *session);
// Makes the exceptions' classes and puts them into the module. -1 with an exception.
int kv_add_errors(PyObject *module);
// Sets the exception of a status; returns null.
PyObject *kv_raise(int status, const char *text);

// What a call has found, as bytes; null with an exception. `session` is the call's.
PyObject *kv_bytes(spillway_kv_session *session, spillway_kv_value *value);

// Methods of many keys (many.c).
PyObject *kv_get_many(KvStore *self, PyObject *keys);
PyObject *kv_put_many(KvStore *self, PyObject *pairs);
PyObject *kv_delete_many(KvStore *self, PyObject *keys);

// Store.items() (items.c).
PyObject *kv_items(KvStore *self, PyObject *unused);
// Makes the iterator's class. -1 with an exception.
int kv_add_items(void);
#endif
