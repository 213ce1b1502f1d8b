/* Floating-point errors of a graph's steps: noticed by the status of the threads that ran them. */
#ifndef DYNCOMP_WATCHED_H
#define DYNCOMP_WATCHED_H
#include "graph.h"
#include "status.h"

namespace dyncomp {

/* One call of a graph whose plan has somebody to tell (`Plan::on_status`). */
class Watched {
 public:
  explicit Watched(const Plan& plan) : plan_(plan), seen_(native_status(plan.always)) { clear_status(); }
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  /* Before the first step that writes to inputs: false, with an exception set, if the original is to run. Else
   * what those steps write is kept, where that costs next to nothing or `saves` says so. */
  bool before_writes(Frame& frame, bool saves);
  /* After all steps. `saves` is set where the next calls have to keep what they write. */
  bool at_end(Frame& frame, bool* saves);
  /* Around Python calls, which use the same status for their own ends. */
  void before_call() { seen_ |= status_bits(); }
  void after_call(unsigned numpy_flags) {
    clear_status();
    seen_ |= native_status(numpy_flags);
  }

 private:
  bool ask(bool written, bool* answer);
  bool save(Frame& frame);
  void restore(Frame& frame);

  static constexpr size_t kSmall = 2048;
  const Plan& plan_;
  unsigned seen_;
  bool wrote_ = false;
  bool small_ = false;
  std::vector<PyObject*> copies_; /* per input that is written */
  alignas(16) char bytes_[kSmall];
};

/* What NumPy reports from within Python calls of a graph: a handler that notes it, in the context. */
bool prepare_reports();
PyObject* begin_reports(); /* a token; NULL with an exception set */
bool end_reports(PyObject* token, unsigned* flags);

}  // namespace dyncomp
#endif
