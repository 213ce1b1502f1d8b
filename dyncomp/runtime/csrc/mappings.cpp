/* Which memory changes only by the page tables of this process. Files and shared memory do by others' writes, or are
 * dropped by the kernel and read again. Pages that are pinned (registered with io_uring, RDMA, VFIO...) are written to
 * by the kernel or by devices past the page tables. What is pinned to be written to later on looks like a write to
 * those who watch, so it is enough to ask once the watch has begun. */
#include "mappings.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__linux__)
#include <dirent.h>
#endif

namespace dyncomp {

#if defined(__linux__)
namespace {

/* Of <linux/fs.h>, from 6.11 on. */
struct MappingQuery {
  uint64_t size, flags, address, start, end, vma_flags, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
constexpr unsigned long kQuery = _IOWR('f', 17, MappingQuery);
constexpr uint64_t kShared = 8;

constexpr auto kPatience = std::chrono::milliseconds(50);

/* The lines of a text file, each given to a function until one says false. False where it cannot be read. */
template <class F>
bool each_line(const char* path, F&& see) {
  FILE* const file = fopen(path, "re");
  if (!file) return false;
  char* line = nullptr;
  size_t room = 0;
  bool goes_on = true;
  while (goes_on && getline(&line, &room, file) > 0) goes_on = see(line);
  const bool good = !ferror(file);
  free(line);
  fclose(file);
  return good;
}

bool is_private_by_text(Pages pages) {
  uintptr_t at = pages.from;
  each_line("/proc/self/maps", [&](const char* line) {
    uintptr_t start, end;
    char access[5];
    unsigned long inode;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %lu", &start, &end, access, &inode) != 4) return false;
    if (end <= at) return true;
    if (start > at || access[3] != 'p' || inode != 0) return false;
    at = end;
    return at < pages.to;
  });
  return at >= pages.to;
}

/* What the kernel can write to later on without a fault: descriptors and mappings of these kinds. Of devices, those
 * that do not. */
bool is_harmless(const char* name) {
  static const char* const rings[] = {"anon_inode:[io_uring]", "anon_inode:[vfio", "anon_inode:[iommufd",
                                      "anon_inode:[uverbs",    "anon_inode:[infiniband", "/[aio]", "socket:["};
  static const char* const quiet[] = {"null", "zero", "full", "random", "urandom", "tty", "pts/", "ptmx", "console",
                                      "shm/", "mqueue/", "fuse", "kmsg", "log", "hugepages/"};
  for (const char* ring : rings)
    if (strncmp(name, ring, strlen(ring)) == 0) return false;
  if (strncmp(name, "/dev/", 5) != 0) return true;
  for (const char* device : quiet)
    if (strncmp(name + 5, device, strlen(device)) == 0) return true;
  return false;
}

bool has_harmless_mappings() {
  bool harmless = true;
  const bool read = each_line("/proc/self/maps", [&](const char* line) {
    int name = 0;
    sscanf(line, "%*s %*s %*s %*s %*s %n", &name);
    return harmless = name == 0 || is_harmless(line + name);
  });
  return read && harmless;
}

bool has_harmless_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (!folder) return false;
  bool harmless = true;
  while (const dirent* entry = harmless ? readdir(folder) : nullptr) {
    char target[256];
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
    if (length <= 0) continue;
    target[length] = 0;
    harmless = strncmp(target, "socket:[", 8) == 0 || is_harmless(target);
  }
  closedir(folder);
  return harmless;
}

/* Memory that the kernel counts as pinned. */
bool has_pinned() {
  bool found = false, pinned = false;
  each_line("/proc/self/status", [&](const char* line) {
    if (strncmp(line, "VmPin:", 6) != 0) return true;
    found = true;
    pinned = strtoull(line + 6, nullptr, 10) != 0;
    return false;
  });
  return pinned || !found;
}

}  // namespace

bool is_private_memory(Pages pages, bool by_text) {
  if (by_text) return is_private_by_text(pages);
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return false;
  bool done = true, has_query = true;
  for (uintptr_t at = pages.from; done && has_query && at < pages.to;) {
    MappingQuery query = {};
    query.size = sizeof(query);
    query.address = at;
    if (ioctl(maps, kQuery, &query) == 0) {
      done = !(query.vma_flags & kShared) && query.inode == 0 && query.page_size == page_bytes();
      at = static_cast<uintptr_t>(query.end);
    } else {
      has_query = errno == ENOENT;
      done = false;
    }
  }
  close(maps);
  return has_query ? done : is_private_by_text(pages);
}

/* Called by one thread at a time. */
bool may_be_pinned() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point looked{};
  static bool harmless = false;
  if (has_pinned()) return true;
  const auto now = Clock::now();
  if (!harmless || now - looked > kPatience) {
    harmless = has_harmless_descriptors() && has_harmless_mappings();
    looked = now;
  }
  return !harmless;
}

#else

bool is_private_memory(Pages, bool) { return false; }
bool may_be_pinned() { return true; }

#endif

}  // namespace dyncomp
