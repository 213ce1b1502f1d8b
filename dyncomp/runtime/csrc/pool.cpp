/* A persistent pool with static shares and stealing.
 *
 * [0, n) is cut into grain-aligned chunks; each participant owns a contiguous share of them (so that
 * successive kernels find their data in the same core's cache) and steals from the others' shares when its
 * own is done. Workers spin briefly after work, then sleep on a futex. A job that a sleeping or descheduled
 * worker never joined ends without it: the caller does the rest, closes the job, and waits only for workers
 * that hold a chunk.
 *
 * Branches run on groups: each thread that comes leads a branch that nobody has begun, or else helps a leader by
 * taking part in the jobs of its branch, as a worker does in those of the pool. A group is a pool whose workers are
 * these helpers. Nobody waits for a branch that no thread runs.
 *
 * While tasks run (dyncomp/tasks) there are several pools, and each thread uses its part of the threads.
 */
#include "pool.h"

#include "blas.h"
#include "gemm/gemm.h"
#include "status.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <new>

namespace dyncomp {

Runtime runtime_table = {parallel_for, 1,       {},      blas_serial, nullptr, nullptr,   nullptr,
                         nullptr,      nullptr, nullptr, nullptr,     nullptr, 0,       next_step, run_branches};

namespace {

constexpr i64 kSpinNanoseconds = 30000;
constexpr i64 kChunksPerShare = 4;
/* A team whose members come so late has lost its cores to others; the pool's own workers are not waited for. */
constexpr i64 kTeamLateNanoseconds = 300000;
constexpr i64 kTeamPauseNanoseconds = 100000000;
constexpr size_t kWorkerStackBytes = 8u << 20;

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

i64 now_nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<i64>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/* Spin on `done` for a short while, then sleep on `word` until it leaves the value it had. */
template <class Done>
bool spin_until(Done done) {
  const i64 start = now_nanoseconds();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      cpu_relax();
    }
    if (now_nanoseconds() - start > kSpinNanoseconds) return done();
  }
}

struct alignas(64) Share {
  std::atomic<i64> next;
  i64 end;
};

/* `gate` is (epoch << 10) | (open << 9) | active workers: joining a job and closing it are one CAS each, so
 * no worker can enter a job that its caller has left. */
constexpr uint32_t kOpen = 1u << 9;
constexpr uint32_t kActiveMask = kOpen - 1;
constexpr uint32_t kEpochStep = 1u << 10;

struct Pool {
  std::atomic<int> busy{0};
  alignas(64) std::atomic<uint32_t> gate{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<uint32_t> caller_asleep{0};

  BodyFunction body = nullptr;
  void* ctx = nullptr;
  i64 n = 0;
  i64 chunk = 0;
  const Team* team = nullptr; /* of the job that runs on one */
  int participants = 0;
  std::atomic<unsigned> status{0}; /* floating-point errors of the job's other threads */
  int started = 0; /* workers created so far; workers have ids 1..started */
  Share shares[kMaxThreads];

  Pool* groups = nullptr; /* kMostBranches of them, once there were branches */
  /* Of a group: its helpers have ids 1..helpers. */
  std::atomic<int> helpers{0};
  std::atomic<bool> finished{false};
  int expected = 1; /* threads, the leader included */
};

/* The first serves a thread outside of tasks; the others are made when tasks first need them. */
constexpr int kMostPools = 16;
std::atomic<Pool*> pools[kMostPools];
std::atomic<int> tasks_running{0};
std::atomic<const Team*> shared_team{nullptr}; /* never freed: a kernel may be asking it for its threads */
std::atomic<i64> team_pause_ends{0};
i64 team_caller_done = 0; /* under `busy` */
bool is_child = false;
thread_local bool inside_body = false;
thread_local bool inside_task = false;
thread_local Pool* group = nullptr; /* of the branch that this thread leads */

void run_share(Pool* p, Share& share, int tid) {
  for (;;) {
    if (share.next.load(std::memory_order_relaxed) >= share.end) return;
    const i64 index = share.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= share.end) return;
    const i64 lo = index * p->chunk;
    const i64 hi = p->n - lo < p->chunk ? p->n : lo + p->chunk;
    p->body(p->ctx, lo, hi, tid);
  }
}

void participate(Pool* p, int tid) {
  inside_body = true;
  const int count = p->participants;
  for (int k = 0; k < count; ++k) {
    int victim = tid + k;
    if (victim >= count) victim -= count;
    run_share(p, p->shares[victim], tid);
  }
  inside_body = false;
}

/* As a thread other than the caller, whose own status gets what is seen there. */
void take_part(Pool* p, int tid) {
  clear_status();
  participate(p, tid);
  const unsigned bits = status_bits();
  if (bits) p->status.fetch_or(bits, std::memory_order_relaxed);
}

bool try_join(Pool* p, uint32_t seen) {
  if (!(seen & kOpen)) return false;
  return p->gate.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed);
}

void leave(Pool* p) {
  const uint32_t before = p->gate.fetch_sub(1, std::memory_order_seq_cst);
  const bool last = (before & kActiveMask) == 1;
  if (last && !(before & kOpen) && p->caller_asleep.load(std::memory_order_seq_cst)) futex_wake(&p->gate, INT_MAX);
}

/* Takes part in one job after another, as number `tid`, until `ended`. */
template <class Ended>
void serve(Pool* p, int tid, Ended ended) {
  constexpr uint32_t kNone = UINT32_MAX;
  uint32_t done_epoch = kNone;
  while (!ended()) {
    uint32_t seen = 0;
    auto has_work = [&] {
      seen = p->gate.load(std::memory_order_acquire);
      return (seen & kOpen) && seen / kEpochStep != done_epoch;
    };
    if (!has_work() && !spin_until([&] { return has_work() || ended(); })) {
      p->sleepers.fetch_add(1, std::memory_order_seq_cst);
      seen = p->gate.load(std::memory_order_seq_cst);
      if (!((seen & kOpen) && seen / kEpochStep != done_epoch) && !ended()) futex_wait(&p->gate, seen);
      p->sleepers.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    if (!try_join(p, seen)) continue;
    done_epoch = seen / kEpochStep;
    /* Participants may be fewer than workers after set_num_threads. */
    if (tid < p->participants) take_part(p, tid);
    leave(p);
  }
}

struct WorkerArguments {
  Pool* pool;
  int tid;
};

void* worker_main(void* raw) {
  WorkerArguments* arguments = static_cast<WorkerArguments*>(raw);
  Pool* const p = arguments->pool;
  const int tid = arguments->tid;
  delete arguments;
  serve(p, tid, [] { return false; });
  return nullptr;
}

bool start_worker(Pool* p, int tid) {
  WorkerArguments* arguments = new (std::nothrow) WorkerArguments{p, tid};
  if (!arguments) return false;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
  /* Signals belong to the main thread, as Python expects. */
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, worker_main, arguments);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  if (failed) delete arguments;
  return !failed;
}

/* Under `busy`. The number of threads that can take part: fewer than asked if the system refuses more. */
int ensure_workers(Pool* p, int threads) {
  while (p->started < threads - 1) {
    if (!start_worker(p, p->started + 1)) break;
    p->started += 1;
  }
  return p->started + 1 < threads ? p->started + 1 : threads;
}

void deal_shares(Pool* p, i64 chunks, int threads) {
  const i64 each = chunks / threads;
  const i64 extra = chunks % threads;
  i64 begin = 0;
  for (int t = 0; t < threads; ++t) {
    const i64 end = begin + each + (t < extra ? 1 : 0);
    p->shares[t].next.store(begin, std::memory_order_relaxed);
    p->shares[t].end = end;
    begin = end;
  }
}

void wait_for_workers(Pool* p) {
  uint32_t seen = 0;
  auto idle = [&] {
    seen = p->gate.load(std::memory_order_acquire);
    return (seen & kActiveMask) == 0;
  };
  if (idle() || spin_until(idle)) return;
  p->caller_asleep.store(1, std::memory_order_seq_cst);
  while (!idle()) futex_wait(&p->gate, seen);
  p->caller_asleep.store(0, std::memory_order_seq_cst);
}

/* Under `busy`. Divides the work. */
void prepare(Pool* p, BodyFunction body, void* ctx, i64 n, i64 grain, int threads) {
  const i64 blocks = (n - 1) / grain + 1;
  i64 blocks_per_chunk = blocks / (threads * kChunksPerShare);
  if (blocks_per_chunk < 1) blocks_per_chunk = 1;
  const i64 chunk = blocks_per_chunk * grain;
  const i64 chunks = (n - 1) / chunk + 1;
  if (threads > chunks) threads = static_cast<int>(chunks);
  p->body = body;
  p->ctx = ctx;
  p->n = n;
  p->chunk = chunk;
  p->participants = threads;
  deal_shares(p, chunks, threads);
}

void run_on_workers(Pool* p) {
  /* Opening publishes the job: nothing is active here, so the new value is exact. */
  const uint32_t epoch = p->gate.load(std::memory_order_relaxed) / kEpochStep;
  p->gate.store((epoch + 1) * kEpochStep | kOpen, std::memory_order_seq_cst);
  if (p->sleepers.load(std::memory_order_seq_cst)) futex_wake(&p->gate, INT_MAX);
  participate(p, 0);
  p->gate.fetch_and(~kOpen, std::memory_order_seq_cst);
  wait_for_workers(p);
}

void team_member(void* raw) {
  Pool* const p = static_cast<Pool*>(raw);
  const int tid = p->team->thread_number();
  if (tid == 0)
    participate(p, 0);
  else if (tid < p->participants)
    take_part(p, tid);
  if (tid == 0) team_caller_done = now_nanoseconds();
}

/* Under `busy`. An OpenMP region ends when all of its threads have come, though the others have done the work. */
void run_on_team(Pool* p, const Team* team) {
  p->team = team;
  team->parallel(team_member, p, p->participants, 0);
  const i64 end = now_nanoseconds();
  if (end - team_caller_done > kTeamLateNanoseconds) team_pause_ends.store(end + kTeamPauseNanoseconds);
}

bool is_team_late() {
  const i64 ends = team_pause_ends.load(std::memory_order_relaxed);
  return ends && now_nanoseconds() <= ends;
}

/* The child has only the forking thread: a new pool starts its workers when first used. The old ones leak;
 * their memory may be in any state. OpenMP's threads are gone, too. */
void after_fork_in_child() {
  for (std::atomic<Pool*>& each : pools) each.store(nullptr, std::memory_order_relaxed);
  pools[0].store(new (std::nothrow) Pool(), std::memory_order_relaxed);
  shared_team.store(nullptr, std::memory_order_relaxed);
  tasks_running.store(inside_task ? 1 : 0, std::memory_order_relaxed);
  is_child = true;
  inside_body = false;
  group = nullptr;
  blas_after_fork_in_child();
}

/* The threads that a job of this thread may have: while tasks run, its part. */
int wanted_threads() {
  const int all = runtime_table.num_threads;
  const int tasks = tasks_running.load(std::memory_order_relaxed);
  const int users = inside_task ? tasks : tasks + 1;
  return users <= 1 ? all : (all > users ? all / users : 1);
}

/* A pool that no other job uses, made `busy`; NULL if there is none. */
Pool* take_pool() {
  const int most = tasks_running.load(std::memory_order_relaxed) ? kMostPools : 1;
  for (int k = 0; k < most; ++k) {
    Pool* p = pools[k].load(std::memory_order_acquire);
    if (!p && k) {
      Pool* const made = new (std::nothrow) Pool();
      if (!made) return nullptr;
      if (pools[k].compare_exchange_strong(p, made, std::memory_order_acq_rel))
        p = made;
      else
        delete made;
    }
    if (p && !p->busy.exchange(1, std::memory_order_acquire)) return p;
  }
  return nullptr;
}

void return_pool(Pool* p) { p->busy.store(0, std::memory_order_release); }

/* What other threads saw in the job that has ended. */
void take_status(Pool* p) {
  if (p->status.load(std::memory_order_relaxed)) raise_status(p->status.exchange(0, std::memory_order_relaxed));
}

/* Under `busy`: a job of as many threads as are wanted and can be had; false if that is one. */
bool run_on_pool(Pool* p, BodyFunction body, void* ctx, i64 n, i64 grain, int wanted) {
  /* A task's own thread would get a team of its own. */
  const Team* const team = inside_task ? nullptr : shared_team.load(std::memory_order_acquire);
  if (team) {
    const int most = team->most_threads();
    if (most < wanted) wanted = most;
  }
  if (wanted <= 1) return false;
  const bool on_team = team && !is_team_late();
  const int threads = on_team ? wanted : ensure_workers(p, wanted);
  if (threads <= 1) return false;
  prepare(p, body, ctx, n, grain, threads);
  if (on_team)
    run_on_team(p, team);
  else
    run_on_workers(p);
  take_status(p);
  return true;
}

/* -- branches ------------------------------------------------------------------------------------------------ */

constexpr int kMostBranches = 16;

struct Branches {
  void (*run)(void* ctx, i64 branch);
  void* ctx;
  int count;
  Pool* groups;
  std::atomic<int> next{0};
};

void lead(Branches& branches, int branch) {
  Pool* const mine = &branches.groups[branch];
  group = mine;
  inside_body = false;
  branches.run(branches.ctx, branch);
  inside_body = true;
  group = nullptr;
  mine->finished.store(true, std::memory_order_seq_cst);
  /* Helpers that fall asleep now see another gate. */
  mine->gate.fetch_add(kEpochStep, std::memory_order_seq_cst);
  if (mine->sleepers.load(std::memory_order_seq_cst)) futex_wake(&mine->gate, INT_MAX);
}

/* The branch that is not finished and has the fewest helpers, or NULL. */
Pool* find_group(const Branches& branches) {
  Pool* found = nullptr;
  int fewest = INT_MAX;
  for (int k = 0; k < branches.count; ++k) {
    Pool* const each = &branches.groups[k];
    if (each->finished.load(std::memory_order_acquire)) continue;
    const int helpers = each->helpers.load(std::memory_order_relaxed);
    if (helpers >= fewest) continue;
    fewest = helpers;
    found = each;
  }
  return found;
}

void help(Pool* leaders) {
  const int tid = leaders->helpers.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (tid >= kMaxThreads) return;
  const unsigned before = status_bits(); /* of the branches that this thread has led */
  serve(leaders, tid, [leaders] { return leaders->finished.load(std::memory_order_seq_cst); });
  inside_body = true; /* of the job that the branches are */
  raise_status(before);
}

void take_branches(void* raw, i64, i64, int) {
  Branches& branches = *static_cast<Branches*>(raw);
  for (;;) {
    const int branch = branches.next.fetch_add(1, std::memory_order_relaxed);
    if (branch >= branches.count) break;
    lead(branches, branch);
  }
  while (Pool* const found = find_group(branches)) help(found);
}

bool make_groups(Pool* p, int count, int threads) {
  if (!p->groups) p->groups = new (std::nothrow) Pool[kMostBranches];
  if (!p->groups) return false;
  for (int k = 0; k < count; ++k) {
    p->groups[k].helpers.store(0, std::memory_order_relaxed);
    p->groups[k].finished.store(false, std::memory_order_relaxed);
    p->groups[k].expected = threads > count ? threads / count : 1;
  }
  return true;
}

}  // namespace

void parallel_for(BodyFunction body, void* ctx, i64 n, i64 grain) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain || inside_body) {
    body(ctx, 0, n, 0);
    return;
  }
  if (group) {
    const int threads = group->helpers.load(std::memory_order_acquire) + 1;
    if (threads <= 1) {
      body(ctx, 0, n, 0);
      return;
    }
    prepare(group, body, ctx, n, grain, threads < kMaxThreads ? threads : kMaxThreads);
    run_on_workers(group);
    take_status(group);
    return;
  }
  const int wanted = wanted_threads();
  Pool* const p = wanted > 1 ? take_pool() : nullptr;
  const bool shared = p && run_on_pool(p, body, ctx, n, grain, wanted);
  if (!shared) body(ctx, 0, n, 0);
  if (p) return_pool(p);
}

void run_branches(void (*run)(void* ctx, i64 branch), void* ctx, i64 count) {
  const int wanted = wanted_threads();
  Pool* const p = count > 1 && count <= kMostBranches && wanted > 1 && !inside_body && !group ? take_pool() : nullptr;
  bool shared = false;
  if (p && make_groups(p, static_cast<int>(count), wanted)) {
    Branches branches = {run, ctx, static_cast<int>(count), p->groups};
    shared = run_on_pool(p, take_branches, &branches, wanted, 1, wanted);
  }
  if (p) return_pool(p);
  if (shared) return;
  for (i64 branch = 0; branch < count; ++branch) run(ctx, branch);
}

void enter_task() {
  inside_task = true;
  tasks_running.fetch_add(1, std::memory_order_relaxed);
}

void leave_task() {
  inside_task = false;
  tasks_running.fetch_sub(1, std::memory_order_relaxed);
}

int running_tasks() { return tasks_running.load(std::memory_order_relaxed); }

bool share_threads(const Team& with) {
  if (is_child) return false;
  const Team* const team = with.parallel ? new (std::nothrow) Team(with) : nullptr;
  team_pause_ends.store(0); /* another team was late */
  shared_team.store(team, std::memory_order_release);
  return team || !with.parallel;
}

int num_threads() { return runtime_table.num_threads; }

int threads_here() { return group ? group->expected : wanted_threads(); }

void set_num_threads(int count) { runtime_table.num_threads = count; }

void initialize_pool() {
  if (pools[0].load(std::memory_order_relaxed)) return;
  pools[0].store(new (std::nothrow) Pool(), std::memory_order_release);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

void use_products(const GemmSet* gemm) {
  runtime_table.gemm_f32 = gemm->f32;
  runtime_table.gemm_f64 = gemm->f64;
  runtime_table.chain_f32 = gemm->chain_f32;
  runtime_table.chain_f64 = gemm->chain_f64;
  runtime_table.rows_f32 = gemm->rows_f32;
  runtime_table.rows_f64 = gemm->rows_f64;
  runtime_table.gemm_bf16 = gemm->bf16;
  runtime_table.gemm_i8 = gemm->i8;
}

}  // namespace dyncomp
