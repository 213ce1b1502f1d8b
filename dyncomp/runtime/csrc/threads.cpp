/* How many threads this process should use. */
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

int rounded_up(double quota, double period) {
  if (quota <= 0 || period <= 0) return kMaxThreads;
  const double cpus = quota / period;
  if (cpus >= kMaxThreads) return kMaxThreads;
  const int whole = static_cast<int>(cpus);
  return whole < cpus ? whole + 1 : (whole < 1 ? 1 : whole);
}

/* cgroup v2: "max 100000" or "200000 100000". */
int from_cgroup2() {
  FILE* file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!file) return kMaxThreads;
  char quota[32];
  double period = 0;
  const int fields = fscanf(file, "%31s %lf", quota, &period);
  fclose(file);
  if (fields != 2 || strcmp(quota, "max") == 0) return kMaxThreads;
  return rounded_up(atof(quota), period);
}

double number_in(const char* path) {
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  double value = 0;
  if (fscanf(file, "%lf", &value) != 1) value = 0;
  fclose(file);
  return value;
}

int from_cgroup1() {
  return rounded_up(number_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                    number_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}

int smaller(int a, int b) { return a < b ? a : b; }

}  // namespace

int default_num_threads() {
  const int own = from_environment("DYNCOMP_NUM_THREADS");
  if (own) return own;
  int count = smaller(from_affinity(), smaller(from_cgroup2(), from_cgroup1()));
  const int omp = from_environment("OMP_NUM_THREADS");
  if (omp) count = smaller(count, omp);
  return count < 1 ? 1 : smaller(count, kMaxThreads);
}

}  // namespace dyncomp
