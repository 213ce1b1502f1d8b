/* Finding the BLAS that NumPy has loaded: an OpenBLAS with 64-bit integers among the process's libraries. */
#include "blas.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

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

void* find(void* library, const char* routine) {
  static const char* const spellings[] = {"scipy_cblas_%s64_", "cblas_%s64_"};
  for (const char* spelling : spellings) {
    char name[64];
    snprintf(name, sizeof name, spelling, routine);
    if (void* address = dlsym(library, name)) return address;
  }
  return nullptr;
}

}  // namespace

bool find_blas() {
  char path[4096] = "";
  dl_iterate_phdr(remember_openblas, path);
  if (!path[0]) return false;
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return false;
  for (size_t i = 0; i < sizeof kRoutines / sizeof *kRoutines; ++i)
    runtime_table.blas[i] = find(library, kRoutines[i]);
  void* set_threads = dlsym(library, "scipy_openblas_set_num_threads_local64_");
  if (!set_threads) set_threads = dlsym(library, "openblas_set_num_threads_local64_");
  runtime_table.blas[DYNCOMP_BLAS_SET_NUM_THREADS] = set_threads;
  return runtime_table.blas[DYNCOMP_BLAS_SGEMM] != nullptr;
}

}  // namespace dyncomp
