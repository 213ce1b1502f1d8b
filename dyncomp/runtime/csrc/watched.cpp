#include <cstring>

#define NO_IMPORT_ARRAY
#include "watched.h"

namespace dyncomp {
namespace {

PyArrayObject* written_array(const Frame& frame, size_t index) {
  return reinterpret_cast<PyArrayObject*>(frame.args[index]);
}

bool is_written(const Plan& plan, size_t index) {
  return plan.inputs[index].kind == InputKind::Array && plan.inputs[index].writable;
}

/* NumPy's variable of error modes, and modes under which everything is told to note_report. */
PyObject* modes_variable = nullptr;
PyObject* modes_noting = nullptr;
thread_local unsigned noted = 0;

PyObject* note_report(PyObject*, PyObject* args) {
  const char* kind;
  int flags;
  if (!PyArg_ParseTuple(args, "si", &kind, &flags)) return nullptr;
  noted |= static_cast<unsigned>(flags) & (kDivide | kOverflow | kUnderflow | kInvalid);
  Py_RETURN_NONE;
}

PyMethodDef note_method = {"note_report", note_report, METH_VARARGS, nullptr};

}  // namespace

bool prepare_reports() {
  if (modes_noting) return true;
  PyObject* umath = PyImport_ImportModule("numpy._core.umath");
  if (!umath) return false;
  PyObject* variable = PyObject_GetAttrString(umath, "_extobj_contextvar");
  PyObject* make = PyObject_GetAttrString(umath, "_make_extobj");
  PyObject* handler = PyCFunction_New(&note_method, nullptr);
  PyObject* none = PyTuple_New(0);
  PyObject* words = handler ? Py_BuildValue("{s:s,s:O}", "all", "call", "call", handler) : nullptr;
  PyObject* modes = variable && make && none && words ? PyObject_Call(make, none, words) : nullptr;
  if (modes && PyContextVar_CheckExact(variable)) {
    modes_variable = Py_NewRef(variable);
    modes_noting = Py_NewRef(modes);
  }
  Py_XDECREF(umath);
  Py_XDECREF(variable);
  Py_XDECREF(make);
  Py_XDECREF(handler);
  Py_XDECREF(none);
  Py_XDECREF(words);
  Py_XDECREF(modes);
  return modes_noting != nullptr;
}

PyObject* begin_reports() {
  if (!prepare_reports()) return nullptr;
  noted = 0;
  return PyContextVar_Set(modes_variable, modes_noting);
}

bool end_reports(PyObject* token, unsigned* flags) {
  *flags = noted;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool reset = PyContextVar_Reset(modes_variable, token) == 0;
  Py_DECREF(token);
  if (type) PyErr_Restore(type, value, traceback);
  return reset;
}

Watched::~Watched() {
  for (PyObject* copy : copies_) Py_XDECREF(copy);
}

/* on_status(flags, written): raises where the original is to run; else whether later calls are to keep what they
 * write, so that they can be taken back. */
bool Watched::ask(bool written, bool* answer) {
  const unsigned bits = seen_ | status_bits();
  seen_ = 0;
  clear_status();
  PyObject* found = PyObject_CallFunction(plan_.on_status, "Ii", numpy_status(bits), static_cast<int>(written));
  clear_status();
  if (!found) return false;
  *answer = found == Py_True;
  Py_DECREF(found);
  return true;
}

bool Watched::save(Frame& frame) {
  size_t used = 0;
  small_ = true;
  for (size_t i = 0; i < plan_.inputs.size() && small_; ++i) {
    if (!is_written(plan_, i)) continue;
    PyArrayObject* array = written_array(frame, i);
    const size_t bytes = static_cast<size_t>(PyArray_NBYTES(array));
    small_ = PyArray_ISONESEGMENT(array) && PyArray_ISBEHAVED(array) && used + bytes <= kSmall;
    if (small_ && bytes) memcpy(bytes_ + used, PyArray_DATA(array), bytes);
    used += bytes;
  }
  return small_;
}

bool Watched::before_writes(Frame& frame, bool saves) {
  if (seen_ | status_bits()) {
    bool ignored;
    if (!ask(false, &ignored)) return false;
  }
  wrote_ = true;
  if (save(frame) || !saves) return true;
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    if (!is_written(plan_, i)) continue;
    PyObject* copy = PyArray_NewCopy(written_array(frame, i), NPY_KEEPORDER);
    if (!copy) return false;
    copies_.push_back(copy);
  }
  return true;
}

void Watched::restore(Frame& frame) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  size_t used = 0;
  size_t next = 0;
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    if (!is_written(plan_, i)) continue;
    PyArrayObject* array = written_array(frame, i);
    if (small_) {
      const size_t bytes = static_cast<size_t>(PyArray_NBYTES(array));
      if (bytes) memcpy(PyArray_DATA(array), bytes_ + used, bytes);
      used += bytes;
    } else if (PyArray_CopyInto(array, reinterpret_cast<PyArrayObject*>(copies_[next++])) != 0) {
      PyErr_WriteUnraisable(plan_.on_status);
    }
  }
  clear_status();
  PyErr_Restore(type, value, traceback);
}

bool Watched::at_end(Frame& frame, bool* saves) {
  if (!(seen_ | status_bits())) return true;
  const bool kept = small_ || !copies_.empty();
  bool answer = false;
  if (!wrote_ || kept) {
    if (ask(false, &answer)) return true;
    if (wrote_) restore(frame);
    return false;
  }
  if (!ask(true, &answer)) {
    /* What is written stays: an exception now would run the program on it once more. */
    PyErr_WriteUnraisable(plan_.on_status);
    answer = true;
  }
  if (answer) *saves = true;
  return true;
}

}  // namespace dyncomp
