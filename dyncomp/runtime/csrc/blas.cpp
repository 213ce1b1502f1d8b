/* Finding the BLAS that NumPy has loaded: an OpenBLAS with 64-bit integers among the process's libraries. */
#define NO_IMPORT_ARRAY
#include "blas.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "linalg.h"
#include "pool.h"

namespace dyncomp {
namespace {

const char* const kRoutines[] = {"sgemm", "dgemm", "cgemm", "zgemm", "sgemv", "dgemv",
                                 "cgemv", "zgemv", "sdot",  "ddot",  "ssyrk", "dsyrk"};

/* dlpi_name of the first loaded library whose name has "openblas64" in it (NumPy's and SciPy's wheels). */
int remember_openblas(dl_phdr_info* info, size_t, void* raw) {
  char* const found = static_cast<char*>(raw);
  if (!info->dlpi_name || !strstr(info->dlpi_name, "openblas64")) return 0;
  snprintf(found, 4096, "%s", info->dlpi_name);
  return 1;
}

constexpr const char* kRoutineSpellings[] = {"scipy_cblas_%s64_", "cblas_%s64_"};
constexpr const char* kControlSpellings[] = {"scipy_openblas_%s64_", "openblas_%s64_"};

void* find(void* library, const char* routine, const char* const (&spellings)[2]) {
  for (const char* spelling : spellings) {
    char name[64];
    snprintf(name, sizeof name, spelling, routine);
    if (void* address = dlsym(library, name)) return address;
  }
  return nullptr;
}

bool lapack_found = false;
int (*get_threads)() = nullptr;
/* Callers inside a serial section, and the number of threads to go back to after the last of them. */
std::mutex serial_mutex;
int serial_depth = 0;
int threads_before = 1;

}  // namespace

void blas_serial(int enter) {
  const auto set_threads = reinterpret_cast<void (*)(int)>(runtime_table.blas[DYNCOMP_BLAS_SET_NUM_THREADS]);
  if (!set_threads) return;
  std::lock_guard<std::mutex> hold(serial_mutex);
  if (enter) {
    if (serial_depth++ > 0) return;
    threads_before = get_threads();
    if (threads_before > 1) set_threads(1);
    return;
  }
  if (--serial_depth == 0 && threads_before > 1) set_threads(threads_before);
}

void blas_after_fork_in_child() {
  new (&serial_mutex) std::mutex();
  if (serial_depth > 0 && threads_before > 1)
    reinterpret_cast<void (*)(int)>(runtime_table.blas[DYNCOMP_BLAS_SET_NUM_THREADS])(threads_before);
  serial_depth = 0;
}

bool has_lapack() { return lapack_found; }

bool find_blas() {
  char path[4096] = "";
  dl_iterate_phdr(remember_openblas, path);
  if (!path[0]) return false;
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return false;
  for (size_t i = 0; i < sizeof kRoutines / sizeof *kRoutines; ++i)
    runtime_table.blas[i] = find(library, kRoutines[i], kRoutineSpellings);
  void* set_threads = find(library, "set_num_threads", kControlSpellings);
  get_threads = reinterpret_cast<int (*)()>(find(library, "get_num_threads", kControlSpellings));
  if (get_threads) runtime_table.blas[DYNCOMP_BLAS_SET_NUM_THREADS] = set_threads;
  lapack_found = find_lapack(library);
  return runtime_table.blas[DYNCOMP_BLAS_SGEMM] != nullptr;
}

}  // namespace dyncomp
