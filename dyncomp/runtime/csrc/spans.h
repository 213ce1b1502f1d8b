/* When calls of graphs and their steps began and ended, for profiles (dyncomp/profiling) and for profilers of another
 * library. Nothing is looked at but one flag, once a call, while nobody asks. */
#ifndef DYNCOMP_SPANS_H
#define DYNCOMP_SPANS_H
#include <Python.h>

#include <vector>

#include "abi.h"
#include "pool.h"

namespace dyncomp {

/* Bits of Runtime.timed. */
enum { kProfiled = 1, kRanged = 2 };

/* Part number `label` of a graph: a kernel, a product or a routine. Nanoseconds of CLOCK_MONOTONIC. */
struct PartSpan {
  i64 label, start, end;
};

/* One call. It lies on the stack of the thread that calls, which makes all its time stamps. */
class CallSpan {
 public:
  /* Under the GIL. `labels`: ((name of the graph, a name for each part), what else is known of them), kept. */
  CallSpan(PyObject* labels, int wanted);
  ~CallSpan();
  CallSpan(const CallSpan&) = delete;
  CallSpan& operator=(const CallSpan&) = delete;
  /* A step begins with this part, which ends with the step at the latest; under the GIL. */
  void begin(i64 label);
  void end();
  /* The next part of the same step begins; with the GIL or without. */
  void next();

 private:
  void open_range(i64 label);
  void close_range(PyObject** range);

  PyObject* labels_;
  const int wanted_;
  const i64 start_;
  CallSpan* const outer_;
  i64 label_ = -1, part_start_ = 0;
  std::vector<PartSpan> parts_;
  PyObject* graph_range_ = nullptr;
  PyObject* part_range_ = nullptr;
};

/* What somebody wants to know of calls of this thread now: kProfiled, kRanged; 0 almost always. */
extern bool (*span_is_watched)();
inline int spans_wanted() {
  const int profiled = __atomic_load_n(&runtime_table.timed, __ATOMIC_RELAXED) & kProfiled;
  if (__builtin_expect(span_is_watched == nullptr, 1)) return profiled;
  return profiled | (span_is_watched() ? kRanged : 0);
}

/* Python's. spans_begin(limit), spans_take() -> ([(labels, thread, start, end, ((part, start, end), ...)), ...], dropped),
 * spans_end(); use_ranges(type or None, address of a function that says whether this thread is watched). */
PyObject* spans_begin(PyObject*, PyObject* limit);
PyObject* spans_take(PyObject*, PyObject*);
PyObject* spans_end(PyObject*, PyObject*);
PyObject* use_ranges(PyObject*, PyObject* args);

}  // namespace dyncomp
#endif
