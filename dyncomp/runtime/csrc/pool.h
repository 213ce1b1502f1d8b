/* The thread pool behind Runtime.parallel_for. */
#ifndef DYNCOMP_POOL_H
#define DYNCOMP_POOL_H
#include "abi.h"

namespace dyncomp {

constexpr int kMaxThreads = 256;

void parallel_for(BodyFunction body, void* ctx, i64 n, i64 grain);

/* Runtime.branches. */
void run_branches(void (*run)(void* ctx, i64 branch), void* ctx, i64 count);

/* Threads used by parallel_for, the caller included, where no task runs. */
int num_threads();
/* About as many as a job of this thread has now: in branches and beside tasks its part. */
int threads_here();
void set_num_threads(int count);

/* Around the work of a task in its thread: while tasks run, each has its part of the threads. */
void enter_task();
void leave_task();
int running_tasks();

/* An OpenMP runtime's functions; all null where there is none. */
struct Team {
  void (*parallel)(void (*member)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_number)();
  int (*most_threads)();
};

/* From now on work runs on the threads of an OpenMP runtime that another library keeps, and on as many of them
 * as that is told to use: two pools would take each other's cores while they spin. False in a forked child: the
 * runtime's threads are gone there, which it does not know. */
bool share_threads(const Team& with);

/* DYNCOMP_NUM_THREADS, else OMP_NUM_THREADS, capped by the affinity mask and the cgroup's CPU limit. */
int default_num_threads();

/* Registers the fork handler; called once, at import. Work runs on one thread until set_num_threads. */
void initialize_pool();

/* Runtime.next_step: the next part of the step that this thread runs begins (spans.h). */
void next_step();

struct GemmSet;
/* What generated code multiplies by from now on. */
void use_products(const GemmSet* set);

/* The table handed to generated code. */
extern Runtime runtime_table;

}  // namespace dyncomp
#endif
