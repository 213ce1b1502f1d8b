/* Control groups, version 2 ("cpu.max", "memory.max") and version 1 (a hierarchy for each controller). A process in
 * a group of its own finds that group's path in /proc/self/cgroup; in a container the path may name a folder that
 * is not mounted here, and the limits are those of the root. */
#include "limits.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace dyncomp {
namespace {

/* Version 1 says so where there is no limit: the largest number of pages. */
constexpr double kNoLimit = 4e18;

void keep_least(double* least, double found) {
  if (found > 0 && (*least <= 0 || found < *least)) *least = found;
}

/* The first line of a file; empty if it cannot be read. */
std::string first_line(const std::string& path) {
  char text[64] = "";
  FILE* file = fopen(path.c_str(), "re");
  if (!file) return text;
  if (!fgets(text, sizeof text, file)) text[0] = '\0';
  fclose(file);
  return text;
}

/* 0 if it cannot be read or is no number ("max"). */
double number_in(const std::string& path) { return atof(first_line(path).c_str()); }

void look_at_unified(const std::string& folder, GroupLimits* limits) {
  double quota = 0;
  double period = 0;
  if (sscanf(first_line(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2 && period > 0)
    keep_least(&limits->cpus, quota / period);
  keep_least(&limits->bytes, number_in(folder + "/memory.max"));
}

void look_at_cpu(const std::string& folder, GroupLimits* limits) {
  const double period = number_in(folder + "/cpu.cfs_period_us");
  if (period > 0) keep_least(&limits->cpus, number_in(folder + "/cpu.cfs_quota_us") / period);
}

void look_at_memory(const std::string& folder, GroupLimits* limits) {
  const double bytes = number_in(folder + "/memory.limit_in_bytes");
  if (bytes < kNoLimit) keep_least(&limits->bytes, bytes);
}

using LookAt = void (*)(const std::string& folder, GroupLimits* limits);

/* The group and all above it, up to the root of its hierarchy. */
void look_upwards(const std::string& hierarchy, std::string group, LookAt look_at, GroupLimits* limits) {
  while (!group.empty() && group != "/") {
    look_at(hierarchy + group, limits);
    group.erase(group.rfind('/'));
  }
  look_at(hierarchy, limits);
}

bool lists(const std::string& controllers, const char* name) {
  return ("," + controllers + ",").find(std::string(",") + name + ",") != std::string::npos;
}

/* A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", or "0::/path". */
void look_at_line(const std::string& root, const std::string& line, GroupLimits* limits) {
  const size_t first = line.find(':');
  const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) return;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string group = line.substr(second + 1, line.find('\n') - second - 1);
  const std::string mounts = root + "/sys/fs/cgroup";
  if (controllers.empty()) look_upwards(mounts, group, look_at_unified, limits);
  if (lists(controllers, "cpu")) look_upwards(mounts + "/cpu", group, look_at_cpu, limits);
  if (lists(controllers, "memory")) look_upwards(mounts + "/memory", group, look_at_memory, limits);
}

}  // namespace

GroupLimits group_limits(const char* root) {
  GroupLimits limits = {0, 0};
  const std::string base = root;
  FILE* file = fopen((base + "/proc/self/cgroup").c_str(), "re");
  if (!file) return limits;
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, file) > 0) look_at_line(base, line, &limits);
  free(line);
  fclose(file);
  return limits;
}

}  // namespace dyncomp
