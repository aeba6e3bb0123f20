// Exceptions, and the sessions that calls borrow and return. The counts and lists of sessions change only under the interpreter lock.
#include <unistd.h>

#include "store.h"

// ---- Errors

static const struct {
  const char *name;
  int status;
} kErrors[] = {
    {"spillway.Error", 0},
    {"spillway.CanceledError", SPILLWAY_KV_CANCELED},
    {"spillway.DamagedError", SPILLWAY_KV_DAMAGED},
    {"spillway.FullError", SPILLWAY_KV_FULL},
    {"spillway.InUseError", SPILLWAY_KV_IN_USE},
    {"spillway.NotFoundError", SPILLWAY_KV_NOT_FOUND},
    {"spillway.StoreExistsError", SPILLWAY_KV_EXISTS},
};
enum { kErrorCount = sizeof kErrors / sizeof kErrors[0] };
static PyObject *error_classes[kErrorCount];

int kv_add_errors(PyObject *module) {
  for (int i = 0; i < kErrorCount; ++i) {
    error_classes[i] = PyErr_NewException(kErrors[i].name, i > 0 ? error_classes[0] : NULL, NULL);
    if (error_classes[i] == NULL) return -1;
    if (PyModule_AddObjectRef(module, strchr(kErrors[i].name, '.') + 1, error_classes[i]) != 0) return -1;
  }
  return 0;
}

PyObject *kv_raise(int status, const char *text) {
  PyObject *class = error_classes[0];
  for (int i = 1; i < kErrorCount; ++i)
    if (kErrors[i].status == status) class = error_classes[i];
  PyObject *const message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  if (message == NULL) return NULL;
  PyObject *const error = PyObject_CallOneArg(class, message);
  Py_DECREF(message);
  PyObject *const number = PyLong_FromLong(status);
  if (error != NULL && number != NULL && PyObject_SetAttrString(error, "status", number) == 0)
    PyErr_SetObject(class, error);
  Py_XDECREF(number);
  Py_XDECREF(error);
  return NULL;
}

// ---- Sessions

int kv_begin(KvStore *self, spillway_kv_session **session) {
  if (self->store == NULL || self->process != getpid()) {
    PyErr_SetString(PyExc_ValueError,
                    self->store == NULL ? "the store is closed" : "the store is another process's");
    return -1;
  }
  if (self->idle_count > 0) {
    *session = self->idle[--self->idle_count];
    ++self->busy_count;
    return 0;
  }
  // Make room for all sessions now, so that giving one back cannot fail.
  const size_t room = self->busy_count + 1;
  if (room > self->idle_room) {
    spillway_kv_session **const idle = PyMem_Realloc(self->idle, 2 * room * sizeof *idle);
    if (idle == NULL) return PyErr_NoMemory(), -1;
    self->idle = idle;
    self->idle_room = 2 * room;
  }
  ++self->busy_count;
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_session_open(self->store, session);
  Py_END_ALLOW_THREADS;
  if (status == SPILLWAY_KV_OK) return 0;
  --self->busy_count;
  kv_raise(status, spillway_kv_error_text(NULL));
  return -1;
}

void kv_end(KvStore *self, spillway_kv_session *session) {
  --self->busy_count;
  self->idle[self->idle_count++] = session;
}

PyObject *kv_bytes(spillway_kv_session *session, spillway_kv_value *value) {
  PyObject *const bytes = PyBytes_FromStringAndSize(value->data, (Py_ssize_t)value->data_bytes);
  if (bytes == NULL || value->data != NULL || value->data_bytes == 0) return bytes;
  // A large value.
  char *const to = PyBytes_AS_STRING(bytes);
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_value_read(value, 0, to, value->data_bytes, NULL);
  Py_END_ALLOW_THREADS;
  if (status == SPILLWAY_KV_OK) return bytes;
  Py_DECREF(bytes);
  return kv_raise(status, spillway_kv_error_text(session));
}
