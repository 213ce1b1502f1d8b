/* Copies of operands that stay as they are from call to call: the weights of a model, packed for a product.
 *
 * A copy belongs to a place in memory, not to an array: it is right as long as nothing was written there since it
 * was made, whoever owned the place meanwhile. The kernel says so of whole pages (watch.h); what lies on the pages at
 * both ends, together with other data, is compared. A matrix is copied when it was seen a few times; each time that
 * it was written to, it must be seen more often before it is copied again, so that what changes at every call costs
 * nothing in the long run. Copies are bounded: while others are in use none is made in excess. */
#include "kept.h"

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "memory.h"
#include "watch.h"

namespace dyncomp {
namespace {

/* Calls until a matrix is copied; how many times more after each change; the most. */
constexpr unsigned kSightings = 3, kMoreSightings = 4, kSightingsMost = 1u << 24;
/* Matrices known at most, and calls without use for each other one known after which one is dropped. */
constexpr size_t kMatrices = 4096;
constexpr unsigned long kIdleCalls = 16;

struct Copy {
  void* data;
  size_t bytes;
  std::atomic<int> uses; /* the table's own included */
};

void let_go(Copy* copy) {
  if (copy->uses.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  scratch_free(copy->data);
  delete copy;
}

struct Hash {
  size_t operator()(const KeptKey& key) const {
    size_t value = reinterpret_cast<size_t>(key.data);
    for (const i64 part : {key.rows, key.cols, key.row_step, key.col_step, key.item, key.panel, key.tag})
      value = (value ^ static_cast<size_t>(part)) * 0x9E3779B97F4A7C15u;
    return value ^ (value >> 29);
  }
};

struct Same {
  bool operator()(const KeptKey& a, const KeptKey& b) const { return memcmp(&a, &b, sizeof(a)) == 0; }
};

enum class State { kSeen, kFilling, kKept };

struct Matrix {
  State state = State::kSeen;
  unsigned seen = 0, wanted = kSightings;
  unsigned long last = 0;
  bool spoilt = false; /* written to while it was copied */
  Copy* copy = nullptr;
  Pages pages = {0, 0};
  std::vector<char> head, tail; /* what lies on pages together with other data */
  std::vector<char> sides;      /* what else the copy is made of */
};

struct Extent {
  const char *from, *to;
};

Extent extent_of(const KeptKey& key) {
  const i64 elements = (key.rows - 1) * key.row_step + (key.cols - 1) * key.col_step + 1;
  const char* const from = static_cast<const char*>(key.data);
  return {from, from + elements * key.item};
}

Pages pages_in(Extent extent) {
  const uintptr_t page = page_bytes();
  const uintptr_t from = (reinterpret_cast<uintptr_t>(extent.from) + page - 1) / page * page;
  const uintptr_t to = reinterpret_cast<uintptr_t>(extent.to) / page * page;
  return {from, to < from ? from : to};
}

class Table {
 public:
  KeptUse take(const KeptKey& key, const KeptSides& sides, size_t bytes, FillFunction fill, const void* context) {
    std::unique_lock<std::mutex> hold(mutex_);
    Copy* copy = nullptr;
    try {
      Matrix* const known = find(key);
      if (!known) return {nullptr, nullptr};
      const KeptUse use = look_up(key, sides, *known);
      if (use.copy) return use;
      if (known->state != State::kSeen || ++known->seen < known->wanted) return {nullptr, nullptr};
      copy = begin(key, sides, *known, bytes);
    } catch (const std::bad_alloc&) {
    }
    if (!copy) return {nullptr, nullptr};
    hold.unlock();
    fill(context, copy->data);
    hold.lock();
    return end(key, copy);
  }

  KeptCounts counts() {
    std::lock_guard<std::mutex> hold(mutex_);
    return {can_watch(), copies_, bytes_, hits_, changed_};
  }

  size_t release() {
    std::lock_guard<std::mutex> hold(mutex_);
    const size_t before = bytes_;
    drop_idle(0);
    return before - bytes_;
  }

 private:
  /* The copy of a matrix that is as it was. */
  KeptUse look_up(const KeptKey& key, const KeptSides& sides, Matrix& known) {
    known.last = ++calls_;
    if (known.state != State::kKept) return {nullptr, nullptr};
    if (unchanged(key, known) && same_sides(sides, known.sides)) return used(known);
    forget(known);
    return {nullptr, nullptr};
  }

  /* NULL where too many are known. */
  Matrix* find(const KeptKey& key) {
    const auto found = matrices_.find(key);
    if (found != matrices_.end()) return &found->second;
    if (matrices_.size() >= kMatrices) drop_idle(kIdleCalls * matrices_.size());
    if (matrices_.size() >= kMatrices) return nullptr;
    return &matrices_[key];
  }

  KeptUse used(Matrix& matrix) {
    ++hits_;
    matrix.copy->uses.fetch_add(1, std::memory_order_relaxed);
    return {matrix.copy->data, matrix.copy};
  }

  static bool is_same(const char* from, const std::vector<char>& was) {
    return was.empty() || memcmp(from, was.data(), was.size()) == 0;
  }

  static bool same_sides(const KeptSides& sides, const std::vector<char>& were) {
    size_t at = 0;
    for (int k = 0; k < sides.count; ++k) {
      const size_t bytes = static_cast<size_t>(sides.bytes[k]);
      if (bytes && memcmp(sides.data[k], were.data() + at, bytes) != 0) return false;
      at += bytes;
    }
    return true;
  }

  static void keep_sides(const KeptSides& sides, std::vector<char>& to) {
    to.clear();
    for (int k = 0; k < sides.count; ++k) {
      const char* const from = static_cast<const char*>(sides.data[k]);
      to.insert(to.end(), from, from + sides.bytes[k]);
    }
  }

  bool unchanged(const KeptKey& key, const Matrix& matrix) const {
    const Extent extent = extent_of(key);
    return is_same(extent.from, matrix.head) && is_same(extent.to - matrix.tail.size(), matrix.tail) &&
           still_the_same(matrix.pages);
  }

  /* Watches a matrix; the memory for its copy, or NULL. What lies at its ends is kept as it is before it is copied:
   * it is found changed if it is written to meanwhile. */
  Copy* begin(const KeptKey& key, const KeptSides& sides, Matrix& matrix, size_t bytes) {
    matrix.seen = 0;
    const Extent extent = extent_of(key);
    const Pages pages = pages_in(extent);
    if (pages.from == pages.to || !make_room(bytes)) return nullptr;
    std::unique_ptr<Copy> copy(new Copy{nullptr, bytes, {1}});
    matrix.pages = pages;
    matrix.head.assign(extent.from, reinterpret_cast<const char*>(pages.from));
    matrix.tail.assign(reinterpret_cast<const char*>(pages.to), extent.to);
    keep_sides(sides, matrix.sides);
    if (!watch(pages)) {
      seen_more(matrix);
      if (!shared(matrix)) stop_watching(pages);
      return nullptr;
    }
    copy->data = scratch_allocate(bytes);
    if (!copy->data) return nullptr;
    matrix.state = State::kFilling;
    matrix.spoilt = false;
    bytes_ += bytes;
    return copy.release();
  }

  KeptUse end(const KeptKey& key, Copy* copy) {
    Matrix& matrix = matrices_.find(key)->second; /* those being filled stay in the table */
    matrix.state = State::kKept;
    matrix.copy = copy;
    ++copies_;
    if (matrix.spoilt || !unchanged(key, matrix) || !is_of_this_process_alone(matrix.pages)) {
      forget(matrix);
      return {nullptr, nullptr};
    }
    return used(matrix);
  }

  /* Others on the same pages that were written to would look unchanged from now on. */
  bool watch(Pages pages) {
    std::vector<Pages> written;
    const std::vector<Pages> everything = {pages};
    bool done = false;
    try {
      done = watch_pages(pages, &written);
    } catch (const std::bad_alloc&) {
    }
    for (auto& item : matrices_)
      if (item.second.state != State::kSeen && touches(item.second.pages, done ? written : everything))
        forget(item.second);
    return done;
  }

  static bool touches(Pages pages, const std::vector<Pages>& others) {
    for (const Pages& other : others)
      if (other.from < pages.to && pages.from < other.to) return true;
    return false;
  }

  /* A matrix was written to. */
  void forget(Matrix& matrix) {
    if (matrix.state == State::kFilling) {
      matrix.spoilt = true;
      return;
    }
    ++changed_;
    seen_more(matrix);
    drop(matrix);
  }

  static void seen_more(Matrix& matrix) {
    if (matrix.wanted < kSightingsMost) matrix.wanted *= kMoreSightings;
  }

  void drop(Matrix& matrix) {
    --copies_;
    bytes_ -= matrix.copy->bytes;
    let_go(matrix.copy);
    matrix.copy = nullptr;
    matrix.state = State::kSeen;
    matrix.seen = 0;
    if (!shared(matrix)) stop_watching(matrix.pages);
  }

  bool shared(const Matrix& matrix) const {
    for (const auto& item : matrices_)
      if (item.second.state != State::kSeen && touches(matrix.pages, {item.second.pages})) return true;
    return false;
  }

  bool make_room(size_t bytes) {
    const size_t limit = cache_limit();
    if (bytes_ + bytes > limit) drop_idle(kIdleCalls * matrices_.size());
    return bytes_ + bytes <= limit;
  }

  /* Those not used for more than so many calls. */
  void drop_idle(unsigned long patience) {
    for (auto item = matrices_.begin(); item != matrices_.end();) {
      Matrix& matrix = item->second;
      const bool idle = calls_ - matrix.last >= patience && matrix.state != State::kFilling;
      if (idle && matrix.state == State::kKept) drop(matrix);
      item = idle ? matrices_.erase(item) : std::next(item);
    }
  }

  std::mutex mutex_;
  std::unordered_map<KeptKey, Matrix, Hash, Same> matrices_;
  unsigned long calls_ = 0;
  size_t copies_ = 0, bytes_ = 0, hits_ = 0, changed_ = 0;
};

/* Never destroyed, and left behind by the child of a fork: what was watched is not watched there. */
Table* table;

void after_fork_in_child() {
  forget_watches();
  table = new Table();
}

}  // namespace

KeptUse kept_take(const KeptKey& key, const KeptSides& sides, size_t bytes, FillFunction fill, const void* context) {
  return table->take(key, sides, bytes, fill, context);
}

void kept_give_back(KeptUse use) {
  if (use.copy) let_go(static_cast<Copy*>(use.copy));
}

KeptCounts kept_counts() { return table->counts(); }

size_t kept_release() { return table->release(); }

void initialize_kept() {
  if (table) return;
  table = new Table();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

}  // namespace dyncomp
