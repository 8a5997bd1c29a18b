/* Everything Ferry offers. */
#ifndef FERRY_FERRY_H
#define FERRY_FERRY_H

#include <ferry/background.h>
#include <ferry/balance.h>
#include <ferry/cell.h>
#include <ferry/collection.h>
#include <ferry/collective.h>
#include <ferry/convert.h>
#include <ferry/core.h>
#include <ferry/directory.h>
#include <ferry/error.h>
#include <ferry/group.h>
#include <ferry/launch.h>
#include <ferry/member.h>
#include <ferry/memory.h>
#include <ferry/mover.h>
#include <ferry/mover_blocks.h>
#include <ferry/mover_file.h>
#include <ferry/object.h>
#include <ferry/percolation.h>
#include <ferry/scheduler.h>
#include <ferry/store.h>
#include <ferry/trace.h>
#include <ferry/two_sided.h>
#include <ferry/window.h>
#include <ferry/window_blocks.h>

#endif
