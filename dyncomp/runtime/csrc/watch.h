/* Memory watched for writes, by the kernel: see watch.cpp. */
#ifndef DYNCOMP_WATCH_H
#define DYNCOMP_WATCH_H
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dyncomp {

struct Pages {
  uintptr_t from, to;
};

/* Whether writes can be watched for in this process, now. */
bool can_watch();

size_t page_bytes();

/* Watches whole pages from now on. `written`: those that were written to since they were last watched, or never
 * were. False where the kernel cannot tell of all writes to them. */
bool watch_pages(Pages pages, std::vector<Pages>* written);

/* Whether nothing has been written to pages since watch_pages. */
bool still_the_same(Pages pages);

/* Whether pages are private, anonymous, and none can be pinned: asked when they are watched, and again when they were
 * read. */
bool is_of_this_process_alone(Pages pages);

/* Ends it; the pages may be gone. */
void stop_watching(Pages pages);

/* In the child of a fork, where nothing is watched. */
void forget_watches();

}  // namespace dyncomp
#endif
