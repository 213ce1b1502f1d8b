/* The whole product for one instruction set: see gemm.h. No header with inline functions may come after the
 * target pragma, lest the linker keep this file's version of them for everybody. */

namespace dyncomp {
namespace {

#include "extend.h"

#include "tile.h"

#include "pack.h"

#include "windows.h"

#include "blocks.h"

#include "blocking.h"

#include "product.h"

#include "terms.h"

#include "planes.h"

#include "shifts.h"

#include "winograd_sums.h"

#include "winograd.h"

#include "depth.h"

#include "places.h"

#include "few_places.h"

#include "small_images.h"

#include "pairs.h"

#include "vector.h"

#include "multiply.h"

#ifndef DYNCOMP_WITHOUT_F32
#include "widen.h"
#endif

#ifndef DYNCOMP_WITHOUT_I8
#include "bytes.h"
#endif

#include "softmax.h"

#include "chain.h"

#include "rows.h"

}  // namespace
}  // namespace dyncomp
