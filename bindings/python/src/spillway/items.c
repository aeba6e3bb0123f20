// Store.items(): an iterator over all keys and values as they were when it was made.
//
// The iterator has a session of its own, which counts as one of a call under way until the iterator has ended or is gone. One thread uses it
// at a time: `is_busy`, which changes under the interpreter lock, is set meanwhile.
#define PY_SSIZE_T_CLEAN
#include <unistd.h>

#include "store.h"

typedef struct {
  PyObject_HEAD
  KvStore *store;
  spillway_kv_session *session;
  spillway_kv_iteration *iteration;  // null: the iterator has ended
  int is_busy;
} Items;

static PyTypeObject *items_type;

static void end(Items *self) {
  if (self->iteration == NULL || self->store->process != getpid()) return;
  spillway_kv_iterate_close(self->iteration);
  self->iteration = NULL;
  kv_end(self->store, self->session);
}

PyObject *kv_items(KvStore *store, PyObject *unused) {
  (void)unused;
  Items *const self = PyObject_New(Items, items_type);
  if (self == NULL) return NULL;
  self->store = (KvStore *)Py_NewRef(store);
  self->iteration = NULL;
  self->is_busy = 0;
  if (kv_begin(store, &self->session) != 0) {
    Py_DECREF(self);
    return NULL;
  }
  const int status = spillway_kv_iterate_open(self->session, &self->iteration);
  if (status == SPILLWAY_KV_OK) return (PyObject *)self;
  kv_raise(status, spillway_kv_error_text(self->session));
  kv_end(store, self->session);
  Py_DECREF(self);
  return NULL;
}

// Returns the value of the last key as bytes; on an error null, with an exception.
static PyObject *value_of(Items *self, const spillway_kv_value *value) {
  if (value->data != NULL) return PyBytes_FromStringAndSize(value->data, (Py_ssize_t)value->data_bytes);
  PyObject *const bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)value->data_bytes);
  if (bytes == NULL) return NULL;
  int status;
  size_t read_bytes;
  Py_BEGIN_ALLOW_THREADS;
  status =
      spillway_kv_iterate_read(self->iteration, 0, PyBytes_AS_STRING(bytes), value->data_bytes, &read_bytes);
  Py_END_ALLOW_THREADS;
  if (status == SPILLWAY_KV_OK) return bytes;
  Py_DECREF(bytes);
  return kv_raise(status, spillway_kv_error_text(self->session));
}

static PyObject *items_next(Items *self) {
  if (self->iteration == NULL) return NULL;
  if (self->is_busy || self->store->process != getpid()) {
    PyErr_SetString(PyExc_ValueError,
                    self->is_busy ? "another thread is in the iterator" : "the store is another process's");
    return NULL;
  }
  self->is_busy = 1;
  const void *key;
  size_t key_bytes;
  spillway_kv_value value = {.struct_bytes = sizeof value};
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_iterate_next(self->iteration, &key, &key_bytes, &value);
  Py_END_ALLOW_THREADS;
  PyObject *result = NULL;
  if (status == SPILLWAY_KV_OK) {
    PyObject *const bytes = value_of(self, &value);
    if (bytes != NULL) result = Py_BuildValue("(y#N)", key, (Py_ssize_t)key_bytes, bytes);
  } else if (status < 0) {
    kv_raise(status, spillway_kv_error_text(self->session));
  }
  self->is_busy = 0;
  if (status == SPILLWAY_KV_ABSENT || status == SPILLWAY_KV_CANCELED) end(self);
  return result;
}

static void items_dealloc(Items *self) {
  PyTypeObject *const type = Py_TYPE(self);
  end(self);
  Py_DECREF(self->store);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyType_Slot kSlots[] = {{Py_tp_doc, "All keys and values as they were at one moment, in no order."},
                               {Py_tp_dealloc, items_dealloc},
                               {Py_tp_iter, PyObject_SelfIter},
                               {Py_tp_iternext, items_next},
                               {0, NULL}};
static PyType_Spec kSpec = {"spillway._kv.Items", sizeof(Items), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};

int kv_add_items(void) {
  items_type = (PyTypeObject *)PyType_FromSpec(&kSpec);
  return items_type != NULL ? 0 : -1;
}
