/* How many threads this process should use. */
#include <sched.h>

#include <cstdlib>

#include "limits.h"
#include "pool.h"

namespace dyncomp {
namespace {

/* A positive integer at the start of the variable ("4" or OpenMP's "4,2"), or 0. */
int from_environment(const char* name) {
  const char* text = getenv(name);
  if (!text) return 0;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  if (end == text || (*end != '\0' && *end != ',')) return 0;
  if (value < 1) return 0;
  return value > kMaxThreads ? kMaxThreads : static_cast<int>(value);
}

int from_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  /* Fails with EINVAL on machines of more than 1024 CPUs: then the cap below is the answer. */
  if (sched_getaffinity(0, sizeof set, &set) != 0) return kMaxThreads;
  return CPU_COUNT(&set);
}

int from_groups() {
  const double cpus = group_limits("").cpus;
  if (cpus <= 0 || cpus >= kMaxThreads) return kMaxThreads;
  const int whole = static_cast<int>(cpus);
  return whole < cpus ? whole + 1 : whole;
}

int smaller(int a, int b) { return a < b ? a : b; }

}  // namespace

int default_num_threads() {
  const int own = from_environment("DYNCOMP_NUM_THREADS");
  if (own) return own;
  int count = smaller(from_affinity(), from_groups());
  const int omp = from_environment("OMP_NUM_THREADS");
  if (omp) count = smaller(count, omp);
  return count < 1 ? 1 : smaller(count, kMaxThreads);
}

}  // namespace dyncomp
