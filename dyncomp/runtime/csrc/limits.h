/* What the control groups of this process allow. */
#ifndef DYNCOMP_LIMITS_H
#define DYNCOMP_LIMITS_H

namespace dyncomp {

/* Processors' worth of time and bytes of memory; 0: as much as there is. */
struct GroupLimits {
  double cpus;
  double bytes;
};

/* The least that the group of this process and those above it allow. `root`: where /proc and /sys are found. */
GroupLimits group_limits(const char* root);

}  // namespace dyncomp
#endif
