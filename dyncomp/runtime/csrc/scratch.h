/* Memory for a short time, for code that knows nothing of Python (memory.cpp; standalone/services.cpp). */
#ifndef DYNCOMP_SCRATCH_H
#define DYNCOMP_SCRATCH_H
#include <cstddef>

namespace dyncomp {

/* Memory aligned to 64 bytes at least; NULL when the system has none left. From any thread, whatever it holds:
 * tracemalloc is not told. */
void* scratch_allocate(size_t bytes);
void scratch_free(void* data);

}  // namespace dyncomp
#endif
