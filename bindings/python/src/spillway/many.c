// Store's methods for many keys. Each is one call of the C library, without the interpreter lock.
#define PY_SSIZE_T_CLEAN
#include "store.h"

// What a call refers to: a buffer for each key, and for each value if there are values.
typedef struct {
  PyObject *items;  // a list, which holds the objects
  Py_buffer *keys;
  Py_buffer *values;
  Py_ssize_t count;        // keys, or pairs, of the call
  Py_ssize_t key_count;    // buffers that are held
  Py_ssize_t value_count;  // buffers that are held
} Many;

static void release(Many *many) {
  for (Py_ssize_t i = 0; i < many->key_count; ++i) PyBuffer_Release(&many->keys[i]);
  for (Py_ssize_t i = 0; i < many->value_count; ++i) PyBuffer_Release(&many->values[i]);
  PyMem_Free(many->keys);
  PyMem_Free(many->values);
  Py_XDECREF(many->items);
}

static int hold_pair(Many *many, PyObject *item) {
  PyObject *const pair = PySequence_Fast(item, "put_many wants a mapping, or pairs of key and value");
  if (pair == NULL) return -1;
  int status = -1;
  if (PySequence_Fast_GET_SIZE(pair) != 2) {
    PyErr_SetString(PyExc_ValueError, "put_many wants a mapping, or pairs of key and value");
  } else if (kv_key_of(PySequence_Fast_GET_ITEM(pair, 0), &many->keys[many->key_count])) {
    ++many->key_count;
    status =
        PyObject_GetBuffer(PySequence_Fast_GET_ITEM(pair, 1), &many->values[many->value_count], PyBUF_SIMPLE);
    if (status == 0) ++many->value_count;
  }
  Py_DECREF(pair);
  return status;
}

// Holds all keys, or pairs, of an iterable. Returns 0, or -1 with an exception; release() must follow in any case.
static int hold(Many *many, PyObject *iterable, int pairs) {
  *many = (Many){.items = PySequence_List(iterable)};
  if (many->items == NULL) return -1;
  many->count = PyList_GET_SIZE(many->items);
  many->keys = PyMem_New(Py_buffer, (size_t)many->count);
  many->values = PyMem_New(Py_buffer, pairs ? (size_t)many->count : 0);
  if (many->keys == NULL || many->values == NULL) return PyErr_NoMemory(), -1;
  for (Py_ssize_t i = 0; i < many->count; ++i) {
    PyObject *const item = PyList_GET_ITEM(many->items, i);
    if (pairs) {
      if (hold_pair(many, item) != 0) return -1;
    } else {
      if (!kv_key_of(item, &many->keys[i])) return -1;
      ++many->key_count;
    }
  }
  return 0;
}

static PyObject *list_of(spillway_kv_session *session, spillway_kv_value *values, Py_ssize_t count) {
  PyObject *const list = PyList_New(count);
  for (Py_ssize_t i = 0; i < count && list != NULL; ++i) {
    PyObject *const item =
        values[i].status == SPILLWAY_KV_OK ? kv_bytes(session, &values[i]) : Py_NewRef(Py_None);
    if (item == NULL) {
      Py_DECREF(list);
      return NULL;
    }
    PyList_SET_ITEM(list, i, item);
  }
  return list;
}

PyObject *kv_get_many(KvStore *self, PyObject *keys) {
  Many many;
  PyObject *result = NULL;
  spillway_kv_session *session;
  struct iovec *wanted = NULL;
  spillway_kv_value *values = NULL;
  if (hold(&many, keys, 0) == 0) {
    const size_t count = (size_t)many.count;
    wanted = PyMem_New(struct iovec, count);
    values = PyMem_New(spillway_kv_value, count);
    if (wanted == NULL || values == NULL) {
      PyErr_NoMemory();
    } else if (kv_begin(self, &session) == 0) {
      for (size_t i = 0; i < count; ++i) {
        wanted[i] = (struct iovec){many.keys[i].buf, (size_t)many.keys[i].len};
        values[i] = (spillway_kv_value){.struct_bytes = sizeof values[i]};
      }
      int status;
      Py_BEGIN_ALLOW_THREADS;
      status = spillway_kv_get_many(session, wanted, count, values);
      Py_END_ALLOW_THREADS;
      result = status < 0 ? kv_raise(status, spillway_kv_error_text(session))
                          : list_of(session, values, many.count);
      spillway_kv_value_release(values, count);
      kv_end(self, session);
    }
  }
  PyMem_Free(values);
  PyMem_Free(wanted);
  release(&many);
  return result;
}

// Puts, or removes. Returns how many changes were made, or -1 with an exception.
static Py_ssize_t change_many(KvStore *self, const Many *many, int is_remove) {
  const size_t count = (size_t)many->count;
  struct iovec *const pieces = PyMem_New(struct iovec, count);
  spillway_kv_change *const changes = PyMem_New(spillway_kv_change, count);
  spillway_kv_session *session;
  Py_ssize_t done = -1;
  if (pieces == NULL || changes == NULL) {
    PyErr_NoMemory();
  } else if (kv_begin(self, &session) == 0) {
    for (size_t i = 0; i < count; ++i) {
      if (!is_remove) pieces[i] = (struct iovec){many->values[i].buf, (size_t)many->values[i].len};
      changes[i] = (spillway_kv_change){.struct_bytes = sizeof changes[i],
                                        .key = many->keys[i].buf,
                                        .key_bytes = (size_t)many->keys[i].len,
                                        .value = &pieces[i],
                                        .value_count = is_remove ? 0 : 1,
                                        .is_remove = (uint32_t)is_remove};
    }
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = spillway_kv_change_many(session, changes, count);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
      kv_raise(status, spillway_kv_error_text(session));
    } else {
      done = 0;
      for (size_t i = 0; i < count; ++i) done += changes[i].status == SPILLWAY_KV_OK;
    }
    kv_end(self, session);
  }
  PyMem_Free(changes);
  PyMem_Free(pieces);
  return done;
}

PyObject *kv_put_many(KvStore *self, PyObject *pairs) {
  PyObject *const items = PyObject_HasAttrString(pairs, "items") ? PyMapping_Items(pairs) : Py_NewRef(pairs);
  if (items == NULL) return NULL;
  Many many;
  const Py_ssize_t done = hold(&many, items, 1) == 0 ? change_many(self, &many, 0) : -1;
  release(&many);
  Py_DECREF(items);
  if (done < 0) return NULL;
  Py_RETURN_NONE;
}

PyObject *kv_delete_many(KvStore *self, PyObject *keys) {
  Many many;
  const Py_ssize_t done = hold(&many, keys, 0) == 0 ? change_many(self, &many, 1) : -1;
  release(&many);
  return done < 0 ? NULL : PyLong_FromSsize_t(done);
}
