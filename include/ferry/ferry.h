/* Everything Ferry offers. */
#ifndef FERRY_FERRY_H
#define FERRY_FERRY_H

#include <ferry/balance.h>
#include <ferry/cell.h>
#include <ferry/collective.h>
#include <ferry/core.h>
#include <ferry/error.h>
#include <ferry/event.h>
#include <ferry/launch.h>
#include <ferry/member.h>
#include <ferry/memory.h>
#include <ferry/mover.h>
#include <ferry/mover_blocks.h>
#include <ferry/mover_file.h>
#include <ferry/object.h>
#include <ferry/trace.h>

#endif
