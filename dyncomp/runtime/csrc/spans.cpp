/* Time stamps of calls and their steps (spans.h). What was recorded lies in one list under the GIL. */
#include "spans.h"

#include <ctime>
#include <new>

namespace dyncomp {
namespace {

struct CallRecord {
  PyObject* labels; /* owned */
  unsigned long thread;
  i64 start, end;
  std::vector<PartSpan> parts;
};

thread_local CallSpan* current = nullptr;

/* Under the GIL. */
std::vector<CallRecord>& records() {
  static std::vector<CallRecord>* const made = new std::vector<CallRecord>();
  return *made;
}
size_t limit = 0, dropped = 0;

PyObject* range_type = nullptr;
i64 now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<i64>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void set_bit(int bit, bool on) {
  if (on)
    __atomic_fetch_or(&runtime_table.timed, bit, __ATOMIC_RELAXED);
  else
    __atomic_fetch_and(&runtime_table.timed, ~bit, __ATOMIC_RELAXED);
}

/* Calls with the exception of the program put aside; what they raise is dropped: profilers must not change results. */
template <class Run>
void aside(Run run) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  run();
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

/* Borrowed; of the graph for what has no name, which are parts that no plan knows. */
PyObject* name_of(PyObject* labels, i64 number) {
  PyObject* const names = PyTuple_GET_ITEM(labels, 0);
  return PyTuple_GET_ITEM(names, number < PyTuple_GET_SIZE(names) ? number : 0);
}

PyObject* enter_range(PyObject* name) {
  PyObject* made = PyObject_CallOneArg(range_type, name);
  PyObject* entered = made ? PyObject_CallMethod(made, "__enter__", nullptr) : nullptr;
  if (!entered) Py_CLEAR(made);
  Py_XDECREF(entered);
  return made;
}

}  // namespace

bool (*span_is_watched)() = nullptr;

CallSpan::CallSpan(PyObject* labels, int wanted)
    : labels_(Py_NewRef(labels)), wanted_(wanted), start_(now()), outer_(current) {
  current = this;
  if (!(wanted_ & kRanged)) return;
  set_bit(kRanged, true);
  aside([this] { graph_range_ = enter_range(name_of(labels_, 0)); });
}

CallSpan::~CallSpan() {
  end();
  close_range(&graph_range_);
  current = outer_;
  if (wanted_ & kProfiled && __atomic_load_n(&runtime_table.timed, __ATOMIC_RELAXED) & kProfiled) {
    try {
      if (records().size() >= limit)
        ++dropped;
      else
        records().push_back({Py_NewRef(labels_), PyThread_get_thread_native_id(), start_, now(), std::move(parts_)});
    } catch (const std::bad_alloc&) {
      ++dropped;
    }
  }
  aside([this] { Py_CLEAR(labels_); });
}

void CallSpan::open_range(i64 label) {
  if (!(wanted_ & kRanged)) return;
  aside([this, label] { part_range_ = enter_range(name_of(labels_, label + 1)); });
}

void CallSpan::close_range(PyObject** range) {
  if (!*range) return;
  aside([range] {
    PyObject* left = PyObject_CallMethod(*range, "__exit__", "OOO", Py_None, Py_None, Py_None);
    Py_XDECREF(left);
    Py_CLEAR(*range);
  });
}

void CallSpan::begin(i64 label) {
  label_ = label;
  open_range(label);
  part_start_ = now();
}

void CallSpan::end() {
  if (label_ < 0) return;
  const i64 ended = now();
  try {
    parts_.push_back({label_, part_start_, ended});
  } catch (const std::bad_alloc&) {
    /* the call is recorded without this part */
  }
  label_ = -1;
  close_range(&part_range_);
}

void CallSpan::next() {
  if (label_ < 0) return;
  const i64 label = label_ + 1;
  if (!(wanted_ & kRanged)) {
    end();
    begin(label);
    return;
  }
  const PyGILState_STATE state = PyGILState_Ensure(); /* a graph may let other threads run during its kernels */
  end();
  begin(label);
  PyGILState_Release(state);
}

void next_step() {
  if (current) current->next();
}

PyObject* spans_begin(PyObject*, PyObject* most) {
  const size_t count = PyLong_AsSize_t(most);
  if (count == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  limit = count;
  set_bit(kProfiled, true);
  Py_RETURN_NONE;
}

PyObject* spans_end(PyObject*, PyObject*) {
  set_bit(kProfiled, false);
  Py_RETURN_NONE;
}

PyObject* spans_take(PyObject*, PyObject*) {
  std::vector<CallRecord> taken;
  taken.swap(records());
  const size_t lost = dropped;
  dropped = 0;
  PyObject* list = PyList_New(0);
  for (CallRecord& record : taken) {
    PyObject* parts = list ? PyTuple_New(static_cast<Py_ssize_t>(record.parts.size())) : nullptr;
    for (size_t i = 0; parts && i < record.parts.size(); ++i) {
      const PartSpan& part = record.parts[i];
      PyObject* item = Py_BuildValue("(LLL)", part.label, part.start, part.end);
      if (!item)
        Py_CLEAR(parts);
      else
        PyTuple_SET_ITEM(parts, static_cast<Py_ssize_t>(i), item);
    }
    PyObject* made =
        parts ? Py_BuildValue("(OkLLN)", record.labels, record.thread, record.start, record.end, parts) : nullptr;
    if (list && (!made || PyList_Append(list, made) < 0)) Py_CLEAR(list);
    Py_XDECREF(made);
    Py_DECREF(record.labels);
  }
  return list ? Py_BuildValue("(Nn)", list, static_cast<Py_ssize_t>(lost)) : nullptr;
}

PyObject* use_ranges(PyObject*, PyObject* args) {
  PyObject* type;
  PyObject* address;
  if (!PyArg_ParseTuple(args, "OO!:use_ranges", &type, &PyLong_Type, &address)) return nullptr;
  void* const function = PyLong_AsVoidPtr(address);
  if (PyErr_Occurred()) return nullptr;
  Py_XSETREF(range_type, Py_NewRef(type));
  span_is_watched = reinterpret_cast<bool (*)()>(function);
  if (!function) set_bit(kRanged, false);
  Py_RETURN_NONE;
}

}  // namespace dyncomp
