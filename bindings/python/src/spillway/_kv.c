// The extension module: the class Store over the C API (spillway/kv.h).
//
// Invariants
//  1 a session is idle, or belongs to one call that is under way (sessions.c)
//  2 the interpreter lock is released around every call that may block; meanwhile references hold what the call uses (buffers, the Store), and
//    nobody can change a key (kv_key_of)
//  3 `store` is null once closed, and is closed only while no call is under way
//  4 a child of fork has neither the store's threads nor its locks, so it neither uses nor closes anything
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <spillway/kv.h>
#include <unistd.h>

#include "store.h"

static PyTypeObject *entry_type;

// ---- Arguments

typedef struct {
  const char *name;
  uint64_t most;
  uint64_t value;
  int is_given;
} Number;

// Converters for the format "O&" that fill in a Number. (The formats "K" and "I" would take any number modulo 2^64 or 2^32.)
static int number_of(PyObject *object, void *result) {
  Number *const number = result;
  PyObject *const integer = PyNumber_Index(object);
  if (integer == NULL) return 0;
  number->value = PyLong_AsUnsignedLongLong(integer);
  number->is_given = 1;
  Py_DECREF(integer);
  if (PyErr_Occurred() == NULL && number->value <= number->most) return 1;
  PyErr_Format(PyExc_OverflowError, "%s is below 0 or above %llu", number->name,
               (unsigned long long)number->most);
  return 0;
}

// The same, but None counts as not given.
static int number_or_none_of(PyObject *object, void *result) {
  return object == Py_None ? 1 : number_of(object, result);
}

int kv_key_of(PyObject *object, void *result) {
  Py_buffer *const key = result;
  if (object == NULL) {
    PyBuffer_Release(key);
    return 1;
  }
  if (PyObject_GetBuffer(object, key, PyBUF_SIMPLE) != 0) return 0;
  if (PyBytes_CheckExact(object)) return Py_CLEANUP_SUPPORTED;
  PyObject *const copy = PyBytes_FromStringAndSize(key->buf, key->len);
  PyBuffer_Release(key);
  if (copy == NULL) return 0;
  const int status = PyObject_GetBuffer(copy, key, PyBUF_SIMPLE);
  Py_DECREF(copy);
  return status == 0 ? Py_CLEANUP_SUPPORTED : 0;
}

// The place of a name is its number in spillway/kv.h (SPILLWAY_KV_SYNC, SPILLWAY_KV_ALWAYS and so on).
static const char *const kDurabilities[] = {"sync", "batch", "none", NULL};
static const char *const kWhens[] = {"always", "absent", "present", "version", NULL};

// Returns the place of a name in a list that ends with NULL, or -1 with an exception.
static int place_of(const char *name, const char *const *names, const char *what) {
  for (int i = 0; names[i] != NULL; ++i)
    if (strcmp(name, names[i]) == 0) return i;
  PyObject *all = PyUnicode_FromString("");
  for (int i = 0; names[i] != NULL && all != NULL; ++i) {
    const char *const before = i == 0 ? "" : names[i + 1] != NULL ? ", " : " or ";
    PyUnicode_AppendAndDel(&all, PyUnicode_FromFormat("%s'%s'", before, names[i]));
  }
  if (all != NULL) PyErr_Format(PyExc_ValueError, "%s is '%s'; give %U", what, name, all);
  Py_XDECREF(all);
  return -1;
}

// ---- Opening and closing

static PyObject *make(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {
      "device", "capacity_bytes", "segment_bytes", "grain_bytes", "spare_percent", "overwrite", NULL};
  (void)module;
  PyObject *device;
  Number capacity = {"capacity_bytes", UINT64_MAX}, segment = {"segment_bytes", UINT64_MAX};
  Number grain = {"grain_bytes", UINT32_MAX}, spare = {"spare_percent", UINT32_MAX};
  int overwrite = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|$O&O&O&O&p", names, PyUnicode_FSConverter, &device,
                                   number_of, &capacity, number_of, &segment, number_of, &grain, number_of,
                                   &spare, &overwrite))
    return NULL;
  const spillway_kv_make_options options = {.struct_bytes = sizeof options,
                                            .capacity_bytes = capacity.value,
                                            .segment_bytes = segment.value,
                                            .grain_bytes = (uint32_t)grain.value,
                                            .spare_percent = (uint32_t)spare.value,
                                            .overwrite = (uint32_t)overwrite};
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_make(PyBytes_AS_STRING(device), &options);
  Py_END_ALLOW_THREADS;
  Py_DECREF(device);
  if (status != SPILLWAY_KV_OK) return kv_raise(status, spillway_kv_error_text(NULL));
  Py_RETURN_NONE;
}

static int store_init(KvStore *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"device", "durability", "batch_ms", "read_only", NULL};
  PyObject *device;
  const char *durability = "sync";
  Number batch_ms = {"batch_ms", UINT32_MAX};
  int read_only = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|$sO&p", names, PyUnicode_FSConverter, &device,
                                   &durability, number_of, &batch_ms, &read_only))
    return -1;
  const int place = place_of(durability, kDurabilities, "durability");
  int status = SPILLWAY_KV_INVALID;
  // The code that converts the arguments, or another thread, may have opened it.
  if (self->store != NULL || self->is_opening) {
    PyErr_SetString(PyExc_ValueError, "the store is open already");
  } else if (place >= 0) {
    const spillway_kv_open_options options = {.struct_bytes = sizeof options,
                                              .durability = (uint32_t)place,
                                              .batch_ms = (uint32_t)batch_ms.value,
                                              .read_only = (uint32_t)read_only};
    spillway_kv *store;
    self->is_opening = 1;
    Py_BEGIN_ALLOW_THREADS;
    status = spillway_kv_open(PyBytes_AS_STRING(device), &options, &store);
    Py_END_ALLOW_THREADS;
    self->is_opening = 0;
    self->store = store;
    self->process = getpid();
    if (status != SPILLWAY_KV_OK) kv_raise(status, spillway_kv_error_text(NULL));
  }
  Py_DECREF(device);
  return status == SPILLWAY_KV_OK ? 0 : -1;
}

static PyObject *store_in_memory(PyTypeObject *type, PyObject *argument) {
  Number capacity = {"capacity_bytes", UINT64_MAX};
  if (!number_of(argument, &capacity)) return NULL;
  KvStore *const self = (KvStore *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  const int status = spillway_kv_open_memory(capacity.value, NULL, &self->store);
  self->process = getpid();
  if (status == SPILLWAY_KV_OK) return (PyObject *)self;
  Py_DECREF(self);
  return kv_raise(status, spillway_kv_error_text(NULL));
}

static PyObject *store_close(KvStore *self, PyObject *unused) {
  (void)unused;
  if (self->store == NULL || self->process != getpid()) Py_RETURN_NONE;
  if (self->busy_count > 0)
    return kv_raise(SPILLWAY_KV_IN_USE,
                    "store: calls of other threads are under way, or iterators of items() are open");
  spillway_kv *const store = self->store;
  spillway_kv_session **const idle = self->idle;
  const size_t count = self->idle_count;
  self->store = NULL;
  self->idle = NULL;
  self->idle_count = self->idle_room = 0;
  int status;
  Py_BEGIN_ALLOW_THREADS;
  for (size_t i = 0; i < count; ++i) spillway_kv_session_close(idle[i]);
  status = spillway_kv_close(store);
  Py_END_ALLOW_THREADS;
  PyMem_Free(idle);
  if (status != SPILLWAY_KV_OK) return kv_raise(status, spillway_kv_error_text(NULL));
  Py_RETURN_NONE;
}

static void store_dealloc(KvStore *self) {
  PyTypeObject *const type = Py_TYPE(self);
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  PyObject *const closed = store_close(self, NULL);
  if (closed == NULL) PyErr_WriteUnraisable((PyObject *)type);
  Py_XDECREF(closed);
  PyErr_Restore(kind, value, traceback);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject *store_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  return Py_NewRef(self);
}

static PyObject *store_exit(KvStore *self, PyObject *args) {
  (void)args;
  return store_close(self, NULL);
}

static PyObject *store_stats(KvStore *self, PyObject *unused) {
  (void)unused;
  char text[8192];  // enough for all of it (spillway/kv.h)
  spillway_kv_session *session;
  if (kv_begin(self, &session) != 0) return NULL;  // keeps others from closing the store meanwhile
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_stats(self->store, text, sizeof text, NULL);
  Py_END_ALLOW_THREADS;
  kv_end(self, session);
  if (status != SPILLWAY_KV_OK) return kv_raise(status, spillway_kv_status_text(status));
  PyObject *const json = PyImport_ImportModule("json");
  PyObject *const result = json != NULL ? PyObject_CallMethod(json, "loads", "s", text) : NULL;
  Py_XDECREF(json);
  return result;
}

// ---- One key

// Gets a value, which stays held. Returns 0, also if the key is absent: release the value, then call kv_end. Or -1 with an exception.
static int find(KvStore *self, const Py_buffer *key, spillway_kv_session **session,
                spillway_kv_value *value) {
  if (kv_begin(self, session) != 0) return -1;
  *value = (spillway_kv_value){.struct_bytes = sizeof *value};
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = spillway_kv_get_value(*session, key->buf, (size_t)key->len, value);
  Py_END_ALLOW_THREADS;
  if (status >= 0) return 0;
  kv_raise(status, spillway_kv_error_text(*session));
  kv_end(self, *session);
  return -1;
}

// Returns the value as bytes or as an Entry, or `absent`; on an error null, with an exception.
static PyObject *get(KvStore *self, const Py_buffer *key, PyObject *absent, int as_entry) {
  spillway_kv_session *session;
  spillway_kv_value value;
  if (find(self, key, &session, &value) != 0) return NULL;
  PyObject *result;
  if (value.status != SPILLWAY_KV_OK)
    result = Py_NewRef(absent);
  else
    result = kv_bytes(session, &value);
  if (result != NULL && as_entry && value.status == SPILLWAY_KV_OK) {
    PyObject *const entry = PyStructSequence_New(entry_type);
    PyObject *const bytes = result;
    if (entry != NULL) {
      PyStructSequence_SetItem(entry, 0, Py_NewRef(bytes));
      PyStructSequence_SetItem(entry, 1, PyLong_FromUnsignedLongLong(value.version));
      PyStructSequence_SetItem(entry, 2, PyLong_FromUnsignedLongLong(value.expires_ms));
      PyStructSequence_SetItem(entry, 3, PyLong_FromUnsignedLong(value.flags));
    }
    Py_DECREF(bytes);
    result = entry;
  }
  spillway_kv_value_release(&value, 1);
  kv_end(self, session);
  return result;
}

static PyObject *store_get(KvStore *self, PyObject *args) {
  Py_buffer key;
  PyObject *absent = Py_None;
  if (!PyArg_ParseTuple(args, "O&|O", kv_key_of, &key, &absent)) return NULL;
  PyObject *const result = get(self, &key, absent, 0);
  PyBuffer_Release(&key);
  return result;
}

static PyObject *store_get_entry(KvStore *self, PyObject *args) {
  Py_buffer key;
  if (!PyArg_ParseTuple(args, "O&", kv_key_of, &key)) return NULL;
  PyObject *const result = get(self, &key, Py_None, 1);
  PyBuffer_Release(&key);
  return result;
}

// Puts the value, or removes the key if `value` is null. Returns the status; if that is below 0, with an exception.
static int change(KvStore *self, const Py_buffer *key, const Py_buffer *value,
                  const spillway_kv_change_options *options, uint64_t *version) {
  spillway_kv_session *session;
  if (kv_begin(self, &session) != 0) return -1;
  int status;
  Py_BEGIN_ALLOW_THREADS;
  if (value != NULL) {
    const struct iovec piece = {value->buf, (size_t)value->len};
    status = spillway_kv_put(session, key->buf, (size_t)key->len, &piece, 1, options, version);
  } else {
    status = spillway_kv_remove(session, key->buf, (size_t)key->len, options, version);
  }
  Py_END_ALLOW_THREADS;
  if (status < 0) kv_raise(status, spillway_kv_error_text(session));
  kv_end(self, session);
  return status;
}

static PyObject *store_put(KvStore *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"key", "value", "when", "version", "expires_ms", "flags", NULL};
  Py_buffer key, value;
  const char *when = "always";
  Number version = {"version", UINT64_MAX}, expires_ms = {"expires_ms", UINT64_MAX};
  Number flags = {"flags", UINT32_MAX};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&y*|$sO&O&O&", names, kv_key_of, &key, &value, &when,
                                   number_or_none_of, &version, number_of, &expires_ms, number_of, &flags))
    return NULL;
  uint64_t new_version = 0;
  const int place = place_of(when, kWhens, "when");
  int status = -1;
  if (place >= 0 && (place == SPILLWAY_KV_IF_VERSION) != version.is_given) {
    PyErr_SetString(PyExc_ValueError, version.is_given ? "version goes with when='version' only"
                                                       : "when is 'version'; give the version, too");
  } else if (place >= 0) {
    const spillway_kv_change_options options = {.struct_bytes = sizeof options,
                                                .when = (uint32_t)place,
                                                .flags = (uint32_t)flags.value,
                                                .version = version.value,
                                                .expires_ms = expires_ms.value};
    status = change(self, &key, &value, &options, &new_version);
  }
  PyBuffer_Release(&key);
  PyBuffer_Release(&value);
  if (status < 0) return NULL;
  if (status != SPILLWAY_KV_OK) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(new_version);
}

static PyObject *store_delete(KvStore *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"key", "version", NULL};
  Py_buffer key;
  Number version = {"version", UINT64_MAX};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|$O&", names, kv_key_of, &key, number_or_none_of,
                                   &version))
    return NULL;
  const spillway_kv_change_options options = {
      .struct_bytes = sizeof options,
      .when = version.is_given ? SPILLWAY_KV_IF_VERSION : SPILLWAY_KV_ALWAYS,
      .version = version.value};
  const int status = change(self, &key, NULL, &options, NULL);
  PyBuffer_Release(&key);
  return status < 0 ? NULL : PyBool_FromLong(status == SPILLWAY_KV_OK);
}

static PyObject *store_subscript(KvStore *self, PyObject *key_object) {
  Py_buffer key;
  if (!kv_key_of(key_object, &key)) return NULL;
  PyObject *const result = get(self, &key, Py_None, 0);
  PyBuffer_Release(&key);
  if (result != Py_None) return result;
  Py_DECREF(result);
  PyErr_SetObject(PyExc_KeyError, key_object);
  return NULL;
}

static int store_assign(KvStore *self, PyObject *key_object, PyObject *value_object) {
  Py_buffer key, value;
  if (!kv_key_of(key_object, &key)) return -1;
  int status = -1;
  if (value_object == NULL) {
    status = change(self, &key, NULL, NULL, NULL);
    if (status == SPILLWAY_KV_ABSENT) PyErr_SetObject(PyExc_KeyError, key_object);
  } else if (PyObject_GetBuffer(value_object, &value, PyBUF_SIMPLE) == 0) {
    status = change(self, &key, &value, NULL, NULL);
    PyBuffer_Release(&value);
  }
  PyBuffer_Release(&key);
  return status == SPILLWAY_KV_OK ? 0 : -1;
}

static int store_contains(KvStore *self, PyObject *key_object) {
  Py_buffer key;
  if (!kv_key_of(key_object, &key)) return -1;
  spillway_kv_session *session;
  spillway_kv_value value;
  const int found = find(self, &key, &session, &value);
  PyBuffer_Release(&key);
  if (found != 0) return -1;
  const int is_there = value.status == SPILLWAY_KV_OK;
  spillway_kv_value_release(&value, 1);
  kv_end(self, session);
  return is_there;
}

// ---- The module

static PyMethodDef kStoreMethods[] = {
    {"in_memory", (PyCFunction)store_in_memory, METH_O | METH_CLASS,
     "A store in memory, gone when it is closed."},
    {"close", (PyCFunction)store_close, METH_NOARGS, "Closes the store; a second time does nothing."},
    {"__enter__", store_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)store_exit, METH_VARARGS, NULL},
    {"get", (PyCFunction)store_get, METH_VARARGS, "The value under a key, or the default, None."},
    {"get_entry", (PyCFunction)store_get_entry, METH_VARARGS,
     "The value with its version, expiry and flags, or None."},
    {"put", (PyCFunction)(void *)store_put, METH_VARARGS | METH_KEYWORDS,
     "Puts a value; returns its version, or None if the condition does not hold."},
    {"delete", (PyCFunction)(void *)store_delete, METH_VARARGS | METH_KEYWORDS,
     "Removes a key; returns whether there was one."},
    {"get_many", (PyCFunction)kv_get_many, METH_O,
     "The values under keys, read together; None for a key that is not there."},
    {"put_many", (PyCFunction)kv_put_many, METH_O,
     "Puts the values of a mapping, or of pairs, many at a time."},
    {"delete_many", (PyCFunction)kv_delete_many, METH_O,
     "Removes keys, many at a time; returns how many were there."},
    {"items", (PyCFunction)kv_items, METH_NOARGS,
     "All keys and values as they are now, one pair after the other."},
    {"stats", (PyCFunction)store_stats, METH_NOARGS, "What the store holds and where."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot kStoreSlots[] = {{Py_tp_doc, "A key-value store on a device or file."},
                                    {Py_tp_init, store_init},
                                    {Py_tp_dealloc, store_dealloc},
                                    {Py_tp_methods, kStoreMethods},
                                    {Py_mp_subscript, store_subscript},
                                    {Py_mp_ass_subscript, store_assign},
                                    {Py_sq_contains, store_contains},
                                    {0, NULL}};
static PyType_Spec kStoreSpec = {"spillway.Store", sizeof(KvStore), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kStoreSlots};

static PyStructSequence_Field kEntryFields[] = {{"value", "bytes"},
                                                {"version", "a larger one is newer"},
                                                {"expires_ms", "since 1970; 0: never"},
                                                {"flags", "the user's"},
                                                {NULL, NULL}};
static PyStructSequence_Desc kEntry = {"spillway.Entry", "What is under a key.", kEntryFields, 4};

static PyObject *library_version(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyUnicode_FromString(spillway_kv_version());
}

static PyMethodDef kMethods[] = {
    {"make", (PyCFunction)(void *)make, METH_VARARGS | METH_KEYWORDS,
     "Makes an empty store on a device or file."},
    {"library_version", library_version, METH_NOARGS, "The version of the C library."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT, "spillway._kv", NULL, -1, kMethods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kv(void) {
  PyObject *const module = PyModule_Create(&kModule);
  PyObject *const store = PyType_FromSpec(&kStoreSpec);
  entry_type = PyStructSequence_NewType(&kEntry);
  int status = module != NULL && store != NULL && entry_type != NULL ? 0 : -1;
  if (status == 0) status = PyModule_AddObjectRef(module, "Store", store);
  if (status == 0) status = PyModule_AddObjectRef(module, "Entry", (PyObject *)entry_type);
  if (status == 0) status = kv_add_errors(module);
  if (status == 0) status = kv_add_items();
  Py_XDECREF(store);
  if (status == 0) return module;
  Py_XDECREF(module);
  return NULL;
}
