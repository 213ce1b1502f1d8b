/* What the kernel says of this process's memory: see mappings.cpp. */
#ifndef DYNCOMP_MAPPINGS_H
#define DYNCOMP_MAPPINGS_H
#include <cstdint>

#include "watch.h"

namespace dyncomp {

/* Whether all of it is private and anonymous; `by_text`: read in the text of /proc/self/maps, as is done where the
 * kernel has no query for it. */
bool is_private_memory(Pages pages, bool by_text = false);

/* Whether pages of this process are pinned, or may be by what it has open: devices, and rings through which the
 * kernel writes later on. */
bool may_be_pinned();

}  // namespace dyncomp
#endif
