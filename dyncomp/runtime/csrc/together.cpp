/* Calls of Python functions that do not depend on each other, at the same time: a runner, which Python gives, calls them
 * in several threads and returns when all have ended. Each takes the interpreter's lock; what it calls may let go of it. */
#include <new>
#include <vector>

#define NO_IMPORT_ARRAY
#include "graph.h"

namespace dyncomp {
namespace {

PyObject* runner = nullptr;

/* One of the calls; `frame` is NULL when the graph's call has gone on without it. */
struct Call {
  Frame* frame;
  const Step* step;
};

constexpr const char* kCall = "dyncomp.call";

void free_call(PyObject* capsule) { delete static_cast<Call*>(PyCapsule_GetPointer(capsule, kCall)); }

PyObject* run_call(PyObject* capsule, PyObject*) {
  const Call* const call = static_cast<Call*>(PyCapsule_GetPointer(capsule, kCall));
  if (!call) return nullptr;
  if (!call->frame) {
    PyErr_SetString(PyExc_RuntimeError, "a call of a compiled graph that has ended");
    return nullptr;
  }
  if (!run_pycall(*call->frame, *call->step)) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef call_method = {"library_call", run_call, METH_NOARGS, nullptr};

/* A Python callable for one call, added to the list; NULL with an exception set. */
Call* add_call(PyObject* list, Frame& frame, const Step& step) {
  Call* const call = new (std::nothrow) Call{&frame, &step};
  if (!call) {
    PyErr_NoMemory();
    return nullptr;
  }
  PyObject* const capsule = PyCapsule_New(call, kCall, free_call);
  if (!capsule) {
    delete call;
    return nullptr;
  }
  PyObject* const function = PyCFunction_New(&call_method, capsule);
  Py_DECREF(capsule);
  if (!function) return nullptr;
  const int failed = PyList_Append(list, function);
  Py_DECREF(function);
  return failed ? nullptr : call;
}

}  // namespace

bool run_together(Frame& frame, const Step* steps, int count) {
  if (!runner) {
    for (int k = 0; k < count; ++k)
      if (!run_pycall(frame, steps[k])) return false;
    return true;
  }
  PyObject* const list = PyList_New(0);
  if (!list) return false;
  std::vector<Call*> calls;
  bool made = true;
  try {
    calls.reserve(static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    made = false;
  }
  for (int k = 0; k < count && made; ++k) {
    Call* const call = add_call(list, frame, steps[k]);
    made = call != nullptr;
    if (made) calls.push_back(call);
  }
  PyObject* const held = Py_NewRef(runner);
  PyObject* const done = made ? PyObject_CallOneArg(held, list) : nullptr;
  Py_DECREF(held);
  /* `list` still holds the callables, so these are there */
  for (Call* call : calls) call->frame = nullptr;
  Py_DECREF(list);
  Py_XDECREF(done);
  return done != nullptr;
}

PyObject* set_task_runner(PyObject*, PyObject* given) {
  if (given != Py_None && !PyCallable_Check(given)) return PyErr_Format(PyExc_TypeError, "a runner is a function or None");
  Py_XSETREF(runner, given == Py_None ? nullptr : Py_NewRef(given));
  Py_RETURN_NONE;
}

}  // namespace dyncomp
