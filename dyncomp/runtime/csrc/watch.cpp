/* Memory watched for writes. Linux (from 6.7 on) marks pages that are written to after they were "write-protected
 * asynchronously" by a userfaultfd: it takes the protection off by itself, whoever writes, the kernel included, and
 * PAGEMAP_SCAN says which pages have none. No signal and no handler take part; pages that are swapped stay
 * marked. Pages that were given back (MADV_DONTNEED, MREMAP_DONTUNMAP) are neither there nor swapped, unless they came
 * again, unmarked. What is mapped anew at the place is not watched, which the scan says, too.
 *
 * Only private anonymous memory is watched that nothing can be pinned of (mappings.h): other memory changes without a
 * fault in this process. Nor is any where the driver of a GPU is loaded, which writes by DMA.
 *
 * Where a sandbox forbids userfaultfd nothing can be watched. */
#include "watch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "mappings.h"

#if defined(__linux__)
#include <linux/userfaultfd.h>
#endif

namespace dyncomp {

#if defined(__linux__) && defined(SYS_userfaultfd)
namespace {

/* Of <linux/fs.h> and <linux/userfaultfd.h>, newer than many systems' headers. */
struct ScannedRegion {
  uint64_t start, end, categories;
};
struct ScanArguments {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kProtectMatching = 1, kOnlyAsync = 2;
constexpr uint64_t kWritten = 1 << 1, kPresent = 1 << 3, kSwapped = 1 << 4;
constexpr uint64_t kUnpopulated = 1 << 13, kAsync = 1 << 15;
constexpr int kUserModeOnly = 1;
constexpr size_t kRegions = 64;

/* What a descriptor stands for. */
std::string name_of(int descriptor) {
  char link[64], target[256];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, target, sizeof(target));
  return std::string(target, length > 0 ? static_cast<size_t>(length) : 0);
}

struct Kernel {
  int faults = -1, pagemap = -1;
  std::string faults_name, pagemap_name;

  Kernel() {
    faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly));
    if (faults < 0) return;
    uffdio_api api = {};
    api.api = UFFD_API;
    api.features = kUnpopulated | kAsync;
    if (ioctl(faults, UFFDIO_API, &api) == 0) pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    faults_name = name_of(faults);
    pagemap_name = name_of(pagemap);
    if (pagemap < 0) close_all();
  }
  bool works() const { return pagemap >= 0; }
  /* The program may have closed all descriptors, and opened others of these numbers. */
  void close_all() {
    if (faults >= 0 && name_of(faults) == faults_name) close(faults);
    if (pagemap >= 0 && name_of(pagemap) == pagemap_name) close(pagemap);
    faults = pagemap = -1;
  }
};

Kernel*& current() {
  static Kernel* kernel = nullptr;
  return kernel;
}

Kernel& kernel() {
  Kernel*& made = current();
  if (!made) made = new Kernel();
  return *made;
}

/* How many libraries have been loaded so far. */
int count_libraries(dl_phdr_info* info, size_t, void* count) {
  *static_cast<unsigned long long*>(count) = info->dlpi_adds;
  return 1;
}

bool is_loaded(const char* name) {
  void* const found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (found) dlclose(found);
  return found != nullptr;
}

/* Drivers of devices that write to memory. Looked for anew where libraries were loaded meanwhile. */
bool has_devices() {
  static unsigned long long seen = 0;
  static bool found = false;
  unsigned long long libraries = 0;
  dl_iterate_phdr(count_libraries, &libraries);
  if (libraries != seen && !found) {
    seen = libraries;
    found = is_loaded("libcuda.so.1") || is_loaded("libamdhip64.so") || is_loaded("libze_loader.so.1");
  }
  return found;
}

ScanArguments scan_of(Pages pages, ScannedRegion* regions, size_t count) {
  ScanArguments scan = {};
  scan.size = sizeof(scan);
  scan.flags = kOnlyAsync;
  scan.start = pages.from;
  scan.end = pages.to;
  scan.vec = reinterpret_cast<uint64_t>(regions);
  scan.vec_len = count;
  scan.category_inverted = kPresent; /* what is not there may be swapped, or gone: to be told apart */
  scan.category_anyof_mask = kWritten | kPresent;
  scan.return_mask = kWritten;
  return scan;
}

bool start_with(Pages pages) {
  uffdio_register range = {};
  range.range.start = pages.from;
  range.range.len = pages.to - pages.from;
  range.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(kernel().faults, UFFDIO_REGISTER, &range) == 0;
}

/* Whether pages were neither written to nor given back. */
bool is_only_swapped(Pages pages) {
  ScannedRegion region;
  ScanArguments written = scan_of(pages, &region, 1), gone = written;
  written.max_pages = gone.max_pages = 1;
  written.category_inverted = 0;
  written.category_anyof_mask = kWritten;
  gone.category_inverted = gone.category_mask = kPresent | kSwapped;
  gone.category_anyof_mask = 0;
  return ioctl(kernel().pagemap, kScan, &written) == 0 && ioctl(kernel().pagemap, kScan, &gone) == 0;
}

}  // namespace

bool can_watch() { return kernel().works() && !has_devices(); }

bool watch_pages(Pages pages, std::vector<Pages>* written) {
  if (!can_watch() || !is_private_memory(pages) || !start_with(pages)) return false;
  const Pages whole = pages;
  ScannedRegion regions[kRegions];
  while (pages.from < pages.to) {
    ScanArguments scan = scan_of(pages, regions, kRegions);
    scan.flags |= kProtectMatching;
    const int found = ioctl(kernel().pagemap, kScan, &scan);
    if (found < 0 || scan.walk_end <= pages.from) return false;
    for (int k = 0; k < found; ++k)
      written->push_back({static_cast<uintptr_t>(regions[k].start), static_cast<uintptr_t>(regions[k].end)});
    pages.from = scan.walk_end;
  }
  return is_of_this_process_alone(whole);
}

bool still_the_same(Pages pages) {
  if (!can_watch()) return false;
  ScannedRegion region;
  ScanArguments scan = scan_of(pages, &region, 1);
  scan.max_pages = 1;
  const int found = ioctl(kernel().pagemap, kScan, &scan);
  return found == 0 || (found == 1 && is_only_swapped(pages));
}

bool is_of_this_process_alone(Pages pages) { return is_private_memory(pages) && !may_be_pinned(); }

void stop_watching(Pages pages) {
  uffdio_range range = {};
  range.start = pages.from;
  range.len = pages.to - pages.from;
  if (kernel().works()) ioctl(kernel().faults, UFFDIO_UNREGISTER, &range);
}

void forget_watches() {
  Kernel*& made = current();
  if (!made) return;
  made->close_all();
  delete made;
  made = nullptr;
}

#else

bool can_watch() { return false; }
bool watch_pages(Pages, std::vector<Pages>*) { return false; }
bool still_the_same(Pages) { return false; }
bool is_of_this_process_alone(Pages) { return false; }
void stop_watching(Pages) {}
void forget_watches() {}

#endif

size_t page_bytes() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace dyncomp
