// What the parts of the extension module share.
#ifndef SPILLWAY_PYTHON_STORE_H
#define SPILLWAY_PYTHON_STORE_H
#include <Python.h>
#include <spillway/kv.h>
#include <sys/types.h>

typedef struct {
  PyObject_HEAD
  spillway_kv *store;          // null: closed
  pid_t process;               // the one that opened it
  int is_opening;              // a call of __init__ is under way
  spillway_kv_session **idle;  // sessions that no call uses
  size_t idle_count;
  size_t idle_room;   // of `idle`; never less than there are sessions
  size_t busy_count;  // sessions that calls under way and iterators use
} KvStore;

// Takes a session for one call, which kv_end gives back. Returns 0, or -1 with an exception.
int kv_begin(KvStore *self, spillway_kv_session **session);
void kv_end(KvStore *self, spillway_kv_session *session);
// Makes the exceptions' classes and puts them into the module. Returns 0, or -1 with an exception.
int kv_add_errors(PyObject *module);
// Sets the exception for a status. Returns null.
PyObject *kv_raise(int status, const char *text);

// A converter for the format "O&" that fills in a Py_buffer with a key, which is bytes: other objects are copied, since other threads may change what
// they contain, and the store, which reads a key several times, must not see two. On an error returns 0, with an exception.
int kv_key_of(PyObject *object, void *key);

// Returns the value that a call of the session has found, as bytes; on an error null, with an exception.
PyObject *kv_bytes(spillway_kv_session *session, spillway_kv_value *value);

// Store's methods for many keys (many.c).
PyObject *kv_get_many(KvStore *self, PyObject *keys);
PyObject *kv_put_many(KvStore *self, PyObject *pairs);
PyObject *kv_delete_many(KvStore *self, PyObject *keys);

// Store.items() (items.c).
PyObject *kv_items(KvStore *self, PyObject *unused);
// Makes the iterator's class. Returns 0, or -1 with an exception.
int kv_add_items(void);
#endif
