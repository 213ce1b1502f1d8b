/* Loading and unloading. Whoever holds an address of a library holds the library: a graph's plan, a loop's program. So
 * one is unloaded when nothing can call it any more, which a call in progress can: it holds its graph. */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

namespace dyncomp {
namespace {

constexpr const char* kName = "dyncomp.runtime.library";

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

/* Not where the process ends: its threads may still be running. */
void unload(PyObject* library) {
  if (!is_finalizing()) dlclose(PyCapsule_GetPointer(library, kName));
}

/* Whether a library's segments could be mapped. */
bool has_room() {
  constexpr size_t kBytes = 1 << 20;
  void* const room = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  const bool done = mprotect(static_cast<char*>(room) + kBytes / 2, kBytes / 4, PROT_READ) == 0;
  munmap(room, kBytes);
  return done;
}

/* What the loader, which tells at most in its message, ran out of; 0: nothing. */
int exhausted(const std::string& message) {
  for (const int code : {ENOMEM, EMFILE, ENFILE})
    if (message.find(strerror(code)) != std::string::npos) return code;
  return has_room() ? 0 : ENOMEM;
}

void* open_library(PyObject* argument, int flags) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(argument, &bytes)) return nullptr;
  void* handle;
  std::string message;
  Py_BEGIN_ALLOW_THREADS;
  handle = dlopen(PyBytes_AS_STRING(bytes), flags);
  if (!handle) message = dlerror();
  Py_END_ALLOW_THREADS;
  Py_DECREF(bytes);
  if (handle) return handle;
  const int code = exhausted(message);
  PyObject* const text = code ? PyUnicode_DecodeFSDefault(message.c_str()) : nullptr;
  PyObject* const error = text ? Py_BuildValue("(iN)", code, text) : nullptr;
  if (error) {
    PyErr_SetObject(PyExc_OSError, error);
    Py_DECREF(error);
  } else if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_OSError, message.c_str());
  }
  return nullptr;
}

}  // namespace

PyObject* load_library(PyObject*, PyObject* path) {
  void* const handle = open_library(path, RTLD_NOW | RTLD_LOCAL);
  PyObject* const library = handle ? PyCapsule_New(handle, kName, unload) : nullptr;
  if (handle && !library) dlclose(handle);
  return library;
}

PyObject* load_global(PyObject*, PyObject* path) {
  if (!open_library(path, RTLD_NOW | RTLD_GLOBAL)) return nullptr;
  Py_RETURN_NONE;
}

void* library_handle(PyObject* library) { return PyCapsule_GetPointer(library, kName); }

}  // namespace dyncomp
